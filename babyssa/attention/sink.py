"""Softmax with a sink: a key without a value that takes the weight which no key deserves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from babyssa.attention.laws import Law, Setting
from babyssa.attention.learnable import Bound, Learnable, check_learnable, per_head
from babyssa.attention.scoring import LogitScoring

_BOUNDS = {"s": Bound(-math.inf)}


@dataclass(frozen=True)
class SinkConfig:
    """The logit s of the sink, fixed or learnable.

    Parameters
    ----------
    s : float
        0 makes e^s the 1 of "off by one"; the initial value where learnable.
    learn_s : bool
        Whether it is learned.
    granularity : {"head", "layer", "model"}
        What shares one learnable s.
    """

    s: float = 0.0
    learn_s: bool = True
    granularity: Literal["head", "layer", "model"] = "head"

    def __post_init__(self):
        check_learnable("sink", self, _BOUNDS)


class Sink(Learnable, LogitScoring):
    """w(x) = e^x / (e^s + sum e^x) over logits x (batch, heads, query, key): Softmax, less what the sink takes.

    The weights sum to at most 1. Among the keys it saturates as Softmax does.

    Source: learned for each head in gpt-oss (OpenAI 2025, arXiv 2508.10925); fixed at s = 0, `off-by-one`: Miller
    2023, "Attention is off by one", evanmiller.org/attention-is-off-by-one.html.
    """

    name = "sink"
    description = "e^x / (e^s + sum e^x)"
    source = "OpenAI, arXiv 2508.10925; Miller 2023"
    Config = SinkConfig
    variants = {"off-by-one": SinkConfig(learn_s=False)}
    bounds = _BOUNDS
    normalised = False

    def normalized(self, logits: Tensor, bias: Tensor | None) -> Tensor:
        scores = logits if bias is None else logits + bias
        kept = torch.sigmoid(scores.logsumexp(dim=-1, keepdim=True) - per_head(self.number("s")))
        return torch.softmax(scores, dim=-1) * kept

    def law(self, setting: Setting) -> Law:
        return Law("exponential", -setting.gap)
