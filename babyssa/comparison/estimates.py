"""From probe results to estimates: runs and pairs lined up, seeds matched, and every row of the comparison."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from babyssa.comparison.power import detectable_difference
from babyssa.comparison.results import Pair, StoredResult
from babyssa.comparison.statistics import (
    SEEDS_FOR_BOOTSTRAP,
    Estimate,
    crossed_bootstrap,
    crossed_error,
    crossed_t,
    holm,
    resample_pairs,
    summarize_replicates,
    t_interval,
    wilson_interval,
)

if TYPE_CHECKING:
    import pandas as pd

MEAN = "mean over paradigms"
SEED_UNKNOWN = "seed variance unknown"
CROSSED_T, CROSSED_BOOTSTRAP = "crossed t", "crossed bootstrap"
OVER_PAIRS = f"bootstrap over pairs; {SEED_UNKNOWN}"

_UNKNOWN = Estimate(np.nan, np.nan, np.nan, np.nan)


@dataclass(frozen=True)
class Run:
    """One model of a variant; its outcomes are row `index` of every outcome table."""

    index: int
    variant: str
    seed: int | None

    def __str__(self) -> str:
        return f"{self.variant} seed {show_seed(self.seed)}"


@dataclass(frozen=True)
class Contrast:
    """The runs of a variant and those of the baseline that they are compared with.

    Where `paired`, row k of both is the same seed.
    """

    variant: list[int]
    baseline: list[int]
    paired: bool

    @property
    def seeds(self) -> int:
        return min(len(self.variant), len(self.baseline))

    @property
    def method(self) -> str:
        """What the reported interval comes from."""
        if self.seeds == 1:
            return OVER_PAIRS
        return CROSSED_T if self.seeds < SEEDS_FOR_BOOTSTRAP else CROSSED_BOOTSTRAP


def show_seed(seed: int | None) -> str:
    return "unknown" if seed is None else str(seed)


def line_up(
    results: Sequence[StoredResult], pairs: Iterable[Pair]
) -> tuple[list[Run], dict[str, np.ndarray], list[str]]:
    """Bring all results to the same pairs.

    Parameters
    ----------
    results : sequence of StoredResult
        By variant and seed.
    pairs : iterable of Pair
        Those that all results have.

    Returns
    -------
    tuple of list of Run, dict, list of str
        The runs; for each paradigm, sorted by name, their outcomes ``(runs, pairs)``; and
        notes about results that are averaged and models that stand for several runs.
    """
    members: dict[tuple, list[StoredResult]] = defaultdict(list)
    for result in results:  # models without a seed are different runs only if they are different models
        members[result.variant, result.seed, result.model_sha256 if result.seed is None else ""].append(result)
    runs = [Run(index, variant, seed) for index, (variant, seed, _) in enumerate(members)]
    notes = [
        f"{len(own)} results of variant {run.variant}, seed {show_seed(run.seed)}, are averaged"
        for run, own in zip(runs, members.values(), strict=True)
        if len(own) > 1
    ]
    runs_of_model: dict[str, list[Run]] = defaultdict(list)
    for run, own in zip(runs, members.values(), strict=True):
        for model in {result.model_sha256 for result in own if result.model_sha256}:
            runs_of_model[model].append(run)
    notes += [
        f"the same model stands for {', '.join(map(str, same))}: it is counted as different models"
        for same in runs_of_model.values()
        if len(same) > 1
    ]
    of_paradigm: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        of_paradigm[pair[0]].append(pair)
    outcomes = {
        name: np.array(
            [np.mean([[r.outcomes[p] for p in own] for r in same], axis=0) for same in members.values()]
        )
        for name, own in sorted(of_paradigm.items())
    }
    return runs, outcomes, notes


def match_seeds(runs: Sequence[Run], variants: Sequence[str]) -> tuple[dict[str, Contrast], list[str]]:
    """Match the runs of every variant with those of the baseline, `variants[0]`, by seed where possible."""
    base = [run for run in runs if run.variant == variants[0]]
    base_of_seed = {run.seed: run.index for run in base if run.seed is not None}
    contrasts, notes = {}, []
    for name in variants[1:]:
        own = [run for run in runs if run.variant == name]
        common = [run for run in own if run.seed in base_of_seed]
        if len(common) >= min(2, len(own), len(base)):
            contrasts[name] = Contrast(
                [run.index for run in common], [base_of_seed[run.seed] for run in common], paired=True
            )
            if len(common) < max(len(own), len(base)):
                notes.append(
                    f"{name} is compared with {variants[0]} on their common seeds only ({list_seeds(common)})"
                )
        else:
            contrasts[name] = Contrast([run.index for run in own], [run.index for run in base], paired=False)
            notes.append(
                f"the seeds of {name} ({list_seeds(own)}) and {variants[0]} ({list_seeds(base)}) do not match: "
                "the difference is paired by pairs, not by seeds"
            )
    return contrasts, notes


def estimate(
    outcomes: dict[str, np.ndarray],
    phenomenon_of: dict[str, str],
    runs: Sequence[Run],
    contrasts: dict[str, Contrast],
    *,
    level: float,
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Every row of a comparison: each paradigm, each phenomenon and the mean, for each variant.

    Parameters
    ----------
    outcomes : dict
        For each paradigm ``(runs, pairs)``.
    phenomenon_of : dict
        The phenomenon of each paradigm.
    runs : sequence of Run
        By variant, the baseline's first.
    contrasts : dict
        For each variant but the baseline.
    level, resamples, seed
        As in :func:`babyssa.comparison.compare`.
    """
    import pandas as pd

    groups = _groups(outcomes, phenomenon_of)
    sums = {key: np.zeros((resamples, len(runs))) for key in groups}
    rows = []

    def add_rows(place: dict[str, str], members: list[str], means: np.ndarray) -> None:
        tables = [outcomes[name] for name in members]
        for variant in dict.fromkeys(run.variant for run in runs):
            own = [run for run in runs if run.variant == variant]
            row = {**place, "variant": variant, **_accuracy(tables, means, own, level)}
            rows.append(row | _difference(tables, means, contrasts.get(variant), level, seed))

    for index, name in enumerate(outcomes):
        means = resample_pairs(outcomes[name], resamples, np.random.default_rng([seed, 0, index]))
        for key, members in groups.items():
            if name in members:
                sums[key] += means
        add_rows({"level": "paradigm", "name": name, "phenomenon": phenomenon_of[name]}, [name], means)
    for (kind, name), members in groups.items():
        phenomenon = name if kind == "phenomenon" else ""
        place = {"level": kind, "name": name, "phenomenon": phenomenon}
        add_rows(place, members, sums[kind, name] / len(members))
    table = pd.DataFrame(rows)
    _adjust(table, list(contrasts))
    return table


def by_seed(
    outcomes: dict[str, np.ndarray],
    phenomenon_of: dict[str, str],
    runs: Sequence[Run],
    contrasts: dict[str, Contrast],
) -> pd.DataFrame:
    """The accuracy of each run in every paradigm and phenomenon and its mean, with those of a comparison's rows.

    ``difference`` is that to the baseline's run of the same seed; NaN where seeds are not paired. The parameters
    are those of :func:`estimate`.
    """
    import pandas as pd

    groups = {("paradigm", name): [name] for name in outcomes} | _groups(outcomes, phenomenon_of)
    accuracies = {name: table.mean(axis=1) for name, table in outcomes.items()}
    frames = []
    for (level, name), members in groups.items():
        values = np.mean([accuracies[member] for member in members], axis=0)
        differences = np.full(len(runs), np.nan)
        for contrast in contrasts.values():
            if contrast.paired:
                differences[contrast.variant] = values[contrast.variant] - values[contrast.baseline]
        who = {"variant": [run.variant for run in runs], "seed": [show_seed(run.seed) for run in runs]}
        frames.append(
            pd.DataFrame({"level": level, "name": name, **who, "accuracy": values, "difference": differences})
        )
    return pd.concat(frames, ignore_index=True)


def _groups(outcomes: Iterable[str], phenomenon_of: dict[str, str]) -> dict[tuple[str, str], list[str]]:
    """The paradigms of the mean and of each phenomenon."""
    groups: dict[tuple[str, str], list[str]] = {("mean", MEAN): list(outcomes)}
    for phenomenon in sorted({phenomenon_of[name] for name in outcomes}):
        groups["phenomenon", phenomenon] = [name for name in outcomes if phenomenon_of[name] == phenomenon]
    return groups


def _accuracy(tables: list[np.ndarray], means: np.ndarray, own: list[Run], level: float) -> dict[str, Any]:
    """The columns about a variant's own accuracy.

    `tables` are the outcomes ``(runs, pairs)`` of its paradigms; `means` their mean accuracies on resampled
    pairs, ``(resamples, runs)``; `own` the variant's runs.
    """
    mine = [run.index for run in own]
    values = np.mean([table.mean(axis=1) for table in tables], axis=0)[mine]
    n_pairs = sum(table.shape[1] for table in tables)
    if len(mine) > 1:
        low, high = t_interval(values, level)
        interval = "t over seeds"
    elif len(tables) == 1:
        low, high = wilson_interval(tables[0][mine[0]].sum(), n_pairs, level)
        interval = f"Wilson over pairs; {SEED_UNKNOWN}"
    else:
        _, low, high, _ = summarize_replicates(means[:, mine[0]], values[0], level)
        interval = OVER_PAIRS
    return {
        "n_pairs": n_pairs,
        "n_seeds": len(mine),
        "seeds": list_seeds(own),
        "accuracy": values.mean(),
        "sd": values.std(ddof=1) if len(mine) > 1 else np.nan,
        "low": max(low, 0.0),
        "high": min(high, 1.0),
        "interval": interval,
    }


def _difference(tables, means, contrast: Contrast | None, level: float, seed: int) -> dict[str, Any]:
    """The columns about the difference to the baseline, by both methods; of the baseline itself, NaN."""
    t, bootstrap, detectable = _UNKNOWN, _UNKNOWN, np.nan
    if contrast is not None:
        mine, theirs, paired = contrast.variant, contrast.baseline, contrast.paired
        own, base = [x[mine] for x in tables], [x[theirs] for x in tables]
        t = crossed_t(own, base, paired=paired, level=level)
        _, error, df = crossed_error(own, base, paired=paired)
        detectable = detectable_difference(error, df, level)
        bootstrap = crossed_bootstrap(means, mine, theirs, value=t.value, paired=paired, level=level, seed=seed)
    method = contrast.method if contrast else ""
    reported = t if method == CROSSED_T else bootstrap
    return {
        "difference": t.value,
        "difference_low": reported.low,
        "difference_high": reported.high,
        "difference_interval": method,
        "p": reported.p,
        "p_holm": np.nan,
        "detectable": detectable,
        "compared_seeds": contrast.seeds if contrast else 0,
        "paired_by": "" if contrast is None else "seeds and pairs" if contrast.paired else "pairs",
        "t_low": t.low,
        "t_high": t.high,
        "t_p": t.p,
        "t_p_holm": np.nan,
        "bootstrap_low": bootstrap.low,
        "bootstrap_high": bootstrap.high,
        "bootstrap_p": bootstrap.p,
        "bootstrap_p_holm": np.nan,
    }


def _adjust(table: pd.DataFrame, variants: Sequence[str]) -> None:
    """Holm over the paradigms of a variant, over its phenomena, and, for the mean, over the variants."""
    families = [
        (table.level == kind) & (table.variant == v) for kind in ("paradigm", "phenomenon") for v in variants
    ]
    families.append((table.level == "mean") & table.variant.isin(variants))
    for family, p in itertools.product(families, ("p", "t_p", "bootstrap_p")):
        table.loc[family, f"{p}_holm"] = holm(table.loc[family, p])


def list_seeds(runs: Iterable[Run]) -> str:
    return ", ".join(show_seed(run.seed) for run in runs)
