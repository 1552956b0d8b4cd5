"""Intervals, tests and resampling, against scipy and cases that can be done by hand."""

from functools import partial

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from babyssa.comparison.statistics import (
    crossed_bootstrap,
    crossed_t,
    holm,
    resample_pairs,
    resample_seeds,
    t_interval,
    wilson_interval,
)


def outcomes(shape, p=0.7, seed=0):
    return (np.random.default_rng(seed).random(shape) < p).astype(float)


def bootstrap(variant, baseline=None, *, paired=True, resamples=10_000, level=0.95, seed=0):
    """The crossed bootstrap of outcomes: an array ``(seeds, pairs)``, or a list of them, one per paradigm.

    Without a baseline, of the accuracy itself.
    """
    variant = variant if isinstance(variant, list) else [variant]
    baseline = [baseline] if baseline is not None else [np.zeros_like(x) for x in variant]
    rng = np.random.default_rng(seed)
    stacked = [np.concatenate(tables) for tables in zip(variant, baseline, strict=True)]
    means = np.mean([resample_pairs(tables, resamples, rng) for tables in stacked], axis=0)
    value = np.mean([x.mean() for x in variant]) - np.mean([x.mean() for x in baseline])
    mine, theirs = range(len(variant[0])), range(len(variant[0]), means.shape[1])
    return crossed_bootstrap(means, mine, theirs, value=value, paired=paired, level=level, seed=seed)


def test_t_interval_is_that_of_scipy():
    values = [0.71, 0.65, 0.8, 0.77]
    expected = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert t_interval(values, 0.9) == pytest.approx(expected)


def test_t_interval_of_one_seed_is_refused():
    with pytest.raises(ValueError, match="two"):
        t_interval([0.7])


@pytest.mark.parametrize("right, n", [(0, 10), (10, 10), (7, 10), (1, 1), (731, 1000)])
def test_wilson_interval_is_that_of_scipy(right, n):
    expected = scipy.stats.binomtest(right, n).proportion_ci(0.95, method="wilson")
    assert wilson_interval(right, n) == pytest.approx(tuple(expected))


def test_holm_on_a_case_done_by_hand():
    # sorted .005 .01 .03 .04 times 4 3 2 1 gives .02 .03 .06 .04; no p falls below its predecessor
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_holm_caps_at_one_and_leaves_out_tests_that_were_not_made():
    assert holm([0.6, 0.7]) == pytest.approx([1, 1])
    assert holm([0.02, np.nan, 0.04]) == pytest.approx([0.04, np.nan, 0.04], nan_ok=True)
    assert holm([0.03]) == pytest.approx([0.03])
    assert holm([]).shape == (0,)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0.001, 0.5))
def test_holm_rejects_what_the_step_down_procedure_rejects(p_values, alpha):
    rejected = set()
    for step, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        if p_values[index] * (len(p_values) - step) > alpha:
            break
        rejected.add(index)
    assert set(np.flatnonzero(holm(p_values) <= alpha)) == rejected


def test_resampled_pairs_have_the_mean_and_the_standard_error_of_a_proportion():
    x = outcomes((1, 400))
    means = resample_pairs(x, 20_000, np.random.default_rng(0))[:, 0]
    p = x.mean()
    assert means.mean() == pytest.approx(p, abs=0.001)
    assert means.std() == pytest.approx(np.sqrt(p * (1 - p) / 400), rel=0.03)


def test_all_runs_get_the_same_resampled_pairs():
    x = outcomes((1, 50))
    means = resample_pairs(np.concatenate([x, x, 1 - x]), 500, np.random.default_rng(0))
    assert np.array_equal(means[:, 0], means[:, 1])
    assert means[:, 0] + means[:, 2] == pytest.approx(np.ones(500))


def test_resampling_works_when_one_resample_is_more_than_a_chunk():
    x = np.ones((2, 70_000))
    assert np.array_equal(resample_pairs(x, 3, np.random.default_rng(0)), np.ones((3, 2)))


def test_weights_of_resampled_seeds_sum_to_one():
    weights = resample_seeds(4, 1000, np.random.default_rng(0))
    assert weights.shape == (1000, 4)
    assert weights.sum(axis=1) == pytest.approx(np.ones(1000))
    assert weights.mean(axis=0) == pytest.approx(np.full(4, 0.25), abs=0.02)


def test_bootstrap_of_one_seed_is_that_of_scipy_over_pairs():
    x = outcomes((1, 300))
    expected = scipy.stats.bootstrap(
        (x[0],), np.mean, n_resamples=10_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    found = bootstrap(x)
    assert found.value == x.mean()
    assert (found.low, found.high) == pytest.approx(tuple(expected), abs=0.005)


def test_bootstrap_of_seeds_with_constant_pairs_is_that_of_scipy_over_seeds():
    accuracies = np.array([0.0, 0.5, 1.0, 0.5, 0.5, 1.0])
    x = np.repeat(accuracies[:, None], 20, axis=1)
    expected = scipy.stats.bootstrap(
        (accuracies,), np.mean, n_resamples=10_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    assert bootstrap(x)[1:3] == pytest.approx(tuple(expected), abs=0.05)


def test_bootstrap_has_the_variance_that_theory_gives_a_crossed_design():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(6, 1)) + rng.normal(size=(1, 40)) + rng.normal(size=(6, 40))
    draw = np.random.default_rng(0)
    means = resample_pairs(x, 40_000, draw)
    replicates = (resample_seeds(6, 40_000, draw) * means).sum(axis=1)
    # exact variance of the mean under independent resampling of rows and columns
    by_seed, by_pair = x.mean(axis=1).var() / 6, x.mean(axis=0).var() / 40
    rest = (x - x.mean(axis=1, keepdims=True) - x.mean(axis=0) + x.mean()).var() / (6 * 40)
    assert replicates.var() == pytest.approx(by_seed + by_pair + rest, rel=0.03)


def test_equal_variants_do_not_differ():
    x = outcomes((3, 100))
    for found in (bootstrap(x, x, resamples=1000), crossed_t(x, x)):
        assert found == (0, 0, 0, 1)


def test_bootstrap_p_has_a_floor_and_agrees_with_its_interval():
    found = bootstrap(np.ones((2, 50)), np.zeros((2, 50)), resamples=999)
    assert found == (1, 1, 1, 1 / 1000)
    a, b = outcomes((4, 200), 0.75), outcomes((4, 200), 0.7, seed=1)
    found = bootstrap(a, b, resamples=5000)
    again = bootstrap(a, b, resamples=5000, level=1 - found.p)
    assert min(abs(again.low), abs(again.high)) < 0.002


def test_bootstrap_is_the_same_for_the_same_seed_only():
    a, b = outcomes((3, 80)), outcomes((3, 80), seed=1)
    assert bootstrap(a, b, resamples=500) == bootstrap(a, b, resamples=500)
    assert bootstrap(a, b, resamples=500) != bootstrap(a, b, resamples=500, seed=1)


def test_pairing_by_seed_removes_what_seeds_share():
    shared = np.repeat(np.array([0.0, 1.0, 0.0, 1.0])[:, None], 60, axis=1)
    a = shared.copy()
    a[:, :3] = 1 - a[:, :3]
    for estimate in (crossed_t, partial(bootstrap, resamples=2000)):
        paired, unpaired = estimate(a, shared), estimate(a, shared, paired=False)
        assert paired.value == unpaired.value
        assert paired.high - paired.low < (unpaired.high - unpaired.low) / 3


def test_a_mean_over_paradigms_weighs_them_equally_and_draws_a_seed_for_all():
    a, b = np.repeat([[0.0], [1.0]], 10, axis=1), np.repeat([[0.0], [1.0]], 90, axis=1)
    found = bootstrap([a, b], resamples=4000)
    assert found[:3] == (0.5, 0, 1)  # independent draws of seeds would seldom reach 0 or 1 in both
    assert bootstrap([np.ones((2, 10)), np.zeros((2, 90))], resamples=100).value == 0.5


def test_crossed_t_without_variance_of_pairs_is_the_t_test_of_scipy():
    a = np.repeat(np.array([[0.0], [0.5], [1.0], [0.5]]), 30, axis=1)
    b = np.repeat(np.array([[0.5], [0.0], [0.0], [0.0]]), 30, axis=1)
    expected = scipy.stats.ttest_rel(a.mean(axis=1), b.mean(axis=1))
    found = crossed_t(a, b)
    assert found.p == pytest.approx(expected.pvalue)
    assert found[1:3] == pytest.approx(tuple(expected.confidence_interval(0.95)))
    welch = scipy.stats.ttest_ind(a.mean(axis=1), b.mean(axis=1), equal_var=False)
    found = crossed_t(a, b[:4], paired=False)
    assert found.p == pytest.approx(welch.pvalue)
    assert found[1:3] == pytest.approx(tuple(welch.confidence_interval(0.95)))


def test_crossed_t_is_never_narrower_than_t_on_the_differences():
    for seed in range(20):
        a, b = outcomes((3, 40), seed=seed), outcomes((3, 40), seed=100 + seed)
        low, high = t_interval((a - b).mean(axis=1))
        found = crossed_t(a, b)
        assert found.low <= low + 1e-12 and found.high >= high - 1e-12


def test_two_seeds_that_agree_by_chance_do_not_look_certain():
    a = np.array([[1.0, 1, 1, 0, 0, 1, 1, 0], [0, 1, 1, 1, 1, 0, 1, 0]])
    assert a[0].mean() == a[1].mean()
    assert crossed_t(a, np.zeros_like(a)).p > 0.05


def test_where_nothing_varies_the_seeds_are_a_sign_test():
    assert crossed_t(np.ones((3, 5)), np.zeros((3, 5))).p == 0.25


def test_one_seed_leaves_the_t_unknown_but_not_the_bootstrap():
    a, b = outcomes((1, 50)), outcomes((1, 50), seed=1)
    found = crossed_t(a, b)
    assert found.value == pytest.approx(a.mean() - b.mean())
    assert np.isnan(found[1:]).all()
    assert not np.isnan(bootstrap(a, b, resamples=200)).any()


def test_one_pair_is_enough_to_compute_but_proves_nothing():
    one, other = np.array([[1.0], [0.0]]), np.array([[0.0], [0.5]])
    assert crossed_t(one, other).p > 0.3
    assert 0 < bootstrap(one, other, resamples=200).p <= 1


@pytest.mark.parametrize(
    "variant, baseline",
    [
        (np.ones((2, 3)), np.ones((2, 4))),
        (np.ones((2, 3)), np.ones((3, 3))),
        ([np.ones((2, 3))], [np.ones((2, 3))] * 2),
        ([np.ones((2, 3)), np.ones((3, 3))], [np.ones((2, 3)), np.ones((3, 3))]),
        (np.ones((0, 3)), np.ones((0, 3))),
        ([], []),
    ],
)
def test_outcomes_that_do_not_fit_together_are_refused(variant, baseline):
    with pytest.raises(ValueError, match=r"paradigms|seeds"):
        crossed_t(variant, baseline)


def test_few_seeds_need_the_t_interval():
    """What decides which interval is reported: with three seeds the bootstrap misses far too often."""
    rng = np.random.default_rng(0)
    held = {"t": 0, "bootstrap": 0}
    for n in range(200):
        x = (rng.random((3, 200)) < np.clip(rng.normal(0.7, 0.1, (3, 1)), 0, 1)).astype(float)
        low, high = crossed_t(x, np.zeros_like(x))[1:3]
        held["t"] += low <= 0.7 <= high
        low, high = bootstrap(x, resamples=300, seed=n)[1:3]
        held["bootstrap"] += low <= 0.7 <= high
    assert held["t"] / 200 > 0.92
    assert held["bootstrap"] / 200 < 0.88
