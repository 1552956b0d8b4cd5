"""Saturation measured: the share of its weight that a scoring leaves to all keys but the leading one.

Theorems 1 and 2 of arXiv 2508.14685 say what happens to that weight when all logits are magnified, and when one
logit leads the others ever further. Here both are measured through the scoring modules themselves, in float64,
and compared with the limit that each scoring's formula gives (:mod:`babyssa.attention.laws`).

One query of one dimension, 1, meets keys of one dimension: so a key is its own logit q.k, also for linear
attention and CosFormer, which form no logits.
"""

from __future__ import annotations

import csv
import dataclasses
import itertools
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
from babyssa.models.loading import ModelSource
from babyssa.probing.heads import scoring_layers

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
        of x in which the weight is above 1e-290, or of all x where its logarithm is known; the threshold by
        bisection; the limit, or its logarithm, as the weight at `fitted_to`.
    deviation_percent : float
        100 (measured / theory - 1); of the limit itself also where its logarithm is measured.
    fitted_from, fitted_to : float
        The range of x that `measured` was taken from.
    holds_from : float or None
        The x from which the local slope (the weight, for a limit) stays within 2% of theory; None for a
        threshold, or if it never does.
    x, mass : tuple of float
        The curve: leads or factors, and the weight left to all other keys as a share of all weight, averaged
        over heads.
    layer : int or None
        The layer of a model whose heads these are, counted from 1.
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
    layer: int | None = None


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
            Column("theory", _value),
            Column("measured", _value),
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
    "log-limit": "log of its limit",
}


def _value(number: float) -> str:
    return format(number, ".4f" if abs(number) >= 1e-3 or number == 0 else ".2e")


def _range(low: float, high: float) -> str:
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


@dataclass(frozen=True)
class _Subject:
    """What is measured under a label; `layer` where it is heads of one layer of a model."""

    label: str
    config: Any
    layer: int | None = None


def saturation(
    scorings: Iterable[str] | Mapping[str, Any] | None = None,
    *,
    scoring: Mapping[str, Any] | None = None,
    keys: int = 16,
    revision: str | None = None,
) -> Saturation:
    """Measure the weight left to the other keys; :func:`babyssa.saturation` explains the parameters."""
    if type(keys) is not int or not 4 <= keys <= _MOST_KEYS:
        raise ConfigError(f"keys is {keys!r}", remedy=f"a whole number from 4 to {_MOST_KEYS:,}")
    curves = []
    changes = {key.replace("-", "_"): value for key, value in (scoring or {}).items()}
    for subject in _subjects(scorings, changes, revision):
        module = build_scoring(_without_learning(subject.config), _heads(subject.config)).eval()
        for condition in CONDITIONS:
            curve = _measure(subject.label, module, Setting(condition, keys))
            curves.append(dataclasses.replace(curve, layer=subject.layer))
    return Saturation(keys, tuple(curves))


def _subjects(
    scorings: Iterable[str] | Mapping[str, Any] | None, changes: Mapping[str, Any], revision: str | None
) -> list[_Subject]:
    if isinstance(scorings, Mapping):
        return [_Subject(label, config) for label, config in scorings.items()]
    if scorings is None and not changes and revision is None:
        with_law = (name for name, config in variants().items() if class_of(config).law is not Scoring.law)
        return [_Subject(name, variants()[name]) for name in with_law]
    names = ["softmax", "ssa"] if scorings is None else list(scorings)
    models = [name for name in names if name not in variants() and ("/" in name or Path(name).is_dir())]
    if revision is not None and not models:
        raise ConfigError(f"nothing named has a revision '{revision}'", remedy="name a model on the hub")
    if models and "softmax" not in names:
        names.insert(0, "softmax")
    found, used = [], set()
    for name in names:
        if name in models:
            model = name if revision is None else ModelSource(name, revision)
            found += _heads_of_model(model, alone=len(models) == 1)
            continue
        config = scoring_config(name)
        own = {key: value for key, value in changes.items() if hasattr(config, key)}
        used |= set(own)
        every = [_values(value) for value in own.values()]
        for values in itertools.product(*every):
            given = dict(zip(own, values, strict=True))
            label = ", ".join([name, *(f"{key} = {value}" for key, value in given.items())])
            found.append(_Subject(label, scoring_config(name, **given)))
    for key in changes.keys() - used:
        scoring_config(next(name for name in reversed(names) if name not in models), **{key: changes[key]})
    return found


def _heads_of_model(name: str | ModelSource, alone: bool) -> list[_Subject]:
    """The distinct scorings that the heads of a model have learned."""
    places: dict[tuple[int, Any], list[int]] = {}
    layers = scoring_layers(name)
    for layer, module in enumerate(layers, start=1):
        for head in range(module.heads):
            places.setdefault((layer, module.head_config(head)), []).append(head + 1)
    same_everywhere = len({config for _, config in places}) == 1
    found = []
    for (layer, config), heads in places.items():
        if same_everywhere:
            where, layer = "all heads", None
        elif len(heads) == layers[layer - 1].heads:
            where = f"layer {layer}"
        else:
            where = f"layer {layer} head {', '.join(map(str, heads))}"
        numbers = [f"{key} {value:.3f}" for key, value in vars(config).items() if type(value) is float]
        place = where if alone else f"{name} {where}"
        label = f"{place}: {', '.join(numbers) or class_of(config).name}"
        found.append(_Subject(label, config, layer))
        if same_everywhere:
            break
    return found


def _values(given: Any) -> list[Any]:
    """One or several values of a parameter; those of the command line as YAML reads them."""
    import yaml

    several = given if isinstance(given, (list, tuple)) else [given]
    return [yaml.safe_load(value) if isinstance(value, str) else value for value in several]


def _without_learning(config: Any) -> Any:
    """The config with every number fixed: learned ones are float32."""
    flags = [
        field.name for field in dataclasses.fields(class_of(config).Config) if field.name.startswith("learn_")
    ]
    return dataclasses.replace(config, **dict.fromkeys(flags, False))


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

    Scorings whose curves are the same in both panels share a line and a place in the legend; the heads of a model
    share a colour by layer.

    Returns
    -------
    matplotlib.figure.Figure
        Not registered with pyplot; ``figure.savefig(path)`` writes it.
    """
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    lines = _lines(result)
    layers = sorted({curve.layer for curve in result.curves if curve.layer is not None})
    labels = [name for names, _, layer in lines for name in names if layer is None]
    figure = Figure(figsize=(10, 4.6 + 0.25 * math.ceil((len(labels) + len(layers)) / 5)))
    for axes, condition in zip(figure.subplots(1, len(_AXES)), _AXES, strict=True):
        number, drawn = 0, set()
        for names, curves, layer in lines:
            curve = curves[condition]
            style = {**series(number), "marker": "", "linewidth": 1.8}
            label = literal(", ".join(names))
            if layer is None:
                number += 1
            else:
                # The heads of a model: a colour for each layer, from dark to light.
                share = layers.index(layer) / max(len(layers) - 1, 1)
                style = {"color": colormaps["viridis"](0.9 * share), "linewidth": 1.0, "alpha": 0.8}
                label = "" if layer in drawn else f"heads of layer {layer}"
                drawn.add(layer)
            axes.plot(curve.x, curve.mass, label=label, zorder=3 if layer is None else 2, **style)
        axes.set_xscale("log")
        if condition == "lead":
            # A weight of exactly 0 is drawn below the panel, so that its line leaves it straight.
            axes.set_yscale("log", nonpositive="clip")
            axes.set_ylim(_LEAST_SHOWN, 1.5)
            axes.set_xlim(0.1, 10**_HIGHEST)
        else:
            axes.set_ylim(0, 1)
            axes.set_xlim(0.1, 1e4)
        axes.set_xlabel(_AXES[condition])
        axes.grid(True)
        axes.set_ylabel(f"share of the weight left to the other {result.keys - 1} keys")
    handles, texts = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, texts, loc="outside upper center", ncols=min(5, len(texts)), handlelength=3)
    return figure


def _lines(result: Saturation) -> list[tuple[list[str], dict[str, SaturationCurve], int | None]]:
    """The distinct lines: the names of the scorings that share one, its curve in each condition, and its layer."""
    by_scoring: dict[str, dict[str, SaturationCurve]] = {}
    for curve in result.curves:
        by_scoring.setdefault(curve.scoring, {})[curve.condition] = curve
    lines: list[tuple[list[str], dict[str, SaturationCurve], int | None]] = []
    for scoring, curves in by_scoring.items():
        layer = next(iter(curves.values())).layer
        for names, drawn, of_layer in lines:
            if layer == of_layer and all(
                len(curve.mass) == len(drawn[condition].mass)
                and np.allclose(curve.mass, drawn[condition].mass, rtol=1e-3, atol=_LEAST_SHOWN / 10)
                for condition, curve in curves.items()
            ):
                names.append(scoring)
                break
        else:
            lines.append(([scoring], curves, layer))
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


@torch.no_grad()
def _log_mass_of_others(scoring: Scoring, setting: Setting, x: Tensor) -> Tensor | None:
    """The logarithm of :func:`mass_of_others`, however small that is; None if the scoring gives no logarithms."""
    logits = setting.logits(x).view(len(x), 1, 1, setting.keys).expand(-1, scoring.heads, -1, -1)
    logs = scoring.log_weights(logits)
    if logs is None:
        return None
    by_head = logs[..., :-1].logsumexp(dim=-1) - logs.logsumexp(dim=-1)
    return (by_head.logsumexp(dim=1) - math.log(scoring.heads)).view(len(x))


def _measure(label: str, scoring: Scoring, setting: Setting) -> SaturationCurve:
    law = scoring.law(setting)
    highest = _HIGHEST + max(0, round(math.log10(law.scale)))
    points = (highest - _LOWEST) * _POINTS_PER_DECADE + 1
    x = torch.logspace(_LOWEST, highest, points, dtype=torch.float64)
    logs = _log_mass_of_others(scoring, setting, x)
    if logs is None:
        mass = mass_of_others(scoring, setting, x)
        logs = mass.where(mass > _LEAST_MASS, 0).log()
    else:
        mass = logs.exp()
    holds_from = None
    measurable = logs.isfinite().nonzero()
    if not len(measurable):
        what = f"scoring '{label}' leaves the others less than {_LEAST_MASS} whatever the {setting.condition}"
        raise ConfigError(what, remedy="choose less extreme parameters")
    end = int(measurable.max())
    start = max(0, end - _POINTS_PER_DECADE)
    if law.kind == "threshold":
        measured = _bisect(scoring, setting, float(x[end]), float(x[min(end + 1, points - 1)]))
        fitted = (measured, measured)
    elif law.kind in ("limit", "log-limit"):
        found, expected = (mass, law.value) if law.kind == "limit" else ((logs - law.value).exp(), 1.0)
        measured = float(mass[-1] if law.kind == "limit" else logs[-1])
        fitted = (float(x[-1]), float(x[-1]))
        holds_from = _first_of_last_run(found, expected, x)
    else:
        along = x if law.kind == "exponential" else x.log()
        logs, at = logs[: end + 1], along[: end + 1]
        measured = _slope(at[start:], logs[start:])
        fitted = (float(x[start]), float(x[end]))
        holds_from = _first_of_last_run(logs.diff() / at.diff(), law.value, x)
    relative = math.exp(measured - law.value) if law.kind == "log-limit" else measured / law.value
    curve = (tuple(x.tolist()), tuple(mass.tolist()))
    deviation = 100 * (relative - 1)
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
