"""The byte-level BPE tokenizer of BabyBERTa: trained on a corpus, saved for transformers, loaded, applied.

Text is lower-cased, gets a space before its first word, and is split into bytes; merges are learned from the
corpus. Ids 0 to 4 are ``<mask> <pad> <unk> <s> </s>``, and a sequence is ``<s> ... </s>``. All 256 bytes are in
the vocabulary, so no text is unknown.

Three traps are closed here:

- Without ``add_prefix_space`` in tokenizer_config.json, transformers 4 resets the byte-level pre-tokenizer, and
  the first word of every sentence silently gets another id.
- The class name decides what is read: transformers 5 rebuilds a ``RobertaTokenizer`` from its merges and
  silently loses the lower-casing, and writes the name ``TokenizersBackend``, which transformers 4 does not
  know. ``PreTrainedTokenizerFast`` is known to both and takes tokenizer.json as it is.
- Text that contains ``<mask>`` or ``</s>`` becomes special tokens when a tokenizer is called on it.
  :func:`encode_sentences` encodes it as the characters that it is, and so does training.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from babyssa.console import say
from babyssa.corpus.cleaning import LONG_WORD, WORD_LIMIT
from babyssa.corpus.preparation import corpus_file, numbered_sentences
from babyssa.errors import ConfigError, DataError, ModelError
from babyssa.files import atomic_write, check_overwrite, read_json, write_json

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

T = TypeVar("T")

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

_CLASS_THAT_ALL_VERSIONS_KNOW = "PreTrainedTokenizerFast"
_SMALLEST_VOCABULARY = len(SPECIAL_TOKENS) + 256
_LARGEST_VOCABULARY = 1_000_000


def train_tokenizer(
    corpus: str | Path,
    out: str | Path,
    *,
    vocab_size: int = 8192,
    min_frequency: int = 2,
    lowercase: bool = True,
    overwrite: bool = False,
) -> PreTrainedTokenizerFast:
    """Train the tokenizer on a corpus and save it as a folder that transformers 4 and 5 read alike.

    The result depends on the corpus and the settings only, not on threads or time. A sentence with a word of
    more than WORD_LIMIT characters is left out, and named on stderr.

    Parameters
    ----------
    corpus : path-like
        A text file of one sentence per line, or a prepared folder.
    out : path-like
        The folder to write.
    vocab_size : int
        Largest vocabulary, special tokens and bytes included. A small corpus may give a smaller one.
    min_frequency : int
        Fewest times that a pair must occur to be merged.
    lowercase : bool
        Lower-case all text.
    overwrite : bool
        Replace an earlier tokenizer in `out`.

    Returns
    -------
    transformers.PreTrainedTokenizerFast

    Raises
    ------
    DataError
        If the corpus is missing, empty or not UTF-8.
    ConfigError
        If `vocab_size` has no room for special tokens and bytes, or `min_frequency` is below 1.
    OutputExistsError
        If `out` holds a tokenizer and `overwrite` is false.
    """
    if vocab_size < _SMALLEST_VOCABULARY:
        raise ConfigError(
            f"vocab_size is {vocab_size}",
            remedy=f"it must be at least {_SMALLEST_VOCABULARY}, for the special tokens and the 256 bytes",
        )
    if vocab_size > _LARGEST_VOCABULARY:
        raise ConfigError(f"vocab_size is {vocab_size}", remedy=f"it is at most {_LARGEST_VOCABULARY}")
    if min_frequency < 1:
        raise ConfigError(f"min_frequency is {min_frequency}", remedy="it must be at least 1")
    out = Path(out)
    check_overwrite(out, TOKENIZER_FILES, overwrite)
    sentences = []
    for line, sentence in numbered_sentences(Path(corpus)):
        if len(sentence) > WORD_LIMIT and max(map(len, sentence.split())) > WORD_LIMIT:
            say(f"{corpus_file(corpus)}:{line}: left out: {LONG_WORD}")
        else:
            sentences.append(sentence)
    if not sentences:
        raise DataError("the corpus is empty", path=corpus_file(corpus), remedy="it needs a sentence per line")

    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=_interruptible(lambda: _train(sentences, vocab_size, min_frequency, lowercase)),
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
    """Save a tokenizer as ``save_pretrained`` does, with a class name that transformers 4 and 5 both know."""
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


def load_tokenizer(folder: str | Path) -> PreTrainedTokenizerFast:
    """Load a tokenizer folder.

    Raises
    ------
    ModelError
        If the folder is missing, incomplete or broken, or if transformers would read it otherwise than it was
        trained (see the traps above).
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ModelError("no such tokenizer folder", path=folder, remedy="train one with 'babyssa tokenizer'")
    missing = [name for name in TOKENIZER_FILES if not (folder / name).is_file()]
    if missing:
        raise ModelError(
            f"the tokenizer is incomplete: it lacks {' and '.join(missing)}",
            path=folder,
            remedy="train it again with 'babyssa tokenizer'",
        )
    try:
        for name in TOKENIZER_FILES:
            read_json(folder / name)
    except DataError as error:
        raise ModelError(error.what, path=error.path, line=error.line, remedy="train it again") from None

    from tokenizers import Tokenizer
    from transformers import AutoTokenizer

    try:
        as_trained = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)
    except Exception as error:  # both libraries raise bare Exception for a file of the wrong form
        raise ModelError(
            f"cannot be loaded as a tokenizer: {type(error).__name__}: {error}",
            path=folder,
            remedy="train it again",
        ) from error
    text = "The End"
    backend = getattr(tokenizer, "backend_tokenizer", as_trained)
    if backend.encode(text).tokens != as_trained.encode(text).tokens:
        raise ModelError(
            "transformers would read this tokenizer otherwise than it was trained",
            path=folder / "tokenizer_config.json",
            remedy=f'set "tokenizer_class": "{_CLASS_THAT_ALL_VERSIONS_KNOW}" and "add_prefix_space": true in it',
        )
    return tokenizer


def tokenizer_sha256(tokenizer: PreTrainedTokenizerFast) -> str:
    """Hash of what a fast tokenizer does to text: its vocabulary, merges and rules, wherever it came from."""
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
    return tokenizer(
        list(sentences),
        add_special_tokens=True,
        padding=False,
        truncation=False,
        return_attention_mask=False,
        split_special_tokens=True,
        verbose=False,
    )["input_ids"]


def _interruptible(function: Callable[[], T]) -> T:
    """The result of `function`, called in a thread: Rust code would not answer Ctrl-C before its end."""
    done: Future[T] = Future()

    def run():
        try:
            done.set_result(function())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    while True:
        try:
            return done.result(timeout=0.2)
        except TimeoutError:
            if done.done():
                raise


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

    # The mask takes in the space before it, as in RoBERTa, so that "a <mask>" and "a word" are alike.
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
