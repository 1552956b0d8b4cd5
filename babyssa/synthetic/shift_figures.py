"""The figures of shift results; each takes the rows of one task and one way to draw its data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from babyssa.comparison.statistics import t_interval
from babyssa.figures import series, styled
from babyssa.synthetic.tasks import CONTROL, UNSHIFTED, WHOLE, Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@styled
def draw_scales(models: pd.DataFrame, task: Task) -> Figure | None:
    """Each measure against the scale of the inputs and, of linear functions, of the coefficients and both."""
    kinds = [k for k in ("inputs", "coefficients", "both") if models["shift"].str.startswith(f"{k} x").any()]
    panels = [(measure, kind) for measure in models.measure.unique() for kind in kinds]
    if not panels:
        return None
    figure, all_axes = _figure(len(panels))
    for axes, (measure, kind) in zip(all_axes, panels, strict=True):
        shifts = models["shift"][models["shift"].str.startswith(f"{kind} x")]
        scales = {UNSHIFTED: 1.0} | {shift: float(shift.split()[-1]) for shift in shifts}
        of_measure = models[models.measure == measure]
        for number, (model, rows) in enumerate(of_measure.groupby("model", sort=False)):
            rows = rows[rows["shift"].isin(scales)]
            rows = rows.assign(scale=rows["shift"].map(scales)).sort_values("scale", kind="stable")
            style = {**series(number), "markersize": 4, "linewidth": 1.1, "elinewidth": 1.0}
            axes.errorbar(rows.scale, rows.value, yerr=_bars(rows), label=model, **style)
        _show_scales(axes, scales.values())
        axes.set_xlabel(f"standard deviation of the {'inputs and coefficients' if kind == 'both' else kind}")
        _show_measure(axes, task, models.data.iloc[0], measure)
    return _finish(figure, all_axes, task, models)


@styled
def draw_lengths(positions: pd.DataFrame, task: Task) -> Figure | None:
    """The metric at each k of the longest sequences, mean over seeds."""
    longest = _last(positions, "length ")
    if longest is None:
        return None
    figure, (axes,) = _figure(1)
    _draw_at_each_k(axes, positions[positions["shift"] == longest], task)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    return _finish(figure, [axes], task, positions)


@styled
def draw_positions(positions: pd.DataFrame, task: Task) -> Figure:
    """The metric at each k, unshifted and with the largest inputs; of a quantifier also at k = 1 by scale."""
    shown = [shift for shift in (UNSHIFTED, _last(positions, "inputs x ")) if shift is not None]
    alone = task.metric == "accuracy"
    figure, all_axes = _figure(len(shown) + alone)
    for axes, shift in zip(all_axes[alone:], shown, strict=True):
        _draw_at_each_k(axes, positions[positions["shift"] == shift], task)
        axes.set_title(shift, fontsize=9)
    if alone:
        first = positions[(positions.k == 1) & positions["shift"].str.match(f"{UNSHIFTED}|inputs x")]
        scale = first["shift"].map(lambda shift: 1.0 if shift == UNSHIFTED else float(shift.split()[-1]))
        _draw_over_seeds(all_axes[0], first.assign(scale=scale), "scale", markers=True)
        _show_scales(all_axes[0], scale)
        all_axes[0].set_xlabel("standard deviation of the inputs")
        all_axes[0].set_title("the sign of one number (k = 1)", fontsize=9)
        _show_measure(all_axes[0], task, positions.data.iloc[0], task.metric)
    return _finish(figure, all_axes, task, positions)


@styled
def draw_deviant(models: pd.DataFrame, task: Task) -> Figure | None:
    """Each measure with a deviant number beside that without, for each model."""
    deviant = _last(models, "deviant ")
    if deviant is None:
        return None
    measures = models.measure.unique()
    figure, all_axes = _figure(len(measures), width=1.0 + 0.45 * models.model.nunique())
    for axes, measure in zip(all_axes, measures, strict=True):
        of_measure = models[models.measure == measure].set_index("model")
        for number, name in enumerate((CONTROL, deviant)):
            rows = of_measure[of_measure["shift"] == name]
            at = np.arange(len(rows)) + 0.2 * (number - 0.5)
            style = series(number) | {"linestyle": "", "markersize": 4.5, "elinewidth": 1.1}
            axes.errorbar(at, rows.value, yerr=_bars(rows), label=name, **style)
        axes.set_xticks(range(len(rows)), list(rows.index), rotation=40, ha="right", fontsize=8)
        _show_measure(axes, task, models.data.iloc[0], measure)
    return _finish(figure, all_axes, task, models)


@styled
def draw_magnitudes(magnitudes: pd.DataFrame, task: Task) -> Figure:
    """Norm of the embeddings, largest logit and largest weight by scale of the inputs, a line per layer."""
    from matplotlib.figure import Figure

    models = list(magnitudes.model.unique())
    what = {"norm": "norm of what\na layer reads", "logit": "largest logit", "weight": "largest weight"}
    figure = Figure(figsize=(8.0, 2.1 * len(models) + 0.9))
    all_axes = figure.subplots(len(models), len(what), squeeze=False, sharex=True, sharey="col")
    for row, model in zip(all_axes, models, strict=True):
        own = magnitudes[magnitudes.model == model]
        for axes, (column, label) in zip(row, what.items(), strict=True):
            table = own.pivot_table(index="scale", columns="layer", values=column)
            for number, layer in enumerate(table.columns):
                style = series(number) | {"markersize": 3.5, "linewidth": 1.0}
                axes.plot(table.index, table[layer], label=f"layer {layer}", **style)
            _show_scales(axes, magnitudes.scale)
            axes.grid(True)
            if column != "weight":
                axes.set_yscale("log" if column == "norm" else "symlog")
            else:
                axes.set_ylim(0, 1.03)
            axes.set_ylabel(label, fontsize=8)
        row[1].set_title(f"{model} (mean over {_count(own.seed.nunique(), 'seed')})", fontsize=9)
    for axes in all_axes[-1]:
        axes.set_xlabel("standard deviation of the inputs", fontsize=8)
    figure.legend(*all_axes[0][0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    figure.supxlabel(f"{task.name}; means over sequences, heads and queries", fontsize=8)
    return figure


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

    figure = Figure(figsize=((max(width, 5.0) if panels == 1 else max(width, 4.0)) * panels + 1.8, 4.4))
    return figure, figure.subplots(1, panels, squeeze=False)[0]


def _last(rows: pd.DataFrame, start: str) -> str | None:
    """The last shift, in the order of measurement, whose name begins with `start`; None without one."""
    found = [shift for shift in rows["shift"].unique() if shift.startswith(start)]
    return max(found, key=lambda shift: float(shift.split()[-1]), default=None)


def _bars(rows: pd.DataFrame) -> np.ndarray:
    """Lengths of the interval's two halves; NaN, which is not drawn, where there is one seed."""
    return np.stack([rows.value - rows.low, rows.high - rows.value]).clip(min=0)


def _draw_at_each_k(axes: Axes, positions: pd.DataFrame, task: Task) -> None:
    _draw_over_seeds(axes, positions, "k")
    axes.set_xlabel("k: numbers so far" if task.metric == "accuracy" else "k: number of the example")
    _show_measure(axes, task, positions.data.iloc[0], task.metric)


def _draw_over_seeds(axes: Axes, rows: pd.DataFrame, along: str, markers: bool = False) -> None:
    """Each model's mean over seeds along a column, with its 95% t-interval where there is more than one seed."""
    for number, (model, own) in enumerate(rows.groupby("model", sort=False)):
        seeds = own.pivot_table(index=along, columns="seed", values="value")
        style = series(number) | {"linewidth": 1.1, "markersize": 4} | ({} if markers else {"marker": ""})
        axes.plot(seeds.index, seeds.mean(axis=1), label=model, zorder=3, **style)
        if seeds.shape[1] > 1:
            low, high = zip(*(t_interval(values) for values in seeds.to_numpy()), strict=True)
            axes.fill_between(seeds.index, low, high, color=style["color"], alpha=0.12, linewidth=0)


def _show_scales(axes: Axes, scales: Iterable[float]) -> None:
    axes.set_xscale("log")
    axes.set_xticks(sorted(set(scales)), [f"{scale:g}" for scale in sorted(set(scales))])
    axes.minorticks_off()


def _show_measure(axes: Axes, task: Task, data: str, measure: str) -> None:
    """Scale and name the vertical axis."""
    if task.metric == "accuracy":
        if measure != WHOLE and data == "designed":
            axes.axhline(0.5, color="#999999", linestyle=(0, (4, 3)), linewidth=0.8)
        axes.set_ylim(-0.02 if measure == WHOLE else 0.4, 1.02)
        accuracy = "balanced accuracy" if data == "designed" else "accuracy"
        axes.set_ylabel("sequences without a wrong answer" if measure == WHOLE else accuracy)
    else:
        axes.set_yscale("symlog", linthresh=1e-3)
        axes.set_ylim(bottom=0)
        axes.set_ylabel(f"{measure} / variance of y")
    axes.grid(True)


def _finish(figure: Figure, panels, task: Task, rows: pd.DataFrame) -> Figure:
    handles, labels = panels[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=8)
    data = f", {rows.data.iloc[0]} data" if task.metric == "accuracy" else ""
    figure.supxlabel(f"{task.name}{data}; {_intervals(rows)}", fontsize=8)
    return figure


def _intervals(rows: pd.DataFrame) -> str:
    """How many seeds stand behind a figure, and what its intervals are; baselines have no seeds."""
    of_models = rows[rows.settings != "baseline"].groupby("model")
    seeds = of_models.seeds.first() if "seeds" in rows else of_models.seed.nunique()
    if seeds.max() == 1:
        return "one seed each, so no intervals"
    text = f"means and 95% t-intervals over {_count(seeds.max(), 'seed')}"
    alone = seeds[seeds == 1]
    fewer = seeds[(seeds > 1) & (seeds < seeds.max())]
    named = [f"{model}: {count}" for model, count in fewer.items()]
    named += [f"{model}: one, no interval" for model in alone.index]
    return f"{text} ({'; '.join(named)})" if named else text


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
