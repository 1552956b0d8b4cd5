"""Shift results: tables with their verdict, and files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from babyssa.display import Column, Shown, Table
from babyssa.figures import save_figure
from babyssa.files import atomic_write, check_overwrite, write_json
from babyssa.probing.figures import draw_attention_maps
from babyssa.synthetic.shift_figures import draw_deviant, draw_deviant_weights, draw_lengths, draw_scales
from babyssa.synthetic.tasks import CONTROL, IN_DISTRIBUTION, TASKS, Task

BASELINE = "softmax"
SUMMARY = "shifts.md"
PROVENANCE = "provenance.json"

_TABLES = ("runs", "positions", "models", "deviant_weights")
# Each figure of a task: what draws it, from which table.
_FIGURES = {
    "scale": (draw_scales, "models"),
    "length": (draw_lengths, "positions"),
    "deviant": (draw_deviant, "models"),
    "deviant-weights": (draw_deviant_weights, "deviant_weights"),
}


@dataclass(frozen=True)
class AttentionMap:
    """The attention weights of a model, of its first seed, on one sequence.

    Parameters
    ----------
    values : array, (numbers,)
        The sequence.
    layers : list of array
        (heads, query, key) for each layer.
    """

    values: np.ndarray
    layers: list[np.ndarray]


@dataclass(frozen=True)
class ShiftResults(Shown):
    """What :func:`measure_shifts` found; accuracies in 0..1, squared errors in units of the variance of y.

    Parameters
    ----------
    runs : DataFrame
        task, model, variant, blocks, seed, shift, value (mean over k, of linear functions from the third
        example on), low, high (95%, bootstrap over sequences), last (at the last k), n.
    positions : DataFrame
        The same at each k, from 1: value, low, high.
    models : DataFrame
        Over seeds: value, sd, low, high (95%, Student's t), last, seeds; pairs, how many seeds Softmax with the
        same blocks has too, and over them the mean difference to it, difference_low, difference_high.
        Intervals are NaN where there is one seed or pair, and none goes below 0, or above an accuracy of 1.
    deviant_weights : DataFrame
        Attention weight on the deviant number by layer and head, mean over the queries after it, and
        `uniform`, what it would be if every number before the query weighed the same.
    maps : dict
        By task and model: the attention weights on the first sequence with the deviant, where the model
        forms any.
    provenance : dict
        What the numbers come from: each run's folder and the hash of its weights, the shifts, the versions.
    """

    runs: pd.DataFrame
    positions: pd.DataFrame
    models: pd.DataFrame
    deviant_weights: pd.DataFrame
    maps: dict[tuple[str, str], AttentionMap]
    provenance: dict[str, Any]

    def tables(self) -> Iterator[Table]:
        """One table per task: a row per shift, a column per model, mean over seeds and its interval."""
        for name, of_task in self.models.groupby("task", sort=False):
            unit = "balanced accuracy in %, mean over k"
            if TASKS[name].metric != "accuracy":
                unit = "squared error / variance of y, mean over k from the third example on"
            columns = [Column("shift")]
            for model, rows in of_task.groupby("model", sort=False):
                of_seeds = "" if rows.blocks.iloc[0] == "baseline" else f" (seeds: {rows.seeds.iloc[0]})"
                columns.append(Column(model, partial(_cell, TASKS[name]), f"{model}{of_seeds}", right=True))
            rows = [[shift, *of_shift.itertuples()] for shift, of_shift in of_task.groupby("shift", sort=False)]
            yield Table(columns, rows, title=f"{name}: {unit}", notes=list(_verdicts(of_task, TASKS[name])))

    def to_frame(self) -> pd.DataFrame:
        """The means over seeds, as in models.csv."""
        return self.models

    def to_markdown(self) -> str:
        """The tables and verdicts in Markdown, a section for each task."""
        return "\n\n".join(f"## {table.to_markdown()}" for table in self.tables()) + "\n"


def check_earlier_shifts(out: Path, overwrite: bool) -> None:
    """Raise OutputExistsError if `out` holds results already and `overwrite` is false."""
    check_overwrite(out, [*(f"{table}.csv" for table in _TABLES), SUMMARY, PROVENANCE], overwrite)


def write_shifts(results: ShiftResults, out: Path, *, overwrite: bool = False) -> list[Path]:
    """Write every table as CSV, shifts.md, and per task the figures; returns the files.

    Raises
    ------
    OutputExistsError
        If `out` holds results already and `overwrite` is false.
    """
    out = Path(out)
    check_earlier_shifts(out, overwrite)
    for task in TASKS:
        for earlier in out.glob(f"{task}-*.png"):
            earlier.unlink()
    for table in _TABLES:
        with atomic_write(out / f"{table}.csv") as file:
            getattr(results, table).to_csv(file, index=False, float_format="%.6g")
    with atomic_write(out / SUMMARY) as file:
        file.write(results.to_markdown())
    write_json(out / PROVENANCE, results.provenance)
    figures = {}
    for task in dict.fromkeys(results.runs.task):
        for what, (draw, table) in _FIGURES.items():
            rows = getattr(results, table)
            figures[f"{task}-{what}.png"] = draw(rows[rows.task == task], TASKS[task])
    for (task, model), shown in results.maps.items():
        figure = draw_attention_maps([f"{value:.1f}" for value in shown.values], shown.layers)
        figures[f"{task}-map-{model.replace(', ', '-').replace(' ', '-')}.png"] = figure
    figures = {name: figure for name, figure in figures.items() if figure is not None}
    for name, figure in figures.items():
        save_figure(figure, out / name)
    return [out / name for name in (*(f"{table}.csv" for table in _TABLES), SUMMARY, PROVENANCE, *figures)]


def _cell(task: Task, row: Any) -> str:
    def number(value: float) -> str:
        return f"{100 * value:.1f}" if task.metric == "accuracy" else f"{value:.3f}"

    return number(row.value) + ("" if np.isnan(row.low) else f" [{number(row.low)}, {number(row.high)}]")


def _verdicts(of_task: pd.DataFrame, task: Task) -> Iterator[str]:
    """What can be said about each model against Softmax with the same seeds, and what cannot."""
    better = 1 if task.metric == "accuracy" else -1
    for model, rows in of_task[of_task.blocks == "full"].groupby("model", sort=False):
        rows = rows[~rows["shift"].isin((IN_DISTRIBUTION, CONTROL)) & rows.difference.notna()]
        if not len(rows):
            continue
        if rows.pairs.max() < 2:
            ahead = int((better * rows.difference > 0).sum())
            yield (
                f"{model}: one pair of seeds, so their variance is unknown; its value is the better one under "
                f"{ahead} of {len(rows)} shifts."
            )
            continue
        above, below = rows["shift"][rows.difference_low > 0], rows["shift"][rows.difference_high < 0]
        wins, losses = (above, below) if better > 0 else (below, above)
        yield (
            f"{model} against {BASELINE}, paired by seed: better under {', '.join(wins) or 'none'}, worse under "
            f"{', '.join(losses) or 'none'}, no difference established under the other "
            f"{len(rows) - len(wins) - len(losses)} (95% t-interval over {rows.pairs.max()} pairs of seeds, each "
            "shift by itself)."
        )
