"""Sentences as a model reads them: exactly what was given, or an error."""

from __future__ import annotations

import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, repeat
from typing import Any

import numpy as np

from babyssa.corpus.interruptible import interruptible
from babyssa.errors import DataError, ModelError, quoted
from babyssa.models.loading import LoadedModel

# A tokenizer's output is many times larger than what is kept of it.
_SENTENCES_PER_CALL = 1024
_DOCUMENTS_AT_ONCE = 1000

Span = tuple[int, int]
"""Characters of a text, from and to."""


@dataclass(frozen=True)
class Encoding:
    """One sentence as a model reads it.

    Attributes
    ----------
    ids : tuple of int
        Token ids with special tokens.
    inside : tuple of int
        Positions in `ids` of the tokens to be scored: the sentence's own, or those of a part of it.
    words : tuple of int or None
        The number of the word that each position in `inside` belongs to: a word is a pre-token of the tokenizer
        (for byte-level BPE, a run of letters, of digits or of other signs). None if the tokenizer cannot say.
    spans : tuple of (int, int) or None
        The characters of the sentence, from and to, that each position in `inside` stands for. None as above.
    """

    ids: tuple[int, ...]
    inside: tuple[int, ...]
    words: tuple[int, ...] | None
    spans: tuple[tuple[int, int], ...] | None


@dataclass(frozen=True)
class Encodings:
    """Sentences with the same number of tokens; the arrays hold what :class:`Encoding` does.

    Attributes
    ----------
    index : (sentences,) int
        Their places among all sentences, from 0, ascending.
    ids : (sentences, length) int
        Token ids with special tokens.
    inside : (sentences, length) bool
        Whether a token is to be scored; special tokens never are.
    words : (sentences, length) int or None
        The number of the word that a token belongs to.
    spans : (sentences, length, 2) int or None
        The characters that a token stands for; -1 where `inside` is false.
    """

    index: np.ndarray
    ids: np.ndarray
    inside: np.ndarray
    words: np.ndarray | None
    spans: np.ndarray | None

    def parts(self, size: int) -> Iterator[Encodings]:
        """Yield the same sentences, at most `size` at a time."""
        for start in range(0, len(self.index), size):
            part = slice(start, start + size)
            arrays = {name: value[part] for name, value in vars(self).items() if value is not None}
            yield replace(self, **arrays)


def encode(loaded: LoadedModel, sentence: str) -> Encoding:
    """The token ids of one sentence; see :func:`encode_all`."""
    return next(_encode(loaded, [sentence], [{}], [None]))


def encode_all(
    loaded: LoadedModel,
    sentences: Iterable[str],
    places: Iterable[Mapping[str, Any]] | None = None,
    parts: Iterable[Span | None] | None = None,
) -> list[Encodings]:
    """The token ids of sentences: between special tokens for a masked model, after bos for a causal one.

    A special token written out in a sentence (``<mask>``) is read as plain characters.

    Parameters
    ----------
    loaded : LoadedModel
        The model that reads them.
    sentences : iterable of str
        Any texts.
    places : iterable of mapping, optional
        ``path`` and ``line`` of each sentence, for error messages.
    parts : iterable of (int, int) or None, optional
        The characters of each sentence, from and to, whose tokens are to be scored (default: all). A token that
        reaches into a part from before it belongs to it, as in BabyLM's pipeline.

    Returns
    -------
    list of Encodings
        One per number of tokens, ascending; 17 bytes per token and 8 per sentence in all.

    Raises
    ------
    DataError
        If a sentence is empty, not valid Unicode, too long for the model, or loses characters in the tokenizer,
        or a part has no token.
    ModelError
        If a causal model's tokenizer has neither bos nor eos, so that nothing predicts the first token, or a slow
        tokenizer is to find a part.
    """
    collected: dict[int, _Columns] = {}
    places = repeat({}) if places is None else places
    parts = repeat(None) if parts is None else parts
    for index, encoding in enumerate(_encode(loaded, sentences, places, parts)):
        collected.setdefault(len(encoding.ids), _Columns()).add(index, encoding)
    return [collected[length].encodings(length) for length in sorted(collected)]


class _Columns:
    """Encodings of one length, as they are collected."""

    def __init__(self) -> None:
        self.index, self.inside = array("q"), array("b")
        self.ids, self.words, self.spans = array("i"), array("i"), array("i")

    def add(self, index: int, encoding: Encoding) -> None:
        inside = [False] * len(encoding.ids)
        for position in encoding.inside:
            inside[position] = True
        self.index.append(index)
        self.ids.extend(encoding.ids)
        self.inside.extend(inside)
        if encoding.words is not None and encoding.spans is not None:
            words, spans = [-1] * len(encoding.ids), [-1] * (2 * len(encoding.ids))
            for position, word, span in zip(encoding.inside, encoding.words, encoding.spans, strict=True):
                words[position] = word
                spans[2 * position : 2 * position + 2] = span
            self.words.extend(words)
            self.spans.extend(spans)

    def encodings(self, length: int) -> Encodings:
        return Encodings(
            np.asarray(self.index),
            np.asarray(self.ids).reshape(-1, length),
            np.asarray(self.inside).astype(bool).reshape(-1, length),
            np.asarray(self.words).reshape(-1, length) if self.words else None,
            np.asarray(self.spans).reshape(-1, length, 2) if self.spans else None,
        )


def _encode(
    loaded: LoadedModel,
    sentences: Iterable[str],
    places: Iterable[Mapping[str, Any]],
    parts: Iterable[Span | None],
) -> Iterator[Encoding]:
    """Yield the encoding of each sentence."""
    remaining = zip(sentences, places, parts, strict=False)
    while block := list(islice(remaining, _SENTENCES_PER_CALL)):
        yield from _encode_block(loaded, *zip(*block, strict=True))


def _encode_block(
    loaded: LoadedModel,
    sentences: Sequence[str],
    places: Sequence[Mapping[str, Any]],
    parts: Sequence[Span | None],
) -> Iterator[Encoding]:
    tokenizer = loaded.tokenizer
    for sentence, place in zip(sentences, places, strict=True):
        _check_text(sentence, place)
    masked = loaded.kind == "masked"
    encoded = tokenizer(
        list(sentences),
        add_special_tokens=masked,
        split_special_tokens=True,
        return_special_tokens_mask=True,
        return_offsets_mapping=tokenizer.is_fast,
        padding=False,
        truncation=False,
        verbose=False,
    )
    forbidden = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    start = () if masked else (start_id(loaded),)
    for index, (sentence, place, part) in enumerate(zip(sentences, places, parts, strict=True)):
        ids = encoded["input_ids"][index]
        added = encoded["special_tokens_mask"][index] if masked else [0] * len(ids)
        inside = [position for position, special in enumerate(added) if not special]
        if not inside:
            raise DataError(f"sentence {quoted(sentence)} has no tokens", **place)
        for position in inside:
            if ids[position] in forbidden:
                token = tokenizer.convert_ids_to_tokens(ids[position])
                raise DataError(f"sentence {quoted(sentence)} is read as having special token {token}", **place)
        words = spans = None
        if part is not None and not tokenizer.is_fast:
            raise ModelError(
                "the tokenizer does not say which characters a token stands for",
                path=loaded.name,
                remedy="use a fast tokenizer to score a part of a text",
            )
        if tokenizer.is_fast:
            offsets = encoded["offset_mapping"][index]
            dropped = _dropped(sentence, [offsets[position] for position in inside])
            if dropped:
                raise DataError(
                    f"sentence {quoted(sentence)}: the tokenizer drops {dropped!a}",
                    **place,
                    remedy="use a tokenizer with an unknown token or the whole byte alphabet",
                )
            if part is not None:
                begin, end = part
                inside = [p for p in inside if offsets[p][1] > begin and offsets[p][0] < end]
                if not inside:
                    raise DataError(f"{quoted(sentence[begin:end])} in {quoted(sentence)} has no tokens", **place)
            word_of = encoded.word_ids(index)
            words = tuple(word_of[position] for position in inside)
            spans = tuple(offsets[position] for position in inside)
        length = len(start) + len(ids)
        if loaded.max_tokens is not None and length > loaded.max_tokens:
            raise DataError(
                f"sentence {quoted(sentence)} is {length} tokens long, but the model takes {loaded.max_tokens}",
                **place,
                remedy="shorten or drop it",
            )
        yield Encoding((*start, *ids), tuple(len(start) + position for position in inside), words, spans)


def _check_text(sentence: str, place: Mapping[str, Any]) -> None:
    if not sentence.strip():
        raise DataError(f"sentence {quoted(sentence)} is empty", **place)
    try:
        sentence.encode("utf-8")
    except UnicodeEncodeError as error:
        where = f"character {error.start + 1}"
        raise DataError(f"sentence {sentence!a} is not valid Unicode ({where})", **place) from None


def start_id(loaded: LoadedModel) -> int:
    """The token that a causal model's first prediction is conditioned on: bos, or eos without one (GPT-2)."""
    for token in (loaded.tokenizer.bos_token_id, loaded.tokenizer.eos_token_id):
        if token is not None:
            return token
    raise ModelError(
        "the tokenizer has neither a bos nor an eos token to condition the first token on",
        path=loaded.name,
        remedy="set its bos_token and save it",
    )


def _dropped(sentence: str, offsets: Sequence[tuple[int, int]]) -> str:
    """Letters, digits and signs that no token covers: the vocabulary lacks them and has no unknown token."""
    covered = {index for start, end in offsets for index in range(start, end)}
    return "".join(
        c for index, c in enumerate(sentence) if index not in covered and unicodedata.category(c)[0] in "LNPS"
    )


def encode_documents(tokenizer, documents: Iterable[str], *, end: bool = True) -> Iterator[list[int]]:
    """Yield the token ids of each document, with eos after them if `end`.

    A special token written out in a document is read as plain characters.
    """
    documents = iter(documents)
    while some := list(islice(documents, _DOCUMENTS_AT_ONCE)):
        encode = partial(
            tokenizer,
            some,
            add_special_tokens=False,
            split_special_tokens=True,
            padding=False,
            truncation=False,
            return_attention_mask=False,
            verbose=False,
        )
        encoded = interruptible(encode)
        for ids in encoded["input_ids"]:
            yield [*ids, tokenizer.eos_token_id] if end else ids
