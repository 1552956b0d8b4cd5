"""A YAML file of words or templates being read: values, dataclasses, and errors that say where in it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from babyssa.errors import DataError, nearest
from babyssa.files import read_yaml

Kind = TypeVar("Kind")

# Words that are equally likely, or words with weights; a weight may be two, at the youngest and at the oldest age.
Weights = tuple[str, ...] | Mapping[str, float | list[float]]


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
        """An error that names the line of a place, or of what is around it."""
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
        if type(value) not in (int, float) or not value >= 0:
            raise self.error(f"field '{place[-1]}' is {value!r}, not a number", *place)
        return value

    def items(self, *place: str | int) -> range:
        """The positions of a list that must not be empty."""
        value = self.get(*place)
        if not isinstance(value, list) or not value:
            raise self.error(f"'{place[-1]}' is not a list, or empty", *place)
        return range(len(value))

    def build(self, kind: type[Kind], raw: Any, *place: str | int) -> Kind:
        """A dataclass from a mapping, each field checked by its annotation (a string, as it is not evaluated)."""
        if not isinstance(raw, dict):
            raise self.error(f"'{raw}' is not a mapping of fields", *place)
        fields = {field.name: field for field in dataclasses.fields(kind)}
        for key in raw:
            if key not in fields:
                raise self.error(f"unknown field '{key}'", *place, key, remedy=nearest(str(key), fields))
        values = {}
        for name, field in fields.items():
            if raw.get(name) is not None:
                values[name] = self._value(raw[name], field.type, *place, name)
            elif field.default is dataclasses.MISSING:
                raise self.error(f"field '{name}' is missing", *place)
        try:
            return kind(**values)
        except ValueError as error:
            raise self.error(str(error), *place) from None

    def _value(self, value: Any, annotation: str, *place: str | int) -> Any:
        name = place[-1]
        if annotation == "Weights" and isinstance(value, dict):
            for weight in value.values():
                ages = weight if isinstance(weight, list) and len(weight) == 2 else [weight]
                if not all(type(age) in (int, float) and age >= 0 for age in ages):
                    what = f"weight {weight!r} in '{name}' is not a number"
                    raise self.error(what, *place, remedy="or write two, [young, old]")
            return value
        if annotation == "Weights" or annotation.startswith("tuple"):
            if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
                raise self.error(f"field '{name}' is not a list of words", *place)
            return tuple(value)
        expected = {"bool": bool, "int": int}.get(annotation.partition(" ")[0], str)
        if type(value) is not expected:
            hint = 'put it in quotes ("no", "on" and "yes" are truth values in YAML)' if expected is str else None
            raise self.error(f"field '{name}' is {value!r}, not a {expected.__name__}", *place, remedy=hint)
        if expected is str and (not value or value != " ".join(value.split())):
            raise self.error(f"field '{name}' is empty or has stray white space", *place)
        return value

    def check_name(self, what: str, name: str, known: Iterable[str], *place: str | int) -> None:
        """Raise DataError with the nearest known name if `name` is not among the known ones."""
        if name not in known:
            raise self.error(f"no {what} '{name}'", *place, remedy=nearest(str(name), known))
