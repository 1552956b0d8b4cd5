"""Reads the probe results that are to be compared, and finds out whether they may be."""

from __future__ import annotations

import csv
import json
import math
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from babyssa.errors import ConfigError, DataError
from babyssa.files import check_checksums, read_json

_SUMMARY_TYPES = {
    "model": (str,),
    "variant": (str,),
    "seed": (int, type(None)),
    "suite": (str,),
    "suite_sha256": (str,),
    "model_sha256": (str, type(None)),
    "method": (str,),
    "reduction": (str, type(None)),
    "n_pairs": (int,),
    "accuracy": (int, float),
    "paradigms": (list,),
    "versions": (dict,),
}
# Not in the results of early versions, which computed everything in float32.
_OPTIONAL_TYPES = {"tokenizer_sha256": (str, type(None)), "precision": (str,)}
EARLY_VERSIONS = {"precision": "float32"}
_PARADIGM_TYPES = {
    "name": (str,),
    "phenomenon": (str,),
    "n_pairs": (int,),
    "accuracy": (int, float),
    "ties": (int,),
}
_MUST_AGREE = {
    "suite_sha256": "suite",
    "method": "method",
    "reduction": "reduction",
    "precision": "precision",
    "tokenizer_sha256": "tokenizer",
}
_COLUMNS = ("paradigm", "pair", "good", "bad", "score_good", "score_bad")
_TOLERANCE = 1e-9
_PROBE_AGAIN = "the result is damaged: probe this model again"

# Paradigm, grammatical and ungrammatical sentence, and which of equal pairs: the same pair in any result,
# however it is numbered there.
Pair = tuple[str, str, str, int]


@dataclass(frozen=True)
class StoredResult:
    """One probed model: what summary.json says, and the outcome of each pair (1 right, 0.5 tie, 0 wrong)."""

    folder: Path
    summary: dict[str, Any]
    outcomes: dict[Pair, float]

    @property
    def variant(self) -> str:
        return self.summary["variant"]

    @property
    def seed(self) -> int | None:
        return self.summary["seed"]

    @property
    def model_sha256(self) -> str | None:
        return self.summary["model_sha256"]

    @property
    def phenomena(self) -> dict[str, str]:
        """The phenomenon of every paradigm."""
        return {p["name"]: p["phenomenon"] for p in self.summary["paradigms"]}


def find_results(folders: Iterable[str | Path]) -> list[Path]:
    """The folders in and under `folders` that hold a summary.json, each once, sorted within each of `folders`.

    Raises
    ------
    ConfigError
        If no folder is given.
    DataError
        If one of them does not exist, or holds no result.
    """
    if isinstance(folders, (str, Path)):
        folders = [folders]
    found: dict[Path, Path] = {}
    for folder in map(Path, folders):
        if not folder.is_dir():
            what = "is a file, not a folder of probe results" if folder.exists() else "no such folder"
            raise DataError(what, path=folder, remedy="name folders that 'babyssa probe --out' wrote")
        here = sorted(Path(root) for root, _, files in os.walk(folder) if "summary.json" in files)
        if not here:
            raise DataError(
                "no summary.json in or under this folder",
                path=folder,
                remedy="name a folder written by 'babyssa probe'",
            )
        for path in here:
            found.setdefault(path.resolve(), path)
    if not found:
        raise ConfigError(
            "no folder of probe results given", remedy="name one folder per probed model, or their parent"
        )
    return list(found.values())


def read_result(folder: str | Path) -> StoredResult:
    """Read one probe result, and check that its summary is what its pairs give.

    Raises
    ------
    DataError
        If a file is missing, broken, or disagrees with the other.
    DamageError
        If a file is not what the folder's checksums say that it was.
    """
    folder = Path(folder)
    check_checksums(folder)
    summary = read_json(folder / "summary.json")
    _check_types(summary, _SUMMARY_TYPES, folder / "summary.json", "")
    present = {key: kinds for key, kinds in _OPTIONAL_TYPES.items() if key in summary}
    _check_types(summary, present, folder / "summary.json", "")
    names: Counter = Counter()
    for index, paradigm in enumerate(summary["paradigms"]):
        _check_types(paradigm, _PARADIGM_TYPES, folder / "summary.json", f"paradigms[{index}].")
        names[paradigm["name"]] += 1
    if not names or max(names.values()) > 1:
        what = "lists no paradigm" if not names else f"lists the paradigm '{names.most_common(1)[0][0]}' twice"
        raise DataError(what, path=folder / "summary.json", remedy=_PROBE_AGAIN)
    outcomes = _read_pairs(folder / "pairs.csv")
    _check_agreement(folder, summary, outcomes)
    return StoredResult(folder, EARLY_VERSIONS | summary, outcomes)


def check_comparable(results: Sequence[StoredResult], allow_mixed: bool) -> tuple[list[Pair], list[str]]:
    """The pairs that all results have, in the order of the first, and what is mixed in them.

    Raises
    ------
    DataError
        If the results differ in suite, method, reduction, precision, tokenizer or pairs, or if a variant has a
        seed twice, unless `allow_mixed`; or if they have no pair in common.
    """
    first, notes = results[0], []
    remedy = "compare results that agree in it, or pass --allow-mixed"
    for key, label in _MUST_AGREE.items():
        # An early version's result, or a slow tokenizer, has no hash to compare.
        known = [r for r in results if key != "tokenizer_sha256" or r.summary.get(key) is not None]
        hashed = key.endswith("_sha256")
        for other in known[1:]:
            if other.summary[key] != known[0].summary[key] and not allow_mixed:
                show = _short_hash if hashed else repr
                raise DataError(
                    f"its {label} is {show(other.summary[key])}, but {show(known[0].summary[key])} "
                    f"in {known[0].folder}",
                    path=other.folder,
                    remedy=remedy,
                )
        values = sorted({str(r.summary[key]) for r in known})
        if len(values) > 1:
            listed = f"{len(values)} {label}s" if hashed else f"{label}s {', '.join(values)}"
            notes.append(f"the results mix {listed}")
        if known and len(known) < len(results):
            unknown = len(results) - len(known)
            notes.append(f"the {label} of {unknown} result{'s' * (unknown > 1)} is unknown")
    for other in results[1:]:
        if other.outcomes.keys() != first.outcomes.keys() and not allow_mixed:
            missing = len(first.outcomes.keys() - other.outcomes.keys())
            extra = len(other.outcomes.keys() - first.outcomes.keys())
            raise DataError(
                f"its pairs are not those of {first.folder} ({missing} missing, {extra} more)",
                path=other.folder,
                remedy="probe the same suite, or pass --allow-mixed to compare the common pairs only",
            )
    seen: dict[tuple, StoredResult] = {}
    for result in results:
        run = (result.variant, result.seed)
        if run in seen and not allow_mixed:
            seed = "without a seed" if result.seed is None else f"seed {result.seed}"
            raise DataError(
                f"variant '{result.variant}' {seed} is already in {seen[run].folder}",
                path=result.folder,
                remedy="leave one of them out, or pass --allow-mixed",
            )
        seen.setdefault(run, result)
    pairs = [pair for pair in first.outcomes if all(pair in other.outcomes for other in results[1:])]
    if not pairs:
        raise DataError("the results have no pair in common", path=first.folder, remedy="probe the same suite")
    most = max(len(result.outcomes) for result in results)
    if len(pairs) < most or any(len(result.outcomes) > len(pairs) for result in results):
        paradigms = len({pair[0] for pair in pairs})
        notes.append(f"only the {len(pairs)} pairs of {paradigms} paradigms that all results have are compared")
    return pairs, notes


def _check_types(value: Any, types: dict[str, tuple], path: Path, prefix: str) -> None:
    if not isinstance(value, dict):
        raise DataError(f"{prefix or 'the whole '}is not a JSON object", path=path, remedy=_PROBE_AGAIN)
    missing = [key for key in types if key not in value]
    if missing:
        keys = ", ".join(f"'{prefix}{key}'" for key in missing)
        raise DataError(f"lacks {keys}", path=path, remedy="is it a summary of 'babyssa probe'? probe again")
    for key, kinds in types.items():
        found = value[key]
        wrong = not isinstance(found, kinds) or isinstance(found, bool)
        if wrong or (isinstance(found, float) and not math.isfinite(found)):
            shown = json.dumps(found)[:40]
            raise DataError(
                f"'{prefix}{key}' has the wrong kind of value: {shown}", path=path, remedy=_PROBE_AGAIN
            )


def _read_pairs(path: Path) -> dict[Pair, float]:
    outcomes: dict[Pair, float] = {}
    repeats: Counter = Counter()
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            missing = [name for name in _COLUMNS if name not in header]
            if missing:
                raise DataError(f"lacks the columns {', '.join(missing)}", path=path, line=1, remedy=_PROBE_AGAIN)
            paradigm, good, bad, score_good, score_bad = (header.index(n) for n in _COLUMNS if n != "pair")
            for row in reader:
                if len(row) != len(header):
                    raise DataError(
                        f"{len(row)} fields where the header has {len(header)}",
                        path=path,
                        line=reader.line_num,
                        remedy=_PROBE_AGAIN,
                    )
                better = _score(row[score_good], path, reader.line_num)
                worse = _score(row[score_bad], path, reader.line_num)
                pair = (sys.intern(row[paradigm]), sys.intern(row[good]), sys.intern(row[bad]), 0)
                if pair in outcomes:
                    repeats[pair] += 1
                    pair = (*pair[:3], repeats[pair])
                outcomes[pair] = float(better > worse) if better != worse else 0.5
            return outcomes
    except FileNotFoundError:
        raise DataError("no such file beside summary.json", path=path, remedy=_PROBE_AGAIN) from None
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8 ({error.reason})", path=path, remedy=_PROBE_AGAIN) from None
    except csv.Error as error:
        raise DataError(f"broken CSV: {error}", path=path, line=reader.line_num, remedy=_PROBE_AGAIN) from None


def _score(text: str, path: Path, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(
            f"the score '{text[:40]}' is not a finite number", path=path, line=line, remedy=_PROBE_AGAIN
        )
    return value


def _check_agreement(folder: Path, summary: dict[str, Any], outcomes: dict[Pair, float]) -> None:
    """Recount accuracies from the pairs: a summary that says something else belongs to other pairs."""
    of_paradigm: dict[str, list[float]] = {p["name"]: [] for p in summary["paradigms"]}
    for pair, outcome in outcomes.items():
        if pair[0] not in of_paradigm:
            raise DataError(
                f"pairs.csv has the paradigm '{pair[0]}', summary.json not", path=folder, remedy=_PROBE_AGAIN
            )
        of_paradigm[pair[0]].append(outcome)
    accuracies = []
    for paradigm in summary["paradigms"]:
        name, counted = paradigm["name"], of_paradigm[paradigm["name"]]
        if len(counted) != paradigm["n_pairs"] or not counted:
            raise DataError(
                f"summary.json has {paradigm['n_pairs']} pairs of '{name}', pairs.csv {len(counted)}",
                path=folder,
                remedy=_PROBE_AGAIN,
            )
        accuracies.append(sum(counted) / len(counted))
        _check_accuracy(folder, f"of '{name}'", paradigm["accuracy"], accuracies[-1])
    _check_accuracy(folder, "over all paradigms", summary["accuracy"], sum(accuracies) / len(accuracies))


def _check_accuracy(folder: Path, which: str, said: float, counted: float) -> None:
    if abs(said - counted) > _TOLERANCE:
        raise DataError(
            f"summary.json gives an accuracy {which} of {said:.6g}, but its pairs give {counted:.6g}",
            path=folder,
            remedy=_PROBE_AGAIN,
        )


def _short_hash(text: str) -> str:
    return f"{text[:12]}..." if len(text) > 12 else text
