"""How attention saturates in theory: what a formula says of the weight that is left to all keys but one.

The two settings are those of theorems 1 and 2 of arXiv 2508.14685. Every scoring states its law in each
(:meth:`babyssa.attention.scoring.Scoring.law`); :mod:`babyssa.probing.saturation` measures it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Condition = Literal["lead", "magnification"]


@dataclass(frozen=True)
class Law:
    """What the weight left to the other keys does as x, the lead or the factor, grows.

    Parameters
    ----------
    kind : {"exponential", "power", "threshold", "limit", "log-limit"}
        The form of the law.
    value : float
        The slope of log(weight) against x (exponential) or against log(x) (power), the x from which on the
        weight is exactly 0 (threshold), the weight that remains for every x (limit), or the logarithm of one that
        is too small for a float (log-limit).
    scale : float
        The law holds for x far above it.
    """

    kind: Literal["exponential", "power", "threshold", "limit", "log-limit"]
    value: float
    scale: float = 1.0


@dataclass(frozen=True)
class Setting:
    """One of the two conditions, with a number of keys; the last key leads, and x goes from 0 to infinity.

    Parameters
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


def power_law(
    setting: Setting, power: float, by_distance: Sequence[float] | None = None, scale: float = 1.0
) -> Law:
    """The law of a weight that grows as x_j^power where the logit x_j >> scale, and vanishes below 0.

    After a lead D the others keep D^-power. Magnified, the logits above 0 keep shares by x_j^power; where
    `by_distance` is given, times its element number d for the key d places before the last.
    """
    if setting.condition == "lead":
        return Law("power", -power, scale)
    last = setting.keys - 1
    # Logarithms of the weights of the other keys above 0, relative to the last; its distance is 0.
    logs = [power * math.log(2 * j / last - 1) for j in range(last // 2 + 1, last)]
    if by_distance is not None:
        logs = [log + math.log(by_distance[last - j]) for j, log in enumerate(logs, start=last // 2 + 1)]
    top = max(logs)
    log_others = top + math.log(math.fsum(math.exp(log - top) for log in logs))
    log_share = log_others - math.log1p(math.exp(log_others))
    if log_share < math.log(sys.float_info.min):
        return Law("log-limit", log_share, scale)
    return Law("limit", math.exp(log_share), scale)
