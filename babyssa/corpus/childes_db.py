"""Reader of childes-db exports: CSV, one utterance a row, ``NA`` for what is missing.

Rows are read with :mod:`csv` and never with a data-frame library's defaults, because a gloss such as "null",
"nan" or "NA" is speech.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path

from babyssa.corpus.lines import read_lines
from babyssa.corpus.utterances import Utterance
from babyssa.errors import DataError

NEEDED_COLUMNS = ("gloss", "type", "speaker_role", "transcript_id", "utterance_order", "target_child_age")
OPTIONAL_COLUMNS = ("collection_name",)


def read_childes_db(path: Path) -> Iterator[Utterance]:
    """Yield the utterances of one childes-db CSV export (.csv or .csv.gz), in the order of the file.

    Raises
    ------
    DataError
        With file and line, if a needed column is missing or a row is broken.
    """
    rows = csv.reader(read_lines(path), strict=True)
    header = _next_row(rows, path)
    if header is None:
        raise DataError("is empty", path=path, remedy="expected a childes-db export with a header line")
    missing = [name for name in NEEDED_COLUMNS if name not in header]
    if missing:
        raise DataError(
            f"lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)} (found: {', '.join(header)[:300]})",
            path=path,
            line=1,
            remedy="expected a childes-db export; for other tables pass --kind datasets and --text-column",
        )
    at = {name: header.index(name) for name in (*NEEDED_COLUMNS, *OPTIONAL_COLUMNS) if name in header}
    source = str(path)
    while True:
        line = rows.line_num + 1
        row = _next_row(rows, path)
        if row is None:
            return
        if not row:
            continue
        if len(row) != len(header):
            raise DataError(
                f"broken row: {len(row)} fields where the header has {len(header)}", path=path, line=line
            )
        collection = row[at["collection_name"]] if "collection_name" in at else "NA"
        yield Utterance(
            text=row[at["gloss"]],
            source=source,
            order=_number(int, "utterance_order", row[at["utterance_order"]], path, line),
            type=row[at["type"]],
            role=row[at["speaker_role"]],
            age=_age(row[at["target_child_age"]], path, line),
            transcript=row[at["transcript_id"]],
            collection=None if collection in ("", "NA") else collection,
        )


def _next_row(rows, path: Path) -> list[str] | None:
    line = rows.line_num + 1
    try:
        return next(rows, None)
    except csv.Error as error:
        raise DataError(f"broken CSV row: {error}", path=path, line=line) from None


def _age(text: str, path: Path, line: int) -> float | None:
    if text in ("", "NA"):
        return None
    age = _number(float, "target_child_age", text, path, line)
    if not (math.isfinite(age) and age >= 0):
        raise DataError(f"target_child_age is '{text}', not an age in days", path=path, line=line)
    return age


def _number(kind, column: str, text: str, path: Path, line: int):
    try:
        return kind(text)
    except ValueError:
        raise DataError(f"{column} is '{text[:60]}', not a number", path=path, line=line) from None
