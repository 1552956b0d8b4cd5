"""What seeds can show, against published tables, simulation and the noncentral t of scipy."""

import math

import numpy as np
import pytest
import scipy.stats

from babyssa.comparison.power import detectable_difference, power_of_t, seeds_needed
from babyssa.errors import ConfigError


@pytest.mark.parametrize("d, each", [(0.5, 64), (0.8, 26), (1.0, 17)])
def test_the_numbers_of_cohens_table(d, each):
    """Cohen 1988, table 2.4.1: two-sided at 0.05, power 0.80, two independent groups."""
    assert seeds_needed(d, 1.0, paired=False) == each


@pytest.mark.parametrize("d, pairs", [(0.2, 199), (0.5, 34), (0.8, 15)])
def test_the_numbers_of_g_power(d, pairs):
    """Faul et al. 2007: paired t-test, two-sided at 0.05, power 0.80, d of the differences."""
    assert seeds_needed(d, 1 / math.sqrt(2)) == pairs


def test_the_superlative_paradigm_takes_more_seeds_than_were_published():
    assert seeds_needed(12.75, 16.6) == 29 and seeds_needed(12.75, 16.6, paired=False) == 28
    assert seeds_needed(12.75, 16.6, correlation=0.5) < seeds_needed(12.75, 16.6)


@pytest.mark.parametrize("df", [1, 2, 4, 9, 37.3])
def test_a_detectable_difference_is_found_in_four_of_five_samples(df):
    noncentrality = detectable_difference(1.0, df)
    assert power_of_t(noncentrality, df) == pytest.approx(0.8, abs=1e-6)
    assert power_of_t(0.0, df) == pytest.approx(0.05, abs=1e-6)
    assert detectable_difference(3.0, df, 0.9) == pytest.approx(3 * detectable_difference(1.0, df, 0.9))
    rng = np.random.default_rng(0)
    t = (rng.standard_normal(40_000) + noncentrality) / np.sqrt(rng.chisquare(df, 40_000) / df)
    found = np.mean(abs(t) > scipy.stats.t.ppf(0.975, df))
    assert found == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / 40_000))


def test_what_is_unknown_stays_unknown_and_bad_input_is_refused():
    assert all(math.isnan(detectable_difference(*given)) for given in ((math.nan, 4), (1.0, 0), (0.0, 4)))
    for bad in ({"sd": 0}, {"difference": 0}, {"correlation": 1.0}, {"power": 1.0}, {"level": 0.0}):
        with pytest.raises(ConfigError, match=str(next(iter(bad)))):
            seeds_needed(**{"difference": 1.0, "sd": 1.0, **bad})
