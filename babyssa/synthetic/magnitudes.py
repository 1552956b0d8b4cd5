"""Why a shift harms: how large a model's embeddings, logits and attention weights are, layer by layer.

The paper's diagnosis (Naim et al., arXiv 2508.14685): large inputs make large embeddings, those make large logits,
and Softmax then gives one token all the weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from babyssa.attention import scorings
from babyssa.probing.attention import forming_weights
from babyssa.synthetic.tasks import Sample, Task

_SEQUENCES = 128


def magnitudes(model: nn.Module, sample: Sample) -> list[dict[str, float]]:
    """What a model's layers compute from a sample, a row for each layer.

    Parameters
    ----------
    model : InContextTransformer
        The model.
    sample : Sample
        What it reads: the first 128 sequences.

    Returns
    -------
    list of dict
        layer, from 1; norm, the mean Euclidean norm of the states that the layer reads (of layer 1, the
        embeddings: number and position), before they are normalised; logit, the largest logit of a query, and
        weight, its largest attention weight: means over heads and all queries but the first, which has one key
        only. Both are NaN for a model that forms no attention weights, such as linear attention.
    """
    sample = sample.first(_SEQUENCES)
    weights = weights_of(model, sample)
    with torch.inference_mode(), _projections(model) as projections:
        states = model(values=torch.from_numpy(sample.values), output_hidden_states=True).hidden_states
    rows = []
    for layer in range(model.config.n_layer):
        logit = weight = np.nan
        if weights is not None:
            logit = float(_logits(projections[layer], model.config.n_head).amax(dim=-1)[..., 1:].mean())
            weight = float(weights[layer].max(axis=-1)[..., 1:].mean())
        norm = float(states[layer].norm(dim=-1).mean())
        rows.append({"layer": layer + 1, "norm": norm, "logit": logit, "weight": weight})
    return rows


def deviant_weights(model: nn.Module, task: Task, sample: Sample) -> list[dict[str, float]]:
    """Mean attention weight on the deviant number, over the queries after it, by layer and head.

    Returns nothing for a model that forms no attention weights.
    """
    sample = sample.first(_SEQUENCES)
    attentions = weights_of(model, sample)
    if attentions is None:
        return []
    place = sample.deviant * task.numbers_per_example
    numbers = sample.values.shape[1]
    after = np.arange(numbers) > place[:, None]
    uniform = float((1.0 / np.arange(1, numbers + 1))[None].repeat(len(place), 0)[after].mean())
    rows = []
    for layer, heads in enumerate(attentions, start=1):
        on_deviant = np.take_along_axis(heads, place[:, None, None, None], axis=3)[..., 0]
        for head in range(heads.shape[1]):
            weight = float(on_deviant[:, head][after].mean())
            rows.append({"layer": layer, "head": head + 1, "weight": weight, "uniform": uniform})
    return rows


def weights_of(model: nn.Module, sample: Sample) -> list[np.ndarray] | None:
    """Attention weights of each layer, (sequences, heads, query, key); None where the model forms none."""
    if model.config.blocks == "feed-forward" or not all(s.forms_weights for s in scorings(model).values()):
        return None
    with torch.inference_mode(), forming_weights(model):
        attentions = model(values=torch.from_numpy(sample.values), output_attentions=True).attentions
    return [layer.float().numpy() for layer in attentions]


@contextmanager
def _projections(model: nn.Module) -> Iterator[list[Tensor]]:
    """Each layer's queries, keys and values, (sequences, numbers, 3 * width), in a forward pass of the block."""
    found: list[Tensor] = []
    hooks = [
        block.attn.c_attn.register_forward_hook(lambda module, inputs, output: found.append(output))
        for block in model.transformer.h
        if model.config.blocks != "feed-forward"
    ]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def _logits(projected: Tensor, heads: int) -> Tensor:
    """The logits of a layer, (sequences, heads, query, key), minus infinity where a key comes after the query."""
    sequences, numbers, width = projected.shape
    query, key, _ = projected.view(sequences, numbers, 3, heads, width // 3 // heads).permute(2, 0, 3, 1, 4)
    logits = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
    later = torch.ones(numbers, numbers, dtype=torch.bool).triu(1)
    return logits.masked_fill(later, -torch.inf)
