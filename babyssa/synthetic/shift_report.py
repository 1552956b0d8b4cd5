"""Shift results as files: CSV, a markdown table with its verdict, and figures with intervals."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from babyssa.comparison.statistics import t_interval
from babyssa.figures import COLOURS, MARKERS
from babyssa.files import atomic_write, check_overwrite, write_json
from babyssa.probing.figures import draw_attention_maps
from babyssa.synthetic.config import TASKS
from babyssa.synthetic.shifts import BASELINE, CONTROL, IN_DISTRIBUTION, AttentionMap, ShiftResults
from babyssa.synthetic.tasks import task_named

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TABLES = ("runs", "positions", "models", "deviant_weights")
SUMMARY = "shifts.md"
PROVENANCE = "provenance.json"


def refuse_earlier_shifts(out: Path, overwrite: bool) -> None:
    """Raise OutputExistsError if `out` holds results already and `overwrite` is false."""
    check_overwrite(out, [*(f"{table}.csv" for table in TABLES), SUMMARY, PROVENANCE], overwrite)


def write_shifts(results: ShiftResults, out: Path, *, overwrite: bool = False) -> list[Path]:
    """Write every table as CSV, shifts.md, and per task the figures; returns the files.

    Raises
    ------
    OutputExistsError
        If `out` holds results already and `overwrite` is false.
    """
    out = Path(out)
    tasks = list(dict.fromkeys(results.runs.task))
    figures = {
        f"{task}-{what}.png": partial(draw, results, task) for task in tasks for what, draw in _FIGURES.items()
    }
    for task, model in results.maps:
        name = f"{task}-map-{model.replace(', ', '-').replace(' ', '-')}.png"
        figures[name] = partial(draw_map, results.maps[task, model])
    names = [f"{table}.csv" for table in TABLES] + [SUMMARY, PROVENANCE, *figures]
    refuse_earlier_shifts(out, overwrite)
    for earlier in (figure for task in TASKS for figure in out.glob(f"{task}-*.png")):
        earlier.unlink()
    for table in TABLES:
        with atomic_write(out / f"{table}.csv") as file:
            getattr(results, table).to_csv(file, index=False, float_format="%.6g")
    with atomic_write(out / SUMMARY) as file:
        file.write(summary(results) + "\n")
    write_json(out / PROVENANCE, results.provenance)
    written = [out / name for name in names if not name.endswith(".png")]
    for name, draw in figures.items():
        figure = draw()
        if figure is not None:
            with atomic_write(out / name, "wb") as file:
                figure.savefig(file, format="png")
            written.append(out / name)
    return written


def summary(results: ShiftResults) -> str:
    """One markdown table per task: a row per model, a column per shift, mean over seeds and its interval."""
    parts = []
    for task, of_task in results.models.groupby("task", sort=False):
        unit = "balanced accuracy in %, mean over k"
        if task == "linear":
            unit = "squared error / variance of y, mean over k from the third example on"
        shifts = list(dict.fromkeys(of_task["shift"]))
        lines = [
            f"## {task}: {unit}",
            "",
            "| model | seeds | " + " | ".join(shifts) + " |",
            "| --- | --- |" + " ---: |" * len(shifts),
        ]
        for model, rows in of_task.groupby("model", sort=False):
            rows = rows.set_index("shift")
            seeds = "" if rows.blocks.iloc[0] == "baseline" else str(rows.seeds.iloc[0])
            lines.append(f"| {model} | {seeds} | " + " | ".join(_cell(rows.loc[s], task) for s in shifts) + " |")
        parts.append("\n".join([*lines, "", _verdicts(of_task, task)]))
    return "\n\n".join(parts)


def _cell(row: pd.Series, task: str) -> str:
    text = _number(row.value, task)
    if np.isnan(row.low):
        return text
    return f"{text} [{_number(row.low, task)}, {_number(row.high, task)}]"


def _number(value: float, task: str) -> str:
    return f"{100 * value:.1f}" if task != "linear" else f"{value:.3g}"


def _verdicts(of_task: pd.DataFrame, task: str) -> str:
    """What can be said about each model against Softmax with the same seeds, and what cannot."""
    lines = []
    better = 1 if task != "linear" else -1
    for model, rows in of_task[of_task.blocks == "full"].groupby("model", sort=False):
        rows = rows[~rows["shift"].isin((IN_DISTRIBUTION, CONTROL)) & rows.difference.notna()]
        if not len(rows):
            continue
        if rows.pairs.max() < 2:
            ahead = int((better * rows.difference > 0).sum())
            lines.append(
                f"- {model}: one pair of seeds, so their variance is unknown; its value is the better one "
                f"under {ahead} of {len(rows)} shifts."
            )
            continue
        low = np.where(better > 0, rows.difference_low, -rows.difference_high)
        high = np.where(better > 0, rows.difference_high, -rows.difference_low)
        wins, losses = list(rows["shift"][low > 0]), list(rows["shift"][high < 0])
        lines.append(
            f"- {model} against {BASELINE}, paired by seed: better under {_listed(wins)}, worse under "
            f"{_listed(losses)}, no difference established under the other {len(rows) - len(wins) - len(losses)} "
            f"(95% t-interval over {rows.pairs.max()} pairs of seeds, each shift by itself)."
        )
    return "\n".join(lines)


def _listed(names: list[str]) -> str:
    return ", ".join(names) if names else "none"


def draw_scales(results: ShiftResults, task: str) -> Figure | None:
    """The metric against the scale of the inputs and, of linear functions, of the coefficients and both."""
    models = results.models[results.models.task == task]
    kinds = [
        kind for kind in ("inputs", "coefficients", "both") if models["shift"].str.startswith(f"{kind} x").any()
    ]
    if not kinds:
        return None
    figure, panels = _figure(len(kinds))
    for axes, kind in zip(panels, kinds, strict=True):
        for number, (model, rows) in enumerate(models.groupby("model", sort=False)):
            at = {IN_DISTRIBUTION: 1.0} | {
                s: float(s.split()[-1]) for s in rows["shift"] if s.startswith(f"{kind} x")
            }
            rows = rows[rows["shift"].isin(at)]
            _line(axes, [at[s] for s in rows["shift"]], rows, number, model)
        axes.set_xscale("log")
        axes.set_xlabel(f"standard deviation of the {'inputs and coefficients' if kind == 'both' else kind}")
        axes.set_xticks(sorted(set(at.values())), [f"{s:g}" for s in sorted(set(at.values()))], minor=False)
        axes.minorticks_off()
    return _finish(figure, panels, task)


def draw_lengths(results: ShiftResults, task: str) -> Figure | None:
    """The metric at each k of the longest sequences, mean over seeds."""
    positions = results.positions[results.positions.task == task]
    lengths = sorted({int(s.split()[1]) for s in positions["shift"] if s.startswith("length")})
    if not lengths:
        return None
    positions = positions[positions["shift"] == f"length {lengths[-1]}"]
    figure, (axes,) = _figure(1)
    for number, (model, rows) in enumerate(positions.groupby("model", sort=False)):
        seeds = rows.pivot_table(index="k", columns="seed", values="value")
        style = {"color": COLOURS[number % len(COLOURS)], "linestyle": "-" if number < len(COLOURS) else "--"}
        axes.plot(seeds.index, seeds.mean(axis=1), linewidth=1.1, label=model, zorder=3, **style)
        if seeds.shape[1] > 1:
            low, high = zip(*(t_interval(values) for values in seeds.to_numpy()), strict=True)
            axes.fill_between(seeds.index, low, high, color=style["color"], alpha=0.12, linewidth=0)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("k: numbers so far" if task != "linear" else "k: number of the example")
    return _finish(figure, [axes], task)


def draw_deviant(results: ShiftResults, task: str) -> Figure | None:
    """The metric with a deviant number beside that without, for each model."""
    models = results.models[results.models.task == task]
    deviant = models[models["shift"].str.startswith("deviant")]
    if not len(deviant):
        return None
    figure, (axes,) = _figure(1, width=1.0 + 0.45 * len(deviant))
    for offset, (name, rows) in enumerate(
        [(CONTROL, models[models["shift"] == CONTROL]), (deviant["shift"].iloc[0], deviant)]
    ):
        rows = rows.set_index("model").loc[list(deviant.model)]
        at = np.arange(len(rows)) + 0.2 * (offset - 0.5)
        axes.errorbar(
            at,
            rows.value,
            yerr=_bars(rows),
            fmt=MARKERS[offset],
            color=COLOURS[offset],
            markersize=4.5,
            elinewidth=1.1,
            label=name,
        )
    axes.set_xticks(range(len(deviant)), list(deviant.model), rotation=40, ha="right", fontsize=8)
    return _finish(figure, [axes], task)


def draw_deviant_weights(results: ShiftResults, task: str) -> Figure | None:
    """The attention weight that the deviant number takes, by layer and head, mean over seeds."""
    weights = results.deviant_weights
    weights = weights[weights.task == task]
    if not len(weights):
        return None
    models = list(dict.fromkeys(weights.model))
    from matplotlib.figure import Figure

    columns = min(5, len(models))
    lines = -(-len(models) // columns)
    figure = Figure(figsize=(2.0 * columns + 1.2, 1.9 * lines + 0.5), dpi=150, layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes in panels[len(models) :]:
        axes.set_visible(False)
    for axes, model in zip(panels, models, strict=False):
        table = weights[weights.model == model].pivot_table(index="layer", columns="head", values="weight")
        image = axes.imshow(table, vmin=0, vmax=1, cmap="magma_r", aspect="equal")
        for (layer, head), value in np.ndenumerate(table.to_numpy()):
            axes.text(
                head,
                layer,
                f"{value:.2f}",
                ha="center",
                va="center",
                fontsize=6,
                color="w" if value > 0.5 else "k",
            )
        axes.set_title(model, fontsize=8)
        axes.set_xticks(range(table.shape[1]), table.columns, fontsize=6)
        axes.set_yticks(range(table.shape[0]), table.index, fontsize=6)
        axes.set_xlabel("head", fontsize=7)
        axes.set_ylabel("layer", fontsize=7)
    uniform = weights.uniform.mean()
    bar = figure.colorbar(image, ax=panels.tolist(), shrink=0.9)
    bar.set_label(f"weight on the deviant\n(uniform: {uniform:.2f})", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return figure


def draw_map(shown: AttentionMap) -> Figure:
    """The attention weights of every layer and head on one sequence."""
    return draw_attention_maps([f"{value:.1f}" for value in shown.values], shown.layers)


_FIGURES = {
    "scale": draw_scales,
    "length": draw_lengths,
    "deviant": draw_deviant,
    "deviant-weights": draw_deviant_weights,
}


def _figure(panels: int, width: float = 5.0):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(width, 5.0) * panels + 1.8, 4.4), dpi=150, layout="constrained")
    return figure, figure.subplots(1, panels, squeeze=False)[0]


def _line(axes, at: list[float], rows: pd.DataFrame, number: int, label: str) -> None:
    order = np.argsort(at)
    axes.errorbar(
        np.asarray(at)[order],
        rows.value.to_numpy()[order],
        yerr=_bars(rows)[:, order],
        color=COLOURS[number % len(COLOURS)],
        marker=MARKERS[number % len(MARKERS)],
        linestyle="-" if number < len(COLOURS) else "--",
        markersize=4,
        linewidth=1.1,
        elinewidth=1.0,
        label=label,
    )


def _bars(rows: pd.DataFrame) -> np.ndarray:
    """Lengths of the interval's two halves; none where there is one seed."""
    return np.nan_to_num(np.stack([rows.value - rows.low, rows.high - rows.value])).clip(min=0)


def _finish(figure, panels, task: str):
    metric = task_named(task).metric
    panels[0].set_ylabel(f"balanced {metric}" if metric == "accuracy" else f"{metric} / variance of y")
    for axes in panels:
        if metric == "accuracy":
            axes.axhline(0.5, color="#999999", linestyle=(0, (4, 3)), linewidth=0.8)
            axes.set_ylim(0.4, 1.02)
        else:
            axes.set_yscale("symlog", linthresh=1e-3)
            axes.set_ylim(bottom=0)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.grid(color="#e5e5e5", linewidth=0.6)
        axes.set_axisbelow(True)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=8)
    figure.supxlabel(f"{task}; 95% intervals over seeds", fontsize=8)
    return figure
