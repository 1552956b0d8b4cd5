"""Mixed heads: each group of a layer's heads has its own scoring."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor, nn

from babyssa.attention.laws import Law, Setting
from babyssa.attention.registry import build_scoring, fit_scoring, scoring_from_dict
from babyssa.attention.scoring import Scoring, check_parameter
from babyssa.errors import ConfigError


@dataclass(frozen=True)
class MixedConfig:
    """Which heads score how.

    Parameters
    ----------
    groups : sequence of (scoring, heads)
        In the order of the heads. A scoring is a config, a variant's name, or a mapping with a variant's
        `name` and the parameters that differ. Heads are counts, whose sum is the number of heads of a
        layer, or shares, whose sum is 1: ``[["softmax", 0.25], [{"name": "ssa", "n": 2.0}, 0.75]]``.
    """

    groups: tuple[tuple[Any, int | float], ...] = (("softmax", 0.5), ("ssa", 0.5))

    def __post_init__(self):
        domain = "a list of [scoring, heads], all heads counts, or all shares that sum to 1"
        check_parameter("mixed", "groups", self.groups, domain, _are_groups)
        groups = tuple((_as_config(scoring), heads) for scoring, heads in self.groups)
        for config, _ in groups:
            if getattr(config, "granularity", None) == "model":
                raise ConfigError(
                    "scoring 'mixed': a group has granularity 'model'",
                    remedy="a group shares its parameters within a layer: 'head' or 'layer'",
                )
        object.__setattr__(self, "groups", groups)


def _are_groups(groups: Any) -> bool:
    if not isinstance(groups, (list, tuple)) or not groups:
        return False
    if not all(isinstance(group, (list, tuple)) and len(group) == 2 for group in groups):
        return False
    heads = [count for _, count in groups]
    if all(type(count) is int for count in heads):
        return min(heads) >= 1
    return all(type(share) is float and share > 0 for share in heads) and math.isclose(sum(heads), 1, abs_tol=1e-6)


def _as_config(scoring: Any) -> Any:
    if dataclasses.is_dataclass(scoring):
        return scoring
    return scoring_from_dict({"name": scoring} if isinstance(scoring, str) else scoring)


class Mixed(Scoring):
    """Each group of heads attends by its own scoring; outputs are concatenated in the order of the heads.

    Weights are returned if every group forms them. The learned parameters of group i are reported as
    ``i.PARAMETER``. Shares are rounded to whole heads (half a head up), from the first group on.

    Source: one of the alternatives in Naim, Bhar, Bolte & Asher, arXiv 2508.14685.
    """

    name = "mixed"
    description = "each group of heads has its own scoring"
    source = "Naim et al., arXiv 2508.14685"
    Config = MixedConfig

    def __init__(self, config: MixedConfig, heads: int):
        super().__init__(config, heads)
        counts = _whole_heads([count for _, count in config.groups], heads)
        self.groups = nn.ModuleList(
            build_scoring(scoring, count) for (scoring, _), count in zip(config.groups, counts, strict=True)
        )
        self.forms_weights = all(group.forms_weights for group in self.groups)
        self.normalised = all(group.normalised for group in self.groups)
        self.positional = any(group.positional for group in self.groups)
        self.needs_causal = any(group.needs_causal for group in self.groups)

    @classmethod
    def fit(cls, config: MixedConfig, longest: int | None) -> MixedConfig:
        groups = tuple((fit_scoring(scoring, longest), heads) for scoring, heads in config.groups)
        return dataclasses.replace(config, groups=groups)

    def law(self, setting: Setting) -> Law:
        """The law of the mean over heads: what falls slowest is all that remains of it."""
        laws = [(group.heads / self.heads, group.law(setting)) for group in self.groups]
        if limit := sum(share * law.value for share, law in laws if law.kind == "limit"):
            return Law("limit", limit, max(law.scale for _, law in laws))
        slowest_first = ("power", "exponential", "threshold", "limit", "log-limit")
        return min((law for _, law in laws), key=lambda law: (slowest_first.index(law.kind), -law.value))

    def reset_parameters(self) -> None:
        for group in self.groups:
            group.reset_parameters()

    def learned(self) -> dict[str, Tensor]:
        return {
            f"{number}.{key}": value
            for number, group in enumerate(self.groups)
            for key, value in group.learned().items()
        }

    def place(self, head: int) -> tuple[int, int]:
        """The number of a head's group, and of the head within it."""
        for number, group in enumerate(self.groups):
            if head < group.heads:
                return number, head
            head -= group.heads
        raise IndexError(f"there are only {self.heads} heads")

    def describe_head(self, head: int) -> tuple[str, dict[str, float]]:
        number, within = self.place(head)
        return self.groups[number].describe_head(within)

    def head_config(self, head: int) -> Any:
        number, within = self.place(head)
        return self.groups[number].head_config(within)

    def forward(self, query, key, value, mask=None, *, scaling, dropout=0.0, need_weights=True):
        outputs, weights = [], []
        start = 0
        for group in self.groups:
            heads = slice(start, start + group.heads)
            start += group.heads
            by_head = mask is not None and mask.dim() > 2 and mask.shape[-3] > 1
            allowed = mask[..., heads, :, :] if by_head else mask
            output, weight = group(
                *(tensor[:, heads] for tensor in (query, key, value)),
                allowed,
                scaling=scaling,
                dropout=dropout,
                need_weights=need_weights,
            )
            outputs.append(output)
            weights.append(weight)
        formed = all(weight is not None for weight in weights)
        return torch.cat(outputs, dim=1), torch.cat(weights, dim=1) if formed else None


def _whole_heads(wanted: list[int | float], heads: int) -> list[int]:
    """How many of a layer's heads each group gets."""
    counts = wanted
    if isinstance(wanted[0], float):
        ends = [math.floor(share * heads + 0.5) for share in accumulate(wanted)]
        counts = [end - start for start, end in pairwise([0, *ends])]
    if sum(counts) != heads or min(counts) < 1:
        raise ConfigError(
            f"scoring 'mixed': groups of {', '.join(map(str, wanted))} heads in a layer with {heads}",
            remedy="every group needs a head, and every head a group",
        )
    return counts
