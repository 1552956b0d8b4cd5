"""Saturation measured: the share of its weight that a scoring leaves to all keys but the leading one.

Theorems 1 and 2 of arXiv 2508.14685 say what happens to that weight when all logits are magnified, and when one
logit leads the others ever further. Here both are measured through the scoring modules themselves, in float64,
and compared with the limit that each scoring's formula gives (:mod:`babyssa.attention.laws`).

One query of one dimension, 1, meets keys of one dimension: so a key is its own logit q.k, also for linear
attention and CosFormer, which form no logits.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import torch
from torch import Tensor

from babyssa.attention.laws import Condition, Law, Setting
from babyssa.attention.registry import build_scoring, class_of, scoring_config, variants
from babyssa.attention.scoring import Scoring
from babyssa.display import Column, Shown, Table
from babyssa.errors import ConfigError
from babyssa.figures import literal, series, styled
from babyssa.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONDITIONS: tuple[Condition, ...] = get_args(Condition)

_LOWEST, _HIGHEST, _POINTS_PER_DECADE = -2, 6, 50
# A slope is fitted where the weights are ordinary floating-point numbers; below 1e-308 they lose digits.
_LEAST_MASS = 1e-290
# All points' logits are in memory at once: about 0.2 GB with this many keys.
_MOST_KEYS = 10_000
_TOLERANCE = 0.02
# Below this weight, a figure shows nothing.
_LEAST_SHOWN = 1e-8
_AXES = {
    "lead": "lead D of one logit over the next",
    "magnification": "factor c by which all logits are magnified",
}


@dataclass(frozen=True)
class SaturationCurve:
    """One scoring in one condition, measured.

    Attributes
    ----------
    scoring : str
        Its label.
    condition : {"lead", "magnification"}
        What x is; see :class:`Setting`.
    law : Law
        What theory says of large x.
    measured : float
        The same quantity measured: a slope by least squares from `fitted_from` to `fitted_to`, the last decade
        of x in which the weight is above 1e-290; the threshold by bisection; the limit as the weight at
        `fitted_to`.
    deviation_percent : float
        100 (measured / theory - 1).
    fitted_from, fitted_to : float
        The range of x that `measured` was taken from.
    holds_from : float or None
        The x from which the local slope (the weight, for a limit) stays within 2% of theory; None for a
        threshold, or if it never does.
    x, mass : tuple of float
        The curve: leads or factors, and the weight left to all other keys as a share of all weight, averaged
        over heads.
    """

    scoring: str
    condition: Condition
    law: Law
    measured: float
    deviation_percent: float
    fitted_from: float
    fitted_to: float
    holds_from: float | None
    x: tuple[float, ...]
    mass: tuple[float, ...]


@dataclass(frozen=True)
class Saturation(Shown):
    """The curves of :func:`saturation`, by scoring and condition, and their number of keys."""

    keys: int
    curves: tuple[SaturationCurve, ...]

    def tables(self) -> Iterator[Table]:
        columns = (
            Column("scoring"),
            Column("condition", heading="x is"),
            Column("law", heading="of the weight left"),
            Column("theory", ".4f"),
            Column("measured", ".4f"),
            Column("deviation_percent", "z.3f", "deviation %"),
            Column("fitted", heading="at x", right=True),
            Column("holds_from", ".3g", "within 2% from x", right=True),
        )
        rows = [
            (
                curve.scoring,
                curve.condition,
                _QUANTITIES[curve.law.kind],
                curve.law.value,
                curve.measured,
                curve.deviation_percent,
                _range(curve.fitted_from, curve.fitted_to),
                curve.holds_from,
            )
            for curve in self.curves
        ]
        about = f"weight left to the other {self.keys - 1} of {self.keys} keys"
        yield Table(columns, rows, f"{about}; x is a lead D, or a factor c of magnification", keys=2)


_QUANTITIES = {
    "exponential": "slope of log on x",
    "power": "slope of log on log x",
    "threshold": "x where it ends",
    "limit": "its limit",
}


def _range(low: float, high: float) -> str:
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def saturation(scorings: Iterable[str] | Mapping[str, Any] | None = None, *, keys: int = 16) -> Saturation:
    """Measure the weight left to the other keys; :func:`babyssa.saturation` explains the parameters."""
    if type(keys) is not int or not 4 <= keys <= _MOST_KEYS:
        raise ConfigError(f"keys is {keys!r}", remedy=f"a whole number from 4 to {_MOST_KEYS:,}")
    if scorings is None:
        configs = {name: c for name, c in variants().items() if class_of(c).law is not Scoring.law}
    elif isinstance(scorings, Mapping):
        configs = scorings
    else:
        configs = {name: scoring_config(name) for name in scorings}
    curves = []
    for label, config in configs.items():
        scoring = build_scoring(config, _heads(config)).eval()
        curves += [_measure(label, scoring, Setting(condition, keys)) for condition in CONDITIONS]
    return Saturation(keys, tuple(curves))


def _heads(config: Any) -> int:
    """One head, or as many as give every group of mixed heads its own."""
    wanted = [heads for _, heads in getattr(config, "groups", ())]
    if not wanted:
        return 1
    return sum(wanted) if isinstance(wanted[0], int) else math.ceil(1 / min(wanted))


def write_saturation(result: Saturation, out: Path) -> None:
    """Write curves.csv (the curves), saturation.png and saturation.csv (the table)."""
    with atomic_write(out / "curves.csv") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["scoring", "condition", "x", "weight_of_others"])
        for curve in result.curves:
            points = zip(curve.x, curve.mass, strict=True)
            writer.writerows([curve.scoring, curve.condition, x, weight] for x, weight in points)
    with atomic_write(out / "saturation.png", "wb") as file:
        draw_saturation(result).savefig(file, format="png")
    with atomic_write(out / "saturation.csv") as file:
        writer = csv.writer(file, lineterminator="\n")
        names = ["deviation_percent", "fitted_from", "fitted_to", "holds_from"]
        writer.writerow(["scoring", "condition", "law", "theory", "measured", *names])
        for curve in result.curves:
            law = (curve.law.kind, curve.law.value, curve.measured)
            writer.writerow([curve.scoring, curve.condition, *law, *(getattr(curve, name) for name in names)])


@styled
def draw_saturation(result: Saturation) -> Figure:
    """Draw the weight left to the other keys against the lead (both axes logarithmic) and against magnification.

    Scorings whose curves are the same in both panels share a line and a place in the legend.

    Returns
    -------
    matplotlib.figure.Figure
        Not registered with pyplot; ``figure.savefig(path)`` writes it.
    """
    from matplotlib.figure import Figure

    lines = _lines(result)
    figure = Figure(figsize=(10, 4.6 + 0.25 * math.ceil(len(lines) / 5)))
    for axes, condition in zip(figure.subplots(1, len(_AXES)), _AXES, strict=True):
        for number, (names, curves) in enumerate(lines):
            curve = curves[condition]
            style = {**series(number), "marker": "", "linewidth": 1.8}
            axes.plot(curve.x, curve.mass, label=literal(", ".join(names)), **style)
        axes.set_xscale("log")
        if condition == "lead":
            # A weight of exactly 0 is drawn below the panel, so that its line leaves it straight.
            axes.set_yscale("log", nonpositive="clip")
            axes.set_ylim(_LEAST_SHOWN, 1.5)
            axes.set_xlim(0.1, curve.x[-1])
        else:
            axes.set_ylim(0, 1)
            axes.set_xlim(0.1, 1e4)
        axes.set_xlabel(_AXES[condition])
        axes.grid(True)
        axes.set_ylabel(f"weight left to the other {result.keys - 1} keys")
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=min(5, len(lines)),
        handlelength=3,
    )
    return figure


def _lines(result: Saturation) -> list[tuple[list[str], dict[str, SaturationCurve]]]:
    """The distinct lines: the names of the scorings that share one, and its curve in each condition."""
    by_scoring: dict[str, dict[str, SaturationCurve]] = {}
    for curve in result.curves:
        by_scoring.setdefault(curve.scoring, {})[curve.condition] = curve
    lines: list[tuple[list[str], dict[str, SaturationCurve]]] = []
    for scoring, curves in by_scoring.items():
        for names, drawn in lines:
            if all(
                np.allclose(curve.mass, drawn[condition].mass, rtol=1e-3, atol=_LEAST_SHOWN / 10)
                for condition, curve in curves.items()
            ):
                names.append(scoring)
                break
        else:
            lines.append(([scoring], curves))
    return lines


@torch.no_grad()
def mass_of_others(scoring: Scoring, setting: Setting, x: Tensor) -> Tensor:
    """The share of all keys but the last in the weight at every x in float64, (points,), averaged over heads."""
    points, heads, keys = len(x), scoring.heads, setting.keys
    query = torch.ones(points, heads, 1, 1, dtype=x.dtype)
    key = setting.logits(x).view(points, 1, keys, 1).expand(-1, heads, -1, -1)
    # With values of 1 for all keys, and of 1 for the others and 0 for the last, the outputs are sums of weights.
    value = key.new_ones(*key.shape[:-1], 2)
    value[:, :, -1, 1] = 0
    total, others = scoring(query, key, value, scaling=1.0)[0].unbind(-1)
    return (others / total).mean(dim=1).view(points)


def _measure(label: str, scoring: Scoring, setting: Setting) -> SaturationCurve:
    points = (_HIGHEST - _LOWEST) * _POINTS_PER_DECADE + 1
    x = torch.logspace(_LOWEST, _HIGHEST, points, dtype=torch.float64)
    mass = mass_of_others(scoring, setting, x)
    law = scoring.law(setting)
    holds_from = None
    measurable = (mass > _LEAST_MASS).nonzero()
    if not len(measurable):
        what = f"scoring '{label}' leaves the others less than {_LEAST_MASS} whatever the {setting.condition}"
        raise ConfigError(what, remedy="choose less extreme parameters")
    end = int(measurable.max())
    start = max(0, end - _POINTS_PER_DECADE)
    if law.kind == "threshold":
        measured = _bisect(scoring, setting, float(x[end]), float(x[min(end + 1, points - 1)]))
        fitted = (measured, measured)
    elif law.kind == "limit":
        measured = float(mass[-1])
        fitted = (float(x[-1]), float(x[-1]))
        holds_from = _first_of_last_run(mass, law.value, x)
    else:
        along = x if law.kind == "exponential" else x.log()
        logs, at = mass[: end + 1].log(), along[: end + 1]
        measured = _slope(at[start:], logs[start:])
        fitted = (float(x[start]), float(x[end]))
        holds_from = _first_of_last_run(logs.diff() / at.diff(), law.value, x)
    # A limit may be too small for a float: 0.
    relative = measured / law.value if law.value else math.inf
    deviation = 0.0 if measured == law.value else 100 * (relative - 1)
    curve = (tuple(x.tolist()), tuple(mass.tolist()))
    return SaturationCurve(label, setting.condition, law, measured, deviation, *fitted, holds_from, *curve)


def _slope(x: Tensor, y: Tensor) -> float:
    """The slope of a least-squares line."""
    x = x - x.mean()
    return float((x * y).sum() / x.square().sum())


def _bisect(scoring: Scoring, setting: Setting, low: float, high: float) -> float:
    """The x between `low`, where weight is left, and `high`, where none is, at which it vanishes."""
    for _ in range(60):
        middle = (low + high) / 2
        if mass_of_others(scoring, setting, torch.tensor([middle], dtype=torch.float64)) > 0:
            low = middle
        else:
            high = middle
    return high


def _first_of_last_run(found: Tensor, expected: float, x: Tensor) -> float | None:
    """The x from which on everything `found` is within 2% of what is expected."""
    outside = ((found / expected - 1).abs() > _TOLERANCE).nonzero()
    first = int(outside.max()) + 1 if len(outside) else 0
    return float(x[first]) if first < len(found) else None
