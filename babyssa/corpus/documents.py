"""Text as documents: what a decoder is trained on, and what perplexity is measured on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from babyssa.corpus.childes_db import has_childes_db_columns
from babyssa.corpus.lines import filled_lines, read_lines
from babyssa.corpus.preparation import CORPUS_FILE, corpus_file, kind_of, read_transcript_sentences
from babyssa.corpus.text import DATASET_BUILDERS, open_rows, read_rows
from babyssa.errors import DataError

Layout = Literal["lines", "blocks", "file"]

# "id" or "owner/id", with or without ":config".
_HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?(:[\w.-]+)?")


def is_text(corpus: str | Path) -> bool:
    """Whether `corpus` is a local text: a file that no other reader claims, or a prepared folder."""
    path = Path(corpus)
    if is_transcript(path):
        return False
    if path.is_dir():
        return (path / CORPUS_FILE).is_file()
    if path.name.lower().endswith((".txt", ".txt.gz")):
        return True
    return path.is_file() and path.suffix.lower() not in (*DATASET_BUILDERS, ".gz")


def is_transcript(corpus: str | Path) -> bool:
    """Whether `corpus` is a file of transcribed speech: CHAT, or an export with the columns of childes-db."""
    path = Path(corpus)
    if not path.is_file():
        return False
    kind = kind_of(path)
    return kind == "chat" or (kind == "childes-db" and has_childes_db_columns(path))


class OpenCorpus(NamedTuple):
    """A corpus, ready to be read.

    Parameters
    ----------
    texts : iterator of str
        The documents in order, without empty ones.
    layout : {"lines", "blocks", "file", "rows"}
        How the file divides into documents; "rows" are the rows of a dataset or the utterances of a transcript.
    split : str or None
        The split of the dataset, if it has splits.
    """

    texts: Iterator[str]
    layout: str
    split: str | None


def open_documents(
    corpus: str | Path,
    *,
    layout: Layout = "lines",
    text_column: str = "text",
    split: str | None = None,
    preferred: Sequence[str] = ("train",),
    streaming: bool = False,
) -> OpenCorpus:
    """Open a corpus and state its layout and split before any of it is read.

    Parameters
    ----------
    corpus : path-like
        A text file (.txt, .txt.gz or any unknown suffix), a folder that ``babyssa prepare`` wrote, a transcript or
        childes-db export (its documents are the sentences that ``babyssa prepare`` keeps), or anything that
        ``datasets`` loads: a .jsonl, .json, .parquet, .csv or .arrow file, a folder, or a hub id (``id`` or
        ``id:config``).
    layout : {"lines", "blocks", "file"}
        How a text file is divided into documents: one per line; separated by empty lines; or not at all. Each row
        of a dataset is a document.
    text_column
        The dataset's column of text.
    split, preferred, streaming
        For datasets; see :func:`babyssa.corpus.text.open_rows`. A text file is always read line by line.

    Raises
    ------
    DataError
        If the corpus is missing or unreadable, or has no such split; while iterating, where a row is broken.
    """
    text, transcript = is_text(corpus), is_transcript(corpus)
    if not Path(corpus).exists() and (text or not _HUB_ID.fullmatch(str(corpus))):
        raise DataError("no such file or folder", path=corpus, remedy="name a text, a dataset or a hub id")
    if split is not None and (text or transcript):
        raise DataError("only a dataset has splits", path=corpus, remedy="leave out the split")
    if text:
        return OpenCorpus(_read_text(corpus, layout), layout, None)
    if transcript:
        return OpenCorpus(read_transcript_sentences(Path(corpus)), "rows", None)
    split, rows = open_rows(str(corpus), split=split, preferred=preferred, streaming=streaming)
    texts = read_rows(rows, str(corpus), text_column)
    return OpenCorpus((text for text in texts if text.strip()), "rows", split)


def read_documents(corpus: str | Path, **options: Any) -> Iterator[str]:
    """Yield the non-empty documents of a corpus, in order; the options are those of :func:`open_documents`."""
    yield from open_documents(corpus, **options).texts


def _read_text(corpus: str | Path, layout: Layout) -> Iterator[str]:
    lines = read_lines(corpus_file(corpus))
    if layout == "lines":
        yield from (line.strip() for _, line in filled_lines(lines, corpus))
    elif layout == "file":
        text = "".join(lines).replace("\r\n", "\n").replace("\r", "\n")
        if text.strip():
            yield text
    else:
        block: list[str] = []
        for line in lines:
            if line.strip():
                block.append(line.rstrip())
            elif block:
                yield "\n".join(block)
                block = []
        if block:
            yield "\n".join(block)


def shuffled(documents: Iterable[str], size: int, seed: list[int]) -> Iterator[str]:
    """Shuffle a stream approximately: each document is drawn from a buffer of the next `size`.

    Parameters
    ----------
    documents : iterable of str
        A stream, read at most `size` documents ahead.
    size : int
        Documents in the buffer; 1 keeps the order.
    seed : list of int
        Seed of the random order.
    """
    generator = np.random.default_rng(seed)
    buffer: list[str] = []
    for document in documents:
        if len(buffer) < size:
            buffer.append(document)
            continue
        place = int(generator.integers(size))
        yield buffer[place]
        buffer[place] = document
    yield from (buffer[place] for place in generator.permutation(len(buffer)))
