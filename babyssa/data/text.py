"""Readers of running text: plain text files, and anything that the ``datasets`` library loads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from babyssa.data.lines import LINE_LIMIT, read_lines
from babyssa.data.utterances import Utterance
from babyssa.errors import DataError

_BUILDERS = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".txt": "text",
}


def read_text(path: Path) -> Iterator[Utterance]:
    """Yield the lines of a UTF-8 text file (.txt or .txt.gz), one sentence each."""
    for order, line in enumerate(read_lines(path), start=1):
        yield Utterance(text=line, source=str(path), order=order)


def read_dataset(location: str, text_column: str = "text") -> Iterator[Utterance]:
    """Yield the lines of a column of text in a dataset.

    Parameters
    ----------
    location : str
        A file (.csv, .json, .jsonl, .parquet, .arrow, .txt), a folder that ``save_to_disk`` wrote or
        ``load_dataset`` reads, or a dataset of the hub, as ``id`` or ``id:config``.
    text_column : str
        The column. A text of several lines gives one sentence per line.

    Raises
    ------
    DataError
        If there is no such dataset or column, or the column does not hold text.
    """
    rows = _train_split(_load(location), location)
    if text_column not in rows.column_names:
        raise DataError(
            f"the dataset has no column '{text_column}' (found: {', '.join(rows.column_names)[:300]})",
            path=location,
            remedy="name the column with --text-column",
        )
    order = 0
    for number, row in enumerate(rows.select_columns([text_column]), start=1):
        text = row[text_column]
        if text is not None and not isinstance(text, str):
            raise DataError(
                f"row {number}: column '{text_column}' holds a {type(text).__name__}, not text",
                path=location,
                remedy="name a column of text with --text-column",
            )
        for line in (text or "").split("\n"):
            if len(line) > LINE_LIMIT:
                raise DataError(
                    f"row {number} has a line longer than {LINE_LIMIT:,} characters",
                    path=location,
                    remedy="put one sentence on each line",
                )
            order += 1
            yield Utterance(text=line, source=location, order=order)


def _load(location: str):
    import datasets

    path = Path(location)
    try:
        if path.is_dir() and ((path / "state.json").exists() or (path / "dataset_dict.json").exists()):
            return datasets.load_from_disk(location)
        if path.is_dir():
            return datasets.load_dataset(location)
        if path.is_file():
            builder = _BUILDERS.get(path.suffix.lower())
            if builder is None:
                raise DataError(
                    f"no dataset reader for files in '{path.suffix}'",
                    path=path,
                    remedy=f"known: {', '.join(_BUILDERS)}",
                )
            return datasets.load_dataset(builder, data_files=location)
        name, _, config = location.partition(":")
        return datasets.load_dataset(name, config or None)
    except DataError:
        raise
    except Exception as error:  # the library raises dozens of kinds, for files, hub, network and formats
        raise DataError(
            f"cannot be loaded as a dataset: {type(error).__name__}: {error}",
            path=location,
            remedy="check the path or id, and the network for a dataset of the hub",
        ) from error


def _train_split(loaded, location: str):
    if not hasattr(loaded, "keys"):
        return loaded
    if "train" in loaded:
        return loaded["train"]
    if len(loaded) == 1:
        return next(iter(loaded.values()))
    raise DataError(f"the dataset has no split 'train' (found: {', '.join(loaded)})", path=location)
