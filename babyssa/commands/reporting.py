"""Verbs that make pages."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from babyssa.checks import checked

if TYPE_CHECKING:
    from babyssa.pages.report import Report


@checked
def report(
    results: Iterable[str],
    *,
    out: Path = Path("report.html"),
    title: str | None = None,
    suite: str | None = None,
    suite_order: Literal["bad-first", "good-first"] | None = None,
    over: Literal["steps", "words"] | None = None,
    baseline: str | None = None,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    allow_mixed: bool = False,
    overwrite: bool = False,
) -> Report:
    """Write a page of results: tables, charts, and every pair that was decided, token by token.

    One HTML file that opens from disk in any browser and needs no network. It compares as babyssa compare does,
    shows one model alone too, and draws the learning curves of babyssa probe --all-checkpoints.

    Parameters
    ----------
    results : iterable of path-like
        folders written by babyssa probe or babyssa sweep, or their parents
    out : path-like
        file to write
    title : str, optional
        heading of the page
    suite : str, optional
        the suite that an experiment's models were probed with, for the sentences; its results have numbers only
    suite_order : str, optional
        which line of a pair comes first, where the suite does not say so
    over : str, optional
        what learning curves run over, steps or words (default: steps, where results are of checkpoints)
    baseline : str, optional
        variant that the others are compared with (default: the experiment's, or softmax)
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
        replace an earlier file

    Returns
    -------
    Report

    Raises
    ------
    DataError
        If there are no results, or they are damaged or cannot be compared.
    ConfigError
        If the baseline is not among the variants, or a setting is out of its domain.
    OutputExistsError
        If `out` exists and `overwrite` is false.

    Examples
    --------
    babyssa report results/softmax-0 results/ssa-0
    babyssa report runs --out report.html --title "Softmax and SSA on Zorro"
    babyssa report results/encoder-grammar --suite zorro --suite-order bad-first
    babyssa report results/ssa-curve --over words
    """
    from babyssa.comparison.cells import find_cells
    from babyssa.comparison.comparison import compare, compare_results
    from babyssa.comparison.curves import are_checkpoints, compare_curves
    from babyssa.comparison.report import Comparisons
    from babyssa.files import check_overwrite
    from babyssa.pages.report import write_report
    from babyssa.probing.suites import load_suite

    folders = [str(folder) for folder in ([results] if isinstance(results, str | Path) else results)]
    check_overwrite(out.parent, (out.name,), overwrite)
    texts = None if suite is None else load_suite(suite, suite_order)
    how = {"level": level, "resamples": resamples, "seed": seed}
    if over is None and not find_cells(folders) and not allow_mixed and are_checkpoints(folders):
        over = "steps"
    notes = ()
    if over is not None:
        curves = compare_curves(folders, over=over, baseline=baseline, level=level)
        last = compare_results(list(curves.last), baseline or "softmax", allow_mixed, **how)
        parts = {"Learning curves": curves, "At the end of training": last}
    else:
        found = compare(folders, baseline=baseline, allow_mixed=allow_mixed, **how)
        parts = found.parts if isinstance(found, Comparisons) else {"": found}
        notes = found.notes if isinstance(found, Comparisons) else ()
    options = {"baseline": baseline, **how, "suite": suite, "suite_order": suite_order, "over": over}
    known = inspect.signature(report).parameters
    given = {key: value for key, value in options.items() if value != known[key].default}
    words = [f"--{key.replace('_', '-')}={value}" for key, value in given.items()]
    words += ["--allow-mixed"] * allow_mixed
    command = shlex.join(["babyssa", "report", *folders, "--out", str(out), *words])
    return write_report(parts, out, title or _title(parts), command, texts, notes)


def _title(parts: Mapping[str, Any]) -> str:
    """What a page is called: its one model, or that it compares several."""
    (*_, last) = parts.values()
    variants = getattr(last, "variants", ())
    results = getattr(last, "results", ())
    if len(results) == 1:
        return f"{results[0].summary['model']} on {results[0].summary['suite']}"
    return f"Comparison of {', '.join(variants[:-1])} and {variants[-1]}" if len(variants) > 1 else "Results"
