"""What is to be scored: texts, alone or in a context, with regions and with the keys to join results by."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from babyssa.corpus.tables import Row, memory_rows, read_table
from babyssa.errors import ConfigError, DataError, nearest, quoted
from babyssa.models.encoding import Span
from babyssa.models.units import check_regions

BLANK = "___"
SEPARATORS = {"space": " ", "newline": "\n", "none": ""}
_ROLES = {
    "text": ("text", "sentence"),
    "given": ("given", "context"),
    "region": ("region",),
    "regions": ("regions",),
}
_SENTENCE_KEYS = ("item", "condition")


@dataclass(frozen=True)
class Stimulus:
    """One text to score.

    Attributes
    ----------
    text : str
        What is scored.
    given : str
        What stands before it and is not scored, with the separator; or nothing.
    regions : dict of str to (int, int)
        Named parts of `text`, as characters from and to.
    labels : dict
        What the results are joined by: item, condition and whatever else the input has.
    part : (int, int), optional
        The characters of `text` that are scored, if not all.
    place : dict
        Path and line, for messages.
    """

    text: str
    given: str = ""
    regions: Mapping[str, Span] = field(default_factory=dict)
    labels: Mapping[str, Any] = field(default_factory=dict)
    part: Span | None = None
    place: Mapping[str, Any] = field(default_factory=dict)


def read_stimuli(
    source: Any,
    *,
    given: str | Sequence[str] | None = None,
    separator: str = "space",
    alternatives: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    reserved: Iterable[str] = (),
) -> list[Stimulus]:
    """What :func:`babyssa.score` is asked to score; it explains the parameters.

    Parameters
    ----------
    source : str, Path, DataFrame, Dataset or iterable
        Texts, or the path of a table, or a table in memory.
    reserved : iterable of str
        Names that no column of the input may have.

    Raises
    ------
    ConfigError, DataError
        If it is nothing of the kind; names path and line, or the number of the text.
    """
    separator = SEPARATORS.get(separator, separator)
    if isinstance(source, str):
        raise ConfigError("sentences must be a list of strings, not one string", remedy="put it in a list")
    if isinstance(source, Path):
        stimuli = _from_rows(read_table(source), source, separator, columns or {}, reserved)
    else:
        is_table = hasattr(source, "columns") or hasattr(source, "column_names")
        source = source if is_table else list(source)
        if is_table or (source and isinstance(source[0], Mapping)):
            stimuli = _from_rows(memory_rows(source), None, separator, columns or {}, reserved)
        else:
            for number, text in enumerate(source, start=1):
                if not isinstance(text, str):
                    raise DataError(f"sentence {number} is not a string but {type(text).__name__}")
            stimuli = [Stimulus(text) for text in source]
    if given is not None:
        contexts = [given] * len(stimuli) if isinstance(given, str) else list(given)
        if len(contexts) != len(stimuli):
            raise ConfigError(
                f"given has {len(contexts)} entries for {len(stimuli)} texts", remedy="give one for each"
            )
        stimuli = [
            replace(one, given=_context(context, separator))
            for one, context in zip(stimuli, contexts, strict=True)
        ]
    return [filled for one in stimuli for filled in _filled(one, alternatives)] if alternatives else stimuli


def _context(text: str, separator: str) -> str:
    return text + separator if text else ""


def _filled(one: Stimulus, alternatives: Sequence[str]) -> list[Stimulus]:
    """The stimulus with each alternative in its blank, where it is what is scored."""
    before, blank, after = one.text.partition(BLANK)
    if not blank or BLANK in after:
        raise DataError(
            f"{quoted(one.text)} has no single blank for the alternatives",
            **one.place,
            remedy=f"write it as {BLANK}",
        )
    return [
        Stimulus(
            before + word + after,
            one.given,
            labels={**one.labels, "alternative": word},
            part=(len(before), len(before) + len(word)),
            place=one.place,
        )
        for word in alternatives
    ]


def _from_rows(
    rows: list[Row], path: Path | None, separator: str, columns: Mapping[str, str], reserved: Iterable[str]
) -> list[Stimulus]:
    """One stimulus a row, or, if there is a column of regions, one for the rows of each item and condition."""
    if not rows:
        return []
    header = list(rows[0][1])
    for role in columns:
        if role not in _ROLES:
            raise ConfigError(f"unknown column role '{role}'", remedy=nearest(role, _ROLES))
    chosen = {
        role: columns.get(role) or next((name for name in known if name in header), None)
        for role, known in _ROLES.items()
    }
    for role, name in chosen.items():
        if role == "text":
            name = name or "text"
        if name is not None and name not in header:
            raise DataError(f"no column '{name}'", path=path, line=1, remedy=nearest(name, header))
    labels = [name for name in header if name not in chosen.values()]
    clash = sorted(set(labels) & set(reserved))
    if clash:
        raise DataError(f"column '{clash[0]}' has the name of a result", path=path, remedy="rename it")
    stimuli = [_stimulus(number, row, path, separator, chosen, labels) for number, row in rows]
    if chosen["region"] is None:
        return stimuli
    keys = [name for name in _SENTENCE_KEYS if name in labels]
    if not keys:
        raise DataError("a table with a column of regions needs a column 'item'", path=path)
    numbered = zip(stimuli, (str(row[chosen["region"]]) for _, row in rows), strict=True)
    grouped = groupby(numbered, key=lambda pair: [pair[0].labels[key] for key in keys])
    return [_joined(list(group), keys) for _, group in grouped]


def _stimulus(
    number: int,
    row: dict[str, Any],
    path: Path | None,
    separator: str,
    chosen: Mapping[str, str | None],
    labels: Sequence[str],
) -> Stimulus:
    place = {"path": path, "line": number} if path is not None else {}
    where = "" if path is not None else f"row {number}: "
    values = {role: row.get(name) for role, name in chosen.items() if name is not None}
    text, given = (_present(values.get(role)) or "" for role in ("text", "given"))
    for name, value in (("text", text), ("given", given)):
        if not isinstance(value, str):
            raise DataError(f"{where}'{chosen[name]}' is not a string", **place)
    named = _present(values.get("regions")) or {}
    if isinstance(named, str):
        try:
            named = json.loads(named)
        except json.JSONDecodeError as error:
            raise DataError(f"{where}'{chosen['regions']}' is broken JSON: {error.msg}", **place) from None
    if not isinstance(named, Mapping):
        raise DataError(f"{where}'{chosen['regions']}' does not map names to spans", **place)
    # A Dataset gives every row the names of all rows, with None.
    named = check_regions({name: span for name, span in named.items() if span is not None}, text, **place)
    return Stimulus(
        text, _context(given, separator), named, {name: _present(row.get(name)) for name in labels}, None, place
    )


def _present(value: Any) -> Any:
    """A value, or None for a missing one of pandas, which is the only kind that is not equal to itself."""
    return None if isinstance(value, float) and value != value else value


def _joined(parts: list[tuple[Stimulus, str]], keys: Sequence[str]) -> Stimulus:
    """Regions of one sentence, in order, with a space between."""
    text, regions = "", {}
    for one, region in parts:
        if not one.text.strip():
            raise DataError(f"region '{region}' is empty", **one.place)
        if region in regions:
            raise DataError(
                f"region '{region}' comes twice in one sentence",
                **one.place,
                remedy=f"tell sentences apart by {keys}",
            )
        start = len(text) + 1 if text else 0
        text = f"{text} {one.text}" if text else one.text
        regions[region] = (start, len(text))
    first = parts[0][0]
    shared = {
        name: value for name, value in first.labels.items() if all(value == one.labels[name] for one, _ in parts)
    }
    return Stimulus(text, first.given, regions, shared, None, first.place)
