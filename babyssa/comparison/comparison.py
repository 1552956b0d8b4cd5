"""Compares variants over seeds from probe results: accuracies, differences to a baseline, and what they prove.

The order of things here is: read the results, line their pairs up into one table of outcomes, estimate every
paradigm, phenomenon and the mean (:mod:`babyssa.comparison.statistics` has the methods), and report.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from babyssa.comparison import report as comparison_report
from babyssa.comparison.results import Pair, StoredResult, check_comparable, find_results, read_result
from babyssa.comparison.statistics import (
    SEEDS_FOR_BOOTSTRAP,
    Estimate,
    crossed_t,
    holm,
    resample_pairs,
    resample_seeds,
    summarize_replicates,
    t_interval,
    wilson_interval,
)
from babyssa.errors import ConfigError, nearest
from babyssa.files import atomic_write, check_overwrite

if TYPE_CHECKING:
    import pandas as pd

FILES = ("comparison.csv", "comparison.md", "comparison.png", "runs.csv")

_ORDER = ("softmax", "ssa-1.5", "ssa-2", "ssa")


@dataclass(frozen=True, eq=False)
class Comparison:
    """What :func:`compare` found.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per paradigm, phenomenon (``level``) or mean over paradigms, and variant. Accuracies and
        differences are in 0..1. ``difference_low``, ``difference_high``, ``p`` and ``p_holm`` come from what
        ``difference_interval`` names; ``t_*`` and ``bootstrap_*`` give both methods always. NaN is unknown.
    runs : pandas.DataFrame
        One row per probed model.
    variants : tuple of str
        The baseline first.
    baseline : str or None
        None if there is one variant only.
    level : float
        Coverage of the intervals.
    resamples, seed : int
        Of the bootstrap.
    facts : dict
        Suite, method, reduction, precision and versions, each a list of the different values found.
    notes : tuple of str
        What a reader must know: mixed results, unmatched seeds, doubtful runs.
    """

    table: pd.DataFrame
    runs: pd.DataFrame
    variants: tuple[str, ...]
    baseline: str | None
    level: float
    resamples: int
    seed: int
    facts: dict[str, list[str]]
    notes: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """What the numbers say, in plain words."""
        return comparison_report.verdict(self)

    def to_markdown(self) -> str:
        """The verdict, the tables with their captions, and the runs they come from, in Markdown."""
        return comparison_report.markdown(self)


@dataclass(frozen=True)
class _Run:
    """One model of a variant: its outcomes are column ``index`` of the outcome tables."""

    index: int
    variant: str
    seed: int | None


@dataclass(frozen=True)
class _Contrast:
    """Which runs of a variant are set against which runs of the baseline, and by which method."""

    variant: list[int]
    baseline: list[int]
    paired: bool
    method: str

    @property
    def seeds(self) -> int:
        return min(len(self.variant), len(self.baseline))


def compare(
    folders: Iterable[str | Path],
    out: str | Path | None = None,
    *,
    baseline: str = "softmax",
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    allow_mixed: bool = False,
    overwrite: bool = False,
    notes: Sequence[str] = (),
) -> Comparison:
    """Compare variants over seeds from probe results.

    Parameters
    ----------
    folders : iterable of path-like
        Folders that ``babyssa probe`` wrote, or folders that contain such folders at any depth.
    out : path-like, optional
        Where to write comparison.csv, comparison.md, comparison.png, and runs.csv: what made every number.
    baseline : str
        The variant that the others are compared with.
    level : float
        Coverage of the intervals; differences are marked at ``1 - level``.
    resamples : int
        Bootstrap replicates.
    seed : int
        Of the bootstrap.
    allow_mixed : bool
        Compare also results of different suites, methods, reductions, precisions or tokenizers, on the pairs
        that all have, and average those of the same variant and seed.
    overwrite : bool
        Whether files in `out` may be replaced.
    notes : sequence of str
        What readers must know besides, such as what is missing and why.

    Returns
    -------
    Comparison

    Raises
    ------
    ConfigError
        If an option is out of its domain, or no result is of the baseline.
    DataError
        If a result is missing, damaged, or cannot be compared with the others.
    OutputExistsError
        If `out` holds an earlier comparison and `overwrite` is false.
    """
    _check_options(level, resamples, seed)
    if out is not None:
        check_overwrite(Path(out), FILES, overwrite)
    results = [read_result(folder) for folder in find_results(folders)]
    variants = _order_variants(results, baseline)
    pairs, mixed = check_comparable(results, allow_mixed)
    runs, outcomes, more = _line_up(results, pairs, variants)
    contrasts, unmatched = _contrasts(runs, variants)
    table = _estimate(outcomes, _phenomena(results, outcomes), runs, variants, contrasts, level, resamples, seed)
    found = Comparison(
        table=table,
        runs=_list_runs(results, runs, variants),
        variants=tuple(variants),
        baseline=variants[0] if len(variants) > 1 else None,
        level=level,
        resamples=resamples,
        seed=seed,
        facts=_facts(results),
        notes=(*notes, *mixed, *more, *unmatched),
    )
    if out is not None:
        _write(found, Path(out))
    return found


def _check_options(level: float, resamples: int, seed: int) -> None:
    if not 0.5 <= level < 1:
        raise ConfigError(f"level is {level}, not a coverage", remedy="choose one in [0.5, 1), such as 0.95")
    if resamples < 100:
        raise ConfigError(f"resamples is {resamples}, too few for an interval", remedy="choose 100 or more")
    if seed < 0:
        raise ConfigError(f"seed is {seed}", remedy="choose 0 or more")


def _order_variants(results: Sequence[StoredResult], baseline: str) -> list[str]:
    known = {result.variant for result in results}
    ordered = [name for name in _ORDER if name in known] + sorted(known - set(_ORDER))
    if len(ordered) == 1:
        return ordered
    if baseline not in known:
        raise ConfigError(
            f"no result of the baseline '{baseline}'", remedy=f"pass --baseline; {nearest(baseline, known)}"
        )
    return [baseline, *(name for name in ordered if name != baseline)]


def _line_up(results, pairs: list[Pair], variants) -> tuple[list[_Run], dict[str, np.ndarray], list[str]]:
    """Bring all results to the same pairs: outcomes ``(runs, pairs)`` of every paradigm, sorted by name."""
    members: dict[tuple, list[StoredResult]] = defaultdict(list)
    for result in results:  # models without a seed are different runs only if they are different models
        members[(result.variant, result.seed, result.model_sha256 if result.seed is None else "")].append(result)
    order = sorted(
        members, key=lambda m: (variants.index(m[0]), m[1] is None, m[1] or 0, members[m][0].folder.as_posix())
    )
    runs = [_Run(index, variant, seed) for index, (variant, seed, _) in enumerate(order)]
    notes = [
        f"{len(members[key])} results of variant {key[0]}, seed {_show_seed(key[1])}, are averaged"
        for key in order
        if len(members[key]) > 1
    ]
    by_hash: dict[str, list[_Run]] = defaultdict(list)
    for run, key in zip(runs, order, strict=True):
        for model in {r.model_sha256 for r in members[key] if r.model_sha256}:
            by_hash[model].append(run)
    for same in by_hash.values():
        if len(same) > 1:
            listed = ", ".join(f"{run.variant} seed {_show_seed(run.seed)}" for run in same)
            notes.append(f"the same model stands for {listed}: it is counted as different models")
    of_paradigm: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        of_paradigm[pair[0]].append(pair)
    outcomes = {
        name: np.array([np.mean([[r.outcomes[p] for p in own] for r in members[key]], axis=0) for key in order])
        for name, own in sorted(of_paradigm.items())
    }
    return runs, outcomes, notes


def _phenomena(results: Sequence[StoredResult], paradigms: Iterable[str]) -> dict[str, list[str]]:
    """The paradigms of every phenomenon, as the first result that knows it says."""
    phenomenon_of: dict[str, str] = {}
    for result in results:
        phenomenon_of = {**result.phenomena, **phenomenon_of}
    groups: dict[str, list[str]] = defaultdict(list)
    for name in paradigms:
        groups[phenomenon_of[name]].append(name)
    return dict(sorted(groups.items()))


def _contrasts(runs: list[_Run], variants: list[str]) -> tuple[dict[str, _Contrast], list[str]]:
    """Match the runs of every variant with those of the baseline by seed, where that is possible."""
    of_variant = {name: [run for run in runs if run.variant == name] for name in variants}
    base = of_variant[variants[0]]
    base_of_seed = {run.seed: run.index for run in base if run.seed is not None}
    contrasts, notes = {}, []
    for name in variants[1:]:
        own = of_variant[name]
        common = [run for run in own if run.seed in base_of_seed]
        if len(common) >= min(2, len(own), len(base)):
            mine = [run.index for run in common]
            theirs = [base_of_seed[run.seed] for run in common]
            paired = True
            if len(common) < max(len(own), len(base)):
                shared = ", ".join(str(run.seed) for run in common)
                notes.append(f"{name} is set against {variants[0]} on their common seeds only ({shared})")
        else:
            mine, theirs = [run.index for run in own], [run.index for run in base]
            paired = False
            notes.append(
                f"the seeds of {name} ({_show_seeds(own)}) and {variants[0]} ({_show_seeds(base)}) do not match: "
                "the difference pairs the items, not the seeds"
            )
        seeds = min(len(mine), len(theirs))
        method = "pairs" if seeds == 1 else "t" if seeds < SEEDS_FOR_BOOTSTRAP else "bootstrap"
        contrasts[name] = _Contrast(mine, theirs, paired, method)
    return contrasts, notes


def _estimate(outcomes, phenomena, runs, variants, contrasts, level, resamples, seed) -> pd.DataFrame:
    """Every row of the table."""
    import pandas as pd

    paradigms = list(outcomes)
    phenomenon_of = {name: group for group, names in phenomena.items() for name in names}
    grouped = {("mean", "mean over paradigms"): paradigms}
    grouped |= {("phenomenon", group): names for group, names in phenomena.items()}
    sums = {key: np.zeros((resamples, len(runs))) for key in grouped}
    weights = _seed_weights(contrasts, resamples, seed)
    rows = []
    for index, name in enumerate(paradigms):
        means = resample_pairs(outcomes[name], resamples, np.random.default_rng([seed, 0, index]))
        for key in (("mean", "mean over paradigms"), ("phenomenon", phenomenon_of[name])):
            sums[key] += means
        place = {"level": "paradigm", "name": name, "phenomenon": phenomenon_of[name]}
        rows += _rows(place, [outcomes[name]], means, runs, variants, contrasts, weights, level)
    for (kind, name), members in grouped.items():
        place = {"level": kind, "name": name, "phenomenon": name if kind == "phenomenon" else ""}
        means = sums[(kind, name)] / len(members)
        rows += _rows(place, [outcomes[p] for p in members], means, runs, variants, contrasts, weights, level)
    table = pd.DataFrame(rows)
    _adjust(table, variants[1:])
    return table


def _seed_weights(contrasts: dict[str, _Contrast], resamples: int, seed: int) -> dict[str, list[np.ndarray]]:
    """Resampled seeds of every contrast, drawn once for all paradigms, since a seed is one model."""
    weights = {}
    for name, contrast in contrasts.items():
        arms = [contrast.variant] if contrast.paired else [contrast.variant, contrast.baseline]
        rngs = (np.random.default_rng([seed, 1 + arm, len(runs)]) for arm, runs in enumerate(arms))
        weights[name] = [resample_seeds(len(r), resamples, rng) for r, rng in zip(arms, rngs, strict=True)]
    return weights


def _rows(place, tables, means, runs, variants, contrasts, weights, level) -> list[dict[str, Any]]:
    """The rows of one paradigm, phenomenon or mean, one per variant.

    `tables` are the outcomes ``(runs, pairs)`` of its paradigms; `means` their mean accuracies on resampled
    pairs, ``(resamples, runs)``.
    """
    accuracies = np.mean([table.mean(axis=1) for table in tables], axis=0)
    n_pairs = sum(table.shape[1] for table in tables)
    rows = []
    for name in variants:
        own = [run for run in runs if run.variant == name]
        mine = [run.index for run in own]
        values = accuracies[mine]
        if len(mine) > 1:
            low, high = t_interval(values, level)
            interval = "t over seeds"
        elif len(tables) == 1:
            low, high = wilson_interval(tables[0][mine[0]].sum(), n_pairs, level)
            interval = "Wilson over pairs; seed variance unknown"
        else:
            _, low, high, _ = summarize_replicates(means[:, mine[0]], values[0], level)
            interval = "bootstrap over pairs; seed variance unknown"
        row = {
            **place,
            "variant": name,
            "n_pairs": n_pairs,
            "n_seeds": len(mine),
            "seeds": _show_seeds(own),
            "accuracy": values.mean(),
            "sd": values.std(ddof=1) if len(mine) > 1 else np.nan,
            "low": max(low, 0.0),
            "high": min(high, 1.0),
            "interval": interval,
        }
        rows.append(row | _difference(contrasts.get(name), tables, means, weights.get(name), level))
    return rows


def _difference(contrast: _Contrast | None, tables, means, weights, level) -> dict[str, Any]:
    """The columns about the difference to the baseline, by both methods."""
    if contrast is None:
        t = bootstrap = Estimate(np.nan, np.nan, np.nan, np.nan)
        seeds, paired, method = 0, "", ""
    else:
        mine, theirs = contrast.variant, contrast.baseline
        t = crossed_t([x[mine] for x in tables], [x[theirs] for x in tables], paired=contrast.paired, level=level)
        if contrast.paired:
            replicates = (weights[0] * (means[:, mine] - means[:, theirs])).sum(axis=1)
        else:
            replicates = (weights[0] * means[:, mine]).sum(axis=1) - (weights[1] * means[:, theirs]).sum(axis=1)
        bootstrap = summarize_replicates(replicates, t.value, level)
        seeds, paired = contrast.seeds, "seeds and pairs" if contrast.paired else "pairs"
        method = {
            "pairs": "bootstrap over pairs; seed variance unknown",
            "t": "crossed t",
            "bootstrap": "crossed bootstrap",
        }[contrast.method]
    primary = t if method == "crossed t" else bootstrap
    return {
        "difference": t.value,
        "difference_low": primary.low,
        "difference_high": primary.high,
        "difference_interval": method,
        "p": primary.p,
        "p_holm": np.nan,
        "compared_seeds": seeds,
        "paired_by": paired,
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


def _list_runs(results, runs: list[_Run], variants: list[str]) -> pd.DataFrame:
    import pandas as pd

    rows = [
        {
            "variant": result.variant,
            "seed": _show_seed(result.seed),
            "model": result.summary["model"],
            "model_sha256": result.model_sha256 or "",
            "tokenizer_sha256": result.summary.get("tokenizer_sha256") or "",
            "suite": result.summary["suite"],
            "suite_sha256": result.summary["suite_sha256"],
            "method": result.summary["method"],
            "reduction": result.summary["reduction"] or "",
            "precision": result.summary["precision"],
            "accuracy": float(result.summary["accuracy"]),
            "versions": _show_versions(result),
            "folder": str(result.folder),
        }
        for result in sorted(
            results, key=lambda r: (variants.index(r.variant), r.seed is None, r.seed or 0, r.folder.as_posix())
        )
    ]
    return pd.DataFrame(rows)


def _facts(results: Sequence[StoredResult]) -> dict[str, list[str]]:
    def different(values: Iterable) -> list[str]:
        return sorted({str(value) for value in values})

    suites = {(r.summary["suite"], r.summary["suite_sha256"]) for r in results}
    return {
        "suite": [f"{name} (sha256 {digest[:12]})" for name, digest in sorted(suites)],
        "method": different(r.summary["method"] for r in results),
        "reduction": different(r.summary["reduction"] or "none" for r in results),
        "precision": different(r.summary["precision"] for r in results),
        "versions": different(map(_show_versions, results)),
    }


def _show_versions(result: StoredResult) -> str:
    return ", ".join(f"{name} {version}" for name, version in result.summary["versions"].items())


def _write(comparison: Comparison, out: Path) -> None:
    from babyssa.comparison.figures import write_comparison_figure

    with atomic_write(out / "comparison.csv") as file:
        comparison.table.to_csv(file, index=False, lineterminator="\n")
    with atomic_write(out / "runs.csv") as file:
        comparison.runs.to_csv(file, index=False, lineterminator="\n")
    with atomic_write(out / "comparison.md") as file:
        file.write(comparison.to_markdown())
    with atomic_write(out / "comparison.png", "wb") as file:
        write_comparison_figure(comparison, file)


def _show_seed(seed: int | None) -> str:
    return "unknown" if seed is None else str(seed)


def _show_seeds(runs: Sequence[_Run]) -> str:
    return ", ".join(_show_seed(run.seed) for run in runs)
