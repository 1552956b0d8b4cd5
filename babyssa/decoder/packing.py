"""Documents to sequences: tokenized, ended by an end token, concatenated, and cut into full sequences.

There is no padding, and no token is lost except the remainder at the very end that does not fill a sequence. A
document may begin in the middle of a sequence, with the document before it in its context, as in GPT-2.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from torch.utils.data import Dataset, Sampler

from babyssa.console import say
from babyssa.errors import DataError, ModelError
from babyssa.models.encoding import encode_documents


def causal_tokenizer(tokenizer):
    """Let one token, eos, end every document and begin every text; changes and returns `tokenizer`.

    In packed text a document follows the end of another, so a first token is conditioned on eos, in training and
    in every later score; the model would never have seen a separate bos. The tokenizer puts eos before a text and
    nothing after it, so that generation continues the text.

    Raises
    ------
    ModelError
        If the tokenizer has no eos token, or is not a fast one.
    """
    eos = tokenizer.eos_token
    if eos is None:
        raise ModelError(
            "the tokenizer has no eos token, which ends a document",
            path=tokenizer.name_or_path or None,
            remedy="set its eos_token and save it",
        )
    if not tokenizer.is_fast:
        raise ModelError(
            "is not a fast tokenizer", path=tokenizer.name_or_path or None, remedy="convert it to one"
        )
    if tokenizer.bos_token != eos:
        from tokenizers import processors

        tokenizer.bos_token = eos
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{eos} $A", pair=f"{eos} $A {eos} $B", special_tokens=[(eos, tokenizer.eos_token_id)]
        )
    return tokenizer


@dataclass(frozen=True)
class Documents:
    """Token ids of many documents, concatenated, each with its eos.

    Parameters
    ----------
    ids : array of int32, (tokens,)
        All documents.
    starts : array of int64, (documents + 1,)
        Document i is ``ids[starts[i]:starts[i + 1]]``.
    """

    ids: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, encoded: Iterable[list[int]]) -> Documents:
        ids, starts = array("i"), array("q", [0])
        for document in encoded:
            ids.extend(document)
            starts.append(len(ids))
        return cls(np.asarray(ids, dtype=np.int32), np.asarray(starts, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def select(self, places: np.ndarray) -> Documents:
        """The documents where `places`, (documents,), is true."""
        lengths = np.diff(self.starts)
        starts = np.concatenate([[0], np.cumsum(lengths[places])])
        return Documents(self.ids[np.repeat(places, lengths)], starts)


class PackedSequences(Dataset):
    """Token ids cut into sequences of `length`; item i is ``ids[i * length:(i + 1) * length]``.

    A batch, fetched as a whole, is a dict of input_ids : (batch, length).

    Parameters
    ----------
    ids : array of int32, (tokens,)
        Concatenated documents.
    length : int
        Tokens per sequence.
    """

    def __init__(self, ids: np.ndarray, length: int):
        self.sequences = ids[: len(ids) // length * length].reshape(-1, length)
        self.remainder = len(ids) % length

    def __len__(self) -> int:
        return len(self.sequences)

    def __getitems__(self, items: list[int]) -> dict[str, torch.Tensor]:
        return {"input_ids": torch.from_numpy(self.sequences[np.asarray(items)].astype(np.int64))}


class ShuffledBatches(Sampler):
    """Batches of item numbers of :class:`PackedSequences`, each item once in an epoch, shuffled.

    Parameters
    ----------
    count : int
        Items.
    batch_size : int
        Items per batch; only the last of an epoch has fewer.
    seed : int
        Decides the order, together with the epoch's number.
    """

    def __init__(self, count: int, batch_size: int, seed: int):
        self.count = count
        self.batch_size = batch_size
        self.seed = seed
        self.epoch = 0

    def __len__(self) -> int:
        return -(-self.count // self.batch_size)

    def set_epoch(self, epoch: int) -> None:
        """Called by the training loop before each epoch."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        order = np.random.default_rng([self.seed, self.epoch, 3]).permutation(self.count)
        for start in range(0, self.count, self.batch_size):
            yield order[start : start + self.batch_size].tolist()


class StreamedSequences(Dataset):
    """The packed sequences of a stream of documents, numbered in the order in which they come.

    Fetch items in ascending order. To skip ahead, as a resumed run does, the stream is read and tokenized up to
    the item; to go back, it is read again from its start. At its end the stream starts again, and the tokens that
    did not fill a sequence come before its first document.

    Parameters
    ----------
    documents : callable
        Maps the number of the pass over the stream, from 0, to its documents.
    tokenizer : PreTrainedTokenizerFast
        See :func:`causal_tokenizer`.
    length : int
        Tokens per sequence.
    source : str
        What to call the stream in errors.
    """

    def __init__(self, documents: Callable[[int], Iterable[str]], tokenizer, length: int, source: str):
        self.documents = documents
        self.tokenizer = tokenizer
        self.length = length
        self.source = source
        self._begin()

    def _begin(self) -> None:
        self._sequences = self._pack()
        self._next = 0

    def _pack(self) -> Iterator[np.ndarray]:
        waiting = array("i")
        number = 0
        while True:
            tokens = 0
            for ids in encode_documents(self.tokenizer, self.documents(number)):
                tokens += len(ids)
                waiting.extend(ids)
                whole = len(waiting) // self.length * self.length
                for start in range(0, whole, self.length):
                    yield np.array(waiting[start : start + self.length], dtype=np.int64)
                del waiting[:whole]
            check_enough_tokens(tokens, self.length, self.source)
            number += 1
            say(f"end of {self.source}: pass {number + 1} starts")

    def _item(self, item: int) -> np.ndarray:
        if item < self._next:
            self._begin()
        sequence = next(islice(self._sequences, item - self._next, None))
        self._next = item + 1
        return sequence

    def __getitems__(self, items: list[int]) -> dict[str, torch.Tensor]:
        return {"input_ids": torch.from_numpy(np.stack([self._item(item) for item in items]))}


def check_enough_tokens(tokens: int, length: int, source: str) -> None:
    """Raise DataError if there is not one full sequence."""
    if tokens < length:
        raise DataError(
            f"{tokens:,} tokens to train on are fewer than one sequence of {length:,}",
            path=source,
            remedy="use a larger corpus, or lower size.max-length or evaluation.held-out",
        )
