"""SSA through FlexAttention, on CUDA: logits and weights are never written to memory.

FlexAttention compiles a function of the logits, a score_mod, into its kernels; SSA's is t(x). The scale b is
multiplied into the queries, as b|x| = |b x|, and gets its gradient through them; the exponent n is captured as
a tensor, so that it gets a gradient when it is learned.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import cache, lru_cache

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

SWITCH = "BABYSSA_FLEX"
# FlexAttention works in blocks of this many queries and keys; what fits in one block gains nothing.
_BLOCK = 128


def runs_through_flex(query: Tensor, key: Tensor, value: Tensor, *, dropout: float, need_weights: bool) -> bool:
    """Whether SSA runs through FlexAttention: where all of these hold.

    - The tensors are on a CUDA device of compute capability 8.0 or higher (on a CPU it has no backward pass).
    - The environment variable BABYSSA_FLEX is not 0.
    - No weights are requested (output_attentions): it forms none.
    - There is no dropout on the weights: it supports none.
    - Queries, keys and values have one dtype: float32, bfloat16 or float16.
    - A head has 16, 32, 64, 128 or 256 dimensions, the sizes of its kernels.
    - There are at least 128 queries and keys.
    """
    fits = (
        query.device.type == "cuda"
        and os.environ.get(SWITCH, "1") != "0"
        and not need_weights
        and dropout == 0
        and query.dtype == key.dtype == value.dtype
        and query.dtype in (torch.float32, torch.bfloat16, torch.float16)
        and query.shape[-1] == value.shape[-1]
        and query.shape[-1] in (16, 32, 64, 128, 256)
        and min(query.shape[-2], key.shape[-2]) >= _BLOCK
        and torch.cuda.get_device_capability(query.device) >= (8, 0)
    )
    if fits:
        _log_once()
    return fits


@cache
def _log_once() -> None:
    # Without a handler of the program's own, Python prints a warning to stderr.
    logging.getLogger(__name__).warning("SSA runs through FlexAttention where it can; %s=0 turns it off", SWITCH)


def ssa_score_mod(n: Tensor) -> Callable[..., Tensor]:
    """t(x) = n sgn(x) log(1 + |x|) as a score_mod, n (heads,) one exponent per head.

    Autograd gives the right derivative at x = 0 too, where that of sgn(x) log(1 + |x|) would be 0.
    """

    def score_mod(x, batch, head, query, key):
        log = torch.log1p(torch.where(x < 0, -x, x))
        return n[head] * torch.where(x < 0, -log, log)

    return score_mod


def flex_ssa(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    *,
    n: Tensor,
    b: Tensor,
    scaling: float,
    compiled: bool = True,
) -> Tensor:
    """SSA attention without weights.

    Parameters
    ----------
    query, key, value : Tensor
        (batch, heads, query or key, head_dim).
    mask : Tensor of bool, optional
        Broadcasts to (batch, heads, query, key); True where a query may attend to a key.
    n, b : Tensor
        (heads,), in float32.
    scaling : float
        What query-key products are multiplied by.
    compiled : bool
        Whether to run the compiled kernels, or PyTorch's dense reference of them.

    Returns
    -------
    Tensor
        (batch, heads, query, head_dim); 0 for a query that may attend to nothing.
    """
    scaled = (query * (scaling * b).view(1, -1, 1, 1)).to(query.dtype)
    batch, heads, queries, _ = query.shape
    blocks = None if mask is None else _block_mask(mask, batch, heads, queries, key.shape[-2])
    attend = _compiled() if compiled else flex_attention
    return attend(scaled, key, value, score_mod=ssa_score_mod(n), block_mask=blocks, scale=1.0)


@cache
def _compiled() -> Callable[..., Tensor]:
    return torch.compile(flex_attention)


@lru_cache(maxsize=1)
def _block_mask(mask: Tensor, batch: int, heads: int, queries: int, keys: int) -> BlockMask:
    """The mask in blocks; cached for the other layers, which get the same tensor."""
    allowed = mask.expand(batch, heads, queries, keys)
    one_for_all_heads = mask.dim() < 3 or mask.shape[-3] == 1

    def mask_mod(batch, head, query, key):
        return allowed[batch, head, query, key]

    return create_block_mask(
        mask_mod, batch, None if one_for_all_heads else heads, queries, keys, device=mask.device
    )
