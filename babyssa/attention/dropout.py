"""Dropout that draws few random numbers on a CPU."""

from __future__ import annotations

import torch
from torch import Tensor, nn

# One draw of torch's generator gives 64 bits, enough for four elements; torch itself draws once per element.
_LEVELS = 2**16


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """Inverted dropout (Srivastava et al. 2014), as torch.nn.functional.dropout.

    On a CPU, `p` is rounded to a multiple of 2^-16 (0.1 to 0.100006), and what is kept is divided by exactly the
    probability of keeping it; on other devices this is torch's own dropout.

    Parameters
    ----------
    x : Tensor
        Any floating-point tensor.
    p : float
        Probability of dropping an element, 0 <= p < 1.
    training : bool
        Whether to drop anything.
    """
    if not training or p == 0:
        return x
    if x.device.type != "cpu":
        return nn.functional.dropout(x, p)
    return x * _kept(x, p)


def add_dropped_out(residual: Tensor, x: Tensor, p: float, training: bool) -> Tensor:
    """``residual + dropout(x)``; with dropout on a CPU, in one pass over memory."""
    if training and p > 0 and x.device.type == "cpu" and x.dtype == residual.dtype:
        return torch.addcmul(residual, x, _kept(x, p))
    return residual + dropout(x, p, training)


def _kept(like: Tensor, p: float) -> Tensor:
    """What the elements are multiplied by: 0 where one is dropped."""
    dropped = min(round(p * _LEVELS), _LEVELS - 1)
    draws = torch.empty(-(-like.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    draws = draws.view(torch.int16)[: like.numel()].view(like.shape)
    return draws.ge(dropped - _LEVELS // 2).to(like.dtype).mul_(_LEVELS / (_LEVELS - dropped))
