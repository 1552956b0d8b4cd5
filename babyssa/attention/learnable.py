"""Numbers of a scoring, fixed or learned, per head, layer or model, that never leave their domain.

A scoring with such numbers derives from :class:`Learnable` and names them in `bounds`. For each, its Config
has the number itself and ``learn_NUMBER``, and for all of them ``granularity``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from babyssa.attention.scoring import Scoring, check_parameter

_SHARING = ("head", "layer", "model")


@dataclass(frozen=True)
class Bound:
    """A number's domain.

    Parameters
    ----------
    value : float
        Its lower end, above which a learned number stays; -inf where any number will do.
    reachable : bool
        Whether a fixed number may equal an end.
    upper : float
        Its upper end, below which a learned number stays.
    """

    value: float
    reachable: bool = False
    upper: float = math.inf

    def describe(self, closed: bool) -> str:
        """The domain in words, with its ends or without them."""
        if self.upper < math.inf:
            words = "from {:g} to {:g}" if closed else "between {:g} and {:g}"
            return words.format(self.value, self.upper)
        if self.value == -math.inf:
            return "a finite number"
        return f"at least {self.value:g}" if closed else f"greater than {self.value:g}"

    def holds(self, number: float, closed: bool) -> bool:
        """Whether a number is in the domain, with its ends or without them."""
        low, high = self.value, self.upper
        return (low <= number <= high if closed else low < number < high) and number < math.inf

    def of_raw(self, raw: Tensor) -> Tensor:
        """The number in its domain that an unconstrained one stands for."""
        if self.value == -math.inf:
            return raw
        if self.upper < math.inf:
            return self.value + (self.upper - self.value) * torch.sigmoid(raw)
        return self.value + nn.functional.softplus(raw)

    def to_raw(self, number: float) -> float:
        """The inverse of :meth:`of_raw`."""
        if self.value == -math.inf:
            return number
        above = number - self.value
        if self.upper < math.inf:
            return math.log(above / (self.upper - number))
        return above + math.log(-math.expm1(-above))  # inverts log(1 + e^x) without overflow


def check_learnable(scoring: str, config: Any, bounds: Mapping[str, Bound]) -> None:
    """Raise ConfigError unless the numbers of `config`, their ``learn_`` flags and its granularity are valid."""
    for key, bound in bounds.items():
        value, learn = getattr(config, key), getattr(config, f"learn_{key}")
        closed = bound.reachable
        check_parameter(scoring, key, value, bound.describe(closed), partial(bound.holds, closed=closed))
        check_parameter(scoring, f"learn_{key}", learn, "true or false", lambda v: v in (True, False))
        if learn:
            domain = f"{bound.describe(closed=False)} where learn_{key} is true"
            check_parameter(scoring, key, value, domain, partial(bound.holds, closed=False))
    check_parameter(scoring, "granularity", config.granularity, "head, layer or model", _SHARING.__contains__)


class Learnable(Scoring):
    """A scoring some of whose numbers may be learned.

    A learned number is stored unconstrained, as ``raw_NUMBER``, and read in its domain through :meth:`number`:
    its lower end plus softplus(raw), between two ends by sigmoid(raw), and raw itself where there is no end.
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
                raw = getattr(self, f"raw_{key}")
                if raw is not None:
                    raw.fill_(bound.to_raw(getattr(self.config, key)))

    def number(self, key: str) -> Tensor | float:
        """The number in its domain: (heads,), (1,), or a float where it is fixed."""
        raw = getattr(self, f"raw_{key}")
        return getattr(self.config, key) if raw is None else self.bounds[key].of_raw(raw.float())

    def learned(self) -> dict[str, Tensor]:
        return {key: self.number(key) for key in self.bounds if getattr(self, f"raw_{key}") is not None}

    def describe_head(self, head: int) -> tuple[str, dict[str, float]]:
        numbers = {}
        for key in self.bounds:
            value = self.number(key)
            numbers[key] = value[head % len(value)].item() if isinstance(value, Tensor) else float(value)
        return self.name, numbers

    def head_config(self, head: int) -> Any:
        _, numbers = self.describe_head(head)
        # In float32 a learned number can round to a little outside its domain.
        inside = {
            key: min(max(value, self.bounds[key].value), self.bounds[key].upper) for key, value in numbers.items()
        }
        fixed = {f"learn_{key}": False for key in self.bounds}
        return dataclasses.replace(self.config, granularity="head", **fixed, **inside)


def per_head(value: Tensor | float) -> Tensor | float:
    """Broadcast (heads,) over logits of shape (batch, heads, query, key)."""
    return value.view(1, -1, 1, 1) if isinstance(value, Tensor) else value
