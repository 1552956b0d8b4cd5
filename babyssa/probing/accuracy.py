"""Probing: how often a model scores the grammatical member of a minimal pair higher, by paradigm."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from babyssa.console import counting
from babyssa.corpus import tokenizer_sha256
from babyssa.display import Column, Shown, Table, percent
from babyssa.errors import DataError
from babyssa.files import (
    CHECKSUMS,
    atomic_write,
    json_text,
    sha256,
    versions,
    write_checksums,
)
from babyssa.models.encoding import Encodings, encode_all
from babyssa.models.loading import LoadedModel, Precision, as_loaded, weights_sha256
from babyssa.models.run_config import CONFIG, read_settings
from babyssa.models.scores import (
    check_precision,
    choose_method,
    number_of_scored_tokens,
    reduce,
    token_scores,
)
from babyssa.probing.suites import Paradigm, Suite

SUMMARY, PAIRS = "summary.json", "pairs.csv"


@dataclass(frozen=True)
class ParadigmResult:
    """Accuracy on one paradigm: the share of pairs decided right, an exact tie counting one half."""

    name: str
    phenomenon: str
    n_pairs: int
    accuracy: float
    ties: int


@dataclass(frozen=True)
class ProbeResult(Shown):
    """What a model scored on a suite.

    ``accuracy`` is the mean over paradigms, in 0..1. ``precision`` is that of the scoring,
    ``training_precision`` that of the training, None where the model folder does not say. ``scores`` holds an
    array ``(pairs, 2)`` for each paradigm: the scores of the good and of the bad member, in nats.
    """

    model: str
    variant: str
    seed: int | None
    suite: str
    suite_sha256: str
    model_sha256: str
    tokenizer_sha256: str | None
    method: str
    reduction: str
    precision: str
    training_precision: str | None
    n_pairs: int
    accuracy: float
    paradigms: tuple[ParadigmResult, ...]
    versions: dict[str, str]
    scores: dict[str, np.ndarray] = field(repr=False, compare=False)

    def summary(self) -> dict[str, Any]:
        """The content of summary.json: all but the scores."""
        return {key: value for key, value in asdict(self).items() if key != "scores"}

    def tables(self) -> Iterator[Table]:
        # A phenomenon that every name begins with says nothing new.
        named = all(p.name.startswith(p.phenomenon) for p in self.paradigms)
        columns = (
            Column("paradigm"),
            Column("phenomenon", hidden=named),
            Column("pairs", ","),
            Column("accuracy", percent, "accuracy %"),
            Column("ties", ","),
        )
        rows = [(p.name, p.phenomenon, p.n_pairs, p.accuracy, p.ties) for p in self.paradigms]
        total = ("mean over paradigms", None, self.n_pairs, self.accuracy, sum(p.ties for p in self.paradigms))
        yield Table(columns, rows, f"{self.model} on {self.suite}, {self.method} ({self.reduction})", (), total)


def probe(
    model: Any,
    suite: Suite,
    *,
    method: str | None = None,
    reduction: str | None = None,
    variant: str | None = None,
    seed: int | None = None,
    batch_size: int | None = None,
    precision: Precision = "float32",
) -> ProbeResult:
    """Score every minimal pair of a suite; :func:`babyssa.probe` explains the parameters.

    A model in memory may be in training: its mode is restored.
    """
    check_precision(precision)
    loaded = as_loaded(model)
    method, reduction = choose_method(loaded, method, reduction)
    variant, seed = identity(loaded, variant, seed)
    pair_scores = _score_pairs(loaded, suite, method, reduction, batch_size, precision)
    begins = np.cumsum([len(paradigm.pairs) for paradigm in suite.paradigms])[:-1]
    names = [paradigm.name for paradigm in suite.paradigms]
    scores = dict(zip(names, np.split(pair_scores, begins), strict=True))
    results = tuple(_judge(paradigm, scores[paradigm.name]) for paradigm in suite.paradigms)
    return ProbeResult(
        model=loaded.name,
        variant=variant,
        seed=seed,
        suite=suite.name,
        suite_sha256=suite.sha256,
        model_sha256=weights_sha256(loaded.model),
        tokenizer_sha256=tokenizer_sha256(loaded.tokenizer) if loaded.tokenizer.is_fast else None,
        method=method,
        reduction=reduction,
        precision=precision,
        training_precision=_training_precision(loaded),
        n_pairs=suite.n_pairs,
        accuracy=sum(r.accuracy for r in results) / len(results),
        paradigms=results,
        versions=versions(),
        scores=scores,
    )


def check_suite(
    loaded: LoadedModel, suite: Suite, method: str | None = None, reduction: str | None = None
) -> tuple[str, str]:
    """The method and reduction that `suite` will be scored with, once it is sure that all of it can be.

    Raises
    ------
    ConfigError, DataError, ModelError
        If the method does not fit the model, or a sentence cannot be scored with it.
    """
    chosen = choose_method(loaded, method, reduction)
    _encode(loaded, suite)
    return chosen


def _encode(loaded: LoadedModel, suite: Suite) -> tuple[list[str], list[Encodings]]:
    """The sentences of a suite, good and bad in turn, and their encodings."""
    sentences = [text for paradigm in suite.paradigms for pair in paradigm.pairs for text in (pair.good, pair.bad)]
    places = (
        {"path": paradigm.path, "line": pair.line}
        for paradigm in suite.paradigms
        for pair in paradigm.pairs
        for _ in range(2)
    )
    return sentences, encode_all(loaded, sentences, places)


def _score_pairs(
    loaded: LoadedModel, suite: Suite, method: str, reduction: str, batch_size: int | None, precision: Precision
) -> np.ndarray:
    """Scores ``(pairs, 2)`` of good and bad members, paradigm after paradigm."""
    sentences, encodings = _encode(loaded, suite)
    scores = np.empty(len(sentences))
    with counting("probing", number_of_scored_tokens(encodings, method)) as answered:
        for found in token_scores(loaded, sentences, encodings, method, batch_size, precision, answered):
            scores[found.index] = reduce(found.values, reduction, sentences[found.index])
    for same_length in encodings:
        # Members that the tokenizer reads alike tie exactly, though different batches differ in the last digit.
        pair = same_length.index // 2
        alike = (pair[:-1] == pair[1:]) & (same_length.ids[:-1] == same_length.ids[1:]).all(axis=1)
        scores[2 * pair[1:][alike] + 1] = scores[2 * pair[1:][alike]]
    return scores.reshape(-1, 2)


def _judge(paradigm: Paradigm, scores: np.ndarray) -> ParadigmResult:
    good, bad = scores.T
    ties = int((good == bad).sum())
    accuracy = (int((good > bad).sum()) + ties / 2) / len(scores)
    return ParadigmResult(paradigm.name, paradigm.phenomenon, len(scores), accuracy, ties)


def identity(loaded: LoadedModel, variant: str | None = None, seed: int | None = None) -> tuple[str, int | None]:
    """Variant and seed: as given, else from the config.yaml that training wrote, else the name and None."""
    path = Path(loaded.name) / CONFIG
    recorded = _recorded(loaded) if variant is None or seed is None else {}
    if variant is None:
        variant = str(recorded.get("variant") or Path(loaded.name).name)
    if seed is None:
        seed = recorded.get("seed")
        if not isinstance(seed, int | None) or isinstance(seed, bool):
            raise DataError(f"seed '{seed}' is not a whole number", path=path, remedy="fix it, or pass --seed")
    return variant, seed


def _training_precision(loaded: LoadedModel) -> str | None:
    facts = _recorded(loaded).get("facts")
    return facts.get("precision") if isinstance(facts, dict) else None


def _recorded(loaded: LoadedModel) -> dict[str, Any]:
    """What training wrote about a model into config.yaml; nothing if it was not trained here."""
    path = Path(loaded.name) / CONFIG
    return read_settings(Path(loaded.name)) if path.is_file() else {}


def write_result(result: ProbeResult, suite: Suite, out: Path) -> None:
    """Write summary.json, pairs.csv and their checksums."""
    # The summary comes last and an old one goes first: where there is a summary, all else is complete.
    for name in (SUMMARY, CHECKSUMS):
        (out / name).unlink(missing_ok=True)
    with atomic_write(out / PAIRS) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["paradigm", "pair", "good", "bad", "score_good", "score_bad"])
        for paradigm in suite.paradigms:
            for index, (pair, (good, bad)) in enumerate(
                zip(paradigm.pairs, result.scores[paradigm.name].tolist(), strict=True)
            ):
                writer.writerow([paradigm.name, index, pair.good, pair.bad, repr(good), repr(bad)])
    summary = json_text(result.summary())
    digest = hashlib.sha256(summary.encode()).hexdigest()
    write_checksums(out, {PAIRS: sha256(out / PAIRS), SUMMARY: digest})
    with atomic_write(out / SUMMARY) as file:
        file.write(summary)
