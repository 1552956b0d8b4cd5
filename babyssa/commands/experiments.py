"""Verbs that compare variants of a model: over seeds, under shift, in a sweep, in the demo."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from babyssa.checks import checked
from babyssa.decoder.config import DecoderTraining
from babyssa.encoder.config import EncoderTraining
from babyssa.errors import ConfigError
from babyssa.figures import Format, Width
from babyssa.synthetic.config import Data, Shifts, SyntheticTraining

if TYPE_CHECKING:
    from babyssa.comparison.curves import LearningCurves
    from babyssa.comparison.report import Comparison, Comparisons
    from babyssa.experiments.demo import Demo
    from babyssa.experiments.grid import Plan, Sweep
    from babyssa.synthetic.shifts import ShiftResults


@checked
def compare(
    folders: Iterable[str],
    *,
    out: Path | None = None,
    over: Literal["steps", "words"] | None = None,
    baseline: str | None = None,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    allow_mixed: bool = False,
    figures: Format = "png",
    width: Width = "page",
    overwrite: bool = False,
) -> Comparison | Comparisons | LearningCurves:
    """Compare variants over seeds from probe results, or from the results of experiments.

    Each variant is compared with the baseline on the same pairs and the same seeds, with Holm correction. With
    --out, writes comparison.md, comparison.csv (every estimate), seeds.csv (every seed), runs.csv (where every
    number comes from) and comparison.png (accuracies, and beside them paired differences). With --over, lines up
    checkpoints instead: learning curves with intervals over seeds, and where variants part.

    Parameters
    ----------
    folders : iterable of path-like
        folders written by babyssa probe, results of babyssa sweep, or their parents
    out : path-like, optional
        folder to write to
    over : str, optional
        compare checkpoints (of babyssa probe --all-checkpoints) over the steps or words that they have seen, and
        write curves.csv, curves.md and curves.png
    baseline : str, optional
        variant that the others are compared with (default: softmax, or what the experiment says)
    level : float
        coverage of the intervals; differences are marked at 1 - level
    resamples : int
        bootstrap replicates
    seed : int
        seed of the bootstrap
    allow_mixed : bool
        compare results of different suites, methods, reductions, precisions or tokenizers on the pairs that all
        have
    figures : str
        format of the figure
    width : str
        the figure's width in a two-column paper: of a column (3.03 inches) or of the page (6.3)
    overwrite : bool
        replace an earlier comparison in --out

    Returns
    -------
    Comparison, of experiments Comparisons, or over training LearningCurves

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
    babyssa compare results --out tables  # every experiment under results
    babyssa compare runs --out comparison --baseline ssa-1.5 --level 0.9
    babyssa compare runs --out comparison --figures pdf --width column
    babyssa compare probed/* --over steps --out curves
    """
    if over is not None:
        from babyssa.comparison.curves import compare_curves

        how = {"figures": figures, "width": width, "overwrite": overwrite}
        return compare_curves(folders, out, over=over, baseline=baseline, level=level, **how)

    from babyssa.comparison.comparison import compare
    from babyssa.console import say

    found = compare(
        folders,
        out,
        baseline=baseline,
        level=level,
        resamples=resamples,
        seed=seed,
        allow_mixed=allow_mixed,
        figures=figures,
        width=width,
        overwrite=overwrite,
    )
    if out is not None:
        say(f"wrote {out}")
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
    data: tuple[Data, ...] = Shifts.data,
    figures: Format = "png",
    overwrite: bool = False,
) -> ShiftResults:
    """Test models of synthetic tasks under shift: scale, length, one deviant number.

    Writes the numbers as CSV, shifts.md with the verdict against Softmax, and figures, with intervals over seeds
    where there are several. All models of a task read the same numbers. Models are named by their scoring and by
    every setting in which they differ, and each is compared with Softmax with otherwise the same settings.

    Parameters
    ----------
    runs : iterable of path-like
        run folders of babyssa train synthetic, of any tasks, variants, settings and seeds
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
    data : tuple of {"designed", "iid"}
        how the signs of a quantifier's numbers are drawn (default: each way that a run was trained on)
    figures : str
        format of the figures
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
    babyssa shift runs/every/* --data designed iid --figures pdf --out shifts
    """
    from babyssa.console import say
    from babyssa.synthetic import measure_shifts, write_shifts
    from babyssa.synthetic.shift_report import check_earlier_shifts

    check_earlier_shifts(out, overwrite)
    results = measure_shifts(runs, Shifts(tuple(scales), tuple(lengths), deviant, sequences, seed, tuple(data)))
    write_shifts(results, out, figures=figures, overwrite=overwrite)
    say(f"wrote {out}")
    return results


@checked
def sweep(
    settings: EncoderTraining | DecoderTraining | SyntheticTraining,
    experiment: str | None = None,
    *,
    variants: Iterable[str] = (),
    seeds: Iterable[int] = (),
    suite: str = "packaged",
    suite_order: Literal["bad-first", "good-first"] | None = None,
    method: Literal["pll", "pll-word-l2r", "holistic"] = "pll",
    limit: int | None = None,
    data: dict[str, str] | None = None,
    results: Path | None = None,
    jobs: int = 1,
    executor: Literal["local", "slurm"] = "local",
    slurm: dict[str, str] | None = None,
    measure_only: bool = False,
    dry_run: bool = False,
) -> Sweep | Plan:
    """Train and measure every variant under every seed, and compare them.

    What is trained and measured is an experiment, packaged or a YAML file; without one, --variants of an encoder
    recipe are trained and one suite of minimal pairs is scored. Under one seed, all variants start from the same
    values of the parameters they share and see the same data in the same order, with one tokenizer. Writes
    OUT/VARIANT-SEED/ for each run, small files of what was measured, which outlive the models, and
    OUT/comparison/. What is done already is skipped, so the same command resumes after a stop, one with more seeds
    adds only those, and run folders that `babyssa train` wrote with the same settings are taken as they are. A
    cell that fails does not stop the others: the comparison says which and why, and the exit status is 1.

    Parameters
    ----------
    settings : EncoderTraining, DecoderTraining or SyntheticTraining
        of every run; its `out` is the sweep's folder, its `variant` and `seed` are not used
    experiment : str, optional
        a packaged experiment, or a YAML file; its settings count less than options
    variants : iterable of str
        attention scorings: softmax, ssa-1.5, ssa-2, ssa, or others by name; some of the experiment's variants
    seeds : iterable of int
        seeds, in place of the experiment's; fewer than five say little
    suite : str
        without an experiment: suite of minimal pairs to probe, or packaged
    suite_order : str, optional
        which line of a pair comes first, where the suite does not say so
    method : str
        scoring method
    limit : int, optional
        pairs per paradigm (default: all)
    data : dict, optional
        where the data are that an experiment names, such as --data.zorro PATH
    results : path-like, optional
        folder of the small files (default: OUT/results)
    jobs : int
        cells at a time, each in a process of its own with its share of the CPU's cores
    executor : str
        where cells run: on this machine, or each as a job of a Slurm cluster (pip install 'babyssa[slurm]')
    slurm : dict, optional
        submitit's options of such a job, named as sbatch's, such as --slurm.partition gpu --slurm.time 60
    measure_only : bool
        train nothing: measure and compare what is trained
    dry_run : bool
        list the cells, their sizes, and an estimate of hours from a few steps of each variant

    Returns
    -------
    Sweep, or of a dry run Plan

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
    babyssa sweep encoder-grammar --corpus corpus/ --data.zorro zorro/ --out runs
    babyssa sweep encoder-grammar --corpus corpus/ --data.zorro zorro/ \\
        --out runs --dry-run
    babyssa sweep mine.yaml --out runs --seeds 0 --optimisation.steps 100
    babyssa sweep mine.yaml --out runs --executor slurm --slurm.partition short
    """
    from babyssa.experiments.cluster import JOBS, make_executor
    from babyssa.experiments.experiment import Experiment, make_experiment, read_experiment
    from babyssa.experiments.grid import plan, sweep
    from babyssa.experiments.measures import Measure, Pairs

    for key, default in (("scoring", {}), ("variant", "softmax"), ("seed", 0)):
        if getattr(settings, key) != default:
            raise ConfigError(
                f"a sweep does not take {key}",
                remedy="it has --variants and --seeds; an experiment's variants may set anything",
            )
    if experiment is not None:
        chosen = make_experiment(read_experiment(experiment), settings, data or {}).select(variants, seeds)
    else:
        pairs = Path(suite).stem
        chosen = Experiment(
            name=Path(settings.out).resolve().name,
            settings=settings,
            variants={name: {"variant": name} for name in variants},
            seeds=tuple(dict.fromkeys(seeds)),
            measures={pairs: Measure("pairs", Pairs(pairs, suite_order, method, limit), {pairs: suite})},
        )
    if slurm and executor != "slurm":
        raise ConfigError("--slurm options are for jobs of a cluster", remedy="add --executor slurm")
    if dry_run:
        return plan(chosen, results=results)
    made = make_executor(Path(settings.out) / JOBS, slurm or {}) if executor == "slurm" else None
    return sweep(chosen, results=results, jobs=jobs, executor=made, measure_only=measure_only)


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
