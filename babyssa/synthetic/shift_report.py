"""Shift results: tables with their verdict, and files."""

from __future__ import annotations

import re
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
from babyssa.synthetic.shift_figures import (
    draw_deviant,
    draw_deviant_weights,
    draw_lengths,
    draw_magnitudes,
    draw_positions,
    draw_scales,
)
from babyssa.synthetic.tasks import CONTROL, TASKS, UNSHIFTED, WHOLE, Quantifier

BASELINE = "softmax"
# What stands in the column `settings` of a model of scikit-learn.
SIMPLE = "baseline"
SUMMARY = "shifts.md"
PROVENANCE = "provenance.json"
FORMATS = ("png", "pdf", "svg")

_TABLES = ("runs", "positions", "models", "magnitudes", "deviant_weights", "maps")
# Each figure of a task: what draws it, from which table.
_FIGURES = {
    "scale": (draw_scales, "models"),
    "length": (draw_lengths, "positions"),
    "positions": (draw_positions, "positions"),
    "deviant": (draw_deviant, "models"),
    "magnitudes": (draw_magnitudes, "magnitudes"),
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
    """What :func:`measure_shifts` found; shares in 0..1, squared errors in units of the variance of y.

    Every table begins with task, data (how the test numbers' signs were drawn), model, and its parts variant (the
    scoring) and settings (what else tells it from the others; "baseline" for a model of scikit-learn).

    Parameters
    ----------
    runs : DataFrame
        Further: seed, shift, measure, value (of the metric: mean over k, of linear functions from the third
        example on), low, high (95%, bootstrap over sequences), last (at the last k), n.
    positions : DataFrame
        The metric at each k, from 1: value, low, high.
    models : DataFrame
        Over seeds: value, sd, low, high (95%, Student's t), last, seeds; pairs, how many seeds Softmax with the
        same settings has too, and over them the mean difference to it, difference_low, difference_high.
        Intervals are NaN where there is one seed or pair, and none goes below 0, or above a share of 1.
    deviant_weights : DataFrame
        Attention weight on the deviant number by layer and head, mean over the queries after it, and
        `uniform`, what it would be if every number before the query weighed the same.
    magnitudes : DataFrame
        By scale of the inputs and layer: norm, logit and weight, which
        :func:`babyssa.synthetic.magnitudes.magnitudes` explains.
    maps : dict
        By task, data and model: the attention weights on the first sequence with the deviant, where the model
        forms any.
    provenance : dict
        What the numbers come from: each run's folder and the hash of its weights, the shifts, the versions.
    """

    runs: pd.DataFrame
    positions: pd.DataFrame
    models: pd.DataFrame
    deviant_weights: pd.DataFrame
    magnitudes: pd.DataFrame
    maps: dict[tuple[str, str, str], AttentionMap]
    provenance: dict[str, Any]

    def tables(self) -> Iterator[Table]:
        """One table per task, data and measure: a row per shift, a column per model, mean over seeds, interval."""
        for (task, data, measure), rows in self.models.groupby(["task", "data", "measure"], sort=False):
            columns = [Column("shift")]
            for model, own in rows.groupby("model", sort=False):
                of_seeds = "" if own.settings.iloc[0] == SIMPLE else f" (seeds: {own.seeds.iloc[0]})"
                columns.append(Column(model, partial(_cell, measure), f"{model}{of_seeds}", right=True))
            cells = [[shift, *of_shift.itertuples()] for shift, of_shift in rows.groupby("shift", sort=False)]
            title = f"{_title(task, data)}: {_unit(measure, data)}"
            yield Table(columns, cells, title=title, notes=list(_verdicts(rows, measure)))

    def to_frame(self) -> pd.DataFrame:
        """The means over seeds, as in models.csv."""
        return self.models

    def to_markdown(self) -> str:
        """The tables and verdicts in Markdown, a section for each."""
        return "\n\n".join(f"## {table.to_markdown()}" for table in self.tables()) + "\n"

    def map_weights(self) -> pd.DataFrame:
        """The numbers behind the attention maps: one row for each weight, keys after their query left out."""
        frames = []
        for (task, data, model), shown in self.maps.items():
            for layer, heads in enumerate(shown.layers, start=1):
                head, query, key = np.nonzero(np.tril(np.ones(heads.shape, dtype=bool)))
                own = {"task": task, "data": data, "model": model, "layer": layer, "head": head + 1}
                own |= {"query": query + 1, "key": key + 1, "number": shown.values[key]}
                frames.append(pd.DataFrame({**own, "weight": heads[head, query, key]}))
        return pd.concat(frames) if frames else pd.DataFrame()


def check_earlier_shifts(out: Path, overwrite: bool) -> None:
    """Raise OutputExistsError if `out` holds results already and `overwrite` is false."""
    check_overwrite(out, [*(f"{table}.csv" for table in _TABLES), SUMMARY, PROVENANCE], overwrite)


def write_shifts(results: ShiftResults, out: Path, *, figures: str = "png", overwrite: bool = False) -> list[Path]:
    """Write every table as CSV, shifts.md, and per task and data the figures; returns the files.

    Parameters
    ----------
    results : ShiftResults
        What was measured.
    out : Path
        The folder.
    figures : {"png", "pdf", "svg"}
        Format of the figures.
    overwrite : bool
        Whether earlier results in `out` are replaced.

    Raises
    ------
    OutputExistsError
        If `out` holds results already and `overwrite` is false.
    """
    out = Path(out)
    check_earlier_shifts(out, overwrite)
    for task in TASKS:
        for ending in FORMATS:
            for earlier in out.glob(f"{task}-*.{ending}"):
                earlier.unlink()
    for name in _TABLES:
        table = results.map_weights() if name == "maps" else getattr(results, name)
        with atomic_write(out / f"{name}.csv") as file:
            table.to_csv(file, index=False, float_format="%.6g")
    with atomic_write(out / SUMMARY) as file:
        file.write(results.to_markdown())
    write_json(out / PROVENANCE, results.provenance)
    drawn = {}
    for task, data in results.runs[["task", "data"]].drop_duplicates().itertuples(index=False):
        for what, (draw, name) in _FIGURES.items():
            table = getattr(results, name)
            own = table[(table.task == task) & (table.data == data)]
            drawn[f"{_stem(task, data)}-{what}"] = draw(own, TASKS[task])
    for (task, data, model), shown in results.maps.items():
        figure = draw_attention_maps([f"{value:.1f}" for value in shown.values], shown.layers)
        drawn[f"{_stem(task, data)}-map-{re.sub('[^a-z0-9.]+', '-', model)}"] = figure
    written = [f"{name}.{figures}" for name, figure in drawn.items() if figure is not None]
    for name in written:
        save_figure(drawn[name.removesuffix(f".{figures}")], out / name)
    return [out / name for name in (*(f"{table}.csv" for table in _TABLES), SUMMARY, PROVENANCE, *written)]


def _title(task: str, data: str) -> str:
    return f"{task}, {data} data" if isinstance(TASKS[task], Quantifier) else task


def _stem(task: str, data: str) -> str:
    return f"{task}-iid" if data == "iid" and isinstance(TASKS[task], Quantifier) else task


def _unit(measure: str, data: str) -> str:
    if measure == WHOLE:
        return "sequences without a wrong answer from the fourth number on, in %"
    if measure == "accuracy":
        return f"{'balanced accuracy' if data == 'designed' else 'accuracy'} in %, mean over k"
    return "squared error / variance of y, mean over k from the third example on"


def _cell(measure: str, row: Any) -> str:
    def number(value: float) -> str:
        return f"{value:.3f}" if measure == TASKS["linear"].metric else f"{100 * value:.1f}"

    return number(row.value) + ("" if np.isnan(row.low) else f" [{number(row.low)}, {number(row.high)}]")


def _verdicts(models: pd.DataFrame, measure: str) -> Iterator[str]:
    """What can be said about each model against Softmax with the same settings and seeds, and what cannot."""
    better = -1 if measure == TASKS["linear"].metric else 1
    for model, rows in models.groupby("model", sort=False):
        rows = rows[~rows["shift"].isin((UNSHIFTED, CONTROL)) & rows.difference.notna()]
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
