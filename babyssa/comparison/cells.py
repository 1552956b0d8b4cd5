"""The small files of an experiment's cell, a variant under one seed: what was measured of it, without its model.

A folder per cell: cell.json has its settings, what it was trained on and with, the machine, and every measure's
numbers; margins.npz has, for each measure of minimal pairs, one signed byte per pair.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from babyssa.comparison.results import StoredResult, checked_result
from babyssa.errors import ConfigError, DataError
from babyssa.files import atomic_path, read_json, write_json

CELL, MARGINS = "cell.json", "margins.npz"

_FORMAT = 1
_STEPS_PER_OCTAVE, _ONE_NAT = 8, 64
_KEYS = {
    "experiment": str,
    "condition": str,
    "variant": str,
    "seed": int,
    "baseline": str,
    "settings": dict,
    "facts": dict,
    "measures": dict,
}


@dataclass(frozen=True)
class Measured:
    """What one measure found in one model.

    Parameters
    ----------
    values : dict of str to float
        Numbers by name, such as the accuracy on each paradigm.
    unit : str
        What the numbers are, for the title of their table.
    suite : dict, optional
        For minimal pairs: the summary of the probe.
    details : dict, optional
        What else is worth keeping.
    margins : array of int8, (pairs,), optional
        For minimal pairs: by how much the good member scored higher, as :func:`quantize` gives it.
    """

    values: dict[str, float]
    unit: str
    suite: dict[str, Any] | None = None
    details: dict[str, Any] | None = None
    margins: np.ndarray | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class StoredCell:
    """A cell's folder and what its files say; `margins` by measure."""

    folder: Path
    values: dict[str, Any]
    margins: dict[str, np.ndarray] = field(repr=False)

    @property
    def measures(self) -> dict[str, dict[str, Any]]:
        """By name: kind, options, unit, values, and the suite's summary where it is one of pairs."""
        return self.values["measures"]

    def result(self, measure: str) -> StoredResult:
        """A measure of minimal pairs as a probe result; a pair is known by its number, not by its sentences."""
        summary = self.measures[measure]["suite"]
        margins = dequantize(self.margins[measure]).tolist()
        names = [p["name"] for p in summary["paradigms"] for _ in range(p["n_pairs"])]
        if len(names) != len(margins):
            what = f"has {len(margins)} pairs of '{measure}', {CELL} {len(names)}"
            raise DataError(what, path=self.folder / MARGINS, remedy="measure this cell again")
        numbered = {(name, "", "", i): m for i, (name, m) in enumerate(zip(names, margins, strict=True))}
        return checked_result(self.folder / CELL, {**summary, "variant": self.values["variant"]}, numbered)


def quantize(margins: np.ndarray) -> np.ndarray:
    """Margins in nats as signed bytes, which keep the sign exactly and the size to 4.4% (from 1/235 to 235 nats).

    0 is a tie. The size m is stored as ``64 + 8 log2(m)``, rounded, from 1 to 127.

    >>> quantize(np.array([2.0, -1.0, 0.0, 1e-9])).tolist()
    [72, -64, 0, 1]
    """
    size = np.abs(np.asarray(margins, dtype=np.float64))
    steps = _ONE_NAT + _STEPS_PER_OCTAVE * np.log2(np.where(size > 0, size, 1.0))
    return (np.sign(margins) * np.clip(np.rint(steps), 1, 127)).astype(np.int8)


def dequantize(stored: np.ndarray) -> np.ndarray:
    """Margins in nats, as exact as :func:`quantize` keeps them."""
    stored = np.asarray(stored, dtype=np.float64)
    return np.sign(stored) * 2.0 ** ((np.abs(stored) - _ONE_NAT) / _STEPS_PER_OCTAVE)


def write_cell(folder: Path, values: dict[str, Any], measured: dict[str, Measured]) -> None:
    """Write the files of a cell.

    Parameters
    ----------
    folder : Path
        The cell's own folder.
    values : dict
        Content of cell.json but for the numbers; ``values["measures"]`` has kind and options of each measure.
    measured : dict of str to Measured
        By measure.
    """
    folder.mkdir(parents=True, exist_ok=True)
    margins = {name: found.margins for name, found in measured.items() if found.margins is not None}
    if margins:
        with atomic_path(folder / MARGINS) as partial, open(partial, "wb") as file:
            np.savez_compressed(file, **margins)
    entries = {}
    for name, found in measured.items():
        entries[name] = {**values["measures"][name], "unit": found.unit, "values": found.values}
        entries[name] |= {key: v for key in ("suite", "details") if (v := getattr(found, key)) is not None}
    write_json(folder / CELL, {"format": _FORMAT, **values, "measures": entries})


def read_cell(folder: Path) -> StoredCell:
    """Read the files of a cell.

    Raises
    ------
    DataError
        If one is missing or broken.
    """
    path = Path(folder) / CELL
    values = read_json(path)
    if not isinstance(values, dict) or values.get("format") != _FORMAT:
        raise DataError(f"is not a cell of format {_FORMAT}", path=path, remedy="measure this cell again")
    for key, kind in _KEYS.items():
        if not isinstance(values.get(key), kind):
            raise DataError(f"'{key}' is {json.dumps(values.get(key))[:40]}", path=path, remedy="measure it again")
    for name, measure in values["measures"].items():
        numbers = measure.get("values") if isinstance(measure, dict) else None
        if not isinstance(numbers, dict) or not all(map(_is_finite, numbers.values())):
            raise DataError(f"the values of '{name}' are not numbers", path=path, remedy="measure it again")
    margins = {}
    if any("suite" in measure for measure in values["measures"].values()):
        try:
            with np.load(path.with_name(MARGINS), allow_pickle=False) as stored:
                margins = {name: stored[name] for name, m in values["measures"].items() if "suite" in m}
        except Exception as error:  # a zip file can be broken in many ways
            remedy = "restore it, or measure this cell again"
            raise DataError("cannot be read", path=path.with_name(MARGINS), remedy=remedy) from error
    return StoredCell(Path(folder), values, margins)


def find_cells(folders: Iterable[str | Path]) -> list[StoredCell]:
    """The cells in and under `folders`, each once; none where they hold probe results only.

    Raises
    ------
    DataError
        If some of the folders hold cells and others none.
    """
    found: dict[Path, Path] = {}
    without: list[Path] = []
    for folder in folders:
        here = [Path(root) for root, _, files in os.walk(folder) if CELL in files]
        found |= {path.resolve(): path for path in sorted(here) if path.resolve() not in found}
        if not here:
            without.append(Path(folder))
    if found and without:
        what = "no results of an experiment in or under this folder, but in others"
        raise DataError(what, path=without[0], remedy="compare cells of experiments and probe results separately")
    return [read_cell(folder) for folder in found.values()]


def check_one_variant_each(cells: Iterable[StoredCell]) -> None:
    """Raise ConfigError if two cells are of the same experiment, condition, variant and seed."""
    seen: dict[tuple, StoredCell] = {}
    for cell in cells:
        key = tuple(cell.values[k] for k in ("experiment", "condition", "variant", "seed"))
        other = seen.setdefault(key, cell)
        if other is not cell:
            what = f"{cell.values['variant']}, seed {cell.values['seed']}, is already in {other.folder}"
            raise ConfigError(what, path=cell.folder, remedy="leave one of them out")


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
