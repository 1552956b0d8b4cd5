"""Temperature Softmax: one number that flattens or sharpens every distribution of a head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from babyssa.attention.laws import Law, Setting
from babyssa.attention.learnable import Bound, Learnable, check_learnable, per_head
from babyssa.attention.scoring import LogitScoring

# Lower, and 1/tau no longer keeps logits and gradients of ordinary size finite in float32.
_BOUNDS = {"tau": Bound(1e-3, reachable=True)}


@dataclass(frozen=True)
class TemperatureConfig:
    """The temperature tau, fixed or learnable.

    Parameters
    ----------
    tau : float
        At least 0.001; above 1 flattens, below 1 sharpens; the initial value where learnable.
    learn_tau : bool
        Whether it is learned.
    granularity : {"head", "layer", "model"}
        What shares one learnable tau.
    """

    tau: float = 1.0
    learn_tau: bool = True
    granularity: Literal["head", "layer", "model"] = "head"

    def __post_init__(self):
        check_learnable("temperature", self, _BOUNDS)


class Temperature(Learnable, LogitScoring):
    """softmax(x / tau) over logits x (batch, heads, query, key).

    A learned tau adds nothing that the query projection could not learn by its scale; it only moves at
    another speed. It saturates as Softmax does: a lead of D leaves the others e^(-D/tau).

    Source: Hinton, Vinyals & Dean 2015, arXiv 1503.02531, equation 1.
    """

    name = "temperature"
    description = "softmax(x / tau)"
    source = "Hinton et al., arXiv 1503.02531"
    Config = TemperatureConfig
    bounds = _BOUNDS

    def transform(self, logits: Tensor) -> Tensor:
        return logits / per_head(self.number("tau"))

    def law(self, setting: Setting) -> Law:
        return Law("exponential", -setting.gap / self.config.tau)
