"""Compares single numbers per trained model, such as a perplexity: means and differences over seeds.

Here the seeds are all that varies, so a difference is judged by Student's t over seeds: paired where both variants
have the seed, and Welch's otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from babyssa.comparison.cells import StoredCell
from babyssa.comparison.estimates import Run, list_seeds, match_seeds
from babyssa.comparison.power import detectable_difference
from babyssa.comparison.statistics import crossed_error, crossed_t, holm, t_interval
from babyssa.display import Column, Shown, Table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class ScalarComparison(Shown):
    """What :func:`compare_scalars` found.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per number (``name``) and variant: value (mean over seeds), sd, low, high (Student's t over seeds),
        and against the baseline difference, difference_low, difference_high, p, p_holm (over the numbers, for
        each variant) and detectable, the smallest true difference that would have been shown with a probability
        of 80%. NaN is unknown.
    runs : pandas.DataFrame
        One row per number, variant and seed.
    unit : str
        What the numbers are.
    variants : tuple of str
        The baseline first.
    level : float
        Coverage of the intervals.
    notes : tuple of str
        What a reader must know.
    """

    table: pd.DataFrame
    runs: pd.DataFrame
    unit: str
    variants: tuple[str, ...]
    level: float
    notes: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """What the numbers say, in plain words."""
        compared = self.table[self.table.difference.notna()]
        if not len(compared):
            return "Nothing here is compared with a baseline."
        if (compared.compared_seeds < 2).all():
            return "With one seed, seed variance is unknown: no difference can be judged."
        shown = compared[compared.p_holm < 1 - self.level]
        if not len(shown):
            return f"No difference to {self.variants[0]} is shown."
        said = [
            f"{row.name} of {row.variant} is {'higher' if row.difference > 0 else 'lower'} by "
            f"{_number(abs(row.difference))} [{_number(row.difference_low)}, {_number(row.difference_high)}]"
            for row in shown.itertuples(index=False)
        ]
        return f"Against {self.variants[0]}, {'; '.join(said)}."

    def tables(self) -> Iterator[Table]:
        """The verdict, means with their intervals, and differences."""
        yield Table((), (), title=self.verdict, notes=[f"Note: {note}." for note in self.notes])
        yield from self.report()

    def report(self) -> Iterator[Table]:
        """The tables without the verdict."""
        rows: dict[str, dict[str, Any]] = {}
        for row in self.table.itertuples(index=False):
            rows.setdefault(row.name, {})[row.variant] = row
        percent = f"{100 * self.level:g}%"
        yield Table(
            [
                Column("name", heading=self.unit),
                *(Column(v, value_with_interval, right=True) for v in self.variants),
            ],
            [[name, *(of.get(v) for v in self.variants)] for name, of in rows.items()],
            title=f"{self.unit}: mean ± standard deviation over seeds [{percent} interval, Student's t]",
        )
        others = [v for v in self.variants[1:] if self.table.difference[self.table.variant == v].notna().any()]
        if others:
            yield Table(
                [Column("name", heading=self.unit), *_difference_columns(others, self.variants[0])],
                [[name, *(of.get(v) for v in others for _ in range(2))] for name, of in rows.items()],
                title=f"Differences to {self.variants[0]} [{percent} interval, Student's t over seeds], Holm's p",
                notes=["'shows' is the smallest true difference that these seeds would have shown (power 80%)."],
            )

    def to_frame(self) -> pd.DataFrame:
        """The estimates."""
        return self.table


def compare_scalars(
    cells: Sequence[StoredCell], measure: str, variants: Sequence[str], notes: Sequence[str], level: float
) -> ScalarComparison:
    """Compare one measure of single numbers over the seeds of each variant.

    Parameters
    ----------
    cells : sequence of StoredCell
        Of one experiment and condition; a number may be missing in some, as Softmax has no n.
    measure : str
        Which of their measures.
    variants : sequence of str
        The baseline first.
    notes : sequence of str
        Added to those about seeds that do not match.
    level : float
        Coverage of the intervals.
    """
    import pandas as pd

    cells = sorted(cells, key=lambda cell: (variants.index(cell.values["variant"]), cell.values["seed"]))
    runs = [Run(i, cell.values["variant"], cell.values["seed"]) for i, cell in enumerate(cells)]
    found = [cell.measures[measure]["values"] for cell in cells]
    rows, unmatched = [], {}
    for name in dict.fromkeys(name for values in found for name in values):
        values = np.array([of_run.get(name, math.nan) for of_run in found])
        having = [run for run in runs if not math.isnan(values[run.index])]
        present = [variant for variant in variants if any(run.variant == variant for run in having)]
        contrasts, said = match_seeds(having, present) if variants[0] in present else ({}, [])
        unmatched |= dict.fromkeys(said)
        for variant in present:
            own = [run for run in having if run.variant == variant]
            row = {"name": name, "variant": variant, **_over_seeds(values[[run.index for run in own]], level)}
            rows.append(row | {"seeds": list_seeds(own)} | _difference(values, contrasts.get(variant), level))
    table = pd.DataFrame(rows)
    table["p_holm"] = np.nan
    for variant in variants[1:]:
        family = table.variant == variant
        table.loc[family, "p_holm"] = holm(table.p[family])
    listed = [
        {"variant": run.variant, "seed": run.seed, "name": name, "value": value, "folder": str(cell.folder)}
        for run, cell, values in zip(runs, cells, found, strict=True)
        for name, value in values.items()
    ]
    unit = cells[0].measures[measure]["unit"]
    return ScalarComparison(table, pd.DataFrame(listed), unit, tuple(variants), level, (*notes, *unmatched))


def _over_seeds(values: np.ndarray, level: float) -> dict[str, float]:
    several = len(values) > 1
    low, high = t_interval(values, level) if several else (math.nan, math.nan)
    sd = values.std(ddof=1) if several else math.nan
    return {"n_seeds": len(values), "value": values.mean(), "sd": sd, "low": low, "high": high}


def _difference(values: np.ndarray, contrast, level: float) -> dict[str, Any]:
    if contrast is None:
        empty = dict.fromkeys(("difference", "difference_low", "difference_high", "p", "detectable"), math.nan)
        return {**empty, "compared_seeds": 0, "paired_by": ""}
    mine, theirs = values[contrast.variant][:, None], values[contrast.baseline][:, None]
    found = crossed_t(mine, theirs, paired=contrast.paired, level=level)
    _, error, df = crossed_error(mine, theirs, paired=contrast.paired)
    rounding = 1e-12 * np.abs(values).max()  # of sums of seeds that cancel
    return {
        "difference": found.value if abs(found.value) > rounding else 0.0,
        "difference_low": found.low,
        "difference_high": found.high,
        "p": found.p,
        "detectable": detectable_difference(error, df, level),
        "compared_seeds": contrast.seeds,
        "paired_by": "seeds" if contrast.paired else "",
    }


def _difference_columns(variants: Sequence[str], baseline: str) -> Iterator[Column]:
    for variant in variants:
        yield Column(variant, signed_number, f"{variant} − {baseline}, p", right=True)
        yield Column(f"{variant} detectable", _detectable, "shows", right=True)


def value_with_interval(row: Any) -> str:
    """Mean, standard deviation and interval over seeds."""
    if row.n_seeds < 2:
        return f"{_number(row.value)} ± ?"
    return f"{_number(row.value)} ± {_number(row.sd)} [{_number(row.low)}, {_number(row.high)}]"


def signed_number(row: Any) -> str:
    """A difference with its interval and Holm-adjusted p; nothing for the baseline."""
    if math.isnan(row.difference):
        return ""
    sign = "+" if row.difference > 0 else ""
    p = "?" if math.isnan(row.p_holm) else "<0.001" if row.p_holm < 0.001 else f"{row.p_holm:.3f}"
    return (
        f"{sign}{_number(row.difference)} [{_number(row.difference_low)}, {_number(row.difference_high)}] {p:>6}"
    )


def _detectable(row: Any) -> str:
    return "" if math.isnan(row.difference) else _number(row.detectable)


def _number(value: float) -> str:
    return "?" if math.isnan(value) else f"{value:.4g}".replace("-", "−")
