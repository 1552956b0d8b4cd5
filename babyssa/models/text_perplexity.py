"""Perplexity of a text under a causal model, by a sliding window; pseudo-perplexity under a masked one.

Documents are laid end to end as in training, each followed by the end token, which is predicted like any other;
the start token comes before the first. Window k holds the `max_length` tokens from k x `stride` on, and predicts
the next token at each position that no earlier window predicted. So every token is predicted exactly once, from at
most `max_length` tokens before it, and from at least `max_length - stride + 1` of them where there are that many.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from babyssa.corpus.documents import Layout, is_text, read_documents
from babyssa.display import Column, Shown, Table
from babyssa.errors import ConfigError, DataError, ModelError
from babyssa.files import read_yaml
from babyssa.models.encoding import encode_documents, start_id
from babyssa.models.loading import LoadedModel, as_loaded
from babyssa.models.run_config import CHECKPOINTS, CONFIG
from babyssa.models.scores import Engine, Questions, score

if TYPE_CHECKING:
    import pandas as pd

_TOKENS_PER_CHUNK = 2**16
_LONGEST_WINDOW = 1024


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
        unit = "sentences" if self.kind == "pseudo-perplexity" else "documents"
        rows = [
            (f"{self.kind} per token", f"{self.perplexity:.4g}"),
            ("nats per token", f"{self.nats_per_token:.4f}"),
            ("tokens", f"{self.tokens:,}"),
            (f"{self.kind} per word", f"{self.word_perplexity:.4g}"),
            ("words (by white space)", f"{self.words:,}"),
            ("bits per byte", f"{self.bits_per_byte:.4f}"),
            ("bytes", f"{self.bytes:,}"),
            (f"{unit} ({self.layout})", f"{self.documents:,}"),
        ]
        if self.stride is not None:
            rows.append(("window, stride (tokens)", f"{self.max_length:,}, {self.stride:,}"))
        columns = (Column("measure"), Column("value", right=True))
        yield Table(columns, rows, f"{self.kind} of {self.model} on {self.file}", header=False)


def perplexity(
    model: Any,
    file: str | Path,
    *,
    documents: Layout | None = None,
    max_length: int | None = None,
    stride: int | None = None,
    text_column: str = "text",
    batch_size: int | None = None,
) -> Perplexity:
    """Measure the perplexity of a text; :func:`babyssa.perplexity` explains the parameters."""
    loaded = as_loaded(model)
    if loaded.kind == "masked":
        return _pseudo_perplexity(loaded, file, documents, max_length, stride, text_column, batch_size)
    max_length, stride = choose_window(loaded, max_length, stride)
    layout = documents or _trained_layout(loaded)
    texts = list(read_documents(file, layout=layout, text_column=text_column))
    layout = layout if is_text(file) else "rows"
    if not texts:
        raise DataError("the text is empty", path=file, remedy="it needs at least one word")
    ended = layout != "file"
    ids = list(chain.from_iterable(encode_documents(loaded.tokenizer, texts, end=ended)))
    if not ids:
        raise DataError("the text has no tokens", path=file)
    nats = token_nats(loaded, ids, max_length=max_length, stride=stride, batch_size=batch_size)
    size = sum(len(text.encode()) + ended for text in texts)
    return _result(loaded, file, "perplexity", nats, texts, layout, size, max_length, stride)


def token_nats(
    loaded: LoadedModel,
    ids: Sequence[int],
    *,
    max_length: int | None = None,
    stride: int | None = None,
    batch_size: int | None = None,
) -> np.ndarray:
    """Minus the log-probability of each token (nats), (tokens,), by the sliding window of this module.

    Parameters
    ----------
    loaded : LoadedModel
        A causal model.
    ids : sequence of int, (tokens,)
        The text, without the start token.
    max_length, stride, batch_size
        See :func:`perplexity`.
    """
    max_length, stride = choose_window(loaded, max_length, stride)
    if batch_size is not None and batch_size < 1:
        raise ConfigError(f"batch_size is {batch_size}", remedy="it is at least 1")
    engine = Engine(loaded, batch_size)
    row = np.array([start_id(loaded), *map(int, ids)])
    answers = [engine.answer(questions) for questions in _questions(row, max_length, stride)]
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


def _pseudo_perplexity(loaded, file, documents, max_length, stride, text_column, batch_size) -> Perplexity:
    """Each token predicted from all others of its sentence (Salazar et al. 2020)."""
    if max_length is not None or stride is not None:
        raise ConfigError("max_length and stride are for causal models", remedy="a masked model reads sentences")
    if documents not in (None, "lines"):
        raise ConfigError(f"documents is {documents}", remedy="a masked model reads lines, each a sentence")
    texts = list(read_documents(file, layout="lines", text_column=text_column))
    if not texts:
        raise DataError("the text is empty", path=file, remedy="it needs at least one word")
    scores = score(loaded, texts, method="pll", batch_size=batch_size)
    nats = -np.concatenate([scored.token_scores for scored in scores])
    size = sum(len(text.encode()) for text in texts)
    return _result(loaded, file, "pseudo-perplexity", nats, texts, "lines", size, None, None)


def _result(loaded, file, kind, nats, texts, layout, size, max_length, stride) -> Perplexity:
    total = math.fsum(nats)
    words = sum(len(text.split()) for text in texts)
    return Perplexity(
        model=loaded.name,
        file=str(file),
        kind=kind,
        perplexity=_exp(total / len(nats)),
        nats_per_token=total / len(nats),
        tokens=len(nats),
        documents=len(texts),
        layout=layout,
        words=words,
        bytes=size,
        word_perplexity=_exp(total / words),
        bits_per_byte=total / math.log(2) / size,
        max_length=max_length,
        stride=stride,
    )


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
