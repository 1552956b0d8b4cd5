"""Attention alone, forward and backward: this package's Softmax and SSA against eager Softmax and SDPA.

Queries, keys and values come as transformers' models make them (views of (batch, length, width)), with a
padded key in half of the sequences. "eager" is what transformers does under that name.

    python benchmarks/attention.py [--lengths 16 128 1024] [--json FILE]
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from common import again, interleaved, options, parse, peak_memory, show
from torch import Tensor, nn

from babyssa.attention import build_scoring, scoring_config

HEADS, HEAD_SIZE = 8, 32
TOKENS = 2048


def eager(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    bias = torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(torch.float32).min)
    logits = torch.matmul(q, k.transpose(2, 3)) * HEAD_SIZE**-0.5 + bias
    return torch.matmul(nn.functional.softmax(logits, dim=-1), v)


def sdpa(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def scored(variant: str) -> Callable[..., Tensor]:
    scoring = build_scoring(scoring_config(variant), HEADS)
    return lambda q, k, v, mask: scoring(q, k, v, mask, scaling=HEAD_SIZE**-0.5)[0]


PATHS = {
    "eager": lambda: eager,
    "sdpa": lambda: sdpa,
    **{variant: lambda variant=variant: scored(variant) for variant in ("softmax", "ssa", "ssa-1.5")},
}


def step(path: str, length: int) -> Callable[[], None]:
    """One forward and backward pass over about TOKENS tokens."""
    attend = PATHS[path]()
    generator = torch.Generator().manual_seed(0)
    shape = (max(TOKENS // length, 2), length, HEADS * HEAD_SIZE)
    inputs = [torch.randn(shape, generator=generator, requires_grad=True) for _ in range(3)]
    gradient = torch.randn(shape, generator=generator)
    mask = torch.ones(shape[0], 1, 1, length, dtype=torch.bool)
    mask[::2, ..., -1] = False
    mask = mask.expand(-1, -1, length, -1)

    def run() -> None:
        output = attend(*(x.unflatten(-1, (HEADS, HEAD_SIZE)).transpose(1, 2) for x in inputs), mask)
        output.transpose(1, 2).reshape(shape).backward(gradient)

    return run


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--lengths", type=int, nargs="+", default=[16, 64, 128, 512, 1024])
    arguments = parse(parser)
    if arguments.one:
        run = step(arguments.one, max(arguments.lengths))
        run(), run()
        return print(peak_memory())
    rows = []
    for length in arguments.lengths:
        seconds = interleaved({path: step(path, length) for path in PATHS}, arguments.repetitions)
        for path in PATHS:
            times = {"ms": 1e3 * seconds[path], "/eager": seconds[path] / seconds["eager"]}
            row = {"length": length, "path": path, **times, "/sdpa": seconds[path] / seconds["sdpa"]}
            rows.append({**row, "peak MB": round(float(again(path))) if length == max(arguments.lengths) else ""})
    show(rows, arguments.json)


if __name__ == "__main__":
    main()
