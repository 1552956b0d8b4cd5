"""Verbs that compare variants of a model: over seeds, under shift, in a sweep, in the demo."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from babyssa.checks import checked
from babyssa.encoder.config import EncoderTraining
from babyssa.synthetic.config import Shifts

if TYPE_CHECKING:
    from babyssa.comparison.comparison import Comparison
    from babyssa.experiments.demo import Demo
    from babyssa.experiments.grid import Sweep
    from babyssa.synthetic.shifts import ShiftResults


@checked
def compare(
    folders: Iterable[str],
    *,
    out: Path | None = None,
    baseline: str = "softmax",
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    allow_mixed: bool = False,
    overwrite: bool = False,
) -> Comparison:
    """Compare variants over seeds from probe results.

    Each variant is compared with the baseline on the same pairs and the same seeds, with Holm correction. With
    --out, writes comparison.csv, comparison.md, comparison.png and runs.csv (where every number comes from).

    Parameters
    ----------
    folders : iterable of path-like
        folders written by babyssa probe, or their parents
    out : path-like, optional
        folder to write to
    baseline : str
        variant that the others are compared with
    level : float
        coverage of the intervals; differences are marked at 1 - level
    resamples : int
        bootstrap replicates
    seed : int
        seed of the bootstrap
    allow_mixed : bool
        compare results of different suites, methods, reductions, precisions or tokenizers on the pairs that all
        have
    overwrite : bool
        replace an earlier comparison in --out

    Returns
    -------
    Comparison

    Raises
    ------
    DataError
        If there are no results, or they are damaged or cannot be compared.
    ConfigError
        If the baseline is not among the variants, or a setting is out of its domain.
    OutputExistsError
        If `out` holds a comparison and `overwrite` is false.

    Examples
    --------
    babyssa compare results/softmax-0 results/ssa-0 --out comparison
    babyssa compare runs --out comparison  # every probe result under runs
    babyssa compare runs --out comparison --baseline ssa-1.5 --level 0.9
    """
    from babyssa.comparison.comparison import FILES, compare
    from babyssa.console import say

    found = compare(
        folders,
        out,
        baseline=baseline,
        level=level,
        resamples=resamples,
        seed=seed,
        allow_mixed=allow_mixed,
        overwrite=overwrite,
    )
    if out is not None:
        say(f"wrote {', '.join(FILES)} to {out}")
    return found


@checked
def shift(
    runs: Iterable[Path],
    *,
    out: Path,
    scales: tuple[float, ...] = Shifts.scales,
    lengths: tuple[int, ...] = Shifts.lengths,
    deviant: float = Shifts.deviant,
    sequences: int = Shifts.sequences,
    seed: int = Shifts.seed,
    overwrite: bool = False,
) -> ShiftResults:
    """Test models of synthetic tasks under shift: scale, length, one deviant number.

    Writes the numbers as CSV, shifts.md with the verdict against Softmax, and figures with intervals over
    seeds. All models of a task read the same sequences.

    Parameters
    ----------
    runs : iterable of path-like
        run folders of babyssa train synthetic, of any tasks, variants and seeds
    out : path-like
        folder to write
    scales : tuple of float
        standard deviations of the inputs, and of a linear function's coefficients
    lengths : tuple of int
        lengths of sequences, in numbers or, for linear functions, examples
    deviant : float
        absolute value of the one deviant input; 0 leaves it out
    sequences : int
        new sequences for each shift
    seed : int
        decides those sequences
    overwrite : bool
        replace earlier results in --out

    Returns
    -------
    ShiftResults

    Raises
    ------
    DataError, ModelError
        If a folder does not hold a finished run of a synthetic task.
    OutputExistsError
        If `out` holds results and `overwrite` is false.

    Examples
    --------
    babyssa shift runs/every/* --out shifts
    babyssa shift runs/linear/* --scales 3 10 --lengths 100 --out shifts
    """
    from babyssa.console import say
    from babyssa.synthetic import measure_shifts, write_shifts
    from babyssa.synthetic.shift_report import check_earlier_shifts

    check_earlier_shifts(out, overwrite)
    results = measure_shifts(runs, Shifts(tuple(scales), tuple(lengths), deviant, sequences, seed))
    write_shifts(results, out, overwrite=overwrite)
    say(f"wrote {out}")
    return results


@checked
def sweep(
    settings: EncoderTraining,
    *,
    variants: Iterable[str],
    seeds: Iterable[int],
    suite: str = "packaged",
    suite_order: Literal["bad-first", "good-first"] | None = None,
    method: Literal["pll", "pll-word-l2r", "holistic"] = "pll",
    limit: int | None = None,
    jobs: int = 1,
) -> Sweep:
    """Train and probe every variant under every seed, and compare them.

    Under one seed, all variants start from the same values of the parameters they share and see the same masks
    in the same order, with one tokenizer. Writes OUT/VARIANT-SEED/ for each cell and OUT/comparison/. Cells that
    are trained and probed already are skipped, so the same command resumes after a stop, and one with more seeds
    adds only those. A cell that fails does not stop the others: the comparison says which and why, and the exit
    status is 1.

    Parameters
    ----------
    settings : EncoderTraining
        of every run; its `out` is the sweep's folder, its `variant` and `seed` are not used
    variants : iterable of str
        attention scorings: softmax, ssa-1.5, ssa-2, ssa, or others by name
    seeds : iterable of int
        seeds; fewer than five say little
    suite : str
        suite of minimal pairs to probe, or packaged
    suite_order : str, optional
        which line of a pair comes first, where the suite does not say so
    method : str
        scoring method
    limit : int, optional
        pairs per paradigm (default: all)
    jobs : int
        cells at a time, each in a process of its own with its share of the CPU's cores

    Returns
    -------
    Sweep

    Raises
    ------
    OutputExistsError
        If a cell's folder holds a run with other settings; names the first that differs.
    Stopped
        If Ctrl-C or SIGTERM came: what is done is saved, and the same call resumes from there.
    BusyError
        If another process sweeps into the same folder.
    BabySSAError
        If too many cells failed to compare any.

    Examples
    --------
    babyssa sweep --config small --corpus corpus/ --out runs --jobs 2 \\
        --variants softmax ssa-1.5 --seeds 0 1 2
    babyssa sweep --config small --corpus corpus/ --out runs \\
        --variants softmax ssa --seeds 0 --suite zorro/ --suite-order bad-first
    """
    from babyssa.experiments.cells import Probing
    from babyssa.experiments.grid import sweep

    return sweep(settings, list(variants), list(seeds), Probing(suite, suite_order, method, limit), jobs=jobs)


@checked
def demo(*, out: Path = Path("babyssa-demo"), overwrite: bool = False) -> Demo:
    """Train Softmax and SSA encoders on the packaged sample corpus, probe and compare them.

    Takes a few minutes on two CPU cores. The models are small and see little: the demo shows what the
    package does, not what the scoring functions are worth.

    Parameters
    ----------
    out : path-like
        folder to write
    overwrite : bool
        replace an earlier demo

    Returns
    -------
    Demo

    Raises
    ------
    OutputExistsError
        If there is something in `out` and `overwrite` is false.

    Examples
    --------
    babyssa demo
    babyssa demo --out /tmp/demo
    """
    from babyssa.experiments.demo import run_demo

    return run_demo(out, EncoderTraining.from_recipe("demo", corpus=out, out=out), overwrite=overwrite)
