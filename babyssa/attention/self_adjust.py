"""Self-Adjust Softmax: Softmax weights times the logits, plain or mapped to 0..1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from babyssa.attention.laws import Law, Setting
from babyssa.attention.scoring import LogitScoring, check_parameter


@dataclass(frozen=True)
class SelfAdjustSoftmaxConfig:
    """Which of its two forms.

    Parameters
    ----------
    form : {"normalised", "plain"}
        Plain is x * softmax(x); normalised maps the factor x to 0..1.
    """

    form: Literal["normalised", "plain"] = "normalised"

    def __post_init__(self):
        check_parameter("sas", "form", self.form, "normalised or plain", ("normalised", "plain").__contains__)


class SelfAdjustSoftmax(LogitScoring):
    """w(x) = (x - min(x_min, 0)) / (max(x_max, 0) - min(x_min, 0)) * softmax(x).

    x are logits (batch, heads, query, key); x_min and x_max their least and largest over the keys that the
    query may attend to. The factor lies in 0..1, so the weights sum to at most 1, not to 1; a query whose
    only key has a logit of 0 or less gets an output of 0.

    The paper's other form is x * softmax(x), here `sas-plain`: its weights may be negative, and have no bound.
    Its authors' training code calls the normalised one SA-Softmax. Relative to the leader's, the factor of the
    others falls as 1/D after a lead of D and stays under magnification, so the weight left to them is
    exponential, as Softmax's.

    Source: Zheng et al., EMNLP 2025, arXiv 2502.18277.
    """

    name = "sas"
    description = "(x - min(x_min, 0)) / (max(x_max, 0) - min(x_min, 0)) * softmax(x)"
    source = "Zheng et al., arXiv 2502.18277"
    Config = SelfAdjustSoftmaxConfig
    variants = {"sas-plain": SelfAdjustSoftmaxConfig(form="plain")}
    normalised = False

    # Where all logits are 0 the factor has no limit; this keeps it and its gradient finite.
    _LEAST_RANGE = 1e-6

    def weights(self, logits: Tensor, mask: Tensor | None = None) -> Tensor:
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        # Every row's range includes 0, so excluded keys cannot widen it.
        allowed = logits if mask is None else logits.masked_fill(~mask, 0.0)
        if self.config.form == "plain":
            return allowed * super().weights(logits, mask)
        low = allowed.amin(dim=-1, keepdim=True).clamp(max=0)
        high = allowed.amax(dim=-1, keepdim=True).clamp(min=0)
        factor = (allowed - low) / (high - low).clamp(min=self._LEAST_RANGE)
        return factor * super().weights(logits, mask)

    def law(self, setting: Setting) -> Law:
        return Law("exponential", -setting.gap)
