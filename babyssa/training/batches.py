"""Which items form a batch, and which of them one of several processes computes."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor
from torch.utils.data import Dataset, Sampler

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
