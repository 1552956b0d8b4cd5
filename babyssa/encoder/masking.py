"""Mask patterns for masked language modelling, drawn for a whole corpus at once.

BabyBERTa (Huebner et al. 2021) masks 15% of the tokens, at least one per sentence, in ten patterns per
sentence within one epoch; 90% of the masked tokens become the mask token, 10% a random one, and none is
left as it is. RoBERTa's 80/10/10, drawn anew in each epoch, is the other setting of the same numbers.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from babyssa.encoder.config import Masking


@dataclass(frozen=True)
class Sentences:
    """Token ids of many sentences, end to end.

    Parameters
    ----------
    ids : array of int32, (tokens,)
        All sentences, each with its bos and eos.
    starts : array of int64, (sentences + 1,)
        Sentence i is ``ids[starts[i]:starts[i + 1]]``.
    """

    ids: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, sequences: list[list[int]]) -> Sentences:
        lengths = np.fromiter(map(len, sequences), dtype=np.int64, count=len(sequences))
        ids = np.fromiter(itertools.chain.from_iterable(sequences), dtype=np.int32, count=int(lengths.sum()))
        return cls(ids, np.concatenate([[0], np.cumsum(lengths)]))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Tokens per sentence, bos and eos included."""
        return np.diff(self.starts)

    def lengths_of(self, rows: np.ndarray) -> np.ndarray:
        """Tokens of the sentences numbered `rows`."""
        return self.starts[rows + 1] - self.starts[rows]


@dataclass(frozen=True)
class Vocabulary:
    """The token ids that masking needs to know.

    Parameters
    ----------
    mask : int
        The mask token.
    ordinary : array of int
        The tokens that a random replacement is drawn from: all but the special ones.
    special : array of int
        The special tokens, which are never selected.
    """

    mask: int
    ordinary: np.ndarray
    special: np.ndarray

    @classmethod
    def of(cls, tokenizer) -> Vocabulary:
        special = np.array(sorted(tokenizer.all_special_ids))
        return cls(tokenizer.mask_token_id, np.setdiff1d(np.arange(len(tokenizer)), special), special)


def mask_pattern(
    sentences: Sentences, vocabulary: Vocabulary, masking: Masking, *, seed: int, pattern: int
) -> tuple[np.ndarray, np.ndarray]:
    """One mask pattern over all sentences.

    Parameters
    ----------
    sentences : Sentences
        What is masked. Each has at least one token that is not special.
    seed, pattern : int
        Decide the pattern; nothing else is drawn from.

    Returns
    -------
    tuple of arrays, each (tokens,)
        The corrupted ids, and True where a token is to be predicted.
    """
    generator = np.random.default_rng([seed, pattern, 1])
    ids, starts = sentences.ids, sentences.starts
    selectable = ~np.isin(ids, vocabulary.special)
    # A special token's draw is above every other, so it is neither selected nor a sentence's lowest.
    draw = np.where(selectable, generator.random(len(ids), dtype=np.float32), 2.0)
    selected = draw < masking.probability
    lowest = np.minimum.reduceat(draw, starts[:-1])
    none = lowest >= masking.probability
    selected |= none.repeat(sentences.lengths) & (draw == lowest.repeat(sentences.lengths))

    where = np.flatnonzero(selected)
    kind = generator.random(len(where), dtype=np.float32)
    replacement = np.full(len(where), vocabulary.mask, dtype=ids.dtype)
    random = kind < masking.random
    replacement[random] = generator.choice(vocabulary.ordinary, size=int(random.sum()))
    unchanged = (kind >= masking.random) & (kind < masking.random + masking.unchanged)
    replacement[unchanged] = ids[where[unchanged]]
    corrupted = ids.copy()
    corrupted[where] = replacement
    return corrupted, selected
