"""``babyssa compare``."""

from __future__ import annotations

from pathlib import Path


def compare(
    *folders: str,
    out: Path,
    baseline: str = "softmax",
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    allow_mixed: bool = False,
    overwrite: bool = False,
) -> None:
    """Compare variants over seeds from probe results.

    Writes comparison.csv, comparison.md, comparison.png and runs.csv (what made every number) to the folder
    --out, and prints the tables. Each variant is compared with the baseline on the same pairs and the same
    seeds, with Holm correction.

    Parameters
    ----------
    folders
        folders written by 'babyssa probe', or their parents
    out
        folder to write to
    baseline
        variant that the others are compared with
    level
        coverage of the intervals
    resamples
        bootstrap replicates
    seed
        seed of the bootstrap
    allow_mixed
        compare results of different suites, methods, reductions or tokenizers on the pairs that all have
    overwrite
        replace an earlier comparison in --out

    Examples
    --------
    babyssa compare runs/softmax-0/probe runs/ssa-0/probe --out comparison
    babyssa compare runs --out comparison            # every probe result under runs
    babyssa compare runs --out comparison --baseline ssa-1.5 --level 0.9
    """
    from babyssa.comparison.comparison import FILES
    from babyssa.comparison.comparison import compare as compare_results
    from babyssa.console import say

    found = compare_results(
        folders,
        out,
        baseline=baseline,
        level=level,
        resamples=resamples,
        seed=seed,
        allow_mixed=allow_mixed,
        overwrite=overwrite,
    )
    print(found.to_markdown(), end="")
    say(f"wrote {', '.join(FILES)} to {out}")
