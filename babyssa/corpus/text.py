"""Readers of written text: plain text files, and anything that the ``datasets`` library loads."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from babyssa.console import say
from babyssa.corpus.childes_db import NEEDED_COLUMNS
from babyssa.corpus.lines import LINE_LIMIT, read_lines
from babyssa.corpus.utterances import Utterance
from babyssa.errors import DataError

DATASET_BUILDERS = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".txt": "text",
}


# A CHAT code; without the asterisk, one of those listed in CHAT's manual, or a letter before a tab.
_LABEL = re.compile(
    r"\s*(?:\*([A-Z0-9][A-Z0-9_-]{0,15}|[a-z]{3}):|((?:CHI|MOT|FAT|BRO|SIS|SIB|GRA|GRM|GRF|AUN|UNC|COU|INV|EXP|OBS|TEA|ADU):)"
    r"(?=\s)|([A-Z]:)(?=\t))\s*"
)
_CHILD_LABEL = re.compile(r"CHI?\d*", re.IGNORECASE)


def read_text(path: Path) -> Iterator[Utterance]:
    """Yield the lines of a UTF-8 text file (gzip if it ends in .gz), one sentence each, without speaker labels."""
    for order, line in enumerate(read_lines(path), start=1):
        yield running_text(line, str(path), order)


def running_text(line: str, source: str, order: int) -> Utterance:
    r"""A line of text as an utterance; a speaker label becomes its role.

    >>> running_text("*CHI:\tmore juice", "a.txt", 1).text, running_text("*CHI:\tmore juice", "a.txt", 1).role
    ('more juice', 'Target_Child')
    """
    label = _LABEL.match(line)
    if not label:
        return Utterance(text=line, source=source, order=order)
    code = next(filter(None, label.groups())).removesuffix(":")
    role = "Target_Child" if _CHILD_LABEL.fullmatch(code) else code
    return Utterance(text=line[label.end() :], source=source, order=order, role=role)


def read_dataset(location: str, text_column: str = "text") -> Iterator[Utterance]:
    """Yield the lines of a dataset's text column.

    Parameters
    ----------
    location : str
        A file (.csv, .json, .jsonl, .parquet, .arrow, .txt), a folder that ``save_to_disk`` wrote or
        ``load_dataset`` reads, or a dataset on the hub, as ``id`` or ``id:config``.
    text_column : str
        The column. A text of several lines yields one sentence per line.

    Raises
    ------
    DataError
        If there is no such dataset or column, or the column does not hold text.
    """
    order = 0
    _, rows = open_rows(location)
    for number, text in enumerate(read_rows(rows, location, text_column), start=1):
        for line in re.split(r"\r\n|\r|\n", text):
            if len(line) > LINE_LIMIT:
                raise DataError(
                    f"row {number} has a line longer than {LINE_LIMIT:,} characters",
                    path=location,
                    remedy="put one sentence on each line",
                )
            order += 1
            yield running_text(line, location, order)


def open_rows(
    location: str,
    *,
    split: str | None = None,
    preferred: Sequence[str] = ("train",),
    streaming: bool = False,
) -> tuple[str | None, Any]:
    """Open a split of a dataset; returns its name (None if there are no splits) and its rows.

    Parameters
    ----------
    location
        See :func:`read_dataset`.
    split : str, optional
        The split; by default the first of `preferred` that exists, or the only one.
    preferred : sequence of str
        Names of splits.
    streaming : bool
        Fetch rows as they are needed instead of the whole dataset.

    Raises
    ------
    DataError
        If there is no such dataset or split.
    """
    loaded = _load(location, streaming)
    if not hasattr(loaded, "keys"):
        if split is None:
            return None, loaded
        raise DataError("the dataset has no splits", path=location, remedy="leave out the split")
    chosen = split or next((name for name in preferred if name in loaded), None)
    if chosen is None and len(loaded) == 1:
        (chosen,) = loaded
    if chosen not in loaded:
        what = f"the dataset has no split '{chosen or preferred[0]}' (found: {', '.join(loaded)})"
        raise DataError(what, path=location, remedy="name one with --split")
    return chosen, loaded[chosen]


def read_rows(rows: Any, location: str, text_column: str = "text") -> Iterator[str]:
    """Yield the texts in a column of a dataset, whole; a missing text becomes an empty one.

    Parameters
    ----------
    rows : Dataset or IterableDataset
        From :func:`open_rows`.
    location, text_column
        See :func:`read_dataset`.

    Raises
    ------
    DataError
        If there is no such column, or it does not hold text.
    """
    known = rows.column_names
    if known is None:  # a stream may not know its columns before its first row
        known = next(map(list, _fetched(rows, location)), [text_column])
    if text_column not in known:
        raise DataError(
            f"the dataset has no column '{text_column}' (found: {', '.join(known)[:300]})",
            path=location,
            remedy="name the column with --text-column",
        )
    if set(NEEDED_COLUMNS) <= set(known):
        say(f"{location}: looks like a childes-db export; --kind childes-db leaves out children's lines")
    for number, row in enumerate(_fetched(rows.select_columns([text_column]), location), start=1):
        text = row[text_column]
        if text is not None and not isinstance(text, str):
            raise DataError(
                f"row {number}: column '{text_column}' holds a {type(text).__name__}, not text",
                path=location,
                remedy="name a column of text with --text-column",
            )
        yield text or ""


def _fetched(rows: Any, location: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a dataset; any error names the dataset."""
    log = logging.getLogger("datasets")
    remaining, level = iter(rows), log.level
    while True:
        # The library also logs what it raises.
        log.setLevel(logging.CRITICAL)
        try:
            row = next(remaining, None)
        except Exception as error:  # as in _load; a stream fails only here
            raise DataError(
                f"cannot be read as a dataset: {type(error).__name__}: {error}",
                path=location,
                remedy="check the file, and the network for a dataset of the hub",
            ) from error
        finally:
            log.setLevel(level)
        if row is None:
            return
        yield row


def _load(location: str, streaming: bool = False):
    import datasets

    path = Path(location)
    try:
        if path.is_dir() and ((path / "state.json").exists() or (path / "dataset_dict.json").exists()):
            loaded = datasets.load_from_disk(location)
            if not streaming:
                return loaded
            if isinstance(loaded, datasets.Dataset):
                return loaded.to_iterable_dataset()
            return {name: rows.to_iterable_dataset() for name, rows in loaded.items()}
        if path.is_dir():
            return datasets.load_dataset(location, streaming=streaming)
        if path.is_file():
            builder = DATASET_BUILDERS.get(path.suffix.lower())
            if builder is None:
                raise DataError(
                    f"no dataset reader for '{path.suffix}' files",
                    path=path,
                    remedy=f"known: {', '.join(DATASET_BUILDERS)}",
                )
            return datasets.load_dataset(builder, data_files=location, streaming=streaming)
        name, _, config = location.partition(":")
        return datasets.load_dataset(name, config or None, streaming=streaming)
    except DataError:
        raise
    except Exception as error:  # the library raises dozens of kinds, for files, hub, network and formats
        raise DataError(
            f"cannot be loaded as a dataset: {type(error).__name__}: {error}",
            path=location,
            remedy="check the path or id, and the network for a dataset of the hub",
        ) from error
