"""``babyssa shift``."""

from __future__ import annotations

from pathlib import Path

from babyssa.synthetic.config import Shifts


def shift(
    *runs: Path,
    out: Path,
    scales: list[float] = Shifts.scales,
    lengths: list[int] = Shifts.lengths,
    deviant: float = Shifts.deviant,
    sequences: int = Shifts.sequences,
    seed: int = Shifts.seed,
    overwrite: bool = False,
) -> None:
    """Test models of synthetic tasks under shift: scale, length, one deviant number.

    Writes the numbers as CSV, shifts.md with the verdict against Softmax, and figures with intervals over
    seeds. Every model of a task reads the same sequences.

    Parameters
    ----------
    runs
        run folders of babyssa train synthetic, of any tasks, variants and seeds
    out
        folder to write
    scales
        standard deviations of the inputs, and of a linear function's coefficients
    lengths
        lengths of sequences, in numbers or, of linear functions, examples
    deviant
        absolute value of the one deviant input; 0 leaves it out
    sequences
        fresh sequences for each shift
    seed
        decides those sequences
    overwrite
        replace earlier results in --out

    Examples
    --------
    babyssa shift runs/every/* --out shifts
    babyssa shift runs/linear/softmax-0 runs/linear/ssa-0 --scales 3 10 --lengths 100 --out shifts
    """
    from babyssa.console import say
    from babyssa.display import show
    from babyssa.synthetic import measure_shifts, write_shifts
    from babyssa.synthetic.shift_report import check_earlier_shifts

    check_earlier_shifts(out, overwrite)
    results = measure_shifts(runs, Shifts(tuple(scales), tuple(lengths), deviant, sequences, seed))
    write_shifts(results, out, overwrite=overwrite)
    show(results)
    say(f"wrote {out}")
