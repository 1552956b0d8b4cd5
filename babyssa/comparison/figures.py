"""The figure of a comparison: a dot with its interval for every paradigm and variant."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, BinaryIO

from babyssa.comparison.report import mark
from babyssa.errors import printable
from babyssa.figures import COLOURS, MARKERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from babyssa.comparison.comparison import Comparison


def draw_comparison(comparison: Comparison) -> Figure:
    """Draw accuracies with their intervals, one band per paradigm and one colour and marker per variant.

    Stars to the right are those of the table: a difference to the baseline after Holm correction.

    Returns
    -------
    matplotlib.figure.Figure
        Not registered with pyplot; ``figure.savefig(path)`` writes it.
    """
    from matplotlib.figure import Figure

    table = comparison.table[comparison.table.level.isin(("mean", "paradigm"))]
    table = table.sort_values(["level", "phenomenon", "name"], kind="stable")
    names = list(dict.fromkeys(zip(table.level, table.name, strict=True)))
    variants = comparison.variants
    row_height = 0.095 * len(variants) + 0.1
    figure = Figure(figsize=(8.5, row_height * len(names) + 1.5), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    step = 0.76 / len(variants)
    stars = []
    for number, variant in enumerate(variants):
        rows = {(row.level, row.name): row for row in table[table.variant == variant].itertuples(index=False)}
        rows = [rows[key] for key in names]
        at = [line + (number - (len(variants) - 1) / 2) * step for line in range(len(names))]
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        values = [100 * row.accuracy for row in rows]
        below = [max(0.0, 100 * (row.accuracy - row.low)) for row in rows]
        above = [max(0.0, 100 * (row.high - row.accuracy)) for row in rows]
        axes.errorbar(
            values,
            at,
            xerr=[below, above],
            fmt=marker,
            color=colour,
            markersize=4.5,
            markeredgecolor="white",
            markeredgewidth=0.4,
            elinewidth=1.1,
            capsize=0,
            label=_label(variant, rows[0].n_seeds),
        )
        for row, y in zip(rows, at, strict=True):
            text = mark(row.p_holm, 1 - comparison.level)
            if text:
                stars.append((y, f"({text})" if row.compared_seeds == 1 else text, colour))
    _decorate(axes, names)
    axes.set_xlabel(_axis_label(comparison), parse_math=False)
    right = axes.get_xlim()[1]
    for y, text, colour in stars:
        axes.annotate(
            text,
            (right, y),
            (3, -2.5),
            textcoords="offset points",
            color=colour,
            fontsize=8,
            va="center",
            clip_on=False,
        )
    legend = figure.legend(
        *axes.get_legend_handles_labels(),
        loc="outside upper center",
        ncols=min(4, len(variants)),
        frameon=False,
        handlelength=1.5,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure


def write_comparison_figure(comparison: Comparison, file: BinaryIO) -> None:
    """Write :func:`draw_comparison` as PNG, without a warning for each glyph that the font lacks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        draw_comparison(comparison).savefig(file, format="png", metadata={"Description": _provenance(comparison)})


def _provenance(comparison: Comparison) -> str:
    """What made the figure, for the text that a PNG file carries."""
    facts = "; ".join(f"{key}: {', '.join(values)}" for key, values in comparison.facts.items())
    runs = "; ".join(
        f"{run.variant} seed {run.seed} sha256 {run.model_sha256[:12]}" for run in comparison.runs.itertuples()
    )
    return printable(f"{facts}; models: {runs}").encode("ascii", "backslashreplace").decode()


def _decorate(axes, names: list[tuple[str, str]]) -> None:
    for line in range(0, len(names), 2):
        axes.axhspan(line - 0.5, line + 0.5, color="#f2f2f2", zorder=0, linewidth=0)
    axes.axvline(50, color="#555555", linestyle=(0, (4, 3)), linewidth=1, zorder=1)
    axes.set_ylim(len(names) - 0.5, -0.5)
    low, _ = axes.get_xlim()
    axes.set_xlim(max(-1.0, min(low, 45)), 101)
    axes.set_yticks(range(len(names)), [printable(name) for _, name in names])
    for label, (level, _) in zip(axes.get_yticklabels(), names, strict=True):
        label.set_parse_math(False)
        label.set_fontsize(8.5)
        if level == "mean":
            label.set_fontweight("bold")
    axes.axhline(0.5, color="#555555", linewidth=0.8)
    axes.annotate(
        "chance", (50, 0), (3, 2), xycoords=("data", "axes fraction"), textcoords="offset points", fontsize=7
    )
    axes.tick_params(axis="y", length=0)
    for side in ("top", "left", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def _axis_label(comparison: Comparison) -> str:
    label = f"accuracy (%), mean and {100 * comparison.level:g}% interval"
    if comparison.baseline is None:
        return label
    base = printable(comparison.baseline)
    if comparison.table.compared_seeds.max() == 1:
        mark = f"(*) this model differs from this {base} model after Holm correction"
        return f"{label} over pairs\none seed: seed variance unknown\n{mark}"
    return f"{label}\n* differs from {base} after Holm correction"


def _label(variant: str, seeds: int) -> str:
    return printable(f"{variant} ({seeds} seed{'s' if seeds > 1 else ''})")
