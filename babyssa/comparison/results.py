"""Reads the probe results to compare, and checks that they can be compared."""

from __future__ import annotations

import csv
import functools
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

_TEXT, _NUMBER, _OPTIONAL_TEXT = (str,), (int, float), (str, type(None))
_SUMMARY_TYPES = {
    "model": _TEXT,
    "variant": _TEXT,
    "seed": (int, type(None)),
    "suite": _TEXT,
    "suite_sha256": _TEXT,
    "model_sha256": _OPTIONAL_TEXT,
    "tokenizer_sha256": _OPTIONAL_TEXT,
    "method": _TEXT,
    "reduction": _OPTIONAL_TEXT,
    "precision": _TEXT,
    "training_precision": _OPTIONAL_TEXT,
    "n_pairs": (int,),
    "accuracy": _NUMBER,
    "paradigms": (list,),
    "versions": (dict,),
}
# What the results of early versions lack; those scored everything in float32.
EARLY_VERSIONS = {"tokenizer_sha256": None, "precision": "float32", "training_precision": None}
_PARADIGM_TYPES = {"name": _TEXT, "phenomenon": _TEXT, "n_pairs": (int,), "accuracy": _NUMBER, "ties": (int,)}
_MUST_AGREE = {
    "suite_sha256": "suite",
    "method": "method",
    "reduction": "reduction",
    "precision": "precision",
    "tokenizer_sha256": "tokenizer",
}
_COLUMNS = ("paradigm", "good", "bad", "score_good", "score_bad")
_TOLERANCE = 1e-9
_PROBE_AGAIN = "the result is damaged: probe this model again"

# Paradigm, grammatical and ungrammatical sentence, and which of equal pairs: the same pair in any result,
# however it is numbered there.
Pair = tuple[str, str, str, int]


@dataclass(frozen=True)
class StoredResult:
    """One probed model: what summary.json says, and what it decided.

    ``outcomes`` has 1 for a pair decided right, 0.5 for a tie, 0 for wrong; ``margins`` has the score of the
    grammatical sentence minus that of the other.
    """

    folder: Path
    summary: dict[str, Any]
    margins: dict[Pair, float]

    @functools.cached_property
    def outcomes(self) -> dict[Pair, float]:
        return {pair: float(margin > 0) if margin else 0.5 for pair, margin in self.margins.items()}

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
    found: dict[Path, Path] = {}
    for folder in [folders] if isinstance(folders, (str, Path)) else folders:
        folder = Path(folder)
        if not folder.is_dir():
            what = "is a file, not a folder of probe results" if folder.exists() else "no such folder"
            raise DataError(what, path=folder, remedy="name folders that 'babyssa probe --out' wrote")
        here = sorted(Path(root) for root, _, files in os.walk(folder) if "summary.json" in files)
        if not here:
            remedy = "name a folder written by 'babyssa probe'"
            raise DataError("no summary.json in or under this folder", path=folder, remedy=remedy)
        for path in here:
            found.setdefault(path.resolve(), path)
    if not found:
        remedy = "name one folder per probed model, or their parent"
        raise ConfigError("no folder of probe results given", remedy=remedy)
    return list(found.values())


def read_result(folder: str | Path) -> StoredResult:
    """Read one probe result, and check that its summary is what its pairs give.

    Raises
    ------
    DataError
        If a file is missing, broken, or disagrees with the other.
    DamageError
        If a file has changed since the folder's checksums were written.
    """
    folder = Path(folder)
    check_checksums(folder)
    path = folder / "summary.json"
    return checked_result(path, read_json(path), _read_pairs(folder / "pairs.csv"))


def checked_result(path: Path, summary: Any, margins: dict[Pair, float]) -> StoredResult:
    """A probe result, once the summary that `path` holds is whole and says what its pairs give.

    Raises
    ------
    DataError
        If the summary lacks something, or disagrees with its pairs.
    """
    if isinstance(summary, dict):
        summary = EARLY_VERSIONS | summary
    _check_types(summary, _SUMMARY_TYPES, path, "")
    for index, paradigm in enumerate(summary["paradigms"]):
        _check_types(paradigm, _PARADIGM_TYPES, path, f"paradigms[{index}].")
    names = [paradigm["name"] for paradigm in summary["paradigms"]]
    if not names:
        raise DataError("lists no paradigm", path=path, remedy=_PROBE_AGAIN)
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise DataError(f"lists the paradigm '{twice}' twice", path=path, remedy=_PROBE_AGAIN)
    result = StoredResult(path.parent, summary, margins)
    _check_agreement(path.parent, summary, result.outcomes)
    return result


def check_comparable(results: Sequence[StoredResult], allow_mixed: bool) -> tuple[list[Pair], list[str]]:
    """The pairs that all results have, in the order of the first, and notes on what is mixed in them.

    Raises
    ------
    DataError
        If the results differ in suite, method, reduction, precision, tokenizer or pairs, or if a variant has a
        seed twice, unless `allow_mixed`; or if they have no pair in common.
    """
    first, notes = results[0], []
    for key, label in _MUST_AGREE.items():
        # An early version's result, or a slow tokenizer, has no hash to compare.
        known = [r for r in results if key != "tokenizer_sha256" or r.summary[key] is not None]
        hashed = key.endswith("_sha256")
        for other in known[1:]:
            here, there = other.summary[key], known[0].summary[key]
            if here != there and not allow_mixed:
                show = _short_hash if hashed else repr
                raise DataError(
                    f"its {label} is {show(here)}, but {show(there)} in {known[0].folder}",
                    path=other.folder,
                    remedy="compare results that agree in it, or pass --allow-mixed",
                )
        values = sorted({str(r.summary[key]) for r in known})
        if len(values) > 1:
            listed = f"{len(values)} {label}s" if hashed else f"{label}s {', '.join(values)}"
            notes.append(f"the results mix {listed}")
        if known and len(known) < len(results):
            unknown = len(results) - len(known)
            notes.append(f"the {label} of {unknown} result{'s' * (unknown > 1)} is unknown")
    seen: dict[tuple, StoredResult] = {}
    for other in [] if allow_mixed else results:
        if other.outcomes.keys() != first.outcomes.keys():
            missing = len(first.outcomes.keys() - other.outcomes.keys())
            extra = len(other.outcomes.keys() - first.outcomes.keys())
            raise DataError(
                f"its pairs are not those of {first.folder} ({missing} missing, {extra} more)",
                path=other.folder,
                remedy="probe the same suite, or pass --allow-mixed to compare the common pairs only",
            )
        earlier = seen.setdefault((other.variant, other.seed), other)
        if earlier is not other:
            seed = "without a seed" if other.seed is None else f"seed {other.seed}"
            raise DataError(
                f"variant '{other.variant}' {seed} is already in {earlier.folder}",
                path=other.folder,
                remedy="leave one of them out, or pass --allow-mixed",
            )
    pairs = [pair for pair in first.outcomes if all(pair in other.outcomes for other in results[1:])]
    if not pairs:
        raise DataError("the results have no pair in common", path=first.folder, remedy="probe the same suite")
    if any(len(result.outcomes) > len(pairs) for result in results):
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
    margins: dict[Pair, float] = {}
    repeats: Counter = Counter()

    def damage(what: str, line: int | None = None) -> DataError:
        return DataError(what, path=path, line=line, remedy=_PROBE_AGAIN)

    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            missing = [name for name in (*_COLUMNS, "pair") if name not in header]
            if missing:
                raise damage(f"lacks the columns {', '.join(missing)}", 1)
            places = [header.index(name) for name in _COLUMNS]
            for row in reader:
                if len(row) != len(header):
                    raise damage(f"{len(row)} fields where the header has {len(header)}", reader.line_num)
                *key, good, bad = (row[place] for place in places)
                try:
                    better, worse = map(_finite, (good, bad))
                except ValueError as error:
                    raise damage(f"the score '{error}' is not a finite number", reader.line_num) from None
                pair = (*map(sys.intern, key), 0)
                if pair in margins:
                    repeats[pair] += 1
                    pair = (*pair[:3], repeats[pair])
                margins[pair] = better - worse
            return margins
    except FileNotFoundError:
        raise damage("no such file beside summary.json") from None
    except UnicodeDecodeError as error:
        raise damage(f"not UTF-8 ({error.reason})") from None
    except csv.Error as error:
        raise damage(f"broken CSV: {error}", reader.line_num) from None


def _finite(text: str) -> float:
    """A score; ValueError with its text if it is not a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(text[:40])
    return value


def _check_agreement(folder: Path, summary: dict[str, Any], outcomes: dict[Pair, float]) -> None:
    """Recount accuracies from the pairs: a summary that says something else belongs to other pairs."""
    counted: dict[str, list[float]] = {p["name"]: [] for p in summary["paradigms"]}
    for (name, *_), outcome in outcomes.items():
        if name not in counted:
            raise DataError(
                f"pairs.csv has the paradigm '{name}', summary.json not", path=folder, remedy=_PROBE_AGAIN
            )
        counted[name].append(outcome)
    accuracies = []
    for paradigm in summary["paradigms"]:
        name, said = paradigm["name"], paradigm["n_pairs"]
        found = counted[name]
        if len(found) != said or not found:
            what = f"summary.json has {said} pairs of '{name}', pairs.csv {len(found)}"
            raise DataError(what, path=folder, remedy=_PROBE_AGAIN)
        accuracies.append((f"of '{name}'", paradigm["accuracy"], sum(found) / len(found)))
    mean = sum(accuracy for *_, accuracy in accuracies) / len(accuracies)
    for which, said, accuracy in [*accuracies, ("over all paradigms", summary["accuracy"], mean)]:
        if abs(said - accuracy) > _TOLERANCE:
            raise DataError(
                f"summary.json gives an accuracy {which} of {said:.6g}, but its pairs give {accuracy:.6g}",
                path=folder,
                remedy=_PROBE_AGAIN,
            )


def _short_hash(text: str) -> str:
    return f"{text[:12]}..." if len(text) > 12 else text
