"""Reads YAML files of words or templates: values, dataclasses, and errors that name the line."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from babyssa.checks import at_least, fits, hints_of, mismatch
from babyssa.errors import DataError, nearest
from babyssa.files import read_yaml

Kind = TypeVar("Kind")

# Equally likely words, or words with weights; a weight can be a pair, for the youngest and the oldest age.
Weight = Annotated[float, at_least(0)]
Weights = tuple[str, ...] | Mapping[str, Weight | tuple[Weight, Weight]]


class Source:
    """A YAML file. A *place* in it is a path of keys and positions: ``"nouns", 2, "plural"``.

    Parameters
    ----------
    path : path-like
        The file.

    Raises
    ------
    DataError
        If it cannot be read as a mapping.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.file = read_yaml(self.path)

    def error(self, what: str, *place: str | int, remedy: str | None = None) -> DataError:
        """An error that names the line of a place, or of its nearest parent with a line."""
        return DataError(what, path=self.path, line=self.file.line(*place), remedy=remedy)

    def get(self, *place: str | int, default: Any = None) -> Any:
        """The value at a place; DataError if it is missing and there is no default."""
        value: Any = self.file.values
        for i, key in enumerate(place):
            known = range(len(value)) if isinstance(value, list) else value if isinstance(value, dict) else ()
            if key not in known:
                if default is None:
                    raise self.error(f"field '{key}' is missing", *place[:i])
                return default
            value = value[key]
        return value

    def number(self, *place: str | int) -> float:
        value = self.get(*place)
        self._check_value(value, Weight, *place)
        return value

    def items(self, *place: str | int) -> range:
        """The positions of a non-empty list."""
        value = self.get(*place)
        if not isinstance(value, list) or not value:
            raise self.error(f"'{place[-1]}' is not a list or is empty", *place)
        return range(len(value))

    def build(self, kind: type[Kind], raw: Any, *place: str | int) -> Kind:
        """Build a dataclass from a mapping, checking values against annotations; a list becomes a tuple."""
        if not isinstance(raw, dict):
            raise self.error(f"'{raw}' is not a mapping of fields", *place)
        hints, values = hints_of(kind), {}
        for key in raw:
            self.check_name("field", key, hints, *place, key)
        for field in dataclasses.fields(kind):
            value, where = raw.get(field.name), (*place, field.name)
            if value is not None:
                self._check_value(value, hints[field.name], *where)
                values[field.name] = tuple(value) if isinstance(value, list) else value
            elif field.default is dataclasses.MISSING:
                raise self.error(f"field '{field.name}' is missing", *place)
        try:
            return kind(**values)
        except ValueError as error:
            raise self.error(str(error), *place) from None

    def _check_value(self, value: Any, hint: Any, *place: str | int) -> None:
        remedy = None
        if isinstance(value, bool):
            remedy = 'put it in quotes ("no", "on" and "yes" are booleans in YAML)'
        elif isinstance(value, dict):
            remedy = "a weight is a number, or two: [young, old]"
        if not fits(value, hint):
            error = mismatch(f"field '{place[-1]}'", value, hint)
            raise self.error(error.what, *place, remedy=remedy or error.remedy)
        if value == [] or (isinstance(value, str) and (not value or value != " ".join(value.split()))):
            raise self.error(f"field '{place[-1]}' is empty or has stray white space", *place)

    def check_name(self, what: str, name: str, known: Iterable[str], *place: str | int) -> None:
        """Raise DataError with the nearest known name unless `name` is known."""
        if name not in known:
            raise self.error(f"no {what} '{name}'", *place, remedy=nearest(str(name), known))
