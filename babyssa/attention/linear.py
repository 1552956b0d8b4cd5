"""Linear attention: features elu(x) + 1."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from babyssa.attention.kernel import KernelScoring
from babyssa.attention.laws import Law, Setting, power_law


@dataclass(frozen=True)
class LinearConfig:
    """Linear attention has no parameters."""


class Linear(KernelScoring):
    """w_ij proportional to phi(q_i).phi(k_j), phi(x) = elu(x) + 1: x + 1 above 0 and e^x below.

    Queries and keys are not scaled, as in the paper. In keys it saturates as SSA does with n = 1.

    Source: Katharopoulos, Vyas, Pappas & Fleuret 2020, arXiv 2006.16236, equation 7.
    """

    name = "linear"
    description = "proportional to phi(q).phi(k), phi(x) = elu(x) + 1"
    source = "Katharopoulos et al., arXiv 2006.16236"
    Config = LinearConfig

    def features(self, query: Tensor, key: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        logs = _log_feature(query)
        # Relative to its largest, no query's features all underflow.
        return (logs - logs.detach().amax(dim=-1, keepdim=True)).exp(), _log_feature(key).exp()

    def law(self, setting: Setting) -> Law:
        return power_law(setting, 1.0)


def _log_feature(x: Tensor) -> Tensor:
    """log(elu(x) + 1), which is x below 0; elu(x) + 1 itself rounds to 0 from x = -17 on in float32."""
    return torch.where(x > 0, torch.log1p(x.clamp(min=0)), x)
