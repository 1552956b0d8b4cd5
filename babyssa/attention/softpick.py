"""Softpick: rectified Softmax, whose weights may all be 0."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from babyssa.attention.laws import Law, Setting
from babyssa.attention.scoring import LogitScoring, check_parameter


@dataclass(frozen=True)
class SoftpickConfig:
    """The constant of the denominator.

    Parameters
    ----------
    eps : float
        Greater than 0; it counts only where all logits are almost 0.
    """

    eps: float = 1e-8

    def __post_init__(self):
        check_parameter("softpick", "eps", self.eps, "greater than 0", lambda eps: 0 < eps < math.inf)


class Softpick(LogitScoring):
    """w(x) = relu(e^x - 1) / (sum |e^x - 1| + eps) over logits x (batch, heads, query, key).

    A logit of 0 or less gets no weight, but counts in the sum, so that the weights sum to at most 1; if no logit
    is above 0, the output is 0. It saturates as Softmax does: a lead of D leaves the others e^-D.

    Source: Zuhri, Fuadi & Aji 2025, arXiv 2504.20966.
    """

    name = "softpick"
    description = "relu(e^x - 1) / (sum |e^x - 1| + eps)"
    source = "Zuhri et al., arXiv 2504.20966"
    Config = SoftpickConfig
    normalised = False

    def weights(self, logits: Tensor, mask: Tensor | None = None) -> Tensor:
        x = logits.to(torch.promote_types(logits.dtype, torch.float32))
        if mask is not None:
            # A logit of 0 adds nothing to either sum.
            x = x.masked_fill(~mask, 0.0)
        top = x.detach().amax(dim=-1, keepdim=True).clamp(min=0)
        # |e^x - 1| e^-top, which neither overflows nor cancels.
        size = -torch.expm1(-x.abs()) * torch.exp(torch.relu(x) - top)
        total = size.sum(dim=-1, keepdim=True) + self.config.eps * torch.exp(-top)
        return torch.where(x > 0, size, 0.0) / total

    def law(self, setting: Setting) -> Law:
        return Law("exponential", -setting.gap)
