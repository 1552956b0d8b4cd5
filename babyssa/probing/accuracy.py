"""Probing: how often a model scores the grammatical member of a minimal pair higher, by paradigm."""

from __future__ import annotations

import csv
import hashlib
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from babyssa.attention import variant_name
from babyssa.console import counting
from babyssa.corpus import tokenizer_sha256
from babyssa.display import Column, Shown, Table, percent
from babyssa.errors import ConfigError, DataError, OutputExistsError
from babyssa.files import (
    CHECKSUMS,
    atomic_write,
    json_text,
    read_json,
    sha256,
    versions,
    write_checksums,
    write_json,
)
from babyssa.models.encoding import Encodings, encode_all
from babyssa.models.loading import LoadedModel, Precision, as_loaded, weights_sha256
from babyssa.models.run_config import CONFIG, IDENTITY, read_identity
from babyssa.models.scores import (
    check_precision,
    choose_method,
    number_of_scored_tokens,
    reduce,
    token_scores,
)
from babyssa.probing.suites import Paradigm, Suite
from babyssa.probing.tokens import TOKENS, TokenScores, write_tokens

SUMMARY, PAIRS = "summary.json", "pairs.csv"
_JOIN = " | "


@dataclass(frozen=True)
class ParadigmResult:
    """Accuracy on one paradigm: the share of pairs decided right, an exact tie counting one half.

    An item of more options is right if the right one has the highest score. ``unknown`` counts the items with
    tokens that the tokenizer does not know; ``correlation`` is Spearman's, between the probability of the first of
    the options and the share of people who chose it, where that is known.
    """

    name: str
    phenomenon: str
    n_pairs: int
    accuracy: float
    ties: int
    unknown: int = 0
    correlation: float | None = None


@dataclass(frozen=True)
class ProbeResult(Shown):
    """What a model scored on a suite.

    ``accuracy`` is the mean over paradigms, in 0..1. ``run``, ``step``, and the ``words`` and ``tokens`` seen in
    training are those of the checkpoint, None where it does not say. ``precision`` is that of the scoring,
    ``training_precision`` that of the training, None where the model folder does not say. ``scores`` holds an
    array ``(pairs, 2)`` for each paradigm: the scores of the good and of the bad member, or of the right and of
    the best wrong option, in nats. ``rivals`` has the place of that wrong option among all, and ``unknown``
    says of each pair whether it has unknown tokens. ``token_scores`` has the tokens of both sentences of
    every pair; None if the tokenizer does not say which characters a token stands for.
    """

    model: str
    variant: str
    seed: int | None
    run: str | None
    step: int | None
    words: int | None
    tokens: int | None
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
    rivals: dict[str, np.ndarray] = field(repr=False, compare=False)
    unknown: dict[str, np.ndarray] = field(repr=False, compare=False)
    token_scores: TokenScores | None = field(repr=False, compare=False)

    def summary(self) -> dict[str, Any]:
        """The content of summary.json: all but what is said of single pairs."""
        hidden = ("scores", "rivals", "unknown", "token_scores")
        return {key: value for key, value in asdict(self).items() if key not in hidden}

    def tables(self) -> Iterator[Table]:
        # A phenomenon that every name begins with says nothing new.
        named = all(p.name.startswith(p.phenomenon) for p in self.paradigms)
        columns = (
            Column("paradigm"),
            Column("phenomenon", hidden=named),
            Column("pairs", ","),
            Column("accuracy", percent, "accuracy %"),
            Column("ties", ","),
            Column("unknown", ",", "with unknown tokens", hidden=not any(p.unknown for p in self.paradigms)),
            Column("correlation", ".3f", hidden=all(p.correlation is None for p in self.paradigms)),
        )
        rows = [
            (p.name, p.phenomenon, p.n_pairs, p.accuracy, p.ties, p.unknown, p.correlation) for p in self.paradigms
        ]
        ties, unknown = (sum(getattr(p, name) for p in self.paradigms) for name in ("ties", "unknown"))
        total = ("mean over paradigms", None, self.n_pairs, self.accuracy, ties, unknown, None)
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
    recorded = read_identity(Path(loaded.name))
    *found, tokens = _score_pairs(loaded, suite, method, reduction, batch_size, precision)
    begins = np.cumsum([len(paradigm.pairs) for paradigm in suite.paradigms])[:-1]
    names = [paradigm.name for paradigm in suite.paradigms]
    scores, rivals, unknown = (dict(zip(names, np.split(values, begins), strict=True)) for values in found)
    results = tuple(_judge(p, scores[p.name], unknown[p.name]) for p in suite.paradigms)
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
        training_precision=recorded.get("training_precision"),
        n_pairs=suite.n_pairs,
        accuracy=sum(r.accuracy for r in results) / len(results),
        paradigms=results,
        versions=versions(),
        scores=scores,
        **{key: recorded.get(key) for key in ("run", "step", "words", "tokens")},
        rivals=rivals,
        unknown=unknown,
        token_scores=tokens,
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
    """The options of a suite with their contexts, item by item, and their encodings."""
    placed = [
        (option, {"path": paradigm.path, "line": pair.line})
        for paradigm in suite.paradigms
        for pair in paradigm.pairs
        for option in pair.options
    ]
    texts = [option.whole for option, _ in placed]
    # White space before a continuation belongs to it, on whichever side it is written.
    parts = [(len(option.given.rstrip()), len(option.whole)) if option.given else None for option, _ in placed]
    return texts, encode_all(loaded, texts, [place for _, place in placed], parts)


def _score_pairs(
    loaded: LoadedModel, suite: Suite, method: str, reduction: str, batch_size: int | None, precision: Precision
) -> tuple[np.ndarray, np.ndarray, np.ndarray, TokenScores | None]:
    """Scores ``(items, 2)`` of the right and the best wrong option, its place, unknown tokens; token scores."""
    items = [pair for paradigm in suite.paradigms for pair in paradigm.pairs]
    options = [option for item in items for option in item.options]
    if method == "holistic" and any(option.given for option in options):
        raise ConfigError("holistic scores whole sentences only", remedy="use pll or pll-word-l2r")
    texts, encodings = _encode(loaded, suite)
    scores, unknown = np.empty(len(texts)), np.zeros(len(texts), dtype=bool)
    tokens = TokenScores.empty(encodings, method)
    with counting("probing", number_of_scored_tokens(encodings, method), "tokens") as answered:
        for found in token_scores(loaded, texts, encodings, method, batch_size, precision, answered):
            scores[found.index] = reduce(found.values, reduction, options[found.index].text)
            if tokens is not None:
                tokens.fill(found.index, found.values)
    counts = [len(item.options) for item in items]
    item_of = np.repeat(np.arange(len(items)), counts)
    first = int(loaded.kind == "causal")  # GPT-2 begins with what is its unknown token, too
    for same_length in encodings:
        # Options that the tokenizer reads alike tie exactly, though different batches differ in the last digit.
        index, ids, inside = same_length.index, same_length.ids, same_length.inside
        unknown[index] = (ids[:, first:] == loaded.tokenizer.unk_token_id).any(axis=1)
        alike = item_of[index[:-1]] == item_of[index[1:]]
        alike &= ((ids[:-1] == ids[1:]) & (inside[:-1] == inside[1:])).all(axis=1)
        for place in alike.nonzero()[0]:
            scores[index[place + 1]] = scores[index[place]]
    begins = np.cumsum([0, *counts[:-1]])
    rivals = np.array([own[1:].argmax() + 1 for own in np.split(scores, begins[1:])])
    pairs = np.stack([scores[begins], scores[begins + rivals]], axis=1)
    if tokens is not None:
        tokens = tokens.of(np.stack([begins, begins + rivals], axis=1).ravel())
    return pairs, rivals, np.logical_or.reduceat(unknown, begins), tokens


def _judge(paradigm: Paradigm, scores: np.ndarray, unknown: np.ndarray) -> ParadigmResult:
    good, bad = scores.T
    ties = int((good == bad).sum())
    accuracy = (int((good > bad).sum()) + ties / 2) / len(scores)
    ratios = [pair.ratio for pair in paradigm.pairs]
    correlation = None
    if len(ratios) > 2 and None not in ratios:
        from scipy.stats import spearmanr

        found = float(spearmanr(good - bad, ratios).statistic)
        correlation = found if np.isfinite(found) else None  # undefined where all are equal
    return ParadigmResult(
        paradigm.name, paradigm.phenomenon, len(scores), accuracy, ties, int(unknown.sum()), correlation
    )


def check_predictions(suite: Suite, path: Path, overwrite: bool) -> dict[str, Any]:
    """What the file of predictions already holds; OutputExistsError if that is a task of `suite`."""
    held = read_json(path) if path.exists() else {}
    for task in {paradigm.task or suite.name for paradigm in suite.paradigms}:
        if task in held and not overwrite:
            raise OutputExistsError(
                f"already holds task '{task}'", path=path, remedy="choose another file or pass --overwrite"
            )
    return held


def write_predictions(result: ProbeResult, suite: Suite, path: Path) -> None:
    """Add what the model prefers to a file of BabyLM's form, ``{task: {subtask: {"predictions": [...]}}}``.

    Where the right option ties with another, the other one is written: an evaluator of this file counts no ties.
    """
    tasks = check_predictions(suite, path, overwrite=True)
    tasks |= {paradigm.task or suite.name: {} for paradigm in suite.paradigms}
    for paradigm in suite.paradigms:
        predictions = []
        for number, pair in enumerate(paradigm.pairs):
            good, bad = result.scores[paradigm.name][number].tolist()
            chosen = pair.options[0 if good > bad else result.rivals[paradigm.name][number]]
            # Continuations tell the options apart, or else their contexts do.
            distinct = len({option.text for option in pair.options}) > 1
            entry = {"id": f"{paradigm.name}_{number}", "pred": chosen.text if distinct else chosen.whole}
            if pair.ratio is not None:
                entry["prob"] = 1 / (1 + math.exp(min(bad - good, 700)))
            predictions.append(entry)
        tasks[paradigm.task or suite.name][paradigm.name] = {"predictions": predictions}
    write_json(path, tasks)


def identity(loaded: LoadedModel, variant: str | None = None, seed: int | None = None) -> tuple[str, int | None]:
    """Variant and seed: as given, else as training recorded them, else the name and None."""
    folder = Path(loaded.name)
    recorded = read_identity(folder) if variant is None or seed is None else {}
    if variant is None:
        variant = str(recorded.get("variant") or folder.name)
        variant = variant_name(variant, recorded.get("scoring") or {})
    if seed is None:
        seed = recorded.get("seed")
        if not isinstance(seed, int | None) or isinstance(seed, bool):
            path = folder / (IDENTITY if (folder / IDENTITY).is_file() else CONFIG)
            raise DataError(f"seed '{seed}' is not a whole number", path=path, remedy="fix it, or pass --seed")
    return variant, seed


def write_result(result: ProbeResult, suite: Suite, out: Path) -> None:
    """Write summary.json, pairs.csv, the scores of tokens where there are any, and checksums."""
    # The summary comes last and an old one goes first: where there is a summary, all else is complete.
    for name in (SUMMARY, CHECKSUMS, TOKENS):
        (out / name).unlink(missing_ok=True)
    with atomic_write(out / PAIRS) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["paradigm", "pair", "good", "bad", "score_good", "score_bad", "unknown"])
        for paradigm in suite.paradigms:
            for index, (pair, (good, bad)) in enumerate(
                zip(paradigm.pairs, result.scores[paradigm.name].tolist(), strict=True)
            ):
                right, *wrong = (option.whole for option in pair.options)
                scores = (repr(good), repr(bad), int(result.unknown[paradigm.name][index]))
                writer.writerow([paradigm.name, index, right, _JOIN.join(wrong), *scores])
    written = [PAIRS]
    if result.token_scores is not None:
        write_tokens(_placed(result, suite), out / TOKENS)
        written.append(TOKENS)
    summary = json_text(result.summary())
    digest = hashlib.sha256(summary.encode()).hexdigest()
    write_checksums(out, {**{name: sha256(out / name) for name in written}, SUMMARY: digest})
    with atomic_write(out / SUMMARY) as file:
        file.write(summary)


def _placed(result: ProbeResult, suite: Suite) -> TokenScores:
    """The scores of tokens, with the places that the best wrong options have among those joined in pairs.csv."""
    starts = result.token_scores.starts.copy()
    items = (pair for paradigm in suite.paradigms for pair in paradigm.pairs)
    rivals = (rival for paradigm in suite.paradigms for rival in result.rivals[paradigm.name].tolist())
    for number, (item, rival) in enumerate(zip(items, rivals, strict=True)):
        if rival > 1:
            starts[2 * number + 1] += sum(len(option.whole) + len(_JOIN) for option in item.options[1:rival])
    return replace(result.token_scores, starts=starts)
