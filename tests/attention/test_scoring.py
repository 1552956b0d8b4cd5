"""What every scoring function must satisfy: masks exclude, weights sum to 1, extremes stay finite."""

import math

import pytest
import torch

from babyssa.attention import (
    AlphaEntmaxConfig,
    MixedConfig,
    SigmoidConfig,
    SSAConfig,
    TemperatureConfig,
    build_scoring,
    scoring_config,
    variants,
)
from babyssa.attention.sparse import alpha_entmax
from babyssa.errors import ConfigError

CONFIGS = {
    **variants(),
    "ssa-fixed": SSAConfig(learn_n=False, learn_b=False),
    "ssa-layer": SSAConfig(granularity="layer"),
    "temperature-2": TemperatureConfig(tau=2.0, learn_tau=False),
    "entmax-1.1": AlphaEntmaxConfig(alpha=1.1, learn_alpha=False),
    "sigmoid-128": SigmoidConfig(length=128),
    "mixed-new": MixedConfig([["ssmax", 1], ["sink", 1], ["softpick", 1]]),
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
    elif scoring.name != "sigmoid" and scoring.config != scoring_config("sas-plain"):
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


def _logits(rows, **options):
    return torch.tensor(rows, dtype=torch.float64, **options).view(1, 1, len(rows), -1)


@pytest.mark.parametrize("alpha", [1.02, 1.3, 1.5, 1.9])
def test_the_gradients_of_entmax_are_those_of_finite_differences_in_alpha_too(alpha):
    scores = _logits([[0.3, -0.2, 0.1, -3.0], [1.0, 0.9, -0.5, 0.2]], requires_grad=True)
    alphas = torch.full((1, 1, 1, 1), alpha, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(alpha_entmax, (scores, alphas))


def test_entmax_of_any_alpha_has_sparsemax_and_entmax_as_special_cases():
    logits = _logits([[0.3, -0.2, 0.1, -3.0], [1.0, 0.9, -0.5, 0.2]])
    for alpha, name in ((1.5, "entmax"), (2.0, "sparsemax"), (1.01, "softmax")):
        found = build_scoring(AlphaEntmaxConfig(alpha=alpha, learn_alpha=False), 1).weights(logits)
        expected = build_scoring(scoring_config(name), 1).weights(logits)
        assert torch.allclose(found, expected, atol=1e-2 if name == "softmax" else 1e-12)


def test_a_learned_alpha_stays_in_its_domain_whatever_the_optimiser_does():
    scoring = build_scoring(AlphaEntmaxConfig(), HEADS)
    with torch.no_grad():
        scoring.raw_alpha.copy_(torch.tensor([-1e3, 0.0, 1e3]))
    assert scoring.learned()["alpha"].tolist() == pytest.approx([1.01, 1.505, 2.0])
    assert torch.isfinite(scoring(*tensors(), scaling=0.5)[0]).all()


@pytest.mark.parametrize(
    "values, says",
    [
        ({"alpha": 1.0}, "alpha is from 1.01 to 2"),
        ({"alpha": 2.5}, "alpha is from 1.01 to 2"),
        ({"alpha": 2.0}, "alpha is between 1.01 and 2 where learn_alpha is true"),
    ],
)
def test_an_alpha_out_of_domain_is_refused(values, says):
    with pytest.raises(ConfigError, match=says):
        AlphaEntmaxConfig(**values)


def test_scalable_softmax_is_softmax_where_a_query_sees_e_keys_to_the_1_over_s():
    """And a causal query counts only the keys before it."""
    logits = _logits([[0.3, -0.2, 1.0, -3.0]] * 4)
    causal = torch.ones(4, 4, dtype=torch.bool).tril()
    scoring = build_scoring(scoring_config("ssmax", s=1 / math.log(3), learn_s=False), 1)
    found = scoring.weights(logits, causal)[0, 0]
    assert torch.allclose(found[2, :3], logits[0, 0, 2, :3].softmax(-1))
    assert torch.allclose(found[3], (logits[0, 0, 3] * math.log(4) / math.log(3)).softmax(-1))


def test_softpick_is_exact_where_its_exponentials_cancel_or_overflow():
    softpick = build_scoring(scoring_config("softpick"), 1)
    assert softpick.weights(_logits([[1e-7, -1e-7], [2e3, 2e3], [-5.0, -1e4]]))[0, 0].tolist() == [
        pytest.approx([0.5 / 1.05, 0.0], rel=1e-6),  # eps counts: 1e-7 / (2e-7 + 1e-8)
        [0.5, 0.5],
        [0.0, 0.0],
    ]


def test_off_by_one_is_softmax_with_one_more_key_of_logit_zero():
    logits = _logits([[0.3, -0.2, 0.1, -3.0], [-50.0, -60.0, -70.0, -80.0]])
    found = build_scoring(scoring_config("off-by-one"), 1).weights(logits)
    with_a_key = torch.cat([logits, torch.zeros(1, 1, 2, 1)], -1).softmax(-1)
    assert torch.allclose(found, with_a_key[..., :-1], rtol=1e-12, atol=0)


def test_resetting_draws_no_random_number(scoring):
    before = torch.random.get_rng_state()
    scoring.reset_parameters()
    assert torch.equal(before, torch.random.get_rng_state())
