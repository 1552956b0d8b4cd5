"""Attention without logits: a weight is the product of a query's and a key's features.

With non-negative features phi, the weight of key j for query i is

    w_ij = phi(q_i).phi(k_j) / sum_m phi(q_i).phi(k_m),

over the keys m that i may attend to. The products need never be formed: sum_j phi(k_j) v_j^T serves every
query, so time and memory grow with the length, not with its square (Katharopoulos et al. 2020,
arXiv 2006.16236, equations 4 to 6 and 8 to 9). A scoring of this kind defines phi.
"""

from __future__ import annotations

import torch
from torch import Tensor

from babyssa.attention.scoring import Scoring

# Queries per step of the causal form, which forms the products within a step.
_CHUNK = 128
# A smaller sum counts as 0: the features of the query and of all its keys have no dimension in common.
_LEAST_MASS = 1e-20


class KernelScoring(Scoring):
    """A scoring by products of features; subclasses give `features`.

    Masks of key padding, and causal masks with or without it, take the linear forms; any other mask takes the
    quadratic form of the same weights. Computes in float32 or wider. As in the papers, there is no attention
    dropout: no weights are formed.
    """

    forms_weights = False

    def features(self, query: Tensor, key: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Non-negative features of queries and keys, (batch, heads, query or key, features).

        The features of a query may be multiplied by any positive number: it cancels out.
        """
        raise NotImplementedError

    def forward(self, query, key, value, mask=None, *, scaling, dropout=0.0, need_weights=True):
        dtype = torch.promote_types(value.dtype, torch.float32)
        # Autocast would run the sums below in half precision.
        with torch.autocast(query.device.type, enabled=False):
            query, key = self.features(query.to(dtype), key.to(dtype), mask)
            # A last column of ones gives the sum of the unnormalised weights.
            ones = value.new_ones((*value.shape[:-1], 1), dtype=dtype)
            columns = torch.cat([value.to(dtype), ones], dim=-1)
            sums = _weighted_sums(query, key, columns, mask)
            output = sums[..., :-1] / sums[..., -1:].clamp(min=_LEAST_MASS)
        return output.to(value.dtype), None


def _weighted_sums(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """sum_j q_i.k_j v_j over the keys j that query i may attend to: (batch, heads, query, columns)."""
    if mask is None:
        return query @ (key.transpose(-2, -1) @ value)
    padding = mask[..., -1:, :]
    kept = key.masked_fill(~padding.transpose(-2, -1), 0.0)
    # An exported graph cannot look at the mask: it takes the form that serves any.
    looks = not torch.compiler.is_compiling()
    if looks and torch.equal(mask, padding.expand_as(mask)):
        return query @ (kept.transpose(-2, -1) @ value)
    if looks and query.shape[-2] == key.shape[-2] and torch.equal(mask, padding.expand_as(mask).tril()):
        return _causal_sums(query, kept, value)
    return (query @ key.transpose(-2, -1)).masked_fill(~mask, 0.0) @ value


def _causal_sums(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """sum_{j <= i} q_i.k_j v_j, a chunk of queries at a time."""
    before = key.new_zeros(*key.shape[:-2], key.shape[-1], value.shape[-1])
    sums = []
    for q, k, v in zip(*(t.split(_CHUNK, dim=-2) for t in (query, key, value)), strict=True):
        sums.append((q @ k.transpose(-2, -1)).tril() @ v + q @ before)
        before = before + k.transpose(-2, -1) @ v
    return torch.cat(sums, dim=-2)
