"""Published tasks of two or more options in context: EWoK, COMPS, entity tracking, wug words, and a general form.

Each is JSON lines, recognised by its keys. What is compared in an item differs between publications:

================  =================================  ======================  ================
task              original                           babylm-2025             babylm-2026
================  =================================  ======================  ================
EWoK              each target in both contexts: two  both targets in         Target1 in both
                  items a row (Ivanova et al. 2024)  Context1                contexts
COMPS             the property after each concept    both sentences, whole   as the original
                  (Misra et al. 2023)
entity tracking   all options after the story        as the original         items with an
                                                                             option "nothing"
                                                                             left out
================  =================================  ======================  ================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from babyssa.errors import DataError, nearest
from babyssa.language.pairs import Item, Option

DEFINITIONS = ("original", "babylm-2025", "babylm-2026")


class Found(NamedTuple):
    """An item, the paradigm and phenomenon that it belongs to, and what BabyLM calls the task."""

    paradigm: str
    phenomenon: str
    task: str
    item: Item


class Record:
    """A JSON object and its place, which its errors name."""

    def __init__(self, record: Mapping[str, Any], line: int, **place: Any):
        self.record, self.line, self.place = record, line, place | {"line": line}

    def __getitem__(self, key: str) -> str:
        """The text under a key."""
        return self.checked(key, str, "a string")

    def checked(self, key: str, kind: type | tuple[type, ...], what: str) -> Any:
        """The value under a key; DataError if it is missing, empty, or not of its kind."""
        if key not in self.record:
            raise DataError(f"no key '{key}'", **self.place, remedy=nearest(key, self.record))
        value = self.record[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise DataError(f"'{key}' is not {what}", **self.place)
        if value in ("", []):
            raise DataError(f"'{key}' is empty", **self.place)
        return value

    def item(self, *options: Option, ratio: float | None = None) -> Item:
        """An item that begins here."""
        return Item(options, self.line, ratio)


def _ewok(row: Record, stem: str, definition: str) -> Iterator[Found]:
    first, second = (
        [Option(f" {row[target]}", row[context]) for target in ("Target1", "Target2")]
        for context in ("Context1", "Context2")
    )
    domain = row["Domain"]
    compared = {
        "original": [(first[0], second[0]), (second[1], first[1])],
        "babylm-2025": [(first[0], first[1])],
        "babylm-2026": [(first[0], second[0])],
    }
    for options in compared[definition]:
        yield Found(domain, domain, "ewok", row.item(*options))


def _comps(row: Record, stem: str, definition: str) -> Iterator[Found]:
    phrase = row["property_phrase"]
    prefixes = (row["prefix_acceptable"], row["prefix_unacceptable"])
    if definition == "babylm-2025":
        options = [Option(f"{prefix} {phrase}") for prefix in prefixes]
    else:
        options = [Option(f" {phrase}", prefix) for prefix in prefixes]
    name = stem.removeprefix("comps_").replace("-", "_")
    yield Found(name, name, "comps", row.item(*options))


def _entity_tracking(row: Record, stem: str, definition: str) -> Iterator[Found]:
    options = row.checked("options", list, "a list")
    if definition == "babylm-2026" and any("nothing" in str(option) for option in options):
        return
    steps = row.checked("numops", int, "a whole number")
    answers = _options(row, options, row["input_prefix"])
    yield Found(f"{stem}_{steps}_ops", stem, "entity_tracking", row.item(*answers))


def _wug(row: Record, stem: str, definition: str) -> Iterator[Found]:
    sentences = row["sentences"].split("\t")
    ratio = row.checked("ratio", (int, float, str), "a number")
    try:
        item = row.item(*_options(row, sentences), ratio=float(ratio))
    except ValueError:
        raise DataError(f"'ratio' is not a number but '{ratio}'", **row.place) from None
    yield Found(stem, stem, "wug_past" if "past" in stem else "wug_adj", item)


def _general(row: Record, stem: str, definition: str) -> Iterator[Found]:
    """Options: texts, or objects of text and given, or one given for all; label is the place of the right one."""
    record = row.record
    given = row["given"] if record.get("given") else ""
    options = _options(row, row.checked("options", list, "a list"), given)
    label = record.get("label", 0)
    if not isinstance(label, int) or not 0 <= label < len(options):
        raise DataError(f"'label' is {label}", **row.place, remedy=f"it is from 0 to {len(options) - 1}")
    options.insert(0, options.pop(label))
    name = str(record.get("paradigm") or stem)
    yield Found(name, str(record.get("phenomenon") or name), stem, row.item(*options))


def _options(row: Record, values: list[Any], given: str = "") -> list[Option]:
    options = []
    for value in values:
        text, before = (
            (value.get("text"), value.get("given", given)) if isinstance(value, dict) else (value, given)
        )
        if not isinstance(text, str) or not isinstance(before, str) or not text.strip():
            raise DataError(f"option {len(options) + 1} is not a text", **row.place)
        options.append(Option(text, before))
    if len(options) < 2:
        raise DataError("there is nothing to choose from", **row.place, remedy="give two options or more")
    return options


_Reader = Callable[[Record, str, str], Iterator[Found]]
LAYOUTS: dict[tuple[str, ...], _Reader] = {
    ("Context1", "Target1"): _ewok,
    ("prefix_acceptable", "property_phrase"): _comps,
    ("input_prefix", "options"): _entity_tracking,
    ("sentences", "ratio"): _wug,
    ("options",): _general,
}
"""The reader of a layout, by keys that only it has."""


def reader_of(record: Mapping[str, Any]) -> _Reader | None:
    """The reader of the layout that a record is in; None if it is none of items."""
    return next((reader for keys, reader in LAYOUTS.items() if set(keys) <= set(record)), None)
