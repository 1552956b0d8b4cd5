"""Scores of texts in the units that analyses use: tokens, words, regions, whole texts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from babyssa.console import say
from babyssa.display import Column, Shown, Table, readable_token
from babyssa.errors import ConfigError, ModelError, nearest
from babyssa.files import atomic_path, write_json
from babyssa.models.encoding import Span, encode_all
from babyssa.models.loading import Precision, as_loaded
from babyssa.models.scores import check_precision, choose_method, reduce, token_scores
from babyssa.models.stimuli import read_stimuli
from babyssa.models.units import assign, regions_of_tokens, words_of

if TYPE_CHECKING:
    import pandas as pd

Measure = Literal["log-probability", "surprisal", "probability"]
Base = Literal["nats", "bits"]
Per = Literal["token", "word", "region", "sentence"]
Punctuation = Literal["attached", "apart"]
COLUMNS = (
    *("sentence", "text", "given", "region", "word", "word_in_sentence", "token", "token_in_sentence"),
    *("score", "rank", "unknown", "tokens", "words"),
)
"""Columns of a frame of scores, besides those of the input."""
FILE_ENDS = (".csv", ".parquet", ".json")


@dataclass(frozen=True)
class SentenceScore:
    """One text's score.

    Attributes
    ----------
    text : str
        The text as given.
    tokens : tuple of str
        The tokens that were scored.
    token_scores : tuple of float
        The score of each.
    score : float
        The text's.
    given : str
        The context that it was scored in, with the separator.
    labels : dict
        Further columns of its row of input.
    spans : tuple of (int, int) or None
        The characters of `text` that each token stands for; None if the tokenizer cannot say.
    regions : dict of str to (int, int)
        Named parts of `text`.
    ranks : tuple of int or None
        How many tokens are more probable in a token's place, plus one.
    unknown : tuple of bool
        Whether a token stands for something that the tokenizer does not know.
    """

    text: str
    tokens: tuple[str, ...]
    token_scores: tuple[float, ...]
    score: float
    given: str
    labels: Mapping[str, Any]
    spans: tuple[Span, ...] | None
    regions: Mapping[str, Span]
    ranks: tuple[int, ...] | None
    unknown: tuple[bool, ...]


@dataclass(frozen=True)
class SentenceScores(Shown, Sequence):
    """The scores of some texts; a sequence of :class:`SentenceScore`.

    Attributes
    ----------
    model, method, reduction, precision : str
        How they were scored.
    measure : {"log-probability", "surprisal", "probability"}
    base : {"nats", "bits"}
        The unit of log-probability and surprisal.
    per : {"token", "word", "region", "sentence"}
        What the rows of its tables are.
    punctuation : {"attached", "apart"}
        What a word is.
    sentences : tuple of SentenceScore
        In the order given.
    """

    model: str
    method: str
    reduction: str
    precision: str
    measure: str
    base: str
    per: str
    punctuation: str
    sentences: tuple[SentenceScore, ...]

    def __getitem__(self, index):
        return self.sentences[index]

    def __len__(self) -> int:
        return len(self.sentences)

    @cached_property
    def unknown(self) -> int:
        """Number of tokens that the tokenizer does not know."""
        return sum(sum(scored.unknown) for scored in self.sentences)

    def summary(self) -> dict[str, Any]:
        """All of it as plain values, with the words or regions of each text if the rows are those."""
        names = ("model", "method", "reduction", "precision", "measure", "base", "unknown")
        sentences = []
        for scored in self.sentences:
            entry = {
                "text": scored.text,
                "tokens": scored.tokens,
                "token_scores": scored.token_scores,
                "score": scored.score,
                "given": scored.given,
                "labels": dict(scored.labels),
                "ranks": scored.ranks,
                "unknown": sum(scored.unknown),
            }
            if self.per in ("word", "region"):
                keys = ("word", "region", "score")
                entry[f"{self.per}s"] = [
                    {key: row[key] for key in keys if key in row} for row in self._rows(scored)
                ]
            # What a text does not have is left out.
            sentences.append({key: value for key, value in entry.items() if value not in ("", {}, None)})
        return {name: getattr(self, name) for name in names} | {"sentences": sentences}

    def to_frame(self, per: Per | None = None) -> pd.DataFrame:
        """Scores in long form: one row per token, word, region or text, with what it belongs to.

        Parameters
        ----------
        per : {"token", "word", "region", "sentence"}, optional
            What a row is, if not what was asked for when they were scored.

        Returns
        -------
        pandas.DataFrame
            ``sentence``, ``token_in_sentence`` and ``word_in_sentence`` count from 0; the input's own columns,
            such as item and condition, come second.

        Raises
        ------
        ModelError
            If the tokenizer does not say which characters a token stands for.
        """
        import pandas as pd

        per = _chosen("per", per or self.per, Per)
        rows = [
            {"sentence": number, **scored.labels, "text": scored.text, "given": scored.given, **row}
            for number, scored in enumerate(self.sentences)
            for row in self._rows(scored, per)
        ]
        frame = pd.DataFrame(rows)
        empty = [name for name in ("given", "region") if name in frame and not frame[name].astype(bool).any()]
        return frame.drop(columns=empty)

    def tables(self) -> Iterator[Table]:
        unit = self.base if self.measure == "log-probability" else self.measure
        unit += f", {self.base}" if self.measure == "surprisal" else ""
        notes = [f"{self.unknown} tokens are unknown to the tokenizer."] if self.unknown else []
        yield Table((), (), f"{self.model}, {self.method} ({self.reduction}), {unit}", notes)
        score = Column("score", ".4g" if self.measure == "probability" else ".4f")
        if self.per == "sentence":
            names = list(dict.fromkeys(name for scored in self.sentences for name in scored.labels))
            columns = [*map(Column, names), Column("text"), score]
            rows = [[*map(scored.labels.get, names), scored.text, scored.score] for scored in self.sentences]
            yield Table(columns, rows, keys=len(columns) - 1)
            return
        for scored in self.sentences:
            rows = list(self._rows(scored))
            columns = [Column(self.per), score]
            if self.per == "token" and scored.ranks is not None:
                columns.append(Column("rank", ","))
            title = f"{scored.given}| {scored.text}" if scored.given else scored.text
            total = (self.reduction, scored.score, *[None] * (len(columns) - 2))
            yield Table(columns, [[row[c.name] for c in columns] for row in rows], title, total=total)

    def _rows(self, scored: SentenceScore, per: str | None = None) -> Iterator[dict[str, Any]]:
        """The rows of one text."""
        per = per or self.per
        if per == "sentence":
            counts = {"tokens": len(scored.tokens), "words": len(scored.text.split())}
            yield {"score": scored.score, **counts, "unknown": sum(scored.unknown)}
            return
        count = range(len(scored.tokens))
        spans = scored.spans
        if spans is None:
            if per != "token":
                raise ModelError(
                    f"the tokenizer does not say which tokens make a {per}",
                    path=self.model,
                    remedy="use a fast tokenizer",
                )
            words, word_of, regions = [], [None for _ in count], [None for _ in count]
        else:
            words, word_of = assign(scored.text, spans, words_of(scored.text, self.punctuation))
            regions = regions_of_tokens(scored.text, spans, scored.regions)
        texts = [scored.text[start:end] for start, end in words]
        if per == "token":
            for place in count:
                word = word_of[place]
                yield {
                    "region": regions[place],
                    "word_in_sentence": word,
                    "word": None if word is None else texts[word],
                    "token_in_sentence": place,
                    "token": readable_token(scored.tokens[place]),
                    "score": scored.token_scores[place],
                    **({} if scored.ranks is None else {"rank": scored.ranks[place]}),
                    "unknown": scored.unknown[place],
                }
            return
        groups: dict[Any, list[int]] = {}
        for place in count:
            groups.setdefault((word_of if per == "word" else regions)[place], []).append(place)
        for key, places in groups.items():
            if key is None:
                continue
            if per == "word":
                named = {"region": regions[places[0]], "word_in_sentence": key, "word": texts[key]}
            else:
                named = {"region": key}
            yield {
                **named,
                "tokens": len(places),
                "score": _together(self.measure, [scored.token_scores[place] for place in places]),
                "unknown": sum(scored.unknown[place] for place in places),
            }


def score(
    model: Any,
    sentences: Any,
    *,
    given: str | Sequence[str] | None = None,
    separator: str = "space",
    alternatives: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    per: Per = "token",
    punctuation: Punctuation = "attached",
    measure: Measure = "log-probability",
    base: Base = "nats",
    ranks: bool = False,
    method: str | None = None,
    reduction: str | None = None,
    batch_size: int | None = None,
    precision: Precision = "float32",
) -> SentenceScores:
    """Score texts with a model; :func:`babyssa.score` explains the parameters."""
    check_precision(precision)
    for name, value, kind in (
        ("per", per, Per),
        ("punctuation", punctuation, Punctuation),
        ("measure", measure, Measure),
        ("base", base, Base),
    ):
        _chosen(name, value, kind)
    if measure == "probability" and base == "bits":
        raise ConfigError("a probability has no base", remedy="leave --base out, or ask for surprisal")
    loaded = as_loaded(model)
    method, reduction = choose_method(loaded, method, reduction)
    stimuli = read_stimuli(
        sentences,
        given=given,
        separator=separator,
        alternatives=alternatives,
        columns=columns,
        reserved=COLUMNS,
    )
    if per == "region" and not any(one.regions for one in stimuli):
        raise ConfigError("no text has regions", remedy="give a table with a column 'region' or 'regions'")
    conditional = any(one.given or one.part for one in stimuli)
    if conditional and method == "holistic":
        raise ConfigError("holistic scores whole sentences only", remedy="use pll or pll-word-l2r")
    texts = [one.given + one.text for one in stimuli]
    parts = [_part(one) for one in stimuli] if conditional else None
    encodings = encode_all(loaded, texts, [one.place for one in stimuli], parts)
    results: list[SentenceScore | None] = [None] * len(stimuli)
    unknown_id = loaded.tokenizer.unk_token_id
    for found in token_scores(loaded, texts, encodings, method, batch_size, precision, ranks=ranks):
        one = stimuli[found.index]
        part = one.text if one.part is None else one.text[slice(*one.part)]
        before = len(one.given)
        results[found.index] = SentenceScore(
            one.text,
            tuple(loaded.tokenizer.convert_ids_to_tokens(found.ids)),
            tuple(_measured(value, measure, base) for value in found.values),
            _measured(reduce(found.values, reduction, part), measure, base),
            one.given,
            one.labels,
            None if found.spans is None else tuple(_shifted(span, before) for span in found.spans),
            one.regions,
            None if found.ranks is None else tuple(found.ranks),
            tuple(token == unknown_id for token in found.ids),
        )
    scores = SentenceScores(
        loaded.name, method, reduction, precision, measure, base, per, punctuation, tuple(results)
    )
    if scores.unknown:
        affected = sum(any(scored.unknown) for scored in scores)
        say(f"warning: {scores.unknown} tokens of {affected} texts are unknown to the tokenizer")
    return scores


def write_scores(scores: SentenceScores, path: Path) -> None:
    """Write scores as the end of the file's name says: ``.csv`` or ``.parquet`` (long form), or ``.json``."""
    if path.suffix == ".json":
        write_json(path, scores.summary())
        return
    frame = scores.to_frame()
    with atomic_path(path) as partial:
        if path.suffix == ".parquet":
            frame.to_parquet(partial, index=False)
        else:
            frame.to_csv(partial, index=False)


def check_file_name(path: Path) -> None:
    """Raise ConfigError if the end of a file's name is none of those that can be written."""
    if path.suffix not in FILE_ENDS:
        raise ConfigError(f"cannot write '{path.suffix}' files", path=path, remedy=f"use {', '.join(FILE_ENDS)}")


def _part(one) -> Span:
    """The characters of context and text that are scored."""
    start, end = one.part or (0, len(one.text))
    # The separator belongs to what follows.
    before = len(one.given) if one.part else len(one.given.rstrip())
    return before + start, len(one.given) + end


def _shifted(span: Sequence[int], before: int) -> Span:
    """The span of a token in its text, which begins after so many characters."""
    return (-1, -1) if span[1] < 0 else (max(span[0] - before, 0), span[1] - before)


def _chosen(name: str, value: str, kind: Any) -> str:
    known = get_args(kind)
    if value not in known:
        raise ConfigError(f"{name} is '{value}'", remedy=nearest(value, known))
    return value


def _measured(nats: float, measure: str, base: str) -> float:
    """A log-probability as what was asked for."""
    if measure == "probability":
        return math.exp(nats)
    value = nats / math.log(2) if base == "bits" else nats
    return -value if measure == "surprisal" else value


def _together(measure: str, values: Sequence[float]) -> float:
    """The score of several tokens."""
    return math.prod(values) if measure == "probability" else math.fsum(values)
