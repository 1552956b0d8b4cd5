"""Sparsemax and Entmax, fixed or learned: weights that reach exactly 0, from the `entmax` package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from babyssa.attention.laws import Law, Setting
from babyssa.attention.learnable import Bound, Learnable, check_learnable, per_head
from babyssa.attention.scoring import LogitScoring


@dataclass(frozen=True)
class SparsemaxConfig:
    """Sparsemax has no parameters."""


class Sparsemax(LogitScoring):
    """The Euclidean projection of logits x (batch, heads, query, key) onto the simplex.

    w = argmin_p |p - x|^2 over p >= 0, sum(p) = 1; so w = max(x - threshold, 0). A logit x_1 that leads all
    others by 1 gets all the weight: alone above the threshold x_1 - 1.

    Source: Martins & Astudillo 2016, arXiv 1602.02068, equation 2.
    """

    name = "sparsemax"
    description = "max(x - t, 0), t such that they sum to 1"
    source = "Martins & Astudillo, arXiv 1602.02068"
    Config = SparsemaxConfig

    def normalize(self, scores: Tensor) -> Tensor:
        from entmax import sparsemax

        return sparsemax(scores, dim=-1)

    def law(self, setting: Setting) -> Law:
        return Law("threshold", 1 / setting.gap)


@dataclass(frozen=True)
class EntmaxConfig:
    """Entmax-1.5 has no parameters."""


class Entmax(LogitScoring):
    """Entmax with alpha = 1.5, halfway between Softmax (1) and Sparsemax (2).

    w = argmax_p p.x + H(p) over the simplex, H(p) = sum_j (p_j - p_j^1.5) / (1.5 * 0.5) the Tsallis entropy
    of order 1.5; so w = max(x/2 - threshold, 0)^2. A logit x_1 that leads all others by 2 gets all the
    weight: alone above the threshold x_1/2 - 1.

    Source: Peters, Niculae & Martins 2019, arXiv 1905.05702, section 3.
    """

    name = "entmax"
    description = "max(x/2 - t, 0)^2, t such that they sum to 1 (alpha = 1.5)"
    source = "Peters et al., arXiv 1905.05702"
    Config = EntmaxConfig

    def normalize(self, scores: Tensor) -> Tensor:
        from entmax import entmax15

        return entmax15(scores, dim=-1)

    def law(self, setting: Setting) -> Law:
        return Law("threshold", 2 / setting.gap)


# Towards alpha = 1, Softmax, the powers 1 / (alpha - 1) and their derivatives lose all digits.
_BOUNDS = {"alpha": Bound(1.01, reachable=True, upper=2.0)}


@dataclass(frozen=True)
class AlphaEntmaxConfig:
    """The alpha of Entmax, fixed or learnable.

    Parameters
    ----------
    alpha : float
        From 1.01, almost Softmax, to 2, Sparsemax; the initial value where learnable, then between the two.
    learn_alpha : bool
        Whether it is learned.
    granularity : {"head", "layer", "model"}
        What shares one learnable alpha.
    """

    alpha: float = 1.5
    learn_alpha: bool = True
    granularity: Literal["head", "layer", "model"] = "head"

    def __post_init__(self):
        check_learnable("entmax-alpha", self, _BOUNDS)


class AlphaEntmax(Learnable, LogitScoring):
    """Entmax with an alpha that is learned: each head finds how sparse it is.

    w = max((alpha - 1) x - threshold, 0)^(1 / (alpha - 1)), the threshold such that they sum to 1. A logit that
    leads all others by 1 / (alpha - 1) gets all the weight.

    Source: Correia, Niculae & Martins 2019, arXiv 1909.00015, which also gives the gradient of alpha.
    """

    name = "entmax-alpha"
    description = "max((alpha - 1) x - t, 0)^(1 / (alpha - 1)), t such that they sum to 1"
    source = "Correia et al., arXiv 1909.00015"
    Config = AlphaEntmaxConfig
    bounds = _BOUNDS

    def normalize(self, scores: Tensor) -> Tensor:
        return alpha_entmax(scores, per_head(self.number("alpha")))

    def law(self, setting: Setting) -> Law:
        return Law("threshold", 1 / (self.config.alpha - 1) / setting.gap)


def alpha_entmax(scores: Tensor, alpha: Tensor | float) -> Tensor:
    """Entmax over the last dimension of `scores`; `alpha` broadcasts to it. Differentiable in both."""
    from entmax import entmax_bisect

    # Relative to the largest, no score is so low that the threshold's digits are lost beside it.
    scores = scores - scores.detach().amax(dim=-1, keepdim=True)
    # Each step halves an interval of at most 1.
    steps = 50 if scores.dtype == torch.float64 else 30
    return entmax_bisect(scores, alpha, dim=-1, n_iter=steps)
