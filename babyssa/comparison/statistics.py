"""Intervals and tests for accuracies over seeds and minimal pairs.

A probe result is a crossed design: every seed of a variant answers the same pairs. So an accuracy varies
with the seed (one seed is one trained model), with the pairs, and with both together; each function here
says which of these it counts. Outcomes are 1 (right), 0.5 (tie) and 0 (wrong), in arrays of shape
``(seeds, pairs)``; a mean over paradigms takes a list of such arrays, with the same seeds in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# Below this many seeds a percentile interval over resampled seeds is too narrow by more than two points of
# coverage (docs/statistics.md has the measurements), so the t-interval is the one to report.
SEEDS_FOR_BOOTSTRAP = 20

_CELLS_AT_ONCE = 65_536  # of a (resamples, pairs) table: small enough to stay in a core's cache

Outcomes = np.ndarray | Sequence[np.ndarray]


class Estimate(NamedTuple):
    """A value, its interval, and the two-sided p of its being 0; NaN is unknown."""

    value: float
    low: float
    high: float
    p: float


def t_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Student's t-interval of the mean of `values`.

    Parameters
    ----------
    values : sequence of float, shape (seeds,)
        At least two, such as one accuracy per seed.
    level : float
        Coverage, in (0, 1).

    Raises
    ------
    ValueError
        If there are fewer than two values: their variance is unknown.
    """
    from scipy.stats import t

    values = np.asarray(values, dtype=float)
    if len(values) < 2:
        raise ValueError("a t-interval needs at least two values")
    half = t.ppf((1 + level) / 2, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return float(values.mean() - half), float(values.mean() + half)


def wilson_interval(successes: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a proportion (Wilson 1927).

    `successes` may be fractional, since ties count one half; the interval is then a little too wide, because a
    tie varies less than a right or wrong answer.
    """
    from scipy.stats import norm

    z = norm.ppf((1 + level) / 2)
    p = successes / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def holm(p_values: Sequence[float]) -> np.ndarray:
    """Holm's step-down adjustment (Holm 1979): reject where the result is at most alpha.

    It keeps the probability of any false rejection in the family below alpha under any dependence between the
    tests; paradigms probed with the same models are dependent.

    Parameters
    ----------
    p_values : sequence of float, shape (tests,)
        One family of tests. NaN is a test that was not made: it stays NaN and does not count.

    Returns
    -------
    ndarray, shape (tests,)
        Adjusted p-values, each at least as large as its own p and at most 1.
    """
    p_values = np.asarray(p_values, dtype=float)
    made = np.flatnonzero(~np.isnan(p_values))
    order = made[np.argsort(p_values[made], kind="stable")]
    adjusted = np.full(p_values.shape, np.nan)
    steps = p_values[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def resample_pairs(outcomes: np.ndarray, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """Accuracies of every run on resampled pairs, the same resampled pairs for all runs.

    Parameters
    ----------
    outcomes : ndarray, shape (runs, pairs)
    resamples : int
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of float64, shape (resamples, runs)
    """
    runs, pairs = outcomes.shape
    outcomes = np.ascontiguousarray(outcomes.T, dtype=np.float32)  # exact: sums of halves, far below 2**24
    means = np.empty((resamples, runs))
    step = max(1, _CELLS_AT_ONCE // pairs)
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        drawn = rng.integers(0, pairs, size=(rows, pairs), dtype=np.int32).astype(np.int64)
        drawn += np.arange(0, rows * pairs, pairs)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=rows * pairs).reshape(rows, pairs)
        means[start : start + rows] = counts.astype(np.float32) @ outcomes
    return means / pairs


def resample_seeds(seeds: int, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """Weights of every seed in every resample, shape ``(resamples, seeds)``, each row summing to 1."""
    return rng.multinomial(seeds, np.full(seeds, 1 / seeds), size=resamples) / seeds


def summarize_replicates(replicates: np.ndarray, value: float, level: float) -> Estimate:
    """Percentile interval, and the p that agrees with it (Efron & Tibshirani 1993, chapters 13 and 15).

    p is twice the smaller share of replicates on either side of 0, at least ``1 / (resamples + 1)``, so p is
    below ``1 - level`` exactly where the interval excludes 0.
    """
    low, high = np.quantile(replicates, [(1 - level) / 2, (1 + level) / 2])
    beyond = min(np.mean(replicates <= 0), np.mean(replicates >= 0))
    return Estimate(value, float(low), float(high), float(min(1.0, max(2 * beyond, 1 / (len(replicates) + 1)))))


def crossed_bootstrap(
    means: np.ndarray,
    variant: Sequence[int],
    baseline: Sequence[int],
    *,
    value: float,
    paired: bool = True,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """Crossed bootstrap of a difference of accuracies over seeds and pairs.

    Each replicate draws pairs with replacement, which :func:`resample_pairs` has done, and seeds with replacement,
    independently of each other; the drawn pairs are used with every drawn seed and in both variants, as in the
    data (the pigeonhole bootstrap: McCullagh 2000; Owen 2007). The draws of seeds depend on `seed` and on their
    number alone, so all paradigms share them, as they must, since a seed is one model.

    With few seeds the interval is too narrow, whatever the number of resamples; see :func:`crossed_t`.

    Parameters
    ----------
    means : ndarray, shape (resamples, runs)
        Accuracy of every run on resampled pairs: of one paradigm, or the mean over several.
    variant, baseline : sequence of int
        Which runs are whose.
    value : float
        The difference on the pairs themselves.
    paired : bool
        Whether run k of both is the same seed, and drawn together; otherwise the seeds of each are drawn
        separately.
    level : float
        Coverage of the percentile interval.
    seed : int
        Of the draws of seeds.
    """
    drawn = [
        resample_seeds(len(runs), len(means), np.random.default_rng([seed, stream, len(runs)]))
        for stream, runs in enumerate([variant] if paired else [variant, baseline], start=1)
    ]
    if paired:
        replicates = (drawn[0] * (means[:, variant] - means[:, baseline])).sum(axis=1)
    else:
        replicates = (drawn[0] * means[:, variant]).sum(axis=1) - (drawn[1] * means[:, baseline]).sum(axis=1)
    return summarize_replicates(replicates, value, level)


def crossed_t(variant: Outcomes, baseline: Outcomes, *, paired: bool = True, level: float = 0.95) -> Estimate:
    """Student's t for a difference of accuracies, with the variance of seeds and of pairs.

    The usual t-interval on per-seed differences, widened by what the choice of pairs adds; :func:`crossed_error`
    has the standard error.

    Parameters
    ----------
    variant, baseline : ndarray of shape (seeds, pairs), or a list of them, one per paradigm
        Outcomes.
    paired : bool
        Whether row k of both is the same seed. The pairs are always the same.
    level : float
        Coverage of the interval.

    Returns
    -------
    Estimate
        Its interval and p are NaN with one seed.

    Raises
    ------
    ValueError
        If the outcomes are not of the same paradigms, seeds and pairs.
    """
    from scipy.stats import t

    value, error, df = crossed_error(variant, baseline, paired=paired)
    if not df:
        return Estimate(value, math.nan, math.nan, math.nan)
    half = t.ppf((1 + level) / 2, df) * error
    if error > 0:
        p = 2 * t.sf(abs(value) / error, df)
    else:  # nothing varies at all, which leaves only a sign test over the seeds
        p = 1.0 if value == 0 else 2.0**-df
    return Estimate(value, float(value - half), float(value + half), float(p))


def crossed_error(variant: Outcomes, baseline: Outcomes, *, paired: bool = True) -> tuple[float, float, float]:
    """A difference of accuracies, its standard error, and its degrees of freedom.

    The squared standard error is that of a two-way crossed random design (Clark 1973): for S seeds and I
    pairs, ``(MS_seeds + MS_pairs - MS_residual) / (S I)``. Both mean squares are at least the residual one, their
    expectation when their factor has no effect, so that two seeds that agree by chance do not look certain. The
    degrees of freedom are those of the seeds, S - 1 (Welch's if unpaired), which is never too many. With one seed
    they are 0, and the error is NaN.
    """
    arms = _arms(variant, baseline, paired)
    value = float(sum(sign * np.mean([x.mean() for x in arm]) for sign, arm in arms))
    if any(len(arm[0]) < 2 for _, arm in arms):
        return value, math.nan, 0
    paradigms = len(arms[0][1])
    noise = [[_residual(x) for x in arm] for _, arm in arms]
    by_seed = []
    for (_, arm), residuals in zip(arms, noise, strict=True):
        means = np.mean([x.mean(axis=1) for x in arm], axis=0)
        floor = sum(r / x.shape[1] for r, x in zip(residuals, arm, strict=True)) / paradigms**2
        by_seed.append(max(means.var(ddof=1), floor) / len(means))
    from_pairs = 0.0
    for index in range(paradigms):
        mean_of_pair = sum(sign * arm[index].mean(axis=0) for sign, arm in arms)
        pairs = len(mean_of_pair)
        if pairs > 1:
            residual = sum(r[index] / len(arm[index]) for r, (_, arm) in zip(noise, arms, strict=True))
            from_pairs += max(mean_of_pair.var(ddof=1) - residual, 0.0) / pairs / paradigms**2
    freedom = [len(arm[0]) - 1 for _, arm in arms]
    if sum(by_seed) > 0:
        df = sum(by_seed) ** 2 / sum(v * v / f for v, f in zip(by_seed, freedom, strict=True))
    else:
        df = min(freedom)
    return value, math.sqrt(sum(by_seed) + from_pairs), df


def _arms(variant: Outcomes, baseline: Outcomes, paired: bool) -> list[tuple[int, list[np.ndarray]]]:
    """One arm of paired differences, or a signed arm for each variant."""
    variant, baseline = _as_list(variant), _as_list(baseline)
    if len(variant) != len(baseline):
        raise ValueError(f"{len(variant)} paradigms in one variant, {len(baseline)} in the other")
    for a, b in zip(variant, baseline, strict=True):
        if a.shape[1] != b.shape[1] or (paired and len(a) != len(b)):
            raise ValueError(f"outcomes of shape {a.shape} and {b.shape} are not of the same seeds and pairs")
    if paired:
        return [(1, [a - b for a, b in zip(variant, baseline, strict=True)])]
    return [(1, variant), (-1, baseline)]


def _as_list(outcomes: Outcomes) -> list[np.ndarray]:
    tables = [outcomes] if isinstance(outcomes, np.ndarray) and outcomes.ndim == 2 else list(outcomes)
    tables = [np.asarray(table, dtype=float) for table in tables]
    if not tables or any(t.ndim != 2 or 0 in t.shape or len(t) != len(tables[0]) for t in tables):
        raise ValueError("expected outcomes of shape (seeds, pairs), or a list of them with the same seeds")
    return tables


def _residual(x: np.ndarray) -> float:
    """Mean square of what neither seed nor pair explains in ``(seeds, pairs)``."""
    if min(x.shape) < 2:
        return 0.0
    rest = x - x.mean(axis=1, keepdims=True) - x.mean(axis=0) + x.mean()
    return float((rest**2).sum() / ((x.shape[0] - 1) * (x.shape[1] - 1)))
