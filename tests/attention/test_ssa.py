"""The SSA map against its formula in float64, its derivatives against finite differences, and its limits."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from babyssa.attention import SSA, SSAConfig, build_scoring, scoring_config, ssa, ssa_map
from babyssa.errors import ConfigError

EXTREMES = [0.0, -0.0, 1e-300, -1e-8, 1e-8, 0.5, -0.5, 3.0, -3.0, 50.0, -50.0, 1e4, -1e4]


def naive(x, n, b):
    """t(x) as the paper writes it, one Python float at a time."""
    sign = (x > 0) - (x < 0)
    return n * sign * math.log1p(b * abs(x))


def naive_weights(logits, n, b):
    """(1 + b|x|)^(sgn(x) n), normalised: the paper's own formula, without logarithms."""
    raw = [(1 + b * abs(x)) ** (((x > 0) - (x < 0)) * n) for x in logits]
    return [w / sum(raw) for w in raw]


@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=8), st.floats(1.0, 6.0), st.floats(1e-3, 50.0))
@settings(deadline=None, max_examples=200)
def test_the_map_is_the_formula(logits, n, b):
    found = ssa_map(torch.tensor(logits, dtype=torch.float64), n, b)
    assert found.tolist() == pytest.approx([naive(x, n, b) for x in logits], rel=1e-12, abs=1e-12)


@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=8), st.floats(1.01, 4.0), st.floats(0.01, 5.0))
@settings(deadline=None, max_examples=100)
def test_the_weights_are_the_papers(logits, n, b):
    scoring = build_scoring(SSAConfig(n=n, b=b, learn_n=False, learn_b=False), heads=1)
    found = scoring.weights(torch.tensor(logits, dtype=torch.float64).view(1, 1, 1, -1)).flatten().tolist()
    assert found == pytest.approx(naive_weights(logits, n, b), rel=1e-9, abs=1e-15)


def test_the_derivatives_are_those_of_finite_differences():
    x = torch.tensor([0.5, -0.5, 3.0, -3.0, 50.0, -50.0, 1e4, -1e4], dtype=torch.float64)
    x = x.view(1, 1, 1, -1).expand(2, 3, 2, -1).clone().requires_grad_()
    n = torch.tensor([1.0, 1.5, 3.0], dtype=torch.float64).view(1, 3, 1, 1).requires_grad_()
    b = torch.tensor([0.05, 0.8, 4.0], dtype=torch.float64).view(1, 3, 1, 1).requires_grad_()
    assert torch.autograd.gradcheck(ssa_map, (x, n, b), eps=1e-5, atol=1e-8, rtol=1e-5)


def test_the_derivatives_hold_at_and_around_zero():
    """There the second derivative jumps, so central differences are right to the order of their step only."""
    x = torch.tensor([0.0, -0.0, 1e-9, -1e-9], dtype=torch.float64, requires_grad=True)
    n, b = (torch.tensor([v], dtype=torch.float64, requires_grad=True) for v in (1.5, 0.8))
    assert torch.autograd.gradcheck(ssa_map, (x, n, b), eps=1e-7, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("shape_n", [(), (1,), (1, 3, 1, 1)])
@pytest.mark.parametrize("shape_b", [(), (1,), (1, 3, 1, 1)])
def test_gradients_of_shared_parameters_sum_over_what_shares_them(shape_n, shape_b):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 3, 4, 5, dtype=torch.float64, generator=generator, requires_grad=True)
    n = torch.full(shape_n, 1.7, dtype=torch.float64, requires_grad=True)
    b = torch.full(shape_b, 0.6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(ssa_map, (x, n, b))


def test_the_slope_at_zero_is_n_b():
    x = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    ssa_map(x, 1.5, 0.8).sum().backward()
    assert x.grad.tolist() == pytest.approx([1.2] * 3, rel=1e-15)


def test_only_needed_gradients_are_computed():
    x = torch.randn(4, requires_grad=True)
    n = torch.tensor(1.5)
    ssa_map(x, n, 0.8).sum().backward()
    assert x.grad is not None and n.grad is None


@pytest.fixture(params=[2**18, 40, 5], ids=["one piece", "by sequence", "by query"])
def pieces(request, monkeypatch):
    """The weights come out the same however the logits are cut."""
    monkeypatch.setattr(ssa, "_PIECE", {"cpu": request.param})


def logits_and_bias(dtype):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3, 2, 3, 5, dtype=dtype, generator=generator) * torch.tensor(
        [0.0, 0.1, 1, 10, 1e4], dtype=dtype
    )
    bias = torch.zeros(3, 1, 3, 5, dtype=dtype)
    bias[1, ..., 3:] = torch.finfo(dtype).min
    return x, bias


def test_the_fused_weights_are_softmax_over_the_map(pieces):
    x, bias = logits_and_bias(torch.float32)
    n, b = (torch.tensor(v).view(1, 2, 1, 1) for v in ([1.5, 3.0], [0.8, 0.1]))
    naive = torch.tensor(
        [
            naive_weights(x[i, h, q, : 3 if i == 1 else 5].double().tolist(), n[0, h].item(), b[0, h].item())
            + [0.0] * (2 if i == 1 else 0)
            for i, h, q in torch.cartesian_prod(*map(torch.arange, (3, 2, 3))).tolist()
        ]
    )
    found = ssa._SSAWeights.apply(x, bias, n, b)
    assert torch.allclose(found.view(-1, 5), naive, rtol=0, atol=1e-6)
    assert (found[1, ..., 3:] == 0).all()


def test_the_fused_weights_have_the_gradients_of_finite_differences(pieces):
    x, bias = logits_and_bias(torch.float64)
    x = (x + 0.3).requires_grad_()
    n, b = (torch.tensor(v, dtype=torch.float64).view(1, 2, 1, 1).requires_grad_() for v in ([1.5, 3], [0.8, 0.1]))
    assert torch.autograd.gradcheck(lambda x, n, b: ssa._SSAWeights.apply(x, bias, n, b), (x, n, b))


def test_the_fused_weights_have_the_gradients_of_the_map(pieces):
    x, bias = logits_and_bias(torch.float64)
    x[..., 1] = 0.0
    leaves = [x.clone(), torch.full((1, 2, 1, 1), 1.5).double(), torch.full((1, 2, 1, 1), 0.8).double()]
    x, n, b = (leaf.requires_grad_() for leaf in leaves)
    gradient = torch.randn(x.shape, dtype=x.dtype, generator=torch.Generator().manual_seed(1))
    plain = torch.autograd.grad((ssa_map(x, n, b) + bias).softmax(-1), (x, n, b), gradient)
    fused = torch.autograd.grad(ssa._SSAWeights.apply(x, bias, n, b), (x, n, b), gradient)
    for expected, found in zip(plain, fused, strict=True):
        assert torch.allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_no_sequences_have_no_weights():
    scoring = build_scoring(SSAConfig(), heads=2)
    assert scoring.weights(torch.zeros(0, 2, 3, 4)).shape == (0, 2, 3, 4)


@pytest.mark.parametrize("x", [0.3, -2.0, 5.0])
def test_softmax_is_the_limit(x):
    errors = [abs(math.exp(naive(x, m, 1 / m)) - math.exp(x)) for m in (10, 100, 1000, 10_000)]
    assert errors == sorted(errors, reverse=True) and errors[-1] < 2e-3 * math.exp(x)
    logits = torch.linspace(-4, 4, 9, dtype=torch.float64).view(1, 1, 1, -1)
    limit = build_scoring(SSAConfig(n=1e7, b=1e-7, learn_n=False, learn_b=False), heads=1)
    assert torch.allclose(limit.weights(logits), logits.softmax(-1), atol=1e-5)


def test_a_leading_logit_leaves_the_others_a_power_of_its_lead():
    """Theorem 2 of the paper: mass about D^-n, where Softmax leaves e^-D."""
    scoring = build_scoring(SSAConfig(n=1.5, b=0.8, learn_n=False, learn_b=False), heads=1)
    leads = torch.tensor([1e3, 1e4, 1e5], dtype=torch.float64)
    logits = torch.zeros(3, 5, dtype=torch.float64)
    logits[:, 0] = leads
    left = 1 - scoring.weights(logits.view(1, 1, 3, 5))[0, 0, :, 0]
    slopes = left.log().diff() / leads.log().diff()
    assert slopes.tolist() == pytest.approx([-1.5, -1.5], rel=0.01)


@pytest.mark.parametrize("granularity, count", [("head", 4), ("layer", 1), ("model", 1)])
def test_parameters_are_reported_in_their_domain(granularity, count):
    scoring = SSA(SSAConfig(granularity=granularity), heads=4)
    assert scoring.n.tolist() == pytest.approx([1.5] * count) and scoring.b.tolist() == pytest.approx(
        [0.8] * count
    )
    with torch.no_grad():
        scoring.raw_n.fill_(-50.0)
        scoring.raw_b.fill_(-50.0)
    assert (scoring.n >= 1).all() and (scoring.b > 0).all()


def test_fixed_parameters_are_not_in_the_state_dict():
    assert set(SSA(scoring_config("ssa-1.5"), 4).state_dict()) == {"raw_b"}
    assert set(SSA(scoring_config("ssa"), 4).state_dict()) == {"raw_n", "raw_b"}
    assert not SSA(SSAConfig(learn_n=False, learn_b=False), 4).state_dict()


@pytest.mark.parametrize(
    "values, says",
    [
        ({"n": 0.9}, "n = 0.9 .*at least 1"),
        ({"n": 1.0}, "greater than 1 where learn_n"),
        ({"b": 0.0}, "b = 0.0 .*greater than 0"),
        ({"b": -1.0}, "b is greater than 0"),
        ({"n": "two"}, "n = 'two'"),
        ({"n": math.nan}, "n = nan"),
        ({"b": math.inf}, "b = inf"),
        ({"granularity": "token"}, "head, layer or model"),
    ],
)
def test_parameters_out_of_domain_are_refused(values, says):
    with pytest.raises(ConfigError, match=says):
        SSAConfig(**values)


def test_n_may_be_one_where_it_is_fixed():
    assert SSAConfig(n=1.0, learn_n=False).n == 1.0


@pytest.mark.parametrize(
    "variant, changes, says",
    [
        ("sofmax", {}, "unknown variant 'sofmax'; did you mean 'softmax'"),
        ("ssa-1.5", {"m": 2}, "has no parameter 'm'"),
        ("ssa", {"granularty": "head"}, "did you mean 'granularity'"),
        ("softmax", {"n": 2.0}, "no parameters"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest_known(variant, changes, says):
    with pytest.raises(ConfigError, match=says):
        scoring_config(variant, **changes)
