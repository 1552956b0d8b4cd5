"""Sparsemax and Entmax-1.5: weights that reach exactly 0, from the `entmax` package."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from babyssa.attention.scoring import LogitScoring


@dataclass(frozen=True)
class SparsemaxConfig:
    """Sparsemax has nothing to set."""


class Sparsemax(LogitScoring):
    """The Euclidean projection of logits x (batch, heads, query, key) onto the simplex.

    w = argmin_p |p - x|^2 over p >= 0, sum(p) = 1; so w = max(x - threshold, 0). A logit that leads all
    others by 1 gets all the weight.

    Source: Martins & Astudillo 2016, arXiv 1602.02068, equation 2.
    """

    name = "sparsemax"
    Config = SparsemaxConfig

    def normalize(self, scores: Tensor) -> Tensor:
        from entmax import sparsemax

        return sparsemax(scores, dim=-1)


@dataclass(frozen=True)
class EntmaxConfig:
    """Entmax-1.5 has nothing to set."""


class Entmax(LogitScoring):
    """Entmax with alpha = 1.5, halfway between Softmax (1) and Sparsemax (2).

    w = argmax_p p.x + H(p) over the simplex, H(p) = sum_j (p_j - p_j^1.5) / (1.5 * 0.5) the Tsallis entropy
    of order 1.5; so w = max(x/2 - threshold, 0)^2. A logit that leads all others by 2 gets all the weight.

    Source: Peters, Niculae & Martins 2019, arXiv 1905.05702, section 3.
    """

    name = "entmax"
    Config = EntmaxConfig

    def normalize(self, scores: Tensor) -> Tensor:
        from entmax import entmax15

        return entmax15(scores, dim=-1)
