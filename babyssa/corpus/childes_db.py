"""Reads exports of childes-db: CSV or parquet, one utterance per row.

CSV is read with :mod:`csv`, not with a data-frame library's defaults, because a gloss such as "null", "nan" or
"NA" is speech; in any other column, ``NA`` marks a missing value.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from babyssa.corpus.lines import read_lines
from babyssa.corpus.utterances import DAYS_PER_UNIT, Utterance
from babyssa.errors import ConfigError, DataError, nearest

NEEDED_COLUMNS = ("gloss", "type", "speaker_role", "transcript_id", "utterance_order", "target_child_age")
OPTIONAL_COLUMNS = ("collection_name",)

OLDEST_IN_MONTHS = 216
"""18 years. If no age in a file exceeds this number, its ages could be days, months or years."""

_OLDEST = 100 * DAYS_PER_UNIT["years"]


def read_childes_db(path: Path, age_unit: str | None = None) -> Iterator[Utterance]:
    """Yield the utterances of one export (.csv, .csv.gz, .parquet), in the order of the file.

    Parameters
    ----------
    path : Path
        The export.
    age_unit : {"days", "months", "years"}, optional
        The unit of target_child_age. By default days, if any age exceeds OLDEST_IN_MONTHS.

    Raises
    ------
    DataError
        With file and line or row, if a required column is missing, a row is broken, or the unit of the ages is
        ambiguous.
    ConfigError
        If the unit is unknown.
    """
    if age_unit is not None and age_unit not in DAYS_PER_UNIT:
        raise ConfigError(f"unknown age unit '{age_unit}'", remedy=nearest(age_unit, DAYS_PER_UNIT))
    utterances = (_utterance(row, line, path, age_unit or "days") for line, row in _rows(path))
    return utterances if age_unit else _in_days(utterances, path)


def has_childes_db_columns(path: Path) -> bool:
    """Whether a .csv, .csv.gz or .parquet file has the columns of a childes-db export."""
    try:
        columns = _parquet(path).schema_arrow.names if _is_parquet(path) else _csv_rows(path)[1]
    except DataError:
        return False
    return set(NEEDED_COLUMNS) <= set(columns)


def _in_days(utterances: Iterator[Utterance], path: Path) -> Iterator[Utterance]:
    """Pass utterances on once one of the ages is too large to be anything but days."""
    held = []
    for utterance in utterances:
        held.append(utterance)
        if utterance.age is not None and utterance.age > OLDEST_IN_MONTHS:
            yield from chain(held, utterances)
            return
    ages = [utterance.age for utterance in held if utterance.age is not None]
    if ages:
        span = " to ".join(dict.fromkeys(f"{age:g}" for age in (min(ages), max(ages))))
        raise DataError(
            f"target_child_age is {span}: days, months or years?",
            path=path,
            remedy="pass --age-unit to 'babyssa prepare' (childes-db has days, but its R client exports months)",
        )
    yield from held


def _utterance(row: dict[str, Any], line: int, path: Path, age_unit: str) -> Utterance:
    collection = row.get("collection_name")
    return Utterance(
        text=row["gloss"] or "",
        source=str(path),
        order=_order(row["utterance_order"], path, line),
        type=row["type"] or "",
        role=row["speaker_role"],
        age=_age(row["target_child_age"], age_unit, path, line),
        transcript=str(row["transcript_id"]).removesuffix(".0"),
        collection=None if collection in (None, "", "NA") else collection,
    )


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line number (in a parquet file, the row number) and the columns that are read, as a mapping."""
    if _is_parquet(path):
        yield from _parquet_rows(path)
        return
    lines, header = _csv_rows(path)
    if not header:
        raise DataError("is empty", path=path, remedy="expected a childes-db export with a header line")
    _check_columns(header, path)
    at = {name: header.index(name) for name in (*NEEDED_COLUMNS, *OPTIONAL_COLUMNS) if name in header}
    while True:
        line = lines.line_num + 1
        row = _next_row(lines, path)
        if row is None:
            return
        if not row:
            continue
        if len(row) != len(header):
            raise DataError(
                f"broken row: {len(row)} fields where the header has {len(header)}", path=path, line=line
            )
        yield line, {name: row[index] for name, index in at.items()}


def _csv_rows(path: Path) -> tuple[Any, list[str]]:
    """A CSV reader positioned after the header, and the header (empty if the file is empty)."""
    rows = csv.reader(read_lines(path), strict=True)
    return rows, _next_row(rows, path) or []


def _check_columns(found: list[str], path: Path) -> None:
    missing = [name for name in NEEDED_COLUMNS if name not in found]
    if missing:
        raise DataError(
            f"lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)} (found: {', '.join(found)[:300]})",
            path=path,
            line=1,
            remedy="expected a childes-db export; for other tables pass --kind datasets and --text-column",
        )


def _next_row(rows: Any, path: Path) -> list[str] | None:
    line = rows.line_num + 1
    try:
        return next(rows, None)
    except csv.Error as error:
        raise DataError(f"broken CSV row: {error}", path=path, line=line) from None


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"


def _parquet(path: Path) -> Any:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        return ParquetFile(path)
    except (OSError, ArrowException) as error:
        what = "no such file" if not path.exists() else f"cannot be read as parquet: {error}"
        raise DataError(what, path=path) from None


def _parquet_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    from pyarrow import ArrowException

    file = _parquet(path)
    _check_columns(file.schema_arrow.names, path)
    wanted = [name for name in (*NEEDED_COLUMNS, *OPTIONAL_COLUMNS) if name in file.schema_arrow.names]
    number = 0
    try:
        for batch in file.iter_batches(columns=wanted):
            for row in batch.to_pylist():
                number += 1
                for name in ("gloss", "type", "speaker_role"):
                    if not isinstance(row[name], str | None):
                        raise DataError(f"row {number}: {name} is not text: {str(row[name])[:60]}", path=path)
                yield number, row
    except (OSError, ArrowException) as error:
        raise DataError(f"cannot be read as parquet: {error}", path=path) from None


def _order(value: Any, path: Path, line: int) -> int:
    order = _number("utterance_order", value, path, line)
    if not order.is_integer():
        raise DataError(f"utterance_order is '{value}', not a whole number", path=path, line=line)
    return int(order)


def _age(value: Any, unit: str, path: Path, line: int) -> float | None:
    """An age in days; None if it is missing or zero, which means unknown."""
    if value in (None, "", "NA") or (isinstance(value, float) and math.isnan(value)):
        return None
    age = _number("target_child_age", value, path, line) * DAYS_PER_UNIT[unit]
    if not 0 <= age <= _OLDEST:
        what = f"target_child_age is '{value}', not a child's age in {unit}"
        raise DataError(what, path=path, line=line, remedy="check --age-unit" if age > 0 else None)
    return age or None


def _number(column: str, value: Any, path: Path, line: int) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise DataError(f"{column} is '{str(value)[:60]}', not a number", path=path, line=line) from None
