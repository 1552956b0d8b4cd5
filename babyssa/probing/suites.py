"""Minimal-pair suites: Zorro text, BLiMP JSON lines, CSV/TSV, and folders of them with or without a manifest.

A suite holds paradigms (one construction, such as ``quantifiers-superlative``), a paradigm holds minimal
pairs, and paradigms belong to phenomena (``quantifiers``). Sentences are kept exactly as the files give them.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from babyssa.corpus.lines import read_lines
from babyssa.errors import ConfigError, DataError, nearest, quoted
from babyssa.files import read_yaml, resource
from babyssa.language.pairs import MANIFEST, MinimalPair

ORDERS = ("bad-first", "good-first")
PACKAGED = "packaged"

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_SUFFIXES = (".txt", ".jsonl", *_DELIMITERS)
_ROLES = ("good", "bad", "paradigm", "phenomenon")
_TABLE_COLUMNS = {role: role for role in _ROLES}
_BLIMP_KEYS = {
    "good": "sentence_good",
    "bad": "sentence_bad",
    "paradigm": "UID",
    "phenomenon": "linguistics_term",
}


@dataclass(frozen=True)
class Paradigm:
    """The pairs of one construction, and the phenomenon that it belongs to."""

    name: str
    phenomenon: str
    pairs: tuple[MinimalPair, ...] = field(repr=False)
    path: Path | None = field(default=None, compare=False, repr=False)


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
                digest.update(json.dumps([pair.good, pair.bad]).encode())
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


def load_suite(path: str | Path, order: str | None = None, columns: Mapping[str, str] | None = None) -> Suite:
    """Read a suite of minimal pairs.

    Parameters
    ----------
    path : str or Path
        The word ``packaged``; a file ``.txt`` (Zorro: the two members of a pair on consecutive lines),
        ``.jsonl`` (BLiMP), ``.csv`` or ``.tsv``; a folder of such files; or a folder with a ``manifest.yaml``
        (``name``, ``order``, ``columns``, ``paradigms``: a list of ``name``, ``phenomenon``, ``file``).
    order : {"bad-first", "good-first"}, optional
        Which member of a pair comes first in ``.txt`` files. Nothing guesses it: it must be given here or in
        the manifest if there are such files.
    columns : mapping, optional
        Names of the columns (CSV, TSV) or keys (JSON lines) that hold ``good``, ``bad``, ``paradigm`` and
        ``phenomenon``, where they differ from the default: the same words in tables, and BLiMP's
        ``sentence_good``, ``sentence_bad``, ``UID`` and ``linguistics_term`` in JSON lines.

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
    if order is not None and order not in ORDERS:
        raise ConfigError(f"unknown order '{order}'", remedy=nearest(order, ORDERS))
    columns = dict(columns or {})
    for role in columns:
        if role not in _ROLES:
            raise ConfigError(f"unknown column role '{role}'", remedy=nearest(role, _ROLES))
    root = resource("probes", "suite") if str(path) == PACKAGED else Path(path)
    if (root / MANIFEST).is_file():
        return _load_manifest(root / MANIFEST, order, columns)
    if root.is_dir():
        files = sorted(p for p in root.iterdir() if p.suffix in _SUFFIXES and not p.name.startswith("."))
        if not files:
            raise DataError(
                f"folder holds no {', '.join(_SUFFIXES)} or {MANIFEST}",
                path=root,
                remedy="pass a suite's folder or file",
            )
    elif root.exists():
        files = [root]
    else:
        raise DataError(
            "no such file or folder", path=root, remedy=f"pass a suite's file or folder, or the word '{PACKAGED}'"
        )
    paradigms = [paradigm for file in files for paradigm in _load_file(file, order, columns)]
    return Suite(root.resolve().stem if root.is_file() else root.resolve().name, _with_unique_names(paradigms))


def phenomenon_of(name: str) -> str:
    """The phenomenon in a paradigm's name: what stands before the last dash (before it, dashes belong to names).

    >>> phenomenon_of("island-effects-adjunct_island")
    'island-effects'
    """
    return name.rpartition("-")[0] or name


def _load_manifest(path: Path, order: str | None, columns: dict[str, str]) -> Suite:
    manifest = read_yaml(path).values
    entries = manifest.get("paradigms")
    if not isinstance(entries, list) or not entries:
        raise DataError("manifest has no list of paradigms", path=path)
    stated = manifest.get("order")
    columns = {**_mapping(manifest, "columns", path), **columns}
    paradigms = []
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):
            raise DataError(
                f"paradigm {number} of the manifest has no file", path=path, remedy="give it 'file: NAME'"
            )
        own = entry.get("order", stated)
        if own is not None and own not in ORDERS:
            raise DataError(f"unknown order '{own}' in the manifest", path=path, remedy=nearest(str(own), ORDERS))
        if order is not None and own is not None and order != own:
            raise ConfigError(
                f"order '{order}' contradicts '{own}' in the manifest", path=path, remedy="leave --order out"
            )
        found = _load_file(
            path.parent / entry["file"], own or order, {**columns, **_mapping(entry, "columns", path)}
        )
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


def _load_file(path: Path, order: str | None, columns: dict[str, str]) -> list[Paradigm]:
    """The paradigms of one file: one, unless its rows name several."""
    if path.suffix not in _SUFFIXES:
        raise DataError(f"cannot read '{path.suffix}' files", path=path, remedy=f"use {', '.join(_SUFFIXES)}")
    text = read_text(path)
    if path.suffix == ".txt":
        rows = _text_rows(path, text, order)
    elif path.suffix == ".jsonl":
        rows = _json_rows(path, text, {**_BLIMP_KEYS, **columns}, set(columns))
    else:
        rows = _table_rows(path, text, _DELIMITERS[path.suffix], {**_TABLE_COLUMNS, **columns}, set(columns))
    pairs: dict[str, list[MinimalPair]] = {}
    phenomena: dict[str, str] = {}
    for line, row in rows:
        good, bad = row["good"], row["bad"]
        if not good.strip() or not bad.strip():
            raise DataError("empty member of a pair", path=path, line=line)
        if good == bad:
            raise DataError(f"the two members of the pair are identical: {quoted(good)}", path=path, line=line)
        name = row.get("paradigm") or path.stem
        phenomenon = row.get("phenomenon") or phenomenon_of(name)
        if phenomena.setdefault(name, phenomenon) != phenomenon:
            raise DataError(
                f"paradigm '{name}' belongs to '{phenomena[name]}' above and to '{phenomenon}' here",
                path=path,
                line=line,
            )
        pairs.setdefault(name, []).append(MinimalPair(good, bad, line))
    if not pairs:
        raise DataError("no pairs", path=path)
    return [Paradigm(name, phenomena[name], tuple(found), path) for name, found in pairs.items()]


def _lines_of(text: str) -> list[str]:
    """The lines of a text, ended by ``\\n`` or ``\\r\\n``."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if lines[-1] == "" else lines


def _text_rows(path: Path, text: str, order: str | None) -> Iterator[tuple[int, dict[str, str]]]:
    if order is None:
        raise ConfigError(
            "the order of the lines in a pair is not stated",
            path=path,
            remedy="pass --order bad-first (as Zorro is published) or --order good-first",
        )
    lines = _lines_of(text)
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            raise DataError("empty line", path=path, line=number, remedy="a pair is two consecutive lines")
    if len(lines) % 2:
        raise DataError(
            f"odd number of lines ({len(lines)})",
            path=path,
            line=len(lines),
            remedy="a pair is two consecutive lines",
        )
    for index in range(0, len(lines), 2):
        first, second = lines[index], lines[index + 1]
        bad, good = (first, second) if order == "bad-first" else (second, first)
        yield index + 1, {"good": good, "bad": bad}


def _json_rows(
    path: Path, text: str, keys: dict[str, str], required: set[str]
) -> Iterator[tuple[int, dict[str, str]]]:
    lines = _lines_of(text)
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            raise DataError("empty line", path=path, line=number, remedy="delete it")
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"broken JSON: {error.msg}", path=path, line=number) from None
        except RecursionError:
            raise DataError("broken JSON: nested too deeply", path=path, line=number) from None
        if not isinstance(record, dict):
            raise DataError("not a JSON object", path=path, line=number)
        row = {}
        for role, key in keys.items():
            if key in record:
                if not isinstance(record[key], str):
                    raise DataError(f"'{key}' is not a string", path=path, line=number)
                row[role] = record[key]
            elif role in {"good", "bad"} | required:
                raise DataError(f"no key '{key}'", path=path, line=number, remedy=nearest(key, record))
        yield number, row


def _table_rows(
    path: Path, text: str, delimiter: str, columns: dict[str, str], required: set[str]
) -> Iterator[tuple[int, dict[str, str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    start = 1
    header: list[str] | None = None
    try:
        for fields in reader:
            line, start = start, reader.line_num + 1
            if header is None:
                header = fields
                for role, column in columns.items():
                    if role in {"good", "bad"} | required and column not in header:
                        raise DataError(
                            f"no column '{column}'", path=path, line=line, remedy=nearest(column, header)
                        )
                continue
            if not fields:
                raise DataError("empty line", path=path, line=line, remedy="delete it")
            if len(fields) != len(header):
                raise DataError(f"{len(fields)} fields under {len(header)} columns", path=path, line=line)
            record = dict(zip(header, fields, strict=True))
            yield line, {role: record[column] for role, column in columns.items() if column in record}
    except csv.Error as error:
        raise DataError(f"broken row: {error}", path=path, line=reader.line_num) from None


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, without byte-order mark.

    Raises
    ------
    DataError
        If there is no such file, its bytes are not UTF-8, or a line is too long to be one (names the line).
    """
    return "".join(read_lines(path))
