"""Which items form a batch, and which of them one of several processes computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.utils.data import Dataset, Sampler
from transformers import PreTrainedTokenizerBase

from babyssa import processes


class ConsecutiveBatches(Sampler):
    """Batches of the item numbers 0, 1, 2 and so on, `count` batches in all."""

    def __init__(self, count: int, batch_size: int):
        self.count = count
        self.batch_size = batch_size

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[list[int]]:
        for start in range(0, self.count * self.batch_size, self.batch_size):
            yield list(range(start, start + self.batch_size))


class OwnShare(Dataset):
    """This process's part of every batch of a dataset: each n-th item, of n processes.

    It is an empty dict where a batch has fewer items than there are processes.
    """

    def __init__(self, dataset: Dataset):
        self.dataset = dataset

    def __getitems__(self, items: list[int]) -> dict[str, Tensor]:
        own = items[processes.rank() :: processes.number_of_processes()]
        return self.dataset.__getitems__(own) if own else {}


def word_counter(tokenizer: PreTrainedTokenizerBase) -> Callable[[dict[str, Tensor]], int] | None:
    """A function that counts the words of a batch by the spaces and line breaks before them.

    None if the tokens of `tokenizer` do not tell: it is neither byte-level nor SentencePiece's.
    """
    tokens = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    begins = torch.tensor([token.startswith(("\u0120", "\u2581")) or token.endswith("\u010a") for token in tokens])
    if not begins.any():
        return None

    def count(batch: dict[str, Tensor]) -> int:
        if not batch:
            return 0
        ids = batch["input_ids"].flatten()
        if "positions" in batch:
            # What is masked is a word, too.
            ids = ids.index_copy(0, batch["positions"], batch["labels"])
        return int(begins[ids].sum())

    return count


def words_mark(before: int, now: int, unit: int) -> int | None:
    """The last of unit, 2 unit, ... 10 unit, 20 unit, ... 100 unit, ... above `before` and up to `now`."""
    if unit == 0 or now < unit:
        return None
    scale = unit
    while now >= 10 * scale:
        scale *= 10
    mark = now // scale * scale
    return mark if mark > before else None


def show_words(count: int) -> str:
    """A number of words, as in the name of a checkpoint: 10M, 250k, 1234."""
    for size, letter in ((10**6, "M"), (10**3, "k")):
        if count % size == 0:
            return f"{count // size}{letter}"
    return str(count)
