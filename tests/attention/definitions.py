"""The definition of every scoring, as its paper writes it: one row at a time, in float64."""

import math

import torch


def weights(scoring, query, key, mask, scaling):
    """The weights (batch, heads, query, key) of a scoring."""
    batch, heads, queries, _ = query.shape
    keys = key.shape[-2]
    mask = torch.ones((), dtype=torch.bool) if mask is None else mask
    mask = mask.expand(batch, heads, queries, keys)
    found = torch.zeros(batch, heads, queries, keys, dtype=torch.float64)
    for at in torch.cartesian_prod(*(torch.arange(n) for n in (batch, heads, queries))).tolist():
        b, h, i = at
        allowed = mask[b, h, i].nonzero().flatten()
        if len(allowed):
            part, head = _part_of(scoring, h)
            position = i if queries == keys else int(allowed[-1])
            row = ROWS[part.name](_numbers(part, head), query[b, h, i], key[b, h, allowed], scaling)
            if part.name == "cosformer":
                row = row * torch.cos(math.pi / 2 * (position - allowed).double() / part.config.max_length)
                row = row / row.sum().clamp(min=1e-300)
            found[b, h, i, allowed] = row
    return found


def _part_of(scoring, head):
    """The scoring of one head, and the head's number within it."""
    for group in getattr(scoring, "groups", []):
        if head < group.heads:
            return _part_of(group, head)
        head -= group.heads
    return scoring, head


def _numbers(scoring, head):
    """The scoring's parameters for one head, learned or fixed."""
    learned = {key: float(value.detach()[head % len(value)]) for key, value in scoring.learned().items()}
    return {**vars(scoring.config), **learned}


def _normalised(raw):
    return raw / raw.sum()


def _softmax(_, q, keys, scaling):
    return _normalised((keys @ q * scaling).exp())


def _ssa(p, q, keys, scaling):
    x = keys @ q * scaling
    return _normalised((1 + p["b"] * x.abs()) ** (x.sign() * p["n"]))


def _temperature(p, q, keys, scaling):
    return _normalised((keys @ q * scaling / p["tau"]).exp())


def _threshold(x, power):
    """max(x - t, 0)^power with t, found by bisection, such that it sums to 1."""
    low, high = x.max() - 1, x.max()
    for _ in range(100):
        middle = (low + high) / 2
        if (x - middle).clamp(min=0).pow(power).sum() > 1:
            low = middle
        else:
            high = middle
    return (x - low).clamp(min=0).pow(power)


def _sparsemax(_, q, keys, scaling):
    return _threshold(keys @ q * scaling, 1)


def _entmax(_, q, keys, scaling):
    return _threshold(keys @ q * scaling / 2, 2)


def _entmax_alpha(p, q, keys, scaling):
    return _threshold((p["alpha"] - 1) * (keys @ q) * scaling, 1 / (p["alpha"] - 1))


def _scalable(p, q, keys, scaling):
    return _normalised(len(keys) ** (p["s"] * (keys @ q) * scaling))


def _sink(p, q, keys, scaling):
    weights = (keys @ q * scaling).exp()
    return weights / (math.exp(p["s"]) + weights.sum())


def _softpick(p, q, keys, scaling):
    x = (keys @ q * scaling).exp() - 1
    return x.clamp(min=0) / (x.abs().sum() + p["eps"])


def _sigmoid(p, q, keys, scaling):
    length = p["length"] or len(keys)
    return 1 / (1 + (math.log(length) - keys @ q * scaling).exp())


def _self_adjust(p, q, keys, scaling):
    x = keys @ q * scaling
    if p["form"] == "plain":
        return x * _normalised(x.exp())
    low, high = min(float(x.min()), 0), max(float(x.max()), 0)
    return (x - low) / (high - low) * _normalised(x.exp())


def _linear(_, q, keys, scaling):
    q, keys = (torch.nn.functional.elu(x) + 1 for x in (q, keys))
    return _normalised(keys @ q)


def _cosformer(_, q, keys, scaling):
    return keys.clamp(min=0) @ q.clamp(min=0)


ROWS = {
    "softmax": _softmax,
    "ssa": _ssa,
    "temperature": _temperature,
    "sparsemax": _sparsemax,
    "entmax": _entmax,
    "entmax-alpha": _entmax_alpha,
    "ssmax": _scalable,
    "sink": _sink,
    "softpick": _softpick,
    "sigmoid": _sigmoid,
    "sas": _self_adjust,
    "linear": _linear,
    "cosformer": _cosformer,
}
