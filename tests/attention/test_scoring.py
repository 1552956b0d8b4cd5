"""What every scoring function must satisfy: masks exclude, weights sum to 1, extremes stay finite."""

import pytest
import torch

from babyssa.attention import MixedConfig, SSAConfig, TemperatureConfig, build_scoring, variants

CONFIGS = {
    **variants(),
    "ssa-fixed": SSAConfig(learn_n=False, learn_b=False),
    "ssa-layer": SSAConfig(granularity="layer"),
    "temperature-2": TemperatureConfig(tau=2.0, learn_tau=False),
    "mixed-entmax-sas": MixedConfig([["entmax", 1], ["sas", 2]]),
    "mixed-linear-cosformer-ssa": MixedConfig([["linear", 1], ["cosformer", 1], ["ssa", 1]]),
}
HEADS = 3


@pytest.fixture(params=CONFIGS, ids=str)
def scoring(request):
    made = build_scoring(CONFIGS[request.param], HEADS)
    with torch.no_grad():
        for parameter in made.parameters():
            # So that no head has the parameters of another.
            parameter.add_(torch.linspace(0.0, 0.5, len(parameter)))
    return made


def tensors(scale=1.0, dtype=torch.float32, batch=2, query=5, key=7, dim=4):
    generator = torch.Generator().manual_seed(0)
    shapes = [(batch, HEADS, query, dim), (batch, HEADS, key, dim), (batch, HEADS, key, dim)]
    q, k, v = (torch.randn(shape, generator=generator) for shape in shapes)
    return [(t * factor).to(dtype) for t, factor in ((q, scale), (k, 1.0), (v, 1.0))]


def some_mask(batch=2, query=5, key=7):
    generator = torch.Generator().manual_seed(1)
    mask = torch.rand(batch, 1, query, key, generator=generator) < 0.6
    mask[..., 0] = True
    return mask


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e4])
def test_weights_sum_to_one_and_masked_keys_get_exactly_zero(scoring, dtype, scale):
    query, key, value = tensors(scale, dtype)
    mask = some_mask()
    output, weights = scoring(query, key, value, mask, scaling=0.5)
    assert output.dtype == dtype and torch.isfinite(output).all()
    assert (weights is not None) == scoring.forms_weights
    if scoring.forms_weights:
        assert weights.dtype == dtype
        assert (weights.masked_select(~mask.expand_as(weights)) == 0).all()
    # Values of 1 make the output the sum of the weights, whether they are formed or not.
    total = scoring(query, key, torch.ones_like(value), mask, scaling=0.5)[0].float()
    tolerance = {torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 2e-3}[dtype]
    if scoring.normalised:
        assert torch.allclose(total, torch.ones(()), atol=tolerance)
    else:
        assert (total >= 0).all() and (total <= 1 + tolerance).all()


def test_a_masked_key_has_no_influence_whatever_it_holds(scoring):
    query, key, value = tensors()
    mask = some_mask()
    mask[..., 3] = False
    output, _ = scoring(query, key, value, mask, scaling=0.5)
    key[:, :, 3], value[:, :, 3] = 1e4, -1e4
    assert torch.equal(scoring(query, key, value, mask, scaling=0.5)[0], output)


def test_masking_equals_leaving_the_keys_out(scoring):
    query, key, value = tensors(query=7)
    mask = torch.ones(1, 1, 1, 7, dtype=torch.bool)
    mask[..., 5:] = False
    masked, _ = scoring(query, key, value, mask, scaling=0.5)
    short, _ = scoring(query[:, :, :5], key[:, :, :5], value[:, :, :5], None, scaling=0.5)
    assert torch.allclose(masked[:, :, :5], short, atol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_gradients_are_finite_with_masked_keys(scoring, scale):
    query, key, value = (t.requires_grad_() for t in tensors(scale))
    mask = some_mask()
    mask[0, :, 2] = False
    output, _ = scoring(query, key, value, mask, scaling=0.5)
    output.square().sum().backward()
    for tensor in (query, key, value, *scoring.parameters()):
        assert tensor.grad is not None and torch.isfinite(tensor.grad).all()


def test_gradients_are_those_of_finite_differences(scoring):
    inputs = [t.requires_grad_() for t in tensors(dtype=torch.float64, batch=1, query=3, key=4, dim=3)]
    mask = some_mask(batch=1, query=3, key=4)
    assert torch.autograd.gradcheck(lambda *qkv: scoring(*qkv, mask, scaling=0.5)[0], inputs)


def test_a_query_that_may_attend_to_nothing_gets_zero(scoring):
    query, key, value = tensors()
    mask = some_mask()
    mask[1, :, 4] = False
    output, weights = scoring(query, key, value, mask, scaling=0.5)
    assert (output[1, :, 4] == 0).all()
    assert weights is None or (weights[1, :, 4] == 0).all()


def test_attention_is_its_definition_in_float64(scoring, definition):
    query, key, value = tensors(dtype=torch.float64)
    mask = some_mask()
    expected = definition(scoring, query, key, mask, scaling=0.5)
    output, weights = scoring(query, key, value, mask, scaling=0.5)
    assert torch.allclose(output, expected @ value, atol=1e-6 if list(scoring.parameters()) else 1e-9)
    if weights is not None:
        assert torch.allclose(weights, expected, atol=1e-6 if list(scoring.parameters()) else 1e-9)


def test_mixed_precision_gives_the_same_attention_to_its_precision(scoring):
    leaves = [t.requires_grad_() for t in tensors(batch=2, query=7)]
    found = []
    for enabled in (False, True):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            output, _ = scoring(*leaves, some_mask(query=7), scaling=0.5)
        found.append([output, *torch.autograd.grad(output.float().square().sum(), leaves)])
    for full, mixed in zip(*found, strict=True):
        assert (full - mixed.float()).norm() <= 0.05 * full.norm()


def test_a_mask_may_differ_by_head(scoring):
    query, key, value = tensors()
    mask = torch.cat([some_mask(), some_mask().flip(-2), some_mask().roll(1, -2)], dim=1)
    output, _ = scoring(query, key, value, mask, scaling=0.5)
    for head in range(HEADS):
        one, _ = scoring(query, key, value, mask[:, head : head + 1], scaling=0.5)
        assert torch.equal(output[:, head], one[:, head])


def test_dropout_acts_on_the_weights_in_training_only(scoring):
    query, key, value = tensors()
    if not scoring.forms_weights:
        pytest.skip("has no weights to drop")
    scoring.eval()
    _, calm = scoring(query, key, value, scaling=0.5, dropout=0.5)
    scoring.train()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        _, dropped = scoring(query, key, value, scaling=0.5, dropout=0.5)
    kept = dropped != 0
    assert 0.2 < kept[calm > 0].float().mean() < 0.8
    assert torch.allclose(dropped[kept], 2 * calm[kept], rtol=1e-5)


def test_resetting_draws_no_random_number(scoring):
    before = torch.random.get_rng_state()
    scoring.reset_parameters()
    assert torch.equal(before, torch.random.get_rng_state())
