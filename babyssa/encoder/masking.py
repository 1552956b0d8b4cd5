"""Mask patterns for masked language modelling: a function of the seed, the pattern's number and the token's place.

BabyBERTa (Huebner et al. 2021) masks 15% of the tokens, at least one per sentence, in ten patterns per
sentence within one epoch; 90% of the masked tokens become the mask token, 10% a random one, and none stays
unchanged. RoBERTa's 80/10/10, drawn anew in each epoch, is another setting of the same numbers.

The random numbers are those of SplitMix64 (Steele, Lea & Flood 2014), any of which can be computed without those
before it. So a batch is masked when it is needed, and no pattern is stored, whatever the size of the corpus.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from babyssa.encoder.config import Masking


@dataclass(frozen=True)
class Vocabulary:
    """The token ids that masking needs to know.

    Parameters
    ----------
    mask : int
        The mask token.
    ordinary : array of int
        The tokens that random replacements are drawn from: all but the special ones.
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


def mask_sentences(
    ids: np.ndarray,
    places: np.ndarray,
    vocabulary: Vocabulary,
    masking: Masking,
    *,
    seed: int,
    patterns: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Mask sentences, each under its own pattern.

    Parameters
    ----------
    ids : array of int, (sentences, length)
        Token ids, padded. In a sentence of only special tokens nothing is selected.
    places : array of int, (sentences, length)
        The number of each token in the corpus.
    vocabulary, masking : Vocabulary, Masking
        The token ids and the masking recipe.
    seed : int
        Decides, together with `patterns` and `places` alone, what is masked.
    patterns : array of int, (sentences,)
        The number of each sentence's pattern.

    Returns
    -------
    tuple of arrays, each (sentences, length)
        The corrupted ids, and True where a token is to be predicted.
    """
    selectable = ~np.isin(ids, vocabulary.special)
    draw = _uniform(seed, 0, patterns[:, None], places)
    selected = selectable & (draw < masking.probability)
    none = np.flatnonzero(~selected.any(axis=1) & selectable.any(axis=1))
    selected[none, np.where(selectable[none], draw[none], 2.0).argmin(axis=1)] = True

    rows, columns = np.nonzero(selected)
    patterns, places = patterns[rows], places[rows, columns]
    kind = _uniform(seed, 1, patterns, places)
    replacement = np.full(len(rows), vocabulary.mask)
    random = kind < masking.random
    choice = _uniform(seed, 2, patterns[random], places[random]) * len(vocabulary.ordinary)
    replacement[random] = vocabulary.ordinary[choice.astype(np.int64)]
    unchanged = (kind >= masking.random) & (kind < masking.random + masking.unchanged)
    corrupted = ids.copy()
    corrupted[rows, columns] = np.where(unchanged, ids[rows, columns], replacement)
    return corrupted, selected


_STEP = np.uint64(0x9E3779B97F4A7C15)


def split_mix(number: np.ndarray) -> np.ndarray:
    """Output `number`, counted from 1 (uint64), of SplitMix64 started from 0."""
    z = number * _STEP
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _uniform(seed: int, stream: int, patterns: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Independent numbers in [0, 1), one for each pattern and place; the arrays broadcast."""
    # Each level seeds the next one with an output of its own.
    key = split_mix(np.array([3 * seed + stream + 1], dtype=np.uint64))
    key = split_mix(key + patterns.astype(np.uint64))
    return (split_mix(key + places.astype(np.uint64)) >> np.uint64(11)) * 2.0**-53
