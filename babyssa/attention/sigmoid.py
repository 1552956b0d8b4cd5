"""Sigmoid attention: every key is weighted by itself."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from babyssa.attention.laws import Law, Setting
from babyssa.attention.scoring import LogitScoring, check_parameter, keys_seen


@dataclass(frozen=True)
class SigmoidConfig:
    """The length in the bias.

    Parameters
    ----------
    length : int, optional
        n in sigmoid(x - log(n)); by default the number of keys that the query may attend to. The paper's is the
        length of all its sequences, padding included.
    """

    length: int | None = None

    def __post_init__(self):
        check_parameter(
            "sigmoid",
            "length",
            self.length,
            "a whole number, at least 1",
            lambda length: length is None or (type(length) is int and length >= 1),
        )


class Sigmoid(LogitScoring):
    """w(x) = 1 / (1 + e^(b - x)) over logits x (batch, heads, query, key), with the bias -b = -log(n).

    No key takes from another: the weights sum to about 1 while the logits are near 0, and to up to n. So it never
    saturates: a key that leads leaves the weights of the others as they are.

    Source: Ramapuram et al. 2024, arXiv 2409.04431.
    """

    name = "sigmoid"
    description = "sigmoid(x - log(n)), n the number of keys that the query may attend to"
    source = "Ramapuram et al., arXiv 2409.04431"
    Config = SigmoidConfig
    normalised = False

    def weights(self, logits: Tensor, mask: Tensor | None = None) -> Tensor:
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        length = self.config.length
        bias = keys_seen(logits, mask).log() if length is None else math.log(length)
        weights = torch.sigmoid(logits - bias)
        return weights if mask is None else weights.masked_fill(~mask, 0.0)

    def law(self, setting: Setting) -> Law:
        bias = math.log(self.config.length or setting.keys)
        # Magnified, logits above 0 get 1, those below 0 nothing; one of 0 stays.
        at = 0.0 if setting.condition == "lead" else math.inf
        others = setting.logits(torch.tensor([at], dtype=torch.float64))[0, :-1].nan_to_num(
            0.0, math.inf, -math.inf
        )
        kept = float(torch.sigmoid(others - bias).sum())
        return Law("limit", kept / (kept + 1))
