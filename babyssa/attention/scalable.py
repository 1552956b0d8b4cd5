"""Scalable-Softmax: Softmax whose sharpness grows with the number of keys."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from babyssa.attention.laws import Law, Setting
from babyssa.attention.learnable import Bound, Learnable, check_learnable, per_head
from babyssa.attention.scoring import LogitScoring, keys_seen

_BOUNDS = {"s": Bound(-math.inf)}


@dataclass(frozen=True)
class ScalableSoftmaxConfig:
    """The scale s, fixed or learnable.

    Parameters
    ----------
    s : float
        What log(n) x is multiplied by; the initial value where learnable. 0.43 = 1 / log(10) is Softmax where a
        query sees 10 keys.
    learn_s : bool
        Whether it is learned.
    granularity : {"head", "layer", "model"}
        What shares one learnable s.
    """

    s: float = 0.43
    learn_s: bool = True
    granularity: Literal["head", "layer", "model"] = "head"

    def __post_init__(self):
        check_learnable("ssmax", self, _BOUNDS)


class ScalableSoftmax(Learnable, LogitScoring):
    """SSMax: w(x) proportional to n^(s x), so softmax(s log(n) x), n the number of keys.

    n is counted for each query from its mask, as the keys that it may attend to: it grows along a causal
    sequence, and padding does not count. For one n, it saturates as Softmax does: a lead of D leaves the others
    n^(-s D).

    Source: Nakanishi 2025, arXiv 2501.19399.
    """

    name = "ssmax"
    description = "softmax(s log(n) x), n the number of keys that the query may attend to"
    source = "Nakanishi, arXiv 2501.19399"
    Config = ScalableSoftmaxConfig
    bounds = _BOUNDS

    def weights(self, logits: Tensor, mask: Tensor | None = None) -> Tensor:
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return super().weights(logits * (per_head(self.number("s")) * keys_seen(logits, mask).log()), mask)

    def law(self, setting: Setting) -> Law:
        return Law("exponential", -self.config.s * math.log(setting.keys) * setting.gap)
