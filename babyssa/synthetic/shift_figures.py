"""The figures of shift results, with intervals over seeds; each takes the rows of one task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from babyssa.comparison.statistics import t_interval
from babyssa.figures import series, styled
from babyssa.synthetic.tasks import CONTROL, IN_DISTRIBUTION, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def draw_scales(models: pd.DataFrame, task: Task) -> Figure | None:
    """The metric against the scale of the inputs and, of linear functions, of the coefficients and both."""
    kinds = [
        kind for kind in ("inputs", "coefficients", "both") if models["shift"].str.startswith(f"{kind} x").any()
    ]
    if not kinds:
        return None
    figure, panels = _figure(len(kinds))
    for axes, kind in zip(panels, kinds, strict=True):
        shifts = models["shift"][models["shift"].str.startswith(f"{kind} x")]
        scales = {IN_DISTRIBUTION: 1.0} | {shift: float(shift.split()[-1]) for shift in shifts}
        for number, (model, rows) in enumerate(models.groupby("model", sort=False)):
            rows = rows[rows["shift"].isin(scales)]
            rows = rows.assign(scale=rows["shift"].map(scales)).sort_values("scale", kind="stable")
            style = {**series(number), "markersize": 4, "linewidth": 1.1, "elinewidth": 1.0}
            axes.errorbar(rows.scale, rows.value, yerr=_bars(rows), label=model, **style)
        axes.set_xscale("log")
        axes.set_xlabel(f"standard deviation of the {'inputs and coefficients' if kind == 'both' else kind}")
        axes.set_xticks(sorted(set(scales.values())), [f"{s:g}" for s in sorted(set(scales.values()))])
        axes.minorticks_off()
    return _finish(figure, panels, task)


@styled
def draw_lengths(positions: pd.DataFrame, task: Task) -> Figure | None:
    """The metric at each k of the longest sequences, mean over seeds."""
    lengths = sorted({int(s.split()[1]) for s in positions["shift"] if s.startswith("length")})
    if not lengths:
        return None
    positions = positions[positions["shift"] == f"length {lengths[-1]}"]
    figure, (axes,) = _figure(1)
    for number, (model, rows) in enumerate(positions.groupby("model", sort=False)):
        seeds = rows.pivot_table(index="k", columns="seed", values="value")
        style = series(number) | {"marker": ""}
        axes.plot(seeds.index, seeds.mean(axis=1), linewidth=1.1, label=model, zorder=3, **style)
        if seeds.shape[1] > 1:
            low, high = zip(*(t_interval(values) for values in seeds.to_numpy()), strict=True)
            axes.fill_between(seeds.index, low, high, color=style["color"], alpha=0.12, linewidth=0)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("k: numbers so far" if task.numbers_per_example == 1 else "k: number of the example")
    return _finish(figure, [axes], task)


@styled
def draw_deviant(models: pd.DataFrame, task: Task) -> Figure | None:
    """The metric with a deviant number beside that without, for each model."""
    deviant = models[models["shift"].str.startswith("deviant")]
    if not len(deviant):
        return None
    figure, (axes,) = _figure(1, width=1.0 + 0.45 * len(deviant))
    for number, name in enumerate((CONTROL, deviant["shift"].iloc[0])):
        rows = models[models["shift"] == name].set_index("model").loc[list(deviant.model)]
        at = np.arange(len(rows)) + 0.2 * (number - 0.5)
        style = series(number) | {"linestyle": "", "markersize": 4.5, "elinewidth": 1.1}
        axes.errorbar(at, rows.value, yerr=_bars(rows), label=name, **style)
    axes.set_xticks(range(len(deviant)), list(deviant.model), rotation=40, ha="right", fontsize=8)
    return _finish(figure, [axes], task)


@styled
def draw_deviant_weights(weights: pd.DataFrame, task: Task) -> Figure | None:
    """The attention weight that the deviant number takes, by layer and head, mean over seeds."""
    from matplotlib.figure import Figure

    if not len(weights):
        return None
    models = list(dict.fromkeys(weights.model))
    columns = min(5, len(models))
    lines = -(-len(models) // columns)
    figure = Figure(figsize=(2.0 * columns + 1.2, 1.9 * lines + 0.5))
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes in panels[len(models) :]:
        axes.set_visible(False)
    for axes, model in zip(panels, models, strict=False):
        table = weights[weights.model == model].pivot_table(index="layer", columns="head", values="weight")
        image = axes.imshow(table, vmin=0, vmax=1, cmap="magma_r", aspect="equal")
        for (layer, head), value in np.ndenumerate(table.to_numpy()):
            colour = "w" if value > 0.5 else "k"
            axes.text(head, layer, f"{value:.2f}", ha="center", va="center", fontsize=6, color=colour)
        axes.set_title(model, fontsize=8)
        axes.set_xticks(range(table.shape[1]), table.columns, fontsize=6)
        axes.set_yticks(range(table.shape[0]), table.index, fontsize=6)
        axes.set_xlabel("head", fontsize=7)
        axes.set_ylabel("layer", fontsize=7)
        axes.spines[:].set_visible(True)
    bar = figure.colorbar(image, ax=panels.tolist(), shrink=0.9)
    bar.set_label(f"weight on the deviant\n(uniform: {weights.uniform.mean():.2f})", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return figure


def _figure(panels: int, width: float = 5.0):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(width, 5.0) * panels + 1.8, 4.4))
    return figure, figure.subplots(1, panels, squeeze=False)[0]


def _bars(rows: pd.DataFrame) -> np.ndarray:
    """Lengths of the interval's two halves; none where there is one seed."""
    return np.nan_to_num(np.stack([rows.value - rows.low, rows.high - rows.value])).clip(min=0)


def _finish(figure, panels, task: Task) -> Figure:
    for axes in panels:
        if task.metric == "accuracy":
            axes.axhline(0.5, color="#999999", linestyle=(0, (4, 3)), linewidth=0.8)
            axes.set_ylim(0.4, 1.02)
        else:
            axes.set_yscale("symlog", linthresh=1e-3)
            axes.set_ylim(bottom=0)
        axes.grid(True)
    panels[0].set_ylabel("balanced accuracy" if task.metric == "accuracy" else f"{task.metric} / variance of y")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    figure.supxlabel(f"{task.name}; 95% intervals over seeds", fontsize=8)
    return figure
