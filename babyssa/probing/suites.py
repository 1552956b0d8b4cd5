"""Suites of minimal pairs and other choices: text, JSON lines, tables, folders of them, and what is in memory.

A suite holds paradigms (one construction, such as ``quantifiers-superlative``), a paradigm holds minimal
pairs, and paradigms belong to phenomena (``quantifiers``). Sentences are kept exactly as the files give them.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from babyssa.console import say
from babyssa.corpus.lines import read_lines, say_skipped
from babyssa.corpus.tables import DELIMITERS, Row, fields, json_rows, memory_rows, records
from babyssa.errors import ConfigError, DataError, nearest, quoted
from babyssa.files import read_yaml, resource
from babyssa.language.pairs import MANIFEST, Item, MinimalPair
from babyssa.probing.items import DEFINITIONS, Record, reader_of

PAIR_ORDERS = ("bad-first", "good-first")
PACKAGED = "packaged"

PAIR_COLUMNS = (
    ("good", "bad"),
    ("sentence_good", "sentence_bad"),  # BLiMP, its supplement, and what follows their format
    ("good_sentence", "bad_sentence"),  # TurBLiMP, JBLiMP
    ("sen", "wrong_sen"),  # MultiBLiMP
    ("acceptable_sent", "unacceptable_sent"),  # XCOMPS
    ("grammatical", "ungrammatical"),
)
"""Columns of tables, or keys of JSON lines, that are known to hold the good and the bad member of a pair."""

_TABLE_COLUMNS, _BLIMP_KEYS = PAIR_COLUMNS[:2]
_NAME_COLUMNS = {"paradigm": ("paradigm", "UID"), "phenomenon": ("phenomenon", "linguistics_term")}
_ROLES = ("good", "bad", *_NAME_COLUMNS)
_DELIMITER_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


@dataclass(frozen=True)
class Layout:
    """What a user says about a suite: order of a pair's lines, names of columns, delimiter, what is compared."""

    order: str | None
    columns: dict[str, str]
    delimiter: str | None
    definition: str = DEFINITIONS[0]


# A file's path, its lines and its layout to its rows, and which of their columns has each role.
Format = Callable[[Path, list[str], Layout], tuple[list[Row], dict[str, str]]]


@dataclass(frozen=True)
class Paradigm:
    """The pairs (or items of more options) of one construction, and the phenomenon that it belongs to.

    ``task`` is what BabyLM calls the whole that it is a part of.
    """

    name: str
    phenomenon: str
    pairs: tuple[MinimalPair | Item, ...] = field(repr=False)
    path: Path | None = field(default=None, compare=False, repr=False)
    task: str | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Suite:
    """A named sequence of paradigms."""

    name: str
    paradigms: tuple[Paradigm, ...]

    @cached_property
    def sha256(self) -> str:
        """Hash of the content: names, phenomena and sentences, whatever files and formats they came from."""
        digest = hashlib.sha256()
        for paradigm in self.paradigms:
            digest.update(json.dumps([paradigm.name, paradigm.phenomenon]).encode())
            for pair in paradigm.pairs:
                options = [list(option) if option.given else option.text for option in pair.options]
                digest.update(json.dumps(options).encode())
        return digest.hexdigest()

    @property
    def n_pairs(self) -> int:
        """Number of pairs in all paradigms."""
        return sum(len(paradigm.pairs) for paradigm in self.paradigms)

    def select(self, names: Iterable[str] | None = None, limit: int | None = None) -> Suite:
        """The suite with only the paradigms called `names`, and only the first `limit` pairs of each.

        Raises
        ------
        ConfigError
            If a name is unknown or `limit` is below 1.
        """
        if limit is not None and limit < 1:
            raise ConfigError(f"limit must be at least 1, not {limit}")
        known = {paradigm.name: paradigm for paradigm in self.paradigms}
        chosen = list(known) if names is None else list(dict.fromkeys(names))
        for name in chosen:
            if name not in known:
                raise ConfigError(f"suite '{self.name}' has no paradigm '{name}'", remedy=nearest(name, known))
        if not chosen:
            raise ConfigError("no paradigm chosen", remedy=f"known: {', '.join(known)}")
        return replace(
            self, paradigms=tuple(replace(known[name], pairs=known[name].pairs[:limit]) for name in chosen)
        )


def load_suite(
    path: Any,
    order: str | None = None,
    columns: Mapping[str, str] | None = None,
    *,
    delimiter: str | None = None,
    strict: bool = False,
    definition: str = "babylm-2025",
) -> Suite:
    """Read a suite of minimal pairs, or of items with more options or with contexts.

    What was found and not stated (columns, a delimiter), what was skipped (empty lines) and pairs of identical
    members are said on stderr.

    Parameters
    ----------
    path : str, Path, DataFrame, Dataset or iterable
        The word ``packaged``; a file ``.txt`` (Zorro: the two members of a pair on consecutive lines),
        ``.jsonl`` (BLiMP, or the items of :mod:`babyssa.probing.items`), ``.csv`` or ``.tsv``; a folder of such
        files; or a folder with a ``manifest.yaml`` (``name``, ``order``, ``columns``, ``delimiter``,
        ``paradigms``: a list of ``name``, ``phenomenon``, ``file``). In memory: pairs (good, bad), dicts, a
        DataFrame, or a ``datasets.Dataset`` with columns as in files.
    order : {"bad-first", "good-first"}, optional
        Which member of a pair comes first in ``.txt`` files. Nothing guesses it: it must be given here or in
        the manifest if there are such files.
    columns : mapping, optional
        Names of the columns (CSV, TSV) or keys (JSON lines) that hold ``good``, ``bad``, ``paradigm`` and
        ``phenomenon``, where they are none of those known (:data:`PAIR_COLUMNS`; ``paradigm`` or ``UID``;
        ``phenomenon`` or ``linguistics_term``). Without a paradigm, a file is one, called as the file, or as
        many as it names phenomena.
    delimiter : str, optional
        What separates the columns of a table. If not given: the comma of ``.csv`` or the tab of ``.tsv``, or
        whichever of comma, semicolon, tab and bar makes known columns of the header.
    strict : bool
        Refuse pairs whose members are identical, which otherwise count as ties.
    definition : {"babylm-2025", "babylm-2026", "original"}
        What is compared in the items of published tasks; :mod:`babyssa.probing.items` has the table.

    Returns
    -------
    Suite
        Paradigms in the manifest's order, else in that of the file names.

    Raises
    ------
    ConfigError
        If the order is missing, unknown or contradicts the manifest, or a column role is unknown.
    DataError
        If a file or folder cannot be read as what it should be; names file and line.
    """
    if order is not None and order not in PAIR_ORDERS:
        raise ConfigError(f"unknown order '{order}'", remedy=nearest(order, PAIR_ORDERS))
    columns = dict(columns or {})
    for role in columns:
        if role not in _ROLES:
            raise ConfigError(f"unknown column role '{role}'", remedy=nearest(role, _ROLES))
    if definition not in DEFINITIONS:
        raise ConfigError(f"unknown definition '{definition}'", remedy=nearest(definition, DEFINITIONS))
    layout = Layout(order, columns, _delimiter(delimiter), definition)
    if not isinstance(path, str | Path):
        return _checked(Suite("memory", tuple(_load_memory(path, layout))), strict)
    root = resource("probes", "suite") if str(path) == PACKAGED else Path(path)
    if (root / MANIFEST).is_file():
        return _checked(_load_manifest(root / MANIFEST, layout), strict)
    if root.is_dir():
        files = sorted(p for p in root.iterdir() if p.suffix in FORMATS and not p.name.startswith("."))
        if not files:
            raise DataError(
                f"folder holds no {', '.join(FORMATS)} or {MANIFEST}",
                path=root,
                remedy="pass a suite's folder or file",
            )
    elif root.exists():
        files = [root]
    else:
        raise DataError(
            "no such file or folder", path=root, remedy=f"pass a suite's file or folder, or the word '{PACKAGED}'"
        )
    paradigms = [paradigm for file in files for paradigm in _load_file(file, layout)]
    name = root.resolve().stem if root.is_file() else root.resolve().name
    return _checked(Suite(name, _with_unique_names(paradigms)), strict)


def phenomenon_of(name: str) -> str:
    """The phenomenon in a paradigm's name: what stands before the last dash (before it, dashes belong to names).

    >>> phenomenon_of("island-effects-adjunct_island")
    'island-effects'
    """
    return name.rpartition("-")[0] or name


def _delimiter(given: str | None) -> str | None:
    names = {name: sign for sign, name in _DELIMITER_NAMES.items()} | {"\\t": "\t"}
    sign = names.get(given, given)
    if sign is not None and (len(sign) != 1 or sign in '"\r\n'):
        raise ConfigError(f"delimiter is '{given}'", remedy=f"it is one character, or {', '.join(names)}")
    return sign


def _checked(suite: Suite, strict: bool) -> Suite:
    """The suite; says once which pairs are identical, or refuses them."""
    identical = [
        (paradigm.path, [pair.line for pair in paradigm.pairs if _has_twins(pair)]) for paradigm in suite.paradigms
    ]
    identical = [(path, lines) for path, lines in identical if lines]
    if not identical:
        return suite
    if strict:
        pair = next(pair for found in suite.paradigms for pair in found.pairs if _has_twins(pair))
        raise DataError(
            f"members of the pair are identical: {quoted(pair.options[0].whole)}",
            path=identical[0][0],
            line=pair.line,
            remedy="correct it, or leave out --strict, and it counts as a tie",
        )
    places = ", ".join(f"{path}:{','.join(map(str, lines))}" for path, lines in identical)
    count = sum(len(lines) for _, lines in identical)
    what = (
        f"{count} pairs of identical members count as ties"
        if count > 1
        else ("1 pair of identical members counts as a tie")
    )
    say(f"warning: {what}: {places}")
    return suite


def _has_twins(pair: MinimalPair | Item) -> bool:
    return len(set(pair.options)) < len(pair.options)


def _load_manifest(path: Path, given: Layout) -> Suite:
    manifest = read_yaml(path).values
    entries = manifest.get("paradigms")
    if not isinstance(entries, list) or not entries:
        raise DataError("manifest has no list of paradigms", path=path)
    stated = manifest.get("order")
    order = given.order
    columns = {**_mapping(manifest, "columns", path), **given.columns}
    paradigms = []
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):
            raise DataError(
                f"paradigm {number} of the manifest has no file", path=path, remedy="give it 'file: NAME'"
            )
        own = entry.get("order", stated)
        if own is not None and own not in PAIR_ORDERS:
            raise DataError(
                f"unknown order '{own}' in the manifest", path=path, remedy=nearest(str(own), PAIR_ORDERS)
            )
        if order is not None and own is not None and order != own:
            raise ConfigError(
                f"order '{order}' contradicts '{own}' in the manifest", path=path, remedy="leave --order out"
            )
        layout = Layout(
            own or order,
            {**columns, **_mapping(entry, "columns", path)},
            given.delimiter or _delimiter(entry.get("delimiter", manifest.get("delimiter"))),
            given.definition,
        )
        found = _load_file(path.parent / entry["file"], layout)
        if "name" in entry or "phenomenon" in entry:
            if len(found) != 1:
                raise DataError(
                    f"'{entry['file']}' holds {len(found)} paradigms, but the manifest names one",
                    path=path,
                    remedy="leave name and phenomenon out",
                )
            name = str(entry.get("name", found[0].name))
            default = found[0].phenomenon if "name" not in entry else phenomenon_of(name)
            found = [replace(found[0], name=name, phenomenon=str(entry.get("phenomenon", default)))]
        paradigms += found
    return Suite(str(manifest.get("name", path.resolve().parent.name)), _with_unique_names(paradigms))


def _mapping(entry: dict[str, Any], key: str, path: Path) -> dict[str, str]:
    value = entry.get(key) or {}
    if not isinstance(value, dict) or not set(value) <= set(_ROLES):
        raise DataError(f"'{key}' must map {', '.join(_ROLES)} to column names", path=path)
    return value


def _with_unique_names(paradigms: list[Paradigm]) -> tuple[Paradigm, ...]:
    seen: dict[str, Paradigm] = {}
    for paradigm in paradigms:
        if paradigm.name in seen:
            raise DataError(
                f"paradigm '{paradigm.name}' was already read from {seen[paradigm.name].path}", path=paradigm.path
            )
        seen[paradigm.name] = paradigm
    return tuple(paradigms)


def _load_file(path: Path, layout: Layout) -> list[Paradigm]:
    """The paradigms of one file: one, unless its rows name several."""
    if path.suffix not in FORMATS:
        raise DataError(f"cannot read '{path.suffix}' files", path=path, remedy=f"use {', '.join(FORMATS)}")
    rows, chosen = FORMATS[path.suffix](path, list(read_lines(path)), layout)
    return _paradigms(rows, chosen, path, path.stem, layout)


def _load_memory(source: Any, layout: Layout) -> list[Paradigm]:
    """The paradigms of pairs, dicts or a table in memory."""
    is_table = hasattr(source, "columns") or hasattr(source, "column_names")
    source = source if is_table else list(source)
    if not is_table:
        source = [
            {"good": pair[0], "bad": pair[1]}
            if isinstance(pair, list | tuple) and len(pair) == 2
            else {"good": pair.good, "bad": pair.bad}
            if isinstance(pair, MinimalPair)
            else pair
            for pair in source
        ]
    rows = memory_rows(source)
    chosen = {}
    if rows and not reader_of(rows[0][1]):
        chosen = _choose_columns(None, None, list(rows[0][1]), layout.columns, _TABLE_COLUMNS, "column")
    return _paradigms(rows, chosen, None, "memory", layout)


def _paradigms(
    rows: list[Row], chosen: dict[str, str], path: Path | None, stem: str, layout: Layout
) -> list[Paradigm]:
    """The rows as paradigms: as items if no columns are chosen, else as pairs."""
    if not rows:
        raise DataError("no pairs", path=path)
    if not chosen:
        read = reader_of(rows[0][1])
        found = [
            one for line, record in rows for one in read(Record(record, line, path=path), stem, layout.definition)
        ]
        of: dict[str, list] = {}
        for one in found:
            of.setdefault(one.paradigm, []).append(one)
        return [
            Paradigm(name, ones[0].phenomenon, tuple(one.item for one in ones), path, ones[0].task)
            for name, ones in of.items()
        ]
    pairs: dict[str | None, list[MinimalPair]] = {}
    phenomena: dict[str | None, dict[str, None]] = {}
    for line, record in rows:
        row = {role: _text_of(record, column, role, path, line) for role, column in chosen.items()}
        if not row["good"].strip() or not row["bad"].strip():
            raise DataError("empty member of a pair", path=path, line=line)
        name, phenomenon = row.get("paradigm"), row.get("phenomenon")
        of_name = phenomena.setdefault(name, {})
        of_name[phenomenon or phenomenon_of(name or stem)] = None
        if name and len(of_name) > 1:
            first, second = of_name
            raise DataError(
                f"paradigm '{name}' belongs to '{first}' above and to '{second}' here", path=path, line=line
            )
        pairs.setdefault((name, phenomenon), []).append(MinimalPair(row["good"], row["bad"], line))
    task = None
    if (chosen["good"], chosen["bad"]) == _BLIMP_KEYS:
        task = "blimp" if "paradigm" in chosen else "blimp_supplement"
    return [
        Paradigm(
            name or (phenomenon if phenomenon and len(phenomena[name]) > 1 else stem),
            phenomenon or phenomenon_of(name or stem),
            tuple(found),
            path,
            task,
        )
        for (name, phenomenon), found in pairs.items()
    ]


def _choose_columns(
    path: Path | None,
    line: int | None,
    found: list[str],
    columns: dict[str, str],
    usual: tuple[str, str],
    what: str,
) -> dict[str, str]:
    """Which of the columns `found` holds what: as `columns` says, else by the names that are known.

    Raises
    ------
    DataError
        If a column is missing, or several known pairs of columns are found and not the `usual` one.
    """
    for column in columns.values():
        if column not in found:
            raise DataError(f"no {what} '{column}'", path=path, line=line, remedy=nearest(column, found))
    candidates = [(columns.get("good", good), columns.get("bad", bad)) for good, bad in (usual, *PAIR_COLUMNS)]
    known = [pair for pair in dict.fromkeys(candidates) if set(pair) <= set(found)]
    if not known:
        half = [pair for pair in candidates if not set(pair).isdisjoint(found)]
        missing = next(name for name in (half or candidates)[0] if name not in found)
        raise DataError(
            f"no {what} '{missing}'",
            path=path,
            line=line,
            remedy=f"{nearest(missing, found)}; --columns good=NAME bad=NAME names others",
        )
    if len(known) > 1 and known[0] != usual:
        several = " and ".join(map(str, known))
        raise DataError(
            f"several pairs of {what}s: {several}", path=path, line=line, remedy="choose with --columns"
        )
    chosen = dict(zip(("good", "bad"), known[0], strict=True))
    for role, names in _NAME_COLUMNS.items():
        named = [columns[role]] if role in columns else [name for name in names if name in found]
        if named:
            chosen[role] = named[0]
    return chosen


def _say_choice(path: Path, chosen: dict[str, str], columns: dict[str, str], delimiter: str | None = None) -> None:
    names = ", ".join(f"{role} is '{name}'" for role, name in chosen.items() if columns.get(role) != name)
    parts = [names] if names else []
    if delimiter is not None:
        parts.append(f"columns separated by {_DELIMITER_NAMES.get(delimiter, delimiter)}")
    if parts:
        say(f"{path}: {', '.join(parts)}")


def _text_of(record: dict[str, Any], column: str, role: str, path: Path | None, line: int) -> str | None:
    """What stands in a column; of a paradigm or phenomenon, None if nothing does."""
    value = record.get(column)
    if role in _NAME_COLUMNS:
        return None if value is None or value == "" or value != value else str(value)
    if column not in record:
        raise DataError(f"no key '{column}'", path=path, line=line, remedy=nearest(column, record))
    if not isinstance(value, str):
        raise DataError(f"'{column}' is not a string", path=path, line=line)
    return value


def _text_rows(path: Path, lines: list[str], layout: Layout) -> tuple[list[Row], dict[str, str]]:
    """Two lines a pair, in the order that the layout states."""
    if layout.order is None:
        raise ConfigError(
            "the order of the lines in a pair is not stated",
            path=path,
            remedy="pass --order bad-first (as Zorro is published) or --order good-first",
        )
    rows: list[Row] = []
    empty: list[int] = []
    first: str | None = None
    for number, line in enumerate((line.rstrip("\r\n") for line in lines), start=1):
        if not line.strip():
            # Between pairs it separates; inside one, a member is missing, or which lines belong together is open.
            if first is not None:
                raise DataError(
                    "empty line inside a pair", path=path, line=number, remedy="a pair is two consecutive lines"
                )
            empty.append(number)
        elif first is None:
            first = line
        else:
            bad, good = (first, line) if layout.order == "bad-first" else (line, first)
            rows.append((number - 1, {"good": good, "bad": bad}))
            first = None
    if first is not None:
        raise DataError(
            f"odd number of lines ({len(lines) - len(empty)})",
            path=path,
            line=len(lines),
            remedy="a pair is two consecutive lines",
        )
    say_skipped(empty, path)
    return rows, {"good": "good", "bad": "bad"}


def _json_rows(path: Path, lines: list[str], layout: Layout) -> tuple[list[Row], dict[str, str]]:
    """A JSON object a line."""
    rows = json_rows(path, lines)
    if not rows or reader_of(rows[0][1]):
        return rows, {}
    line, first = rows[0]
    chosen = _choose_columns(path, line, list(first), layout.columns, _BLIMP_KEYS, "key")
    if (chosen["good"], chosen["bad"]) != _BLIMP_KEYS:
        _say_choice(path, chosen, layout.columns)
    return rows, chosen


def _table_rows(path: Path, lines: list[str], layout: Layout) -> tuple[list[Row], dict[str, str]]:
    """The rows of a table, under their header."""
    columns, delimiter = layout.columns, layout.delimiter
    usual = DELIMITERS[path.suffix]
    candidates = [delimiter] if delimiter else [usual, *(sign for sign in _DELIMITER_NAMES if sign != usual)]
    first_error = None
    for sign in candidates:
        try:
            table = fields(path, lines, sign)
            header_line, header = next(table, (1, []))
            chosen = _choose_columns(path, header_line, header, columns, _TABLE_COLUMNS, "column")
            break
        except DataError as error:
            first_error = first_error or error
    else:
        raise first_error
    try:
        rows = records(path, header, table)
    except DataError:
        if sign != "\t":
            raise
        # Quotation marks that do not pair are text: a table of this kind is written without quoting.
        table = fields(path, lines, sign, quoting=csv.QUOTE_NONE)
        rows = records(path, next(table)[1], table)
    if sign != usual or (chosen["good"], chosen["bad"]) != _TABLE_COLUMNS:
        _say_choice(path, chosen, columns, sign if sign != usual and not delimiter else None)
    return rows, chosen


FORMATS: dict[str, Format] = {".txt": _text_rows, ".jsonl": _json_rows, ".csv": _table_rows, ".tsv": _table_rows}
"""How a file of pairs is read, by the end of its name."""
