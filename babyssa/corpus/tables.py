"""Numbered rows of a table: CSV, TSV, JSON lines, Parquet, or a table in memory."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from babyssa.corpus.lines import filled_lines, read_lines, say_skipped
from babyssa.errors import DataError

DELIMITERS = {".csv": ",", ".tsv": "\t"}
Row = tuple[int, dict[str, Any]]
"""A row's line number in its file, or its number in memory (from 1), and its values by column."""


def read_table(path: Path) -> list[Row]:
    """Read the rows of a ``.csv``, ``.tsv``, ``.jsonl`` or ``.parquet`` file.

    Raises
    ------
    DataError
        If it cannot be read in the format of its suffix; names file and line.
    """
    if path.suffix == ".parquet":
        return _parquet_rows(path)
    if path.suffix == ".jsonl":
        return json_rows(path, read_lines(path))
    if path.suffix not in DELIMITERS:
        raise DataError(
            f"no table reader for '{path.suffix}' files",
            path=path,
            remedy="known: .csv, .tsv, .jsonl, .parquet",
        )
    table = fields(path, list(read_lines(path)), DELIMITERS[path.suffix])
    return records(path, next(table, (1, []))[1], table)


def memory_rows(table: Any) -> list[Row]:
    """The rows of a pandas DataFrame, a ``datasets.Dataset``, or an iterable of mappings.

    Raises
    ------
    DataError
        If a row is not a mapping; names its number.
    """
    if hasattr(table, "to_dict") and hasattr(table, "columns"):
        table = table.to_dict("records")
    rows = list(enumerate(table, start=1))
    for number, row in rows:
        if not isinstance(row, Mapping):
            raise DataError(
                f"row {number} is a {type(row).__name__}", remedy="pass a DataFrame, a Dataset, or a list of dicts"
            )
    return [(number, dict(row)) for number, row in rows]


def json_rows(path: Path, lines: Iterable[str]) -> list[Row]:
    """The rows of a file with one JSON object per line."""
    rows: list[Row] = []
    for number, line in filled_lines(lines, path):
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"broken JSON: {error.msg}", path=path, line=number) from None
        except RecursionError:
            raise DataError("broken JSON: nested too deeply", path=path, line=number) from None
        if not isinstance(record, dict):
            raise DataError("not a JSON object", path=path, line=number)
        rows.append((number, record))
    return rows


def fields(
    path: Path, lines: list[str], delimiter: str, quoting: int = csv.QUOTE_MINIMAL
) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line number and the fields of each row of a delimited table, header included."""
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
    start = 1
    try:
        for found in reader:
            yield start, found
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"broken row: {error}", path=path, line=reader.line_num) from None


def records(path: Path, header: list[str], table: Iterator[tuple[int, list[str]]]) -> list[Row]:
    """The remaining rows of :func:`fields`, keyed by `header`; empty ones are skipped and counted."""
    rows: list[Row] = []
    empty: list[int] = []
    for line, found in table:
        if len(found) < 2 and not "".join(found).strip():
            empty.append(line)
        elif len(found) != len(header):
            raise DataError(f"{len(found)} fields under {len(header)} columns", path=path, line=line)
        else:
            rows.append((line, dict(zip(header, found, strict=True))))
    say_skipped(empty, path)
    return rows


def _parquet_rows(path: Path) -> list[Row]:
    import pandas as pd

    try:
        return memory_rows(pd.read_parquet(path))
    except Exception as error:  # pyarrow raises many kinds for broken files
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"cannot be read as Parquet: {said}", path=path) from error
