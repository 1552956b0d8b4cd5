"""BabyBERTa's byte-level BPE tokenizer: training, saving for transformers, loading, encoding.

Text is lower-cased, gets a space before its first word, and is split into bytes; merges are learned from the
corpus. Ids 0 to 4 are ``<mask> <pad> <unk> <s> </s>``, and a sequence is ``<s> ... </s>``. All 256 bytes are in
the vocabulary, so no text is unknown.

This module avoids three traps:

- Without ``add_prefix_space`` in tokenizer_config.json, transformers 4 resets the byte-level pre-tokenizer, and
  the first word of every sentence silently gets another id.
- The class name decides which files are read: transformers 5 rebuilds a ``RobertaTokenizer`` from its merges and
  silently loses the lower-casing, and saves the class name ``TokenizersBackend``, which transformers 4 does not
  know. ``PreTrainedTokenizerFast`` is known to both and reads tokenizer.json unchanged; :func:`load_tokenizer`
  uses it wherever the folder's own class gives other ids.
- A tokenizer turns ``<mask>`` or ``</s>`` in a text into special tokens. :func:`encode_sentences` and training
  encode the characters instead.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from babyssa.checks import Domain, Positive, check
from babyssa.console import quiet_transformers, say
from babyssa.corpus.cleaning import LONG_WORD, WORD_LIMIT
from babyssa.corpus.interruptible import interruptible
from babyssa.corpus.preparation import corpus_file, numbered_sentences
from babyssa.errors import ConfigError, DataError, ModelError
from babyssa.files import atomic_write, check_overwrite, read_json, write_json

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


SPECIAL_TOKENS = {
    "mask_token": "<mask>",
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "bos_token": "<s>",
    "eos_token": "</s>",
}
"""The special tokens, in the order of their ids 0 to 4."""

MAX_LENGTH = 128
"""Longest sequence in tokens, ``<s>`` and ``</s>`` included."""

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")

VOCABULARIES = ("tokenizer.json", "vocab.json", "vocab.txt", "*.model")
"""A tokenizer folder has at least one of these."""

_SPECIAL_NAMES = {
    "mask_token": ("<mask>", "[MASK]"),
    "pad_token": ("<pad>", "[PAD]"),
    "unk_token": ("<unk>", "[UNK]"),
    "bos_token": ("<s>", "<|endoftext|>"),
    "eos_token": ("</s>", "<|endoftext|>"),
    "cls_token": ("[CLS]", "<s>"),
    "sep_token": ("[SEP]", "</s>"),
}
_TELLING_TEXTS = (
    "The End",
    " the  dogs",
    "don't 12,345",
    "\u00c9t\u00e9 e\u0301",
    "\u4e2d\u6587 \U0001f436",
    "a\nb_c",
)

_CLASS_THAT_ALL_VERSIONS_KNOW = "PreTrainedTokenizerFast"
_LEAST = len(SPECIAL_TOKENS) + 256

VocabularySize = Annotated[
    int,
    Domain(
        f"from {_LEAST}, for the special tokens and all bytes, to 1,000,000", lambda n: _LEAST <= n <= 1_000_000
    ),
]
"""Size of a tokenizer's vocabulary."""


def train_tokenizer(
    corpus: str | Path,
    out: str | Path,
    *,
    vocab_size: int = 8192,
    min_frequency: int = 2,
    lowercase: bool = True,
    overwrite: bool = False,
) -> PreTrainedTokenizerFast:
    """Train and save a tokenizer; :func:`babyssa.train_tokenizer` explains the parameters.

    A sentence with a word of more than WORD_LIMIT characters is left out and reported. transformers 4 and 5 read
    the folder alike.
    """
    check("vocab_size", vocab_size, VocabularySize)
    check("min_frequency", min_frequency, Positive)
    out = Path(out)
    check_overwrite(out, TOKENIZER_FILES, overwrite)
    sentences = []
    for line, sentence in numbered_sentences(Path(corpus)):
        if len(sentence) > WORD_LIMIT and max(map(len, sentence.split())) > WORD_LIMIT:
            say(f"{corpus_file(corpus)}:{line}: left out: {LONG_WORD}")
        else:
            sentences.append(sentence)
    if not sentences:
        raise DataError("the corpus is empty", path=corpus_file(corpus), remedy="it needs one sentence per line")

    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=interruptible(partial(_train, sentences, vocab_size, min_frequency, lowercase)),
        **SPECIAL_TOKENS,
        cls_token=SPECIAL_TOKENS["bos_token"],
        sep_token=SPECIAL_TOKENS["eos_token"],
        add_prefix_space=True,
        model_max_length=MAX_LENGTH,
        model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
    )
    save_tokenizer(tokenizer, out)
    return load_tokenizer(out)


def save_tokenizer(tokenizer: PreTrainedTokenizerFast, folder: str | Path) -> None:
    """Save a tokenizer like ``save_pretrained``, under a class name that transformers 4 and 5 both know."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".tokenizer-", dir=folder) as scratch:
        tokenizer.save_pretrained(scratch)
        for path in sorted(Path(scratch).iterdir()):
            if path.name == "tokenizer_config.json":
                config = read_json(path)
                if config.get("tokenizer_class") in (None, "TokenizersBackend"):
                    config["tokenizer_class"] = _CLASS_THAT_ALL_VERSIONS_KNOW
                write_json(folder / path.name, config)
            else:
                with atomic_write(folder / path.name, "wb") as file:
                    file.write(path.read_bytes())


def load_tokenizer(
    name: str | Path, *, revision: str | None = None, trust_remote_code: bool = False
) -> PreTrainedTokenizerFast:
    """Load a tokenizer, for training, scoring and generation alike.

    If there is a tokenizer.json, it decides the ids. If the class named in tokenizer_config.json would give
    others, a message says so and the class is not used.

    Parameters
    ----------
    name : path-like
        A folder, a tokenizer.json file of any name, or a hub id.
    revision : str, optional
        Branch, tag or commit of a hub id; its main branch by default.
    trust_remote_code : bool
        Run the Python code that comes with the tokenizer, which can do whatever you can.

    Returns
    -------
    transformers.PreTrainedTokenizerFast
        Without a tokenizer.json, whatever the class builds from the other files.

    Raises
    ------
    ModelError
        If it is missing, incomplete or broken.
    """
    path = Path(name)
    check_revision(name, revision)
    if path.is_file():
        return _from_file(path, None)
    if path.is_dir():
        if not any(any(path.glob(pattern)) for pattern in VOCABULARIES):
            raise ModelError(
                f"the tokenizer is incomplete: it lacks {VOCABULARIES[0]}",
                path=path,
                remedy="train one with 'babyssa tokenizer', or save one with save_pretrained",
            )
        for file in TOKENIZER_FILES:
            if (path / file).is_file():
                _check_json(path / file)
    elif not may_be_hub_id(str(name)):
        raise ModelError("no such tokenizer folder", path=path, remedy="train one with 'babyssa tokenizer'")

    from transformers import AutoTokenizer
    from transformers.utils import cached_file

    with quiet_transformers():
        file = cached_file(
            str(name),
            TOKENIZER_FILES[0],
            revision=revision,
            _raise_exceptions_for_gated_repo=False,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )
        if (
            path.is_dir()
            and file
            and not any((path / other).is_file() for other in (TOKENIZER_FILES[1], "config.json"))
        ):
            return _from_file(Path(file), None)
        try:
            tokenizer = AutoTokenizer.from_pretrained(
                str(name), revision=revision, trust_remote_code=trust_remote_code
            )
        except Exception as error:  # both libraries raise bare Exception for a file of the wrong form
            said = next(iter(str(error).split("\n")), "") or type(error).__name__
            if "custom code" in said:
                raise ModelError(
                    "the tokenizer needs the code that comes with it, which could do whatever you can",
                    path=name,
                    remedy="read it, and if you trust it, pass --trust-remote-code",
                ) from error
            if not path.is_dir():
                raise ModelError(
                    f"no such tokenizer folder, and the hub does not give it: {said}",
                    path=name,
                    remedy="check the name, or the network",
                ) from error
            raise ModelError(
                f"cannot be loaded as a tokenizer: {said}", path=path, remedy="check that its files are complete"
            ) from error
    if file is None:
        return tokenizer
    as_filed = _from_file(Path(file), tokenizer)
    if tokenizer.is_fast and _rules(tokenizer) == _rules(as_filed):
        return tokenizer
    if any(_ids(tokenizer, text) != _ids(as_filed, text) for text in _TELLING_TEXTS):
        say(
            f"{name}: the class {type(tokenizer).__name__} would give other ids than {TOKENIZER_FILES[0]}; "
            "using those of the file"
        )
    return as_filed


def masked_tokenizer(tokenizer: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    """Add the special tokens that masked training needs, in place, and report what was added.

    It needs a mask and a padding token, and a special token before and after each sentence.

    Raises
    ------
    ModelError
        If it is not a fast tokenizer, or has no special tokens to begin and end a sentence.
    """
    place = {"path": tokenizer.name_or_path or None}
    if not tokenizer.is_fast:
        raise ModelError("is not a fast tokenizer", **place, remedy="convert it to one")
    missing = {
        role: SPECIAL_TOKENS[role] for role in ("mask_token", "pad_token") if getattr(tokenizer, role) is None
    }
    if missing:
        tokenizer.add_special_tokens(missing)
        added = " and ".join(f"{token} ({tokenizer.convert_tokens_to_ids(token)})" for token in missing.values())
        say(f"the tokenizer has no {' and no '.join(role.replace('_', ' ') for role in missing)}: added {added}")
    ids = tokenizer("a")["input_ids"]
    special = set(tokenizer.all_special_ids)
    if len(ids) < 3 or ids[0] not in special or ids[-1] not in special:
        first, last = tokenizer.bos_token or tokenizer.cls_token, tokenizer.eos_token or tokenizer.sep_token
        if first is None or last is None:
            raise ModelError(
                "the tokenizer has no tokens that begin and end a sentence",
                **place,
                remedy="set its bos_token and eos_token and save it",
            )

        from tokenizers import processors

        known = [(token, tokenizer.convert_tokens_to_ids(token)) for token in dict.fromkeys((first, last))]
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{first} $A {last}", pair=f"{first} $A {last} $B {last}", special_tokens=known
        )
        say(f"the tokenizer marks no sentence boundaries: added {first} before and {last} after each")
    return tokenizer


def may_be_hub_id(name: str) -> bool:
    """Whether `name`, which is no local file, has the form of a hub id: ``id`` or ``owner/id``."""
    parts = name.split("/")
    return len(parts) <= 2 and all(part and not part.startswith((".", "~")) for part in parts)


def check_revision(name: str | Path, revision: str | None) -> None:
    """Raise ConfigError where a revision is asked of a folder or file: only the hub has them."""
    if revision is not None and Path(name).exists():
        raise ConfigError(
            f"{name} is on this machine, and has no revision '{revision}'",
            remedy="leave it out, or name a checkpoint of a run by its folder: RUN/checkpoints/...",
        )


def _from_file(file: Path, by_class: Any) -> PreTrainedTokenizerFast:
    """A tokenizer with the rules of a tokenizer.json and the settings of `by_class`, if given.

    Special tokens that the class defines by default but the file lacks are dropped; missing ones are found by
    their usual names.
    """
    _check_json(file)

    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    try:
        backend = Tokenizer.from_file(str(file))
    except Exception as error:  # tokenizers raises bare Exception
        raise ModelError(
            f"cannot be loaded as a tokenizer: {error}", path=file, remedy="train one with 'babyssa tokenizer'"
        ) from error
    vocabulary = backend.get_vocab()
    special = {
        role: token
        for role, names in _SPECIAL_NAMES.items()
        if (token := next((name for name in names if name in vocabulary), None)) is not None
    }
    if by_class is None:
        named = ", ".join(f"{role.removesuffix('_token')} {token}" for role, token in special.items())
        say(f"{file}: special tokens by their names: {named or 'none'}")
        settings = {}
    else:
        config = file.with_name(TOKENIZER_FILES[1])
        stated = read_json(config) if config.is_file() else {}
        special |= {
            role: token
            for role, token in by_class.special_tokens_map.items()
            if isinstance(token, str) and (token in vocabulary or role in stated)
        }
        names = ("model_max_length", "padding_side", "model_input_names")
        settings = {name: getattr(by_class, name) for name in names}
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, clean_up_tokenization_spaces=False, **settings, **special
    )


def _check_json(file: Path) -> None:
    try:
        read_json(file)
    except DataError as error:
        raise ModelError(
            error.what,
            path=error.path,
            line=error.line,
            remedy="a tokenizer is a folder, a hub id, or a tokenizer.json file",
        ) from None


def _ids(tokenizer: Any, text: str) -> list[int] | None:
    try:
        return tokenizer(text)["input_ids"]
    except Exception:  # a class may lack what it needs in another's vocabulary
        return None


def _rules(tokenizer: Any) -> dict[str, Any]:
    """The parts of a fast tokenizer that determine the ids of a text without special tokens."""
    rules = json.loads(tokenizer.backend_tokenizer.to_str(), object_hook=_without_offsets)
    return {part: rules[part] for part in ("normalizer", "pre_tokenizer", "model", "post_processor")}


def _without_offsets(part: dict[str, Any]) -> dict[str, Any]:
    part.pop("trim_offsets", None)
    return part


def tokenizer_sha256(tokenizer: PreTrainedTokenizerFast) -> str:
    """Hash of a fast tokenizer's vocabulary, merges and rules, independent of where it was loaded from."""
    rules = json.loads(tokenizer.backend_tokenizer.to_str())
    # These two are the state of the last call, not rules of the tokenizer.
    del rules["truncation"], rules["padding"]
    return hashlib.sha256(json.dumps(rules, sort_keys=True).encode()).hexdigest()


def encode_sentences(tokenizer: PreTrainedTokenizerFast, sentences: Sequence[str]) -> list[list[int]]:
    """Encode sentences to token ids, with the tokenizer's own first and last special tokens around each.

    Nothing is padded or truncated, and a special token written out in a sentence (``</s>``) is encoded as the
    characters that it is.

    Parameters
    ----------
    tokenizer : transformers.PreTrainedTokenizerFast
    sentences : sequence of str

    Returns
    -------
    list of list of int
        One list of token ids per sentence.
    """
    if not sentences:
        return []
    encode = partial(
        tokenizer,
        list(sentences),
        add_special_tokens=True,
        padding=False,
        truncation=False,
        return_attention_mask=False,
        split_special_tokens=True,
        verbose=False,
    )
    return interruptible(encode)["input_ids"]


def _train(sentences: list[str], vocab_size: int, min_frequency: int, lowercase: bool):
    from tokenizers import (
        AddedToken,
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        processors,
        trainers,
    )

    # The mask absorbs the space before it, as in RoBERTa, so that "a <mask>" and "a word" are alike.
    special = [AddedToken(token, lstrip=token == "<mask>", special=True) for token in SPECIAL_TOKENS.values()]
    tokenizer = Tokenizer(models.BPE(unk_token=SPECIAL_TOKENS["unk_token"]))
    if lowercase:
        tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        sentences,
        trainers.BpeTrainer(
            vocab_size=vocab_size,
            min_frequency=min_frequency,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
        length=len(sentences),
    )
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", tokenizer.token_to_id("</s>")),
        ("<s>", tokenizer.token_to_id("<s>")),
        trim_offsets=True,
        add_prefix_space=True,
    )
    return tokenizer
