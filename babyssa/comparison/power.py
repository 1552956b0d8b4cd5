"""What a number of seeds can show: the power of Student's t-test (Cohen 1988, chapter 2).

With a true difference `d`, a standard error `e` of the estimated one and `f` degrees of freedom, the test's
statistic has Student's noncentral t distribution with noncentrality `d / e`.
"""

from __future__ import annotations

import math
from functools import cache

from babyssa.errors import ConfigError

POWER = 0.8


def power_of_t(noncentrality: float, df: float, level: float = 0.95) -> float:
    """The probability that the two-sided t-test at 1 - `level` finds a difference.

    Parameters
    ----------
    noncentrality : float
        The true difference in standard errors of its estimate.
    df : float
        Degrees of freedom.
    level : float
        Coverage of the interval that must exclude 0.
    """
    from scipy.stats import nct, t

    critical = t.ppf((1 + level) / 2, df)
    # The other tail is the mirror image, and below every digit that counts where the test has any power.
    return float(nct.sf(critical, df, noncentrality) + nct.sf(critical, df, -noncentrality))


def detectable_difference(error: float, df: float, level: float = 0.95, power: float = POWER) -> float:
    """The smallest true difference that the test finds with probability `power`.

    Parameters
    ----------
    error : float
        Standard error of the estimated difference; for S paired seeds, the standard deviation of their
        differences over the root of S.
    df : float
        Its degrees of freedom; S - 1.
    level, power : float
        Of the test.

    Returns
    -------
    float
        In the unit of `error`; NaN if that is unknown, or 0: where nothing varies, nothing is known of it.
    """
    if not (df > 0 and 0 < error < math.inf):
        return math.nan
    return error * _noncentrality(round(df, 9), level, power)


@cache
def _noncentrality(df: float, level: float, power: float) -> float:
    """The noncentrality with which the test has this power."""
    from scipy.optimize import brentq
    from scipy.stats import norm, t

    # The sum of the two quantiles is the answer for known variances, and too small for estimated ones.
    enough = 2 * (t.ppf((1 + level) / 2, df) + t.ppf(power, df)) + norm.ppf(power)
    return brentq(lambda noncentrality: power_of_t(noncentrality, df, level) - power, 0.0, enough)


def seeds_needed(
    difference: float,
    sd: float,
    *,
    paired: bool = True,
    correlation: float = 0.0,
    level: float = 0.95,
    power: float = POWER,
) -> int:
    """Seeds of each variant that it takes to find a true difference with probability `power`.

    Parameters
    ----------
    difference : float
        The true difference between the variants' means, such as 12.75 points.
    sd : float
        Standard deviation over seeds of one variant, in the same unit.
    paired : bool
        Whether both variants have the same seeds and are compared seed by seed (S - 1 degrees of freedom), or
        not (2S - 2).
    correlation : float
        Of the two variants over seeds, where they are paired: the differences have a standard deviation of
        ``sd * sqrt(2 (1 - correlation))``.
    level, power : float
        Of the two-sided test.

    Raises
    ------
    ConfigError
        If a number is out of its domain.

    Examples
    --------
    >>> seeds_needed(12.75, 16.6), seeds_needed(12.75, 16.6, paired=False)
    (29, 28)
    """
    if not (difference != 0 and sd > 0 and -1 <= correlation < 1 and 0 < power < 1 and 0 < level < 1):
        raise ConfigError(
            f"difference {difference}, sd {sd}, correlation {correlation}, level {level}, power {power}",
            remedy="sd is above 0, difference not 0, correlation from -1 to below 1, level and power in (0, 1)",
        )
    spread = sd * math.sqrt(2 * (1 - correlation if paired else 1))
    seeds = 2
    while True:
        df = seeds - 1 if paired else 2 * seeds - 2
        if power_of_t(abs(difference) * math.sqrt(seeds) / spread, df, level) >= power:
            return seeds
        seeds += 1
