"""Saturation measured: the weight that a scoring leaves to all keys but the one that leads.

Theorems 1 and 2 of arXiv 2508.14685 are about what happens to that weight when all logits are magnified, and
when one logit leads the others ever further. Here both are measured through the scoring modules themselves,
in float64, and set beside what each scoring's formula says of the limit (:data:`LAWS`).

One query of one dimension, 1, meets keys of one dimension: so a key is its own logit q.k, also for linear
attention and CosFormer, which form no logits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from babyssa.attention.registry import VARIANTS, build_scoring, scoring_config
from babyssa.attention.scoring import Scoring
from babyssa.errors import ConfigError

Condition = Literal["lead", "magnification"]
CONDITIONS: tuple[Condition, ...] = ("lead", "magnification")

_LOWEST, _HIGHEST, _POINTS_PER_DECADE = -2, 6, 50
# A slope is fitted where the weights are ordinary floating-point numbers; below 1e-308 they lose digits.
_LEAST_MASS = 1e-290
# The logits of all points are held at once: about 0.2 GB with so many keys.
_MOST_KEYS = 10_000
_TOLERANCE = 0.02


@dataclass(frozen=True)
class Law:
    """What the weight left to the others does as x, the lead or the factor, grows.

    Parameters
    ----------
    kind : {"exponential", "power", "threshold", "limit"}
        The form of the law.
    value : float
        The slope of log(weight) against x (exponential) or against log(x) (power), the x from which on the
        weight is exactly 0 (threshold), or the weight that is left for ever (limit).
    """

    kind: Literal["exponential", "power", "threshold", "limit"]
    value: float


@dataclass(frozen=True)
class Setting:
    """One of the two conditions, with a number of keys; the last key leads, and x is 0 to infinity.

    Attributes
    ----------
    condition : {"lead", "magnification"}
        Lead: all keys but the last have logits evenly spaced from -1 to 1, and the last has 1 + x.
        Magnification: all keys have logits evenly spaced from -1 to 1, times x.
    keys : int
        How many there are.
    """

    condition: Condition
    keys: int

    @property
    def gap(self) -> float:
        """How far the last logit leads the next, in units of x."""
        return 1.0 if self.condition == "lead" else 2 / (self.keys - 1)

    def logits(self, x: Tensor) -> Tensor:
        """The logits at every x, (points, keys)."""
        x = x.unsqueeze(-1)
        if self.condition == "magnification":
            return x * torch.linspace(-1, 1, self.keys, dtype=x.dtype)
        others = torch.linspace(-1, 1, self.keys - 1, dtype=x.dtype)
        return torch.cat([others.expand(len(x), -1), 1 + x], dim=-1)


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
        The x between which `measured` was taken.
    holds_from : float or None
        The x from which on the local slope (the weight, for a limit) stays within 2% of theory; None for a
        threshold, or if it never does.
    x, mass : tuple of float
        The curve: leads or factors, and the weight left to all other keys, averaged over heads.
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
class Saturation:
    """The curves of :func:`saturation`, by scoring and condition, and the number of keys that they are of."""

    keys: int
    curves: tuple[SaturationCurve, ...]


def saturation(scorings: Iterable[str] | Mapping[str, Any] | None = None, *, keys: int = 16) -> Saturation:
    """Measure the weight left to the other keys against a lead and against magnification.

    Parameters
    ----------
    scorings : iterable of str, or mapping of str to config, optional
        Names of variants, or configs under labels of your own, such as ``{"n = 3": SSAConfig(n=3)}``; every
        variant by default. What is learnable is measured at its initial value.
    keys : int
        Number of keys, the leading one included; from 4 to 10,000.

    Returns
    -------
    Saturation

    Raises
    ------
    ConfigError
        For an unknown name, too few or too many keys, or parameters so extreme that no weight can be measured.
    ModelError
        If there are more keys than CosFormer's max_length.
    """
    if type(keys) is not int or not 4 <= keys <= _MOST_KEYS:
        raise ConfigError(f"keys is {keys!r}", remedy=f"a whole number from 4 to {_MOST_KEYS:,}")
    names = VARIANTS if scorings is None else scorings
    configs = names if isinstance(names, Mapping) else {name: scoring_config(name) for name in names}
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


@torch.no_grad()
def mass_of_others(scoring: Scoring, setting: Setting, x: Tensor) -> Tensor:
    """The weight of all keys but the last at every x in float64, (points,), averaged over heads."""
    points, heads, keys = len(x), scoring.heads, setting.keys
    query = torch.ones(points, heads, 1, 1, dtype=x.dtype)
    key = setting.logits(x).view(points, 1, keys, 1).expand(-1, heads, -1, -1)
    # With a value of 1 for the others and 0 for the last, the output is the weight of the others.
    value = torch.ones_like(key)
    value[:, :, -1] = 0
    output, _ = scoring(query, key, value, scaling=1.0)
    return output.mean(dim=1).view(points)


def _measure(label: str, scoring: Scoring, setting: Setting) -> SaturationCurve:
    points = (_HIGHEST - _LOWEST) * _POINTS_PER_DECADE + 1
    x = torch.logspace(_LOWEST, _HIGHEST, points, dtype=torch.float64)
    mass = mass_of_others(scoring, setting, x)
    law = law_of(scoring, setting)
    holds_from = None
    measurable = (mass > _LEAST_MASS).nonzero()
    if not len(measurable) or not law.value:
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
    deviation = 100 * (measured / law.value - 1)
    curve = (tuple(x.tolist()), tuple(mass.tolist()))
    return SaturationCurve(label, setting.condition, law, measured, deviation, *fitted, holds_from, *curve)


def _slope(x: Tensor, y: Tensor) -> float:
    """The slope of a least-squares line."""
    x = x - x.mean()
    return float((x * y).sum() / x.square().sum())


def _bisect(scoring: Scoring, setting: Setting, low: float, high: float) -> float:
    """The x between `low`, where weight is left, and `high`, where none is, at which it ends."""
    for _ in range(60):
        middle = (low + high) / 2
        if mass_of_others(scoring, setting, torch.tensor([middle], dtype=torch.float64)) > 0:
            low = middle
        else:
            high = middle
    return high


def _first_of_last_run(found: Tensor, expected: float, x: Tensor) -> float | None:
    """The x from which on all that was `found` is within 2% of what is expected."""
    outside = ((found / expected - 1).abs() > _TOLERANCE).nonzero()
    first = int(outside.max()) + 1 if len(outside) else 0
    return float(x[first]) if first < len(found) else None


def law_of(scoring: Scoring, setting: Setting) -> Law:
    """What theory says of a scoring module; of mixed heads, what it says of their mean."""
    if not hasattr(scoring, "groups"):
        return LAWS[scoring.name](scoring.config, setting)
    laws = [(group.heads / scoring.heads, law_of(group, setting)) for group in scoring.groups]
    limit = sum(share * law.value for share, law in laws if law.kind == "limit")
    if limit:
        return Law("limit", limit)
    # What falls slowest is all that is left of the mean; of one kind, that is the greatest value.
    order = ("power", "exponential", "threshold")
    return max((law for _, law in laws), key=lambda law: (-order.index(law.kind), law.value))


def _softmax(config: Any, setting: Setting) -> Law:
    """w_j / w_1 = e^-(x_1 - x_j)."""
    return Law("exponential", -setting.gap)


def _temperature(config: Any, setting: Setting) -> Law:
    """w_j / w_1 = e^-((x_1 - x_j) / tau)."""
    return Law("exponential", -setting.gap / config.tau)


def _self_adjust(config: Any, setting: Setting) -> Law:
    """The factor falls with a lead, as 1/D, and does not change under magnification: the exponential rules."""
    return Law("exponential", -setting.gap)


def _sparsemax(config: Any, setting: Setting) -> Law:
    """w_j = max(x_j - t, 0): the leader alone has t = x_1 - 1, which is at least x_2 from a lead of 1 on."""
    return Law("threshold", 1 / setting.gap)


def _entmax(config: Any, setting: Setting) -> Law:
    """w_j = max(x_j/2 - t, 0)^2: the leader alone has t = x_1/2 - 1, at least x_2/2 from a lead of 2 on."""
    return Law("threshold", 2 / setting.gap)


def _ssa(config: Any, setting: Setting) -> Law:
    """w(x) ~ (b x)^n: D^-n after a lead; magnified, logits above 0 keep shares by x_j^n, the others nothing."""
    if setting.condition == "lead":
        return Law("power", -config.n)
    return _lasting_shares(setting, config.n)


def _linear(config: Any, setting: Setting) -> Law:
    """phi(k) = k + 1 above 0: as SSA with n = 1."""
    if setting.condition == "lead":
        return Law("power", -1.0)
    return _lasting_shares(setting, 1.0)


def _cosformer(config: Any, setting: Setting) -> Law:
    """relu(k) times a cosine of the distance: as SSA with n = 1, with shares that the distances weight."""
    if setting.condition == "lead":
        return Law("power", -1.0)
    angle = math.pi / 2 / config.max_length
    return _lasting_shares(setting, 1.0, [math.cos(angle * d) for d in range(setting.keys)])


def _lasting_shares(setting: Setting, power: float, by_distance: list[float] | None = None) -> Law:
    """What logits above 0 but the last keep where a weight is x_j^power, times a number by the key's distance."""
    last = setting.keys - 1
    weights = [max(2 * j / last - 1, 0.0) ** power for j in range(setting.keys)]
    if by_distance is not None:
        weights = [weight * by_distance[last - j] for j, weight in enumerate(weights)]
    return Law("limit", 1 - weights[-1] / math.fsum(weights))


LAWS: dict[str, Callable[[Any, Setting], Law]] = {
    "softmax": _softmax,
    "temperature": _temperature,
    "sas": _self_adjust,
    "sparsemax": _sparsemax,
    "entmax": _entmax,
    "ssa": _ssa,
    "linear": _linear,
    "cosformer": _cosformer,
}
