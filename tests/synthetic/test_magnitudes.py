"""Norms, logits and weights inside a model, against a computation by hand in float64."""

import numpy as np
import pytest
import torch

from babyssa.synthetic import InContextSize, Shift, build_transformer, task_named
from babyssa.synthetic.magnitudes import magnitudes
from babyssa.synthetic.tasks import Sample

TINY = InContextSize(layers=1, heads=2, width=4, max_numbers=8, blocks="attention")


def large(size, **scoring):
    """A model whose weights are large enough for logits far from 0."""
    model = build_transformer(size, **scoring).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(20)
        for block in model.transformer.h:
            block.ln_1.weight.fill_(1.0)
    return model


def by_hand(model, values, weigh):
    """Norm, largest logit and largest weight of the first layer, number by number."""
    tensors = {name: tensor.double().numpy() for name, tensor in model.state_dict().items()}
    norms, logits, weights = [], [], []
    for row in values.astype(np.float64):
        states = [
            x * tensors["read_in.weight"][:, 0] + tensors["read_in.bias"] + tensors["transformer.wpe.weight"][i]
            for i, x in enumerate(row)
        ]
        norms += [np.sqrt((state**2).sum()) for state in states]
        normal = [(state - state.mean()) / np.sqrt(state.var() + 1e-5) for state in states]
        projected = [
            state @ tensors["transformer.h.0.attn.c_attn.weight"] + tensors["transformer.h.0.attn.c_attn.bias"]
            for state in normal
        ]
        for head in range(2):
            queries = [p[2 * head : 2 * head + 2] for p in projected]
            keys = [p[4 + 2 * head : 6 + 2 * head] for p in projected]
            for i in range(1, len(row)):
                own = np.array([queries[i] @ keys[j] / np.sqrt(2) for j in range(i + 1)])
                logits.append(own.max())
                weights.append((weigh(own) / weigh(own).sum()).max())
    return np.mean(norms), np.mean(logits), np.mean(weights)


@pytest.mark.parametrize(
    "scoring, weigh",
    [
        ({"variant": "softmax"}, np.exp),
        ({"variant": "ssa-2"}, lambda x: (1 + 0.8 * np.abs(x)) ** (2 * np.sign(x))),
    ],
)
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_they_are_those_of_the_definition(scoring, weigh, scale):
    if scoring["variant"] == "ssa-2":
        scoring = {**scoring, "scoring": {"learn_b": False}}
    model = large(TINY, **scoring)
    sample = task_named("every").sample(np.random.default_rng(0), 5, 6, Shift(input_scale=scale))
    (found,) = magnitudes(model, sample)
    expected = by_hand(model, sample.values, weigh)
    assert (found["norm"], found["logit"], found["weight"]) == pytest.approx(expected, rel=1e-4)
    assert found["layer"] == 1 and abs(found["logit"]) > 0.1


def test_the_embedding_grows_with_the_number_and_nothing_else():
    model = build_transformer(InContextSize(layers=2, heads=2, width=4, max_numbers=8, positions=False)).eval()
    sample = task_named("every").sample(np.random.default_rng(0), 20, 6, Shift())
    scaled = Sample(10 * sample.values, sample.targets, sample.weights)
    first, ten = (magnitudes(model, s)[0]["norm"] for s in (sample, scaled))
    assert ten == pytest.approx(10 * first, rel=1e-5)


@pytest.mark.parametrize("changes", [{"blocks": "feed-forward"}, {"variant": "linear"}])
def test_without_weights_there_are_norms_alone(changes):
    size = InContextSize(layers=2, heads=2, width=4, max_numbers=8, blocks=changes.pop("blocks", "full"))
    rows = magnitudes(
        build_transformer(size, **changes).eval(),
        task_named("every").sample(np.random.default_rng(0), 3, 6, Shift()),
    )
    assert [row["layer"] for row in rows] == [1, 2] and all(row["norm"] > 0 for row in rows)
    assert all(np.isnan(row["logit"]) and np.isnan(row["weight"]) for row in rows)
