"""The log-probability of every token of a suite's pairs, kept in a small file beside the result."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from babyssa.errors import DataError
from babyssa.files import atomic_write
from babyssa.models.encoding import Encodings
from babyssa.models.scores import METHODS

TOKENS = "tokens.npz"
_SHORT = np.iinfo(np.int16)


@dataclass(frozen=True, eq=False)
class TokenScores:
    """The scored tokens of some texts, one text after the other.

    Attributes
    ----------
    counts : (texts,) int
        How many tokens of each text are scored.
    starts : (texts,) int
        The character at which the first of them begins.
    lengths : (tokens,) int
        Characters from the end of the token before to the end of this one, white space included; 0 for a special
        token, and for a token that ends in the same character as the one before.
    scores : (tokens,) float
        Log-probabilities, in nats.
    """

    counts: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    scores: np.ndarray

    @classmethod
    def empty(cls, encodings: Sequence[Encodings], method: str) -> TokenScores | None:
        """The tokens that a method scores, without their scores; None if their characters are unknown."""
        if any(same_length.spans is None for same_length in encodings):
            return None
        n_texts = sum(len(same_length.index) for same_length in encodings)
        scored = [METHODS[method].scored(same_length) for same_length in encodings]
        counts, starts = np.zeros((2, n_texts), dtype=np.int64)
        for same_length, own in zip(encodings, scored, strict=True):
            counts[same_length.index] = own.sum(axis=1)
        lengths = np.zeros(counts.sum(), dtype=np.int64)
        found = cls(counts, starts, lengths, np.full(len(lengths), np.nan, dtype=np.float32))
        for same_length, own in zip(encodings, scored, strict=True):
            begins, ends = np.moveaxis(same_length.spans, -1, 0)
            starts[same_length.index] = np.where(same_length.inside, begins, np.iinfo(np.int32).max).min(axis=1)
            # Special tokens, whose span is -1, end where the token before them ends.
            reached = np.maximum.accumulate(np.maximum(ends, starts[same_length.index, None]), axis=1)
            before = np.concatenate([starts[same_length.index, None], reached[:, :-1]], axis=1)
            lengths[found.places(same_length.index)] = (reached - before)[own]
        return found

    @functools.cached_property
    def begins(self) -> np.ndarray:
        """Where the tokens of each text begin among all, ``(texts,)``."""
        return self.counts.cumsum() - self.counts

    def fill(self, text: int, values: Sequence[float]) -> None:
        """Set the scores of one text."""
        begin = self.begins[text]
        self.scores[begin : begin + len(values)] = values

    def places(self, texts: np.ndarray) -> np.ndarray:
        """Where the tokens of some texts are among all tokens, ``(their tokens,)``."""
        counts = self.counts[texts]
        within = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
        return np.repeat(self.begins[texts], counts) + within

    def of(self, texts: np.ndarray) -> TokenScores:
        """The tokens of some texts only, in the order given."""
        places = self.places(texts)
        return TokenScores(self.counts[texts], self.starts[texts], self.lengths[places], self.scores[places])

    def has_tokens_of(self, other: TokenScores) -> bool:
        """Whether both are of the same tokens, whatever their scores."""
        names = ("counts", "starts", "lengths")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)


def mean_scores(found: Sequence[TokenScores | None]) -> TokenScores | None:
    """The mean of several models' scores of the same tokens; None if one is missing or has other tokens."""
    first = found[0]
    if first is None or not all(one is not None and first.has_tokens_of(one) for one in found):
        return None
    return replace(first, scores=np.mean([one.scores for one in found], axis=0))


def write_tokens(tokens: TokenScores, path: Path) -> None:
    """Write tokens.npz: integers of the smallest type that holds them, scores in hundredths of a nat."""
    with atomic_write(path, "wb") as file:
        hundredths = np.clip(np.rint(tokens.scores * 100), _SHORT.min, 0).astype(np.int16)
        whole = {name: getattr(tokens, name) for name in ("counts", "starts", "lengths")}
        small = {name: value.astype(np.min_scalar_type(value.max(initial=0))) for name, value in whole.items()}
        np.savez_compressed(file, **small, hundredths=hundredths)


def read_tokens(path: Path) -> TokenScores | None:
    """Read tokens.npz; None if there is no such file.

    Raises
    ------
    DataError
        If it is broken.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            counts, starts, lengths = (stored[key].astype(np.int64) for key in ("counts", "starts", "lengths"))
            return TokenScores(counts, starts, lengths, stored["hundredths"] / np.float32(100))
    except FileNotFoundError:
        return None
    except Exception as error:  # a zip file can be broken in many ways
        raise DataError("cannot be read", path=path, remedy="probe this model again") from error
