"""Dropout: as often as asked for, unbiased, the same in value and gradient, a function of the generator alone."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from babyssa.attention.dropout import add_dropped_out, dropout


@pytest.mark.parametrize("p", [0.1, 0.5, 0.003])
def test_elements_are_dropped_with_probability_p_and_the_others_scaled_up(p):
    torch.manual_seed(0)
    count = 1_000_000
    dropped = dropout(torch.ones(count), p, training=True)
    standard_error = (p * (1 - p) / count) ** 0.5
    # 2**-17 is what p may be rounded by.
    assert (dropped == 0).double().mean().item() == pytest.approx(p, abs=5 * standard_error + 2**-17)
    assert dropped.unique().tolist() == pytest.approx([0, 1 / (1 - p)], rel=2**-16)


def test_every_place_is_dropped_as_often_and_neighbours_independently():
    # Four elements share a draw of 64 bits, and its sign bit is as random as the others.
    torch.manual_seed(1)
    kept = dropout(torch.ones(200_000, 8), 0.5, training=True) != 0
    kept = kept.double()
    assert kept.mean(0).tolist() == pytest.approx([0.5] * 8, abs=0.006)
    assert torch.corrcoef(kept.T).fill_diagonal_(0).abs().max() < 0.012


def test_the_gradient_passes_where_the_value_does():
    torch.manual_seed(2)
    x = torch.randn(7, 5, 3, requires_grad=True, dtype=torch.float64)
    y = dropout(x, 0.4, training=True)
    y.sum().backward()
    assert torch.equal(x.grad != 0, y != 0)
    assert torch.allclose(y, x * x.grad)


def test_the_sum_with_a_residual_drops_the_same_elements():
    x, residual = torch.randn(9, 6), torch.randn(9, 6)
    torch.manual_seed(3)
    expected = residual + dropout(x, 0.3, training=True)
    torch.manual_seed(3)
    assert torch.allclose(add_dropped_out(residual, x, 0.3, training=True), expected)


def test_it_draws_from_torchs_generator_and_from_nothing_else():
    torch.manual_seed(4)
    first = dropout(torch.ones(100), 0.5, training=True)
    second = dropout(torch.ones(100), 0.5, training=True)
    torch.manual_seed(4)
    assert torch.equal(dropout(torch.ones(100), 0.5, training=True), first) and not torch.equal(first, second)


@given(p=st.sampled_from([0.0, 0.1, 0.999999]), training=st.booleans(), size=st.integers(0, 9))
@settings(deadline=None, max_examples=30)
def test_any_size_comes_back_whole_and_nothing_is_dropped_outside_training(p, training, size):
    x = torch.ones(size, 3)
    y = dropout(x, p, training)
    assert y.shape == x.shape and y.isfinite().all()
    if not training or p == 0:
        assert y is x
        assert torch.equal(add_dropped_out(x, x, p, training), 2 * x)


def test_half_precision_keeps_its_type():
    x = torch.ones(50, dtype=torch.bfloat16)
    assert dropout(x, 0.1, training=True).dtype == torch.bfloat16
    assert add_dropped_out(torch.ones(50), x, 0.1, training=True).dtype == torch.float32
