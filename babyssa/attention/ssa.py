"""Scaled Signed Averaging (SSA): attention weights that do not saturate.

SSA (Naim, Bhar, Bolte & Asher, arXiv 2508.14685) replaces the exponential of Softmax attention by

    w(x) = (1 + b|x|) ^ (sgn(x) n),    b > 0, n >= 1,

so that a logit that leads the others by D leaves them a mass of about D^-n, where Softmax leaves e^-D.
Since w(x) = exp(t(x)) with

    t(x) = n sgn(x) log(1 + b|x|),

SSA is Softmax over t(x). With b = 1/m and n = m, t(x) -> x as m -> inf: Softmax is the limit.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from babyssa.attention.flex import flex_ssa, runs_through_flex
from babyssa.attention.laws import Law, Setting, power_law
from babyssa.attention.learnable import Bound, Learnable, check_learnable, per_head
from babyssa.attention.scoring import LogitScoring


class _SignedLogMap(torch.autograd.Function):
    """t(x) with its analytic derivatives; saves only x, n and b for the backward pass.

    Autograd through ``sign`` and ``abs`` would give 0 for dt/dx at x = 0, where it is n b.
    """

    @staticmethod
    def forward(ctx, x: Tensor, n: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(x, n, b)
        return torch.log1p(b * x.abs()).copysign_(x).mul_(n)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):
        x, n, b = ctx.saved_tensors
        needs_x, needs_n, needs_b = ctx.needs_input_grad
        scaled = b * x.abs()
        for_x = for_n = for_b = None
        if needs_n:
            for_n = (torch.log1p(scaled).copysign_(x).mul_(gradient)).sum_to_size(n.shape)
        if needs_x or needs_b:
            slope = scaled.add_(1).reciprocal_().mul_(gradient)
            if needs_b:
                for_b = (slope * x).sum_to_size(torch.broadcast_shapes(n.shape, b.shape))
                for_b = (for_b * n).sum_to_size(b.shape)
            if needs_x:
                for_x = slope.mul_(n * b)
        return for_x, for_n, for_b


def ssa_map(x: Tensor, n: Tensor | float, b: Tensor | float) -> Tensor:
    """t(x) = n sgn(x) log(1 + b|x|), elementwise, with exact gradients everywhere, x = 0 included.

    Parameters
    ----------
    x : Tensor
        Logits of any shape, in floating point.
    n, b : Tensor or float
        The exponent (n >= 1) and the scale (b > 0); tensors broadcast against `x`.

    Returns
    -------
    Tensor
        t(x), of the shape and dtype of `x`.

    Notes
    -----
    dt/dx = n b / (1 + b|x|); dt/dn = sgn(x) log(1 + b|x|); dt/db = n x / (1 + b|x|)
    (arXiv 2508.14685, section 4). Twice-differentiating raises an error.
    """
    n = torch.as_tensor(n, dtype=x.dtype, device=x.device)
    b = torch.as_tensor(b, dtype=x.dtype, device=x.device)
    return _SignedLogMap.apply(x, n, b)


# Logits per piece: four tensors of 1 MiB fit in a core's share of the cache. A GPU takes all in one piece.
_PIECE = {"cpu": 2**18}


class _SSAWeights(torch.autograd.Function):
    """softmax(t(x) + bias) over the keys; a large x goes a piece at a time, so that what is computed between
    x and the weights w stays in the cache. Saves x and w for the backward pass.
    """

    @staticmethod
    def forward(ctx, x: Tensor, bias: Tensor | None, n: Tensor, b: Tensor) -> Tensor:
        """x (batch, heads, query, key); bias broadcasts to it; n and b (1, heads, 1, 1)."""
        if _is_one_piece(x):
            w = _weights(x, bias, n, b)
        else:
            w = torch.empty(x.shape, dtype=x.dtype, device=x.device)
            if bias is not None:
                bias = bias.expand(x.shape)
            for piece in _pieces(x):
                heads = piece[1]
                own_bias = None if bias is None else bias[piece]
                w[piece] = _weights(x[piece], own_bias, n[:, heads], b[:, heads])
        ctx.save_for_backward(x, w, n, b)
        return w

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):
        x, w, n, b = ctx.saved_tensors
        needs_x, _, needs_n, needs_b = ctx.needs_input_grad
        if _is_one_piece(x):
            for_x, for_n, for_b = _gradients(gradient, x, w, n, b, needs_n, needs_b)
        else:
            for_x = torch.empty(x.shape, dtype=x.dtype, device=x.device)
            for_n = torch.zeros_like(n) if needs_n else None
            for_b = torch.zeros_like(b) if needs_b else None
            for piece in _pieces(x):
                heads = piece[1]
                own = (tensor[piece] for tensor in (gradient, x, w))
                for_x[piece], own_n, own_b = _gradients(*own, n[:, heads], b[:, heads], needs_n, needs_b)
                if needs_n:
                    for_n[:, heads] += own_n
                if needs_b:
                    for_b[:, heads] += own_b
        return for_x if needs_x else None, None, for_n, for_b


def _weights(x: Tensor, bias: Tensor | None, n: Tensor, b: Tensor) -> Tensor:
    t = x.abs().mul_(b).log1p_().copysign_(x)
    return torch.softmax(t.mul_(n) if bias is None else torch.addcmul(bias, t, n), dim=-1)


def _gradients(
    gradient: Tensor, x: Tensor, w: Tensor, n: Tensor, b: Tensor, needs_n: bool, needs_b: bool
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """The gradients of x, n and b: with g = dL/dw,

    dL/dt = w (g - sum w g),    dL/dx = dL/dt n b / (1 + b|x|),
    dL/dn = sum dL/dt t / n,    dL/db = sum dL/dx x / b.
    """
    for_t = torch._softmax_backward_data(gradient, w, -1, x.dtype)
    scaled = x.abs().mul_(b)
    for_n = _head_sums(scaled.log1p().copysign_(x).mul_(for_t)) if needs_n else None
    slope = scaled.add_(1).reciprocal_().mul_(for_t)
    for_b = _head_sums(slope * x).mul_(n) if needs_b else None
    return slope.mul_(n * b), for_n, for_b


def _head_sums(x: Tensor) -> Tensor:
    return x.sum(dim=(0, 2, 3), keepdim=True)


def _is_one_piece(x: Tensor) -> bool:
    return x.numel() <= _PIECE.get(x.device.type, x.numel())


def _pieces(x: Tensor) -> Iterator[tuple[slice, slice, slice]]:
    """Contiguous parts of a large (batch, heads, query, key): some sequences, or some queries of one head."""
    batch, heads, queries, keys = x.shape
    size = _PIECE[x.device.type]
    if heads * queries * keys <= size:
        step = size // (heads * queries * keys)
        for i in range(0, batch, step):
            yield slice(i, i + step), slice(None), slice(None)
        return
    step = max(size // keys, 1)
    for i, head, query in itertools.product(range(batch), range(heads), range(0, queries, step)):
        yield slice(i, i + 1), slice(head, head + 1), slice(query, query + step)


@dataclass(frozen=True)
class SSAConfig:
    """How SSA scores: its n and b, each fixed or learnable.

    Parameters
    ----------
    n, b : float
        The exponent (n >= 1; n > 1 where learnable) and the scale (b > 0); initial values where learnable.
    learn_n, learn_b : bool
        Whether each is learned.
    granularity : {"head", "layer", "model"}
        What shares one learned n or b.
    """

    n: float = 1.5
    b: float = 0.8
    learn_n: bool = True
    learn_b: bool = True
    granularity: Literal["head", "layer", "model"] = "head"

    def __post_init__(self):
        check_learnable("ssa", self, _BOUNDS)


_BOUNDS = {"n": Bound(1.0, reachable=True), "b": Bound(0.0)}


class SSA(Learnable, LogitScoring):
    """Scaled Signed Averaging: Softmax over t(x) = n sgn(x) log(1 + b|x|).

    As w(x) ~ (b x)^n for large x, a lead of D leaves the others D^-n; magnified, logits above 0 keep shares by
    x_j^n and the others nothing.

    Learnable n and b are stored unconstrained, as `raw_n` and `raw_b`, and read in their domain through
    the properties `n` = 1 + softplus(raw_n) and `b` = softplus(raw_b).

    Source: Naim, Bhar, Bolte & Asher, arXiv 2508.14685, section 4.
    """

    name = "ssa"
    description = "proportional to (1 + b|x|)^(sgn(x) n)"
    source = "Naim et al., arXiv 2508.14685"
    Config = SSAConfig
    variants = {
        "ssa-1.5": SSAConfig(n=1.5, learn_n=False),
        "ssa-2": SSAConfig(n=2.0, learn_n=False),
        "ssa-1.5-fixed": SSAConfig(n=1.5, learn_n=False, learn_b=False),
        "ssa-2-fixed": SSAConfig(n=2.0, learn_n=False, learn_b=False),
    }
    bounds = _BOUNDS

    @property
    def n(self) -> Tensor | float:
        """The exponent: (heads,), (1,) or a float where it is fixed."""
        return self.number("n")

    @property
    def b(self) -> Tensor | float:
        """The scale: (heads,), (1,) or a float where it is fixed."""
        return self.number("b")

    def law(self, setting: Setting) -> Law:
        # Of two logits far above 1/b, the shares of their weights are those of powers up to n/(b x).
        return power_law(setting, self.config.n, scale=self.config.n / self.config.b)

    def log_weights(self, logits: Tensor) -> Tensor:
        return self.transform(logits)

    def transform(self, logits: Tensor) -> Tensor:
        return ssa_map(logits, per_head(self.n), per_head(self.b))

    def normalized(self, logits: Tensor, bias: Tensor | None) -> Tensor:
        """softmax(transform(logits) + bias), in one step: see :class:`_SSAWeights`."""
        n, b = (number.view(1, -1, 1, 1) for number in self._by_head(logits))
        return _SSAWeights.apply(logits, bias, n, b)

    def _by_head(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """n and b, each (heads,), with the dtype and device of `like`."""
        numbers = (torch.as_tensor(number, dtype=like.dtype, device=like.device) for number in (self.n, self.b))
        n, b = (number.expand(self.heads) for number in numbers)
        return n, b

    def forward(self, query, key, value, mask=None, *, scaling, dropout=0.0, need_weights=True):
        active = dropout if self.training else 0.0
        if runs_through_flex(query, key, value, dropout=active, need_weights=need_weights):
            n, b = self._by_head(query.new_empty(0, dtype=torch.float32))
            return flex_ssa(query, key, value, mask, n=n, b=b, scaling=scaling), None
        return super().forward(query, key, value, mask, scaling=scaling, dropout=dropout)
