"""Sentences as token ids: a corpus is encoded once per tokenizer, and memory-mapped from disk afterwards.

The ids are in the user's cache folder, under a hash of everything that they depend on. The folder can be deleted
at any time.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from babyssa.console import say
from babyssa.corpus import encode_sentences, tokenizer_sha256
from babyssa.errors import BabySSAError, ConfigError
from babyssa.files import (
    CHECKSUMS,
    atomic_path,
    cache_folder,
    check_checksums,
    read_checksums,
    sha256,
    write_checksums,
)

# Increase this when the files, or the way in which sentences are read and encoded, change.
_FORMAT = "1"
_IDS, _LENGTHS = "ids.npy", "lengths.npy"
# A tokenizer's own objects are many times larger than the ids, so it gets a few sentences at a time.
_AT_ONCE = 10_000


@dataclass(frozen=True)
class Sentences:
    """Token ids of many sentences.

    Parameters
    ----------
    ids : array of int, (tokens,)
        The sentences concatenated, each with bos and eos; may be memory-mapped.
    starts : array of int64, (sentences,)
        Offset of each sentence in `ids`.
    lengths : array of int64, (sentences,)
        Number of tokens in each sentence.
    """

    ids: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray

    @classmethod
    def end_to_end(cls, ids: np.ndarray, lengths: np.ndarray) -> Sentences:
        """Sentences that are concatenated in `ids`, given their lengths."""
        lengths = lengths.astype(np.int64)
        return cls(ids, np.cumsum(lengths) - lengths, lengths)

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]]) -> Sentences:
        """Sentences from lists of token ids."""
        lengths = np.fromiter(map(len, sequences), dtype=np.int64, count=len(sequences))
        ids = np.fromiter(itertools.chain.from_iterable(sequences), dtype=np.int32, count=int(lengths.sum()))
        return cls.end_to_end(ids, lengths)

    def __len__(self) -> int:
        return len(self.starts)

    def select(self, rows: np.ndarray) -> Sentences:
        """The sentences with indices `rows`, sharing the same `ids`."""
        return Sentences(self.ids, self.starts[rows], self.lengths[rows])


def encode_corpus(text: Sequence[str], tokenizer, corpus: Path) -> Sentences:
    """Encode the sentences of a corpus, or load them from the cache.

    Parameters
    ----------
    text : sequence of str
        The sentences of the corpus.
    tokenizer : transformers.PreTrainedTokenizerFast
        The tokenizer.
    corpus : Path
        The file that `text` was read from.

    Returns
    -------
    Sentences
        The encoded sentences, in the same order; in memory only, with a warning, if the cache cannot be written.
    """
    try:
        folder = _folder(corpus, tokenizer)
        found = _read(folder, len(text))
    except ConfigError as error:
        say(f"warning: token ids are not cached: {error.what} ({error.remedy})")
        folder = found = None
    if found is None:
        parts = [
            Sentences.of(encode_sentences(tokenizer, text[start : start + _AT_ONCE]))
            for start in range(0, len(text), _AT_ONCE)
        ]
        ids, lengths = (np.concatenate([getattr(part, key) for part in parts]) for key in ("ids", "lengths"))
        found = Sentences.end_to_end(ids.astype(np.min_scalar_type(ids.max(initial=0))), lengths)
        if folder is not None:
            _keep(folder, found)
    return found


def _folder(corpus: Path, tokenizer) -> Path:
    """The cache folder of a corpus, named by a hash of everything that its ids depend on."""
    versions = (version("tokenizers"), version("transformers"), _FORMAT)
    depends_on = " ".join((sha256(corpus), tokenizer_sha256(tokenizer), *versions))
    return cache_folder() / "encoded" / hashlib.sha256(depends_on.encode()).hexdigest()[:32]


def _read(folder: Path, count: int) -> Sentences | None:
    """The cached sentences, if they are complete and undamaged."""
    if not (folder / CHECKSUMS).is_file():
        return None
    try:
        check_checksums(folder)
        if set(read_checksums(folder)) != {_IDS, _LENGTHS}:
            return None
        found = Sentences.end_to_end(np.load(folder / _IDS, mmap_mode="r"), np.load(folder / _LENGTHS))
    except (BabySSAError, OSError):
        say(f"{folder}: is damaged; encoding the corpus again")
        return None
    return found if len(found) == count and found.lengths.sum() == len(found.ids) else None


def _keep(folder: Path, sentences: Sentences) -> None:
    try:
        _write(folder, sentences)
    except (OSError, BabySSAError) as error:
        # Another process may have written it first.
        if _read(folder, len(sentences)) is None:
            why = getattr(error, "what", None) or getattr(error, "strerror", None) or error
            say(f"warning: {folder}: {why}; the next training on this corpus will encode it again")


def _write(folder: Path, sentences: Sentences) -> None:
    with atomic_path(folder) as partial:
        partial.mkdir()
        np.save(partial / _IDS, sentences.ids)
        np.save(partial / _LENGTHS, sentences.lengths.astype(np.int32))
        write_checksums(partial, {name: sha256(partial / name) for name in (_IDS, _LENGTHS)})
