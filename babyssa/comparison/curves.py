"""Learning curves: accuracy over the checkpoints of runs, with intervals over seeds, and where variants part."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from babyssa.comparison.comparison import order_variants
from babyssa.comparison.report import interval, points
from babyssa.comparison.results import StoredResult, check_comparable, find_results, read_result
from babyssa.comparison.statistics import t_interval
from babyssa.display import Column, Shown, Table, percent
from babyssa.errors import DataError
from babyssa.figures import (
    SMALL,
    WIDTHS,
    Format,
    Width,
    fill,
    literal,
    replace_figure,
    series,
    set_caption,
    styled,
)
from babyssa.files import atomic_write, check_overwrite, read_json

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Over = Literal["steps", "words"]
FILES = ("curves.csv", "curves.md")
MEAN = "mean over paradigms"
_KEYS = {"steps": "step", "words": "words"}


@dataclass(frozen=True)
class LearningCurves(Shown):
    """Accuracies of variants along their training.

    Parameters
    ----------
    over : {"steps", "words"}
        What training is measured in; words seen are rounded down to two digits.
    baseline : str, optional
        The variant that the others are compared with; None if there is one variant only.
    level : float
        Coverage of the intervals.
    points : pandas.DataFrame
        A row for each paradigm, variant and point: accuracy (0..1) and the interval of its mean over seeds, and
        the difference to the baseline over the seeds that both have. NaN is unknown: one seed has no interval.
    partings : pandas.DataFrame
        For each paradigm and variant the first point from which on, up to the last one, the interval of the
        difference excludes 0 on the same side; NaN where there is none.
    last : tuple of StoredResult
        What each run had learned at its end.
    """

    over: Over
    baseline: str | None
    level: float
    points: pd.DataFrame
    partings: pd.DataFrame
    last: tuple[StoredResult, ...] = field(repr=False)

    @property
    def variants(self) -> list[str]:
        """The variants, the baseline first."""
        return list(dict.fromkeys(self.points.variant))

    def tables(self) -> Iterator[Table]:
        mean = self.points[self.points.paradigm == MEAN]
        rows = []
        for at, here in mean.groupby("at"):
            found = {row.variant: row for row in here.itertuples()}
            rows.append((at, *(_show(found[v]) if v in found else None for v in self.variants)))
        seeds = ", ".join(f"{v}: {_seeds(mean[mean.variant == v].n_seeds)}" for v in self.variants)
        columns = [Column(self.over, ","), *(Column(v, right=True) for v in self.variants)]
        notes = [
            f"Mean over paradigms and seeds in %, with the {100 * self.level:g}% interval over seeds ({seeds})."
        ]
        yield Table(columns, rows, "learning curves", notes)
        if self.baseline is not None:
            others = self.variants[1:]
            found = {(row.paradigm, row.variant): row for row in self.partings.itertuples()}
            rows = [
                (paradigm, *(_parting(found[paradigm, v]) for v in others))
                for paradigm in dict.fromkeys(self.partings.paradigm)
            ]
            notes = (
                f"From these {self.over} on, and up to the last, the {100 * self.level:g}% interval of the "
                "difference over common seeds excludes 0; in brackets the difference at the end. Nothing corrects "
                "for the number of paradigms.",
            )
            columns = [Column("paradigm"), *(Column(v, right=True) for v in others)]
            yield Table(columns, rows, f"where variants part from {self.baseline}", notes)

    def to_frame(self) -> pd.DataFrame:
        """Every point of every curve."""
        return self.points


def _seeds(counts: pd.Series) -> str:
    low, high = int(counts.min()), int(counts.max())
    return f"{low} seed{'s' * (high > 1)}" if low == high else f"{low} to {high} seeds"


def _show(row: Any) -> str:
    return percent(row.accuracy) + ("" if math.isnan(row.low) else f" {interval(row.low, row.high)}")


def _parting(row: Any) -> str:
    return "" if math.isnan(row.at) else f"{row.at:,.0f} ({points(row.difference)})"


def compare_curves(
    folders: Iterable[str | Path],
    out: Path | None = None,
    *,
    over: Over = "steps",
    baseline: str | None = None,
    level: float = 0.95,
    figures: Format = "png",
    width: Width = "page",
    overwrite: bool = False,
) -> LearningCurves:
    """Line up the probe results of checkpoints; :func:`babyssa.compare` explains the parameters.

    Raises
    ------
    DataError
        If a result does not say how long its model was trained, or the results cannot be compared.
    ConfigError
        If there is no such baseline.
    """
    if out is not None:
        check_overwrite(out, (*FILES, f"curves.{figures}"), overwrite)
    runs = _by_point([read_result(folder) for folder in find_results(folders)], over)
    known = {variant for variant, _ in runs}
    variants = order_variants(known, baseline or "softmax")
    table = _table(runs, variants, level)
    base = variants[0] if len(variants) > 1 else None
    last = tuple(run[max(run)] for run in runs.values())
    curves = LearningCurves(over, base, level, table, _partings(table, variants), last)
    if out is not None:
        _write(curves, Path(out), figures, width)
    return curves


def are_checkpoints(folders: Iterable[str | Path]) -> bool:
    """Whether `folders` hold results of one run, a variant and a seed, after different numbers of steps."""
    steps: dict[tuple[str, int | None], set[int | None]] = {}
    for folder in find_results(folders):
        summary = read_json(folder / "summary.json")
        if isinstance(summary, dict):
            steps.setdefault((summary.get("variant"), summary.get("seed")), set()).add(summary.get("step"))
    return any(len(found) > 1 for found in steps.values())


def _by_point(results: list[StoredResult], over: Over) -> dict[tuple[str, int | None], dict[int, StoredResult]]:
    """The results of each run, a variant and a seed, by the point of its training."""
    runs: dict[tuple[str, int | None], dict[int, StoredResult]] = {}
    by_point: dict[int, list[StoredResult]] = {}
    for result in sorted(results, key=lambda result: result.summary.get(_KEYS[over]) or 0):
        at = result.summary.get(_KEYS[over])
        if not isinstance(at, int):
            raise DataError(
                f"does not say how many {over} its model has seen",
                path=result.folder,
                remedy="probe checkpoints of a run with --all-checkpoints",
            )
        run = runs.setdefault((result.variant, result.seed), {})
        if over == "words":
            mark = run.get(_rounded(at))
            # A run that ends soon after a mark is a point of its own.
            at = _rounded(at) if mark is None or mark.model_sha256 == result.model_sha256 else at
        # A checkpoint by steps, one by words and the run itself may be one model.
        if at not in run or run[at].model_sha256 != result.model_sha256:
            by_point.setdefault(at, []).append(result)
            run[at] = result
    for group in by_point.values():
        check_comparable([group[0], *group[1:]], allow_mixed=False)
        if group[0].outcomes.keys() != results[0].outcomes.keys():
            raise DataError(
                f"its pairs are not those of {results[0].folder}",
                path=group[0].folder,
                remedy="probe all checkpoints with the same suite",
            )
    return runs


def _rounded(words: int) -> int:
    unit = 10 ** max(len(str(words)) - 2, 0)
    return words // unit * unit


def _accuracies(result: StoredResult) -> dict[str, float]:
    found = {paradigm["name"]: paradigm["accuracy"] for paradigm in result.summary["paradigms"]}
    return {MEAN: result.summary["accuracy"], **found}


def _table(runs: dict, variants: list[str], level: float) -> pd.DataFrame:
    import pandas as pd

    accuracies = {run: {at: _accuracies(result) for at, result in found.items()} for run, found in runs.items()}
    paradigms = list(next(iter(next(iter(accuracies.values())).values())))
    every = sorted({at for found in runs.values() for at in found})
    rows = []
    for paradigm in paradigms:
        for variant in variants:
            for at in every:
                values = {s: f[at][paradigm] for (v, s), f in accuracies.items() if v == variant and at in f}
                if not values:
                    continue
                low, high = _interval(list(values.values()), level)
                row = {"paradigm": paradigm, "variant": variant, "at": at, "n_seeds": len(values)}
                row |= {"accuracy": float(np.mean(list(values.values()))), "low": low, "high": high}
                base = {s: f[at][paradigm] for (v, s), f in accuracies.items() if v == variants[0] and at in f}
                differences = [value - base[seed] for seed, value in values.items() if seed in base]
                known = variant != variants[0] and bool(differences)
                low, high = _interval(differences, level) if known else (math.nan, math.nan)
                row |= {"difference": float(np.mean(differences)) if known else math.nan}
                rows.append({**row, "difference_low": low, "difference_high": high})
    return pd.DataFrame(rows)


def _interval(values: list[float], level: float) -> tuple[float, float]:
    return t_interval(values, level) if len(values) > 1 else (math.nan, math.nan)


def _partings(table: pd.DataFrame, variants: list[str]) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for (paradigm, variant), curve in table.groupby(["paradigm", "variant"], sort=False):
        if variant == variants[0]:
            continue
        curve = curve.sort_values("at")
        # 1 or -1 where the interval lies on one side of 0.
        side = np.where(curve.difference_low > 0, 1, np.where(curve.difference_high < 0, -1, 0))
        last = np.flatnonzero(side != side[-1])
        first = last[-1] + 1 if len(last) else 0
        at = float(curve["at"].iloc[first]) if side[-1] != 0 else math.nan
        difference = curve.difference.iloc[-1]
        rows.append({"paradigm": paradigm, "variant": variant, "at": at, "difference": difference})
    return pd.DataFrame(rows, columns=["paradigm", "variant", "at", "difference"])


@styled
def draw_curves(curves: LearningCurves, width: Width = "page") -> Figure:
    """Draw the mean and every paradigm, a line and a band for each variant; a mark where one parts for good."""
    from matplotlib.figure import Figure

    paradigms = list(dict.fromkeys(curves.points.paradigm))
    columns, inches = min(2 if width == "column" else 4, len(paradigms)), WIDTHS[width]
    lines = math.ceil(len(paradigms) / columns)
    figure = Figure(figsize=(inches, 1.25 * lines + 0.8))
    grid = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    partings = {(row.paradigm, row.variant): row.at for row in curves.partings.itertuples()}
    for axes, paradigm in zip(grid.flat, paradigms, strict=False):
        for number, variant in enumerate(curves.variants):
            here = curves.points[(curves.points.paradigm == paradigm) & (curves.points.variant == variant)]
            style = series(number)
            axes.plot(here["at"], 100 * here.accuracy, **style, markersize=2.5, label=literal(variant))
            axes.fill_between(here["at"], 100 * here.low, 100 * here.high, color=style["color"], alpha=0.15, lw=0)
            at = partings.get((paradigm, variant), math.nan)
            if not math.isnan(at):
                axes.axvline(at, color=style["color"], linestyle=":", linewidth=0.8)
        axes.axhline(50, color="#555555", linestyle=(0, (4, 3)), linewidth=0.6)
        title = fill(literal(paradigm).replace("_", " "), 0.95 * inches / columns)
        axes.set_title(title, fontsize=SMALL, fontweight="bold" if paradigm == MEAN else None)
    # An interval of the mean of few seeds may reach beyond what an accuracy can be.
    axes.set_ylim(-3, 103)
    for axes in list(grid.flat)[len(paradigms) :]:
        axes.set_axis_off()
    figure.supylabel("accuracy (%)", fontsize=7.5)
    figure.legend(
        *grid.flat[0].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=min(len(curves.variants), int(inches / 0.75)),
    )
    words = "words seen" if curves.over == "words" else curves.over
    several = curves.points.n_seeds.max() > 1
    mean = f"means and {100 * curves.level:g}% intervals over" if several else "no interval, since there is"
    parted = "; dotted: from here on, a variant differs" if curves.partings["at"].notna().any() else ""
    set_caption(figure, f"Over {words}; {mean} {_seeds(curves.points.n_seeds)}; dashed: chance{parted}.")
    return figure


def _write(curves: LearningCurves, out: Path, figures: Format, width: Width) -> None:
    with atomic_write(out / "curves.csv") as file:
        curves.points.to_csv(file, index=False, lineterminator="\n")
    with atomic_write(out / "curves.md") as file:
        file.write(curves.to_markdown())
    replace_figure(draw_curves(curves, width), out / "curves", figures)
