"""CosFormer: features relu(x), re-weighted by the cosine of the distance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from babyssa.attention.kernel import KernelScoring
from babyssa.attention.laws import Law, Setting, power_law
from babyssa.attention.scoring import check_parameter
from babyssa.errors import ModelError


@dataclass(frozen=True)
class CosFormerConfig:
    """The length that distances are measured by.

    Parameters
    ----------
    max_length : int, optional
        M in cos(pi/2 (i - j)/M), and the longest sequence that can be scored; by default the model's longest.
        The paper's M is the length of the batch. A fixed one makes a score independent of padding and of the
        other sentences, and keeps from a causal model how long its text will be.
    """

    max_length: int | None = None

    def __post_init__(self):
        check_parameter(
            "cosformer",
            "max_length",
            self.max_length,
            "a whole number, at least 1",
            lambda length: length is None or (type(length) is int and length >= 1),
        )


class CosFormer(KernelScoring):
    """w_ij proportional to relu(q_i).relu(k_j) cos(pi/2 (i - j)/M), i and j the positions of query and key.

    By cos(a - b) = cos a cos b + sin a sin b the features are relu(x) cos a beside relu(x) sin a, with
    a = pi/2 i/M. The output is 0 where no dimension is positive in both the query and some key. With fewer
    queries than keys, as in generation with a cache, a query's position is that of the last key that it may
    attend to. In keys it saturates as SSA does with n = 1, with shares weighted by distance.

    Source: Qin et al. 2022, arXiv 2202.08791, section 3.2.
    """

    name = "cosformer"
    description = "proportional to relu(q).relu(k) cos(pi/2 (i - j)/M), i and j positions"
    source = "Qin et al., arXiv 2202.08791"
    needs_length = True
    positional = True
    Config = CosFormerConfig
    normalised = False

    def features(self, query: Tensor, key: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        length = key.shape[-2]
        if max(length, query.shape[-2]) > self.config.max_length:
            raise ModelError(
                f"a sequence of {length} tokens is longer than scoring 'cosformer' measures "
                f"(max_length {self.config.max_length})",
                remedy="set the scoring's max_length to the model's longest sequence "
                f"(--scoring.max_length in training), here at least {length}",
            )
        keys = torch.arange(length, device=key.device)
        queries = _query_positions(query.shape[-2], keys, mask)
        query, key = torch.relu(query), torch.relu(key)
        # Relative to its largest, no query's features underflow.
        query = query / query.detach().amax(dim=-1, keepdim=True).clamp(min=torch.finfo(query.dtype).tiny)
        return self._turned(query, queries), self._turned(key, keys)

    def _turned(self, features: Tensor, positions: Tensor) -> Tensor:
        angles = (positions.to(features.dtype) * (math.pi / 2 / self.config.max_length)).unsqueeze(-1)
        return torch.cat([features * angles.cos(), features * angles.sin()], dim=-1)

    def law(self, setting: Setting) -> Law:
        angle = math.pi / 2 / self.config.max_length
        return power_law(setting, 1.0, [math.cos(angle * d) for d in range(setting.keys)])


def _query_positions(queries: int, keys: Tensor, mask: Tensor | None) -> Tensor:
    """Where the queries stand among the keys: (query,), or (batch, heads or 1, query)."""
    if queries == len(keys):
        return keys
    if mask is None or mask.shape[-2] != queries:
        return keys[-1] + 1 - queries + torch.arange(queries, device=keys.device)
    return torch.where(mask, keys, 0).amax(dim=-1)
