"""A word embedding matrix that is also the output's, with one gradient for both uses: for a CPU.

Autograd would add the gradients of both uses: two dense matrices, or a copy of the dense one and a sparse one.
Here the output's is written first, and the input's tokens are added to it in place. Under autocast the matrix is
cast once, and its gradient once.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


class Tied:
    """Both uses of a word embedding matrix in one forward pass: look up once, then project once.

    Parameters
    ----------
    embedding : nn.Embedding
        Has the matrix.
    """

    def __init__(self, embedding: nn.Embedding):
        self.embedding = embedding
        # Of the output; the backward pass reaches the input after it.
        self.gradient: Tensor | None = None

    def look_up(self, ids: Tensor) -> Tensor:
        """The embeddings (tokens, hidden) of ids (tokens,)."""
        return _LookUp.apply(self.embedding.weight, ids, self)

    def project(self, x: Tensor, bias: Tensor) -> Tensor:
        """The logits (vectors, vocabulary) of x (vectors, hidden)."""
        return _Project.apply(x, self.embedding.weight, bias, self)


class _LookUp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight: Tensor, ids: Tensor, tied: Tied) -> Tensor:
        ctx.tied = tied
        ctx.save_for_backward(ids)
        return weight.index_select(0, ids)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):
        (ids,) = ctx.saved_tensors
        total, ctx.tied.gradient = ctx.tied.gradient, None
        padding = (ids == ctx.tied.embedding.padding_idx).unsqueeze(1)
        return total.index_add_(0, ids, gradient.masked_fill(padding, 0)), None, None


class _Project(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor, tied: Tied) -> Tensor:
        ctx.tied, ctx.dtype = tied, weight.dtype
        if torch.is_autocast_enabled("cpu"):
            dtype = torch.get_autocast_dtype("cpu")
            x, weight, bias = x.to(dtype), weight.to(dtype), bias.to(dtype)
        ctx.save_for_backward(x, weight)
        return torch.addmm(bias, x, weight.t())

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):
        x, weight = ctx.saved_tensors
        ctx.tied.gradient = (gradient.t() @ x).to(ctx.dtype)
        return gradient @ weight, None, gradient.sum(0, dtype=ctx.dtype), None
