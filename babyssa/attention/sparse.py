"""Sparsemax and Entmax-1.5: weights that reach exactly 0, from the `entmax` package."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from babyssa.attention.laws import Law, Setting
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
