"""Perplexity of a text under a causal model, by a sliding window; pseudo-perplexity under a masked one.

Documents are laid end to end as in training, each followed by the end token, which is predicted like any other;
the start token comes before the first. Window k holds the `max_length` tokens from k x `stride` on, and predicts
the next token at each position that no earlier window predicted. So every token is predicted exactly once, from at
most `max_length` tokens before it, and from at least `max_length - stride + 1` of them where there are that many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from babyssa.console import counting, progress, say
from babyssa.corpus.documents import Layout, OpenCorpus, open_documents
from babyssa.display import Column, Shown, Table
from babyssa.errors import ConfigError, DataError, ModelError
from babyssa.files import read_yaml
from babyssa.models.encoding import encode_all, encode_documents, start_id
from babyssa.models.loading import LoadedModel, as_loaded
from babyssa.models.run_config import CHECKPOINTS, CONFIG
from babyssa.models.scores import Engine, Questions, number_of_scored_tokens, token_scores

if TYPE_CHECKING:
    import pandas as pd

_TOKENS_PER_CHUNK = 2**16
_LONGEST_WINDOW = 1024
# Splits of a dataset that perplexity is usually measured on, the usual one first.
_SPLITS = ("test", "validation", "train")


@dataclass(frozen=True)
class Perplexity(Shown):
    """The perplexity of a text.

    Attributes
    ----------
    model, file : str
        The model and the text.
    kind : {"perplexity", "pseudo-perplexity"}
        Of a causal or a masked model; the two are not comparable.
    perplexity : float
        ``exp(nats_per_token)``.
    nats_per_token : float
        Minus the mean log-probability of a token.
    tokens : int
        Tokens predicted, including the end tokens of documents for a causal model.
    documents : int
        Documents (for a masked model: sentences) in the text.
    layout : {"lines", "blocks", "file", "rows"}
        What separates them; rows are a dataset's.
    split : str or None
        The split of a dataset.
    limit : int or None
        The first so many documents only.
    words, bytes : int
        White-space words of the documents, and their bytes in UTF-8; an end token after a document counts as one
        byte.
    word_perplexity, bits_per_byte : float
        The same total per word, exponentiated, and in bits per byte: these two do not depend on the tokenizer, as
        long as it keeps the text (one that lower-cases does not).
    max_length, stride : int or None
        The window of a causal model.
    """

    model: str
    file: str
    kind: Literal["perplexity", "pseudo-perplexity"]
    perplexity: float
    nats_per_token: float
    tokens: int
    documents: int
    layout: str
    split: str | None
    limit: int | None
    words: int
    bytes: int
    word_perplexity: float
    bits_per_byte: float
    max_length: int | None
    stride: int | None

    def summary(self) -> dict[str, Any]:
        """All of it as plain values."""
        return asdict(self)

    def to_frame(self) -> pd.DataFrame:
        """One row with everything."""
        import pandas as pd

        return pd.DataFrame([asdict(self)])

    def tables(self) -> Iterator[Table]:
        unit = "documents" if self.stride else "sentences"
        rows = [
            (f"{self.kind} per token", f"{self.perplexity:.4g}"),
            ("nats per token", f"{self.nats_per_token:.4f}"),
            ("tokens", f"{self.tokens:,}"),
            (f"{self.kind} per word", f"{self.word_perplexity:.4g}"),
            ("words (by white space)", f"{self.words:,}"),
            ("bits per byte", f"{self.bits_per_byte:.4f}"),
            ("bytes", f"{self.bytes:,}"),
            (f"{unit} ({self.layout})", f"{self.documents:,}" + (", the first" if self.limit else "")),
        ]
        if self.split is not None:
            rows.append(("split", self.split))
        if self.stride is not None:
            rows.append(("window, stride (tokens)", f"{self.max_length:,}, {self.stride:,}"))
        columns = (Column("measure"), Column("value", right=True))
        yield Table(columns, rows, f"{self.kind} of {self.model} on {self.file}", header=False)


@dataclass(frozen=True)
class Perplexities(Shown):
    """The perplexity of several texts under one model."""

    texts: tuple[Perplexity, ...]

    def summary(self) -> list[dict[str, Any]]:
        """Each text's as plain values."""
        return [text.summary() for text in self.texts]

    def to_frame(self) -> pd.DataFrame:
        """One row per text, with everything."""
        import pandas as pd

        return pd.DataFrame(self.summary())

    def tables(self) -> Iterator[Table]:
        first = self.texts[0]
        columns = (
            Column("text"),
            Column("split"),
            Column("documents", ",", "sentences" if first.stride is None else ""),
            Column("tokens", ","),
            Column("perplexity", ".4g", f"{first.kind} per token"),
            Column("word_perplexity", ".4g", "per word"),
            Column("bits_per_byte", ".4f", "bits per byte"),
        )
        rows = [
            (t.file, t.split, t.documents, t.tokens, t.perplexity, t.word_perplexity, t.bits_per_byte)
            for t in self.texts
        ]
        notes = [f"{text.file}: the first {text.limit:,} only" for text in self.texts if text.limit is not None]
        if first.stride is not None:
            notes.append(f"Windows of {first.max_length:,} tokens, {first.stride:,} apart.")
        yield Table(columns, rows, f"{first.kind} of {first.model}", notes)


def perplexity(model: Any, text: str | Path, **options: Any) -> Perplexity:
    """Measure the perplexity of one text; takes the options of :func:`perplexities`."""
    return perplexities(model, [text], **options).texts[0]


def perplexities(
    model: Any,
    texts: Iterable[str | Path],
    *,
    documents: Layout | None = None,
    split: str | None = None,
    limit: int | None = None,
    streaming: bool = False,
    max_length: int | None = None,
    stride: int | None = None,
    text_column: str = "text",
    batch_size: int | None = None,
) -> Perplexities:
    """Measure the perplexity of some texts; :func:`babyssa.perplexity` explains the parameters."""
    for name, value in (("limit", limit), ("batch_size", batch_size)):
        if value is not None and value < 1:
            raise ConfigError(f"{name} is {value}", remedy="it is at least 1")
    loaded = as_loaded(model)
    if loaded.kind == "causal":
        max_length, stride = choose_window(loaded, max_length, stride)
        documents = documents or _trained_layout(loaded)
    elif max_length is not None or stride is not None:
        raise ConfigError("max_length and stride are for causal models", remedy="a masked model reads sentences")
    elif documents not in (None, "lines"):
        raise ConfigError(f"documents is {documents}", remedy="a masked model reads lines, each a sentence")
    # All are opened before any is measured: a mistake in the last is found at once.
    corpora = {
        str(text): open_documents(
            text,
            layout=documents or "lines",
            text_column=text_column,
            split=split,
            preferred=_SPLITS,
            streaming=streaming,
        )
        for text in texts
    }
    if not corpora:
        raise ConfigError("no text given", remedy="name a text file or a dataset")
    for file, corpus in corpora.items():
        if limit is not None and corpus.layout == "file":
            what = f"limit counts documents, but {file} is read as one"
            raise ConfigError(what, remedy="--documents says where they end")
        if corpus.split != split:
            say(f"{file}: split {corpus.split}")
    found = []
    for file, corpus in corpora.items():
        found.append(_measure(loaded, file, corpus, limit, max_length, stride, batch_size))
        if len(corpora) > 1:
            say(f"{file}: {found[-1].kind} {found[-1].perplexity:.4g}")
    return Perplexities(tuple(found))


def _measure(
    loaded: LoadedModel,
    file: str,
    corpus: OpenCorpus,
    limit: int | None,
    max_length: int | None,
    stride: int | None,
    batch_size: int | None,
) -> Perplexity:
    causal = loaded.kind == "causal"
    ended = causal and corpus.layout != "file"
    texts = _Counted(islice(corpus.texts, limit), ended)
    if causal:
        encoded = encode_documents(loaded.tokenizer, progress(texts, "tokenizing", limit, "documents"), end=ended)
        ids = np.fromiter(chain.from_iterable(encoded), dtype=np.int64)
        _check_filled(texts, file)
        if not len(ids):
            raise DataError("the text has no tokens", path=file)
        with counting("predicting", len(ids), "tokens") as answered:
            nats = token_nats(
                loaded, ids, max_length=max_length, stride=stride, batch_size=batch_size, answered=answered
            )
    else:  # each token from all others of its sentence (Salazar et al. 2020)
        sentences = list(texts)
        _check_filled(texts, file)
        encodings = encode_all(loaded, sentences, [{"path": file}] * len(sentences))
        with counting("predicting", number_of_scored_tokens(encodings, "pll"), "tokens") as answered:
            scores = token_scores(loaded, sentences, encodings, "pll", batch_size, answered=answered)
            nats = -np.concatenate([found.values for found in scores])
    total = math.fsum(nats)
    return Perplexity(
        model=loaded.name,
        file=file,
        kind="perplexity" if causal else "pseudo-perplexity",
        perplexity=_exp(total / len(nats)),
        nats_per_token=total / len(nats),
        tokens=len(nats),
        documents=texts.documents,
        layout=corpus.layout,
        split=corpus.split,
        limit=limit,
        words=texts.words,
        bytes=texts.bytes,
        word_perplexity=_exp(total / texts.words),
        bits_per_byte=total / math.log(2) / texts.bytes,
        max_length=max_length,
        stride=stride,
    )


class _Counted:
    """Documents, counted as they are read; an end token after each counts as a byte."""

    def __init__(self, texts: Iterable[str], ended: bool):
        self.texts, self.ended = texts, ended
        self.documents = self.words = self.bytes = 0

    def __iter__(self) -> Iterator[str]:
        for text in self.texts:
            self.documents += 1
            self.words += len(text.split())
            self.bytes += len(text.encode()) + self.ended
            yield text


def _check_filled(texts: _Counted, file: str) -> None:
    if not texts.documents:
        raise DataError("the text is empty", path=file, remedy="it needs at least one word")


def token_nats(
    loaded: LoadedModel,
    ids: Sequence[int],
    *,
    max_length: int | None = None,
    stride: int | None = None,
    batch_size: int | None = None,
    answered: Callable[[int], None] = lambda n: None,
) -> np.ndarray:
    """Minus the log-probability of each token (nats), (tokens,), by the sliding window of this module.

    Parameters
    ----------
    loaded : LoadedModel
        A causal model.
    ids : sequence of int, (tokens,)
        The text, without the start token.
    max_length, stride, batch_size
        See :func:`babyssa.perplexity`.
    answered : callable
        Called with the number of tokens in each batch.
    """
    max_length, stride = choose_window(loaded, max_length, stride)
    engine = Engine(loaded, batch_size)
    row = np.concatenate([[start_id(loaded)], ids])
    answers = [engine.answer(questions, answered) for questions in _questions(row, max_length, stride)]
    nats = -np.concatenate(answers).astype(np.float64)
    if not np.isfinite(nats).all():
        raise ModelError(
            f"the log-probability of token {int(np.argmin(np.isfinite(nats))) + 1} is NaN or infinite",
            path=loaded.name,
            remedy="the weights are broken or overflow: load the model in float32",
        )
    return nats


def choose_window(loaded: LoadedModel, max_length: int | None, stride: int | None) -> tuple[int, int]:
    """Window and stride, with defaults filled in.

    Raises
    ------
    ConfigError
        If the model is not causal, or window and stride do not fit it or each other.
    """
    if loaded.kind != "causal":
        raise ConfigError(f"a sliding window needs a causal model, not a {loaded.kind} one ({loaded.name})")
    if max_length is None:
        max_length = loaded.max_tokens or _LONGEST_WINDOW
    if max_length < 1 or (loaded.max_tokens is not None and max_length > loaded.max_tokens):
        raise ConfigError(
            f"max_length is {max_length}, but the model ({loaded.name}) takes 1 to {loaded.max_tokens} tokens",
            remedy="leave it out for the model's own",
        )
    if stride is None:
        stride = max(1, max_length // 2)
    if not 1 <= stride <= max_length:
        raise ConfigError(
            f"stride is {stride}, but max_length {max_length}", remedy="it is at least 1 and at most max_length"
        )
    return max_length, stride


def _questions(row: np.ndarray, max_length: int, stride: int) -> Iterator[Questions]:
    """Yield the questions for each token of `row` but the first, in order, in chunks of bounded size."""
    windows = list(_windows(len(row), max_length, stride))
    for length, same_length in groupby(windows, key=lambda window: window.end - window.begin):
        while chunk := list(islice(same_length, max(1, _TOKENS_PER_CHUNK // length))):
            places = [np.arange(window.first, window.end) for window in chunk]
            number = np.repeat(np.arange(len(chunk)), [len(own) for own in places])
            begins = np.array([window.begin for window in chunk])
            places = np.concatenate(places)
            rows = np.stack([row[window.begin : window.end] for window in chunk])
            yield Questions(rows, number, places - begins[number], row[places + 1])


class _Window(NamedTuple):
    """Tokens `begin` to `end`; those from `first` on predict the token after them."""

    begin: int
    first: int
    end: int


def _windows(tokens: int, max_length: int, stride: int) -> Iterator[_Window]:
    """Yield the windows over a row of tokens; all but the last have the same length."""
    predicted = 0
    for begin in range(0, tokens, stride):
        end = min(begin + max_length, tokens - 1)
        if end <= predicted:
            return
        yield _Window(begin, predicted, end)
        predicted = end


def _exp(nats: float) -> float:
    """exp, capped below overflow: JSON has no infinity."""
    return math.exp(min(nats, 709.0))


def _trained_layout(loaded: LoadedModel) -> Layout:
    """The document layout of a run folder's training corpus; "file" if it is not recorded."""
    folder = Path(loaded.name)
    if folder.parent.name == CHECKPOINTS:
        folder = folder.parent.parent
    path = folder / CONFIG
    recorded = read_yaml(path).values if path.is_file() else {}
    return recorded["documents"] if recorded.get("documents") in ("lines", "blocks") else "file"
