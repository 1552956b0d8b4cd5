"""Batches of masked sentences of nearly equal length, in the chosen training order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch.utils.data import Dataset, Sampler

from babyssa.corpus.encoded import Sentences
from babyssa.encoder.config import Masking
from babyssa.encoder.masking import Vocabulary, mask_sentences

# Batches are cut from windows of this many, each sorted by length: the larger the window, the less padding, and
# the more its batches differ in length.
BATCHES_PER_WINDOW = 64


class MaskedSentences(Dataset):
    """Sentences under numbered mask patterns; item `pattern * len(sentences) + i` is sentence i under `pattern`.

    A batch, fetched as a whole, is a dict of

    - input_ids : (batch, length), padded on the right;
    - attention_mask : (batch, length), only where there is padding;
    - positions : (predicted,), the flat places in (batch, length) of the tokens to predict;
    - labels : (predicted,), those tokens.
    """

    def __init__(self, sentences: Sentences, vocabulary: Vocabulary, masking: Masking, pad: int, seed: int):
        self.sentences = sentences
        self.vocabulary = vocabulary
        self.masking = masking
        self.pad = pad
        self.seed = seed

    def __len__(self) -> int:
        return len(self.sentences) * max(1, self.masking.patterns)

    def __getitems__(self, items: list[int]) -> dict[str, torch.Tensor]:
        patterns, rows = np.divmod(np.asarray(items), len(self.sentences))
        lengths = self.sentences.lengths[rows]
        columns = np.arange(lengths.max())
        inside = columns < lengths[:, None]
        places = np.where(inside, self.sentences.starts[rows][:, None] + columns, 0)
        ids = np.where(inside, self.sentences.ids[places], self.pad).astype(np.int64)
        corrupted, selected = mask_sentences(
            ids, places, self.vocabulary, self.masking, seed=self.seed, patterns=patterns
        )
        batch = {
            "input_ids": torch.from_numpy(corrupted),
            "positions": torch.from_numpy(np.flatnonzero(selected)),
            "labels": torch.from_numpy(ids[selected]),
        }
        if not inside.all():
            batch["attention_mask"] = torch.from_numpy(inside.astype(np.int64))
        return batch


class LengthBatches(Sampler):
    """Batches of item numbers of :class:`MaskedSentences`, each with sentences of similar length.

    Parameters
    ----------
    lengths : array of int, (sentences,)
        Tokens per sentence.
    batch_size : int
        Items per batch; only the last of an epoch has fewer.
    patterns : int
        Mask patterns per sentence and epoch; 0 means one pattern, numbered by the epoch.
    order : {"shuffled", "age", "reversed"}
        "age" goes through the sentences once in their order, "reversed" once from the end, in windows of
        consecutive sentences under all their patterns, shuffled within the window.
    seed : int
        Decides the order, together with the epoch's number.
    """

    def __init__(self, lengths: np.ndarray, batch_size: int, patterns: int, order: str, seed: int):
        self.lengths = lengths
        self.batch_size = batch_size
        self.patterns = patterns
        self.order = order
        self.seed = seed
        self.epoch = 0

    def __len__(self) -> int:
        return -(-len(self.lengths) * max(1, self.patterns) // self.batch_size)

    def set_epoch(self, epoch: int) -> None:
        """Called by the training loop before each epoch."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        generator = np.random.default_rng([self.seed, self.epoch, 2])
        items = self._items(generator)
        window = BATCHES_PER_WINDOW * self.batch_size
        for start in range(0, len(items), window):
            part = generator.permutation(items[start : start + window])
            part = part[np.argsort(self.lengths[part % len(self.lengths)], kind="stable")]
            batches = [part[i : i + self.batch_size] for i in range(0, len(part), self.batch_size)]
            for number in generator.permutation(len(batches)):
                yield batches[number].tolist()

    def _items(self, generator: np.random.Generator) -> np.ndarray:
        """All items of this epoch, in training order."""
        count = len(self.lengths)
        numbers = np.arange(self.patterns) if self.patterns else np.array([self.epoch])
        smallest = np.min_scalar_type(count * (numbers[-1] + 1))
        if self.order == "shuffled":
            return generator.permutation((numbers[:, None] * count + np.arange(count)).ravel().astype(smallest))
        rows = np.arange(count) if self.order == "age" else np.arange(count)[::-1]
        return (rows[:, None] + numbers * count).ravel()
