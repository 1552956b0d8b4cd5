"""Sentences as a model sees them: exactly what is given, or an error."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from babyssa.errors import DataError, ModelError
from babyssa.probing.models import LoadedModel
from babyssa.probing.suites import quoted


@dataclass(frozen=True)
class Encoding:
    """One sentence as a model sees it.

    Attributes
    ----------
    ids : tuple of int
        Token ids with special tokens.
    inside : tuple of int
        Positions in `ids` of the sentence's own tokens.
    words : tuple of int or None
        For each position in `inside` the number of the word that it belongs to: a word is a pre-token of the
        tokenizer (for byte-level BPE a run of letters, of digits or of other signs). None if it cannot say.
    """

    ids: tuple[int, ...]
    inside: tuple[int, ...]
    words: tuple[int, ...] | None


def encode(loaded: LoadedModel, sentence: str) -> Encoding:
    """The token ids of one sentence; see :func:`encode_all`."""
    return encode_all(loaded, [sentence])[0]


def encode_all(
    loaded: LoadedModel, sentences: Sequence[str], places: Sequence[Mapping[str, Any]] | None = None
) -> list[Encoding]:
    """The token ids of sentences: for a masked model framed by its special tokens, for a causal one after bos.

    A special token written out in a sentence (``<mask>``) is read as the characters that it is made of.

    Parameters
    ----------
    loaded : LoadedModel
        The model that will read them.
    sentences : sequence of str
        Any texts.
    places : sequence of mapping, optional
        ``path`` and ``line`` of each sentence, for error messages.

    Raises
    ------
    DataError
        If a sentence is empty, not valid Unicode, too long for the model, or cannot be represented.
    ModelError
        If a causal model's tokenizer has neither bos nor eos, so that nothing predicts the first token.
    """
    tokenizer = loaded.tokenizer
    places = [{}] * len(sentences) if places is None else places
    for sentence, place in zip(sentences, places, strict=True):
        _check_text(sentence, place)
    if not sentences:
        return []
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
    encodings = []
    for index, (sentence, place) in enumerate(zip(sentences, places, strict=True)):
        ids = encoded["input_ids"][index]
        added = encoded["special_tokens_mask"][index] if masked else [0] * len(ids)
        inside = [position for position, special in enumerate(added) if not special]
        if not inside:
            raise DataError(f"sentence {quoted(sentence)} has no tokens", **place)
        for position in inside:
            if ids[position] in forbidden:
                token = tokenizer.convert_ids_to_tokens(ids[position])
                raise DataError(f"sentence {quoted(sentence)} is read as having special token {token}", **place)
        words = None
        if tokenizer.is_fast:
            offsets = encoded["offset_mapping"][index]
            dropped = _dropped(sentence, [offsets[position] for position in inside])
            if dropped:
                raise DataError(
                    f"sentence {quoted(sentence)}: the tokenizer drops {dropped!a}",
                    **place,
                    remedy="use a tokenizer with an unknown token or the whole byte alphabet",
                )
            word_of = encoded.word_ids(index)
            words = tuple(word_of[position] for position in inside)
        length = len(start) + len(ids)
        if loaded.max_tokens is not None and length > loaded.max_tokens:
            raise DataError(
                f"sentence {quoted(sentence)} is {length} tokens long, but the model takes {loaded.max_tokens}",
                **place,
                remedy="shorten or drop it",
            )
        encodings.append(Encoding((*start, *ids), tuple(len(start) + position for position in inside), words))
    return encodings


def _check_text(sentence: str, place: Mapping[str, Any]) -> None:
    if not sentence.strip():
        raise DataError(f"sentence {quoted(sentence)} is empty", **place)
    try:
        sentence.encode("utf-8")
    except UnicodeEncodeError as error:
        where = f"character {error.start + 1}"
        raise DataError(f"sentence {sentence!a} is not valid Unicode ({where})", **place) from None


def start_id(loaded: LoadedModel) -> int:
    """What a causal model's first token is conditioned on: bos, or eos where that is the only one (GPT-2)."""
    for token in (loaded.tokenizer.bos_token_id, loaded.tokenizer.eos_token_id):
        if token is not None:
            return token
    raise ModelError(
        "the tokenizer has neither a bos nor an eos token, which the first token is conditioned on",
        path=loaded.name,
        remedy="set its bos_token and save it",
    )


def _dropped(sentence: str, offsets: Sequence[tuple[int, int]]) -> str:
    """Letters, digits and signs that no token covers, as when a vocabulary lacks them and an unknown token."""
    covered = {index for start, end in offsets for index in range(start, end)}
    return "".join(
        c for index, c in enumerate(sentence) if index not in covered and unicodedata.category(c)[0] in "LNPS"
    )
