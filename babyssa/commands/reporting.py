"""Verbs that make pages."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from babyssa.checks import checked

if TYPE_CHECKING:
    from babyssa.pages.report import Report


@checked
def report(
    results: Iterable[str],
    *,
    out: Path = Path("report.html"),
    title: str | None = None,
    baseline: str = "softmax",
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    allow_mixed: bool = False,
    overwrite: bool = False,
) -> Report:
    """Write a page of results: tables, charts, and every pair that was decided.

    One HTML file that opens from disk in any browser and needs no network. It compares as babyssa compare does.

    Parameters
    ----------
    results : iterable of path-like
        folders written by babyssa probe, or their parents
    out : path-like
        file to write
    title : str, optional
        heading of the page (default: the variants and the suite)
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
    """
    from babyssa.comparison.comparison import compare
    from babyssa.errors import DataError
    from babyssa.files import check_overwrite
    from babyssa.pages.report import write_report

    folders = [str(folder) for folder in ([results] if isinstance(results, str | Path) else results)]
    check_overwrite(out.parent, (out.name,), overwrite)
    options = {"baseline": baseline, "level": level, "resamples": resamples, "seed": seed}
    found = compare(folders, allow_mixed=allow_mixed, **options)
    if not hasattr(found, "results"):
        raise DataError("has the results of an experiment", path=folders[0], remedy="babyssa compare shows them")
    defaults = report.__kwdefaults__
    words = [f"--{key}={value}" for key, value in options.items() if value != defaults[key]]
    words += ["--allow-mixed"] * allow_mixed
    command = shlex.join(["babyssa", "report", *folders, "--out", str(out), *words])
    suite = ", ".join(sorted({result.summary["suite"] for result in found.results}))
    return write_report(found, out, title or f"{' and '.join(found.variants)} on {suite}", command)
