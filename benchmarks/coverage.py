"""How often the intervals of babyssa.comparison.statistics are right, and how often a family of tests errs.

Simulates probe results whose true accuracies are known. The chance that seed s of variant v gets pair i right is
Phi(mu_v + u_sv + a_i + c_iv): pairs differ in difficulty (a, sd 0.8), pairs differ in how much a variant helps
(c, sd 0.4), and u, independent between variants, makes the accuracy of a seed vary with the given standard
deviation.

    python benchmarks/coverage.py            # the figures of docs/statistics.md, about 10 minutes on one core
    python benchmarks/coverage.py --quick    # a tenth of the simulations
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy.stats import norm

from babyssa.comparison.statistics import (
    Estimate,
    crossed_bootstrap,
    crossed_t,
    holm,
    resample_pairs,
    t_interval,
)

PAIR_SD, PAIR_VARIANT_SD = 0.8, 0.4
ACCURACY, DIFFERENCE = 0.70, 0.03


def simulate(rng, seeds: int, pairs: int, seed_sd: float, difference: float):
    """Outcomes of two variants, each (seeds, pairs), and the true difference of their accuracies."""
    target = np.array([ACCURACY + difference, ACCURACY])
    between_pairs = 1 + PAIR_SD**2 + PAIR_VARIANT_SD**2
    seed_latent = seed_sd * np.sqrt(between_pairs) / norm.pdf(norm.ppf(ACCURACY))
    mu = norm.ppf(target) * np.sqrt(between_pairs + seed_latent**2)
    a = rng.normal(0, PAIR_SD, pairs)
    outcomes = []
    for m in mu:
        u = rng.normal(0, seed_latent, seeds)
        c = rng.normal(0, PAIR_VARIANT_SD, pairs)
        outcomes.append((rng.normal(size=(seeds, pairs)) < m + u[:, None] + a + c).astype(float))
    return outcomes[0], outcomes[1], target[0] - target[1]


def bootstrap(variant, baseline, resamples: int, seed: int) -> Estimate:
    """The crossed bootstrap as a comparison computes it, for one paradigm and as many seeds of either variant."""
    means = resample_pairs(np.concatenate([variant, baseline]), resamples, np.random.default_rng([seed, 0, 0]))
    seeds, value = range(len(variant)), variant.mean() - baseline.mean()
    return crossed_bootstrap(means, list(seeds), [len(seeds) + s for s in seeds], value=value, seed=seed)


def coverage(simulations: int, seeds: int, pairs: int, seed_sd: float, resamples: int) -> dict[str, tuple]:
    """Share of intervals that hold the true difference, and their mean width, for every method."""
    rng = np.random.default_rng([seeds, pairs, round(1000 * seed_sd)])
    held: dict[str, list] = {}
    for n in range(simulations):
        a, b, truth = simulate(rng, seeds, pairs, seed_sd, DIFFERENCE)
        intervals = {"bootstrap": bootstrap(a, b, resamples, n)[1:3]}
        if seeds > 1:
            intervals["t on differences"] = t_interval((a - b).mean(axis=1))
            intervals["crossed t"] = crossed_t(a, b)[1:3]
            intervals["crossed t, unpaired"] = crossed_t(a, b, paired=False)[1:3]
        for name, (low, high) in intervals.items():
            held.setdefault(name, []).append((low <= truth <= high, high - low))
    return {name: tuple(np.mean(rows, axis=0)) for name, rows in held.items()}


def false_alarms(simulations: int, seeds: int, paradigms: int, pairs: int, seed_sd: float, resamples: int):
    """Share of families of equal variants in which any paradigm is called different after Holm."""
    rng = np.random.default_rng([seeds, paradigms])
    alarms = {"bootstrap": 0, "crossed t": 0}
    for n in range(simulations):
        p_bootstrap, p_t = [], []
        for k in range(paradigms):
            a, b, _ = simulate(rng, seeds, pairs, seed_sd, 0.0)
            p_bootstrap.append(bootstrap(a, b, resamples, n * paradigms + k).p)
            if seeds > 1:
                p_t.append(crossed_t(a, b).p)
        alarms["bootstrap"] += holm(p_bootstrap).min() < 0.05
        alarms["crossed t"] += bool(p_t) and holm(p_t).min() < 0.05
    return {name: count / simulations for name, count in alarms.items() if seeds > 1 or name == "bootstrap"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the simulations")
    share = 10 if parser.parse_args().quick else 1
    started = time.monotonic()
    print("coverage of nominal 95% intervals for a difference of 3 points (mean width in points)")
    for seed_sd, pairs in ((0.05, 1000), (0.01, 1000), (0.05, 100)):
        for seeds in (1, 2, 3, 5, 10, 20):
            found = coverage(1000 // share, seeds, pairs, seed_sd, 1000)
            cells = "  ".join(f"{name} {100 * c:.1f}% ({100 * w:.1f})" for name, (c, w) in found.items())
            print(f"seed sd {100 * seed_sd:.0f} points, {pairs} pairs, {seeds:2d} seeds:  {cells}", flush=True)
    print("any of 23 equal paradigms called different after Holm, at 0.05 (seed sd 5 points, 200 pairs)")
    for seeds in (1, 3, 5, 10, 20):
        found = false_alarms(200 // share, seeds, 23, 200, 0.05, 2000)
        print(f"{seeds:2d} seeds:  " + "  ".join(f"{n} {100 * r:.1f}%" for n, r in found.items()), flush=True)
    print(f"{(time.monotonic() - started) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
