"""Numbers of a scoring, fixed or learned, per head, layer or model, that never leave their domain.

A scoring with such numbers derives from :class:`Learnable` and names them in `bounds`. For each, its Config
has the number itself and ``learn_NUMBER``, and for all of them ``granularity``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from babyssa.attention.scoring import Scoring, check_parameter

_SHARING = ("head", "layer", "model")


@dataclass(frozen=True)
class Bound:
    """The lower end of a number's domain.

    Parameters
    ----------
    value : float
        A learned number stays above it; -inf where any number will do.
    reachable : bool
        Whether a fixed number may equal it.
    """

    value: float
    reachable: bool = False


def check_learnable(scoring: str, config: Any, bounds: Mapping[str, Bound]) -> None:
    """Raise ConfigError unless the numbers of `config`, their ``learn_`` flags and its granularity are valid."""
    for key, bound in bounds.items():
        value, learn, low = getattr(config, key), getattr(config, f"learn_{key}"), bound.value
        if bound.reachable:
            check_parameter(scoring, key, value, f"at least {low:g}", lambda v, low=low: low <= v < math.inf)
        else:
            domain = f"greater than {low:g}" if low > -math.inf else "a finite number"
            check_parameter(scoring, key, value, domain, lambda v, low=low: low < v < math.inf)
        check_parameter(scoring, f"learn_{key}", learn, "true or false", lambda v: v in (True, False))
        if learn:
            domain = f"greater than {low:g} where learn_{key} is true"
            check_parameter(scoring, key, value, domain, lambda v, low=low: v > low)
    check_parameter(scoring, "granularity", config.granularity, "head, layer or model", _SHARING.__contains__)


class Learnable(Scoring):
    """A scoring some of whose numbers may be learned.

    A learned number is stored unconstrained, as ``raw_NUMBER``, and read in its domain through :meth:`number`:
    its bound plus softplus(raw), or raw itself where there is no bound.
    """

    bounds: ClassVar[Mapping[str, Bound]]

    def __init__(self, config: Any, heads: int):
        super().__init__(config, heads)
        count = heads if config.granularity == "head" else 1
        for key in self.bounds:
            raw = nn.Parameter(torch.empty(count)) if getattr(config, f"learn_{key}") else None
            self.register_parameter(f"raw_{key}", raw)
        self.reset_parameters()

    @property
    def shared(self) -> bool:
        return self.config.granularity == "model" and bool(self.learned())

    def reset_parameters(self) -> None:
        """Set the learned numbers to their initial values."""
        with torch.no_grad():
            for key, bound in self.bounds.items():
                raw, initial = getattr(self, f"raw_{key}"), getattr(self.config, key)
                if raw is not None:
                    raw.fill_(initial if bound.value == -math.inf else _inverse_softplus(initial - bound.value))

    def number(self, key: str) -> Tensor | float:
        """The number in its domain: (heads,), (1,), or a float where it is fixed."""
        raw, bound = getattr(self, f"raw_{key}"), self.bounds[key].value
        if raw is None:
            return getattr(self.config, key)
        return raw.float() if bound == -math.inf else bound + nn.functional.softplus(raw.float())

    def learned(self) -> dict[str, Tensor]:
        return {key: self.number(key) for key in self.bounds if getattr(self, f"raw_{key}") is not None}

    def describe_head(self, head: int) -> tuple[str, dict[str, float]]:
        numbers = {}
        for key in self.bounds:
            value = self.number(key)
            numbers[key] = value[head % len(value)].item() if isinstance(value, Tensor) else float(value)
        return self.name, numbers


def per_head(value: Tensor | float) -> Tensor | float:
    """Broadcast (heads,) over logits of shape (batch, heads, query, key)."""
    return value.view(1, -1, 1, 1) if isinstance(value, Tensor) else value


def _inverse_softplus(y: float) -> float:
    """x such that log(1 + e^x) = y > 0, without overflow."""
    return y + math.log(-math.expm1(-y))
