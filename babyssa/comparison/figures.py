"""The figure of a comparison: a dot with its interval for every paradigm and variant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from babyssa.comparison.report import Comparison, in_order, mark
from babyssa.errors import printable
from babyssa.figures import literal, series, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def draw_comparison(comparison: Comparison) -> Figure:
    """Draw accuracies with their intervals, one band per paradigm and one colour and marker per variant.

    Stars to the right are those of the table: a difference to the baseline after Holm correction.

    Returns
    -------
    matplotlib.figure.Figure
        Not registered with pyplot; ``figure.savefig(path)`` writes it.
    """
    from matplotlib.figure import Figure

    lines = {key: rows for key, rows in in_order(comparison.table).items() if key[0] != "phenomenon"}
    variants = comparison.variants
    row_height = 0.095 * len(variants) + 0.1
    figure = Figure(figsize=(8.5, row_height * len(lines) + 1.5))
    axes = figure.add_subplot()
    step = 0.76 / len(variants)
    stars = []
    for number, variant in enumerate(variants):
        rows = [of_variant[variant] for of_variant in lines.values()]
        at = [line + (number - (len(variants) - 1) / 2) * step for line in range(len(lines))]
        style = series(number) | {"linestyle": ""}
        axes.errorbar(
            [100 * row.accuracy for row in rows],
            at,
            xerr=[
                [max(0.0, 100 * (row.accuracy - row.low)) for row in rows],
                [max(0.0, 100 * (row.high - row.accuracy)) for row in rows],
            ],
            **style,
            markersize=4.5,
            markeredgecolor="white",
            markeredgewidth=0.4,
            elinewidth=1.1,
            label=literal(f"{variant} ({rows[0].n_seeds} seed{'s' if rows[0].n_seeds > 1 else ''})"),
        )
        stars += [(y, mark(row, 1 - comparison.level), style["color"]) for row, y in zip(rows, at, strict=True)]
    _decorate(axes, list(lines))
    axes.set_xlabel(_axis_label(comparison))
    for y, text, colour in stars:
        if text:
            axes.annotate(
                text,
                (axes.get_xlim()[1], y),
                (3, -2.5),
                textcoords="offset points",
                color=colour,
                fontsize=8,
                va="center",
                clip_on=False,
            )
    figure.legend(
        *axes.get_legend_handles_labels(),
        loc="outside upper center",
        ncols=min(4, len(variants)),
        handlelength=1.5,
    )
    return figure


def provenance(comparison: Comparison) -> str:
    """What made the figure, for the text that a PNG file carries."""
    facts = "; ".join(f"{key}: {', '.join(values)}" for key, values in comparison.facts.items())
    runs = "; ".join(
        f"{run.variant} seed {run.seed} sha256 {run.model_sha256[:12]}" for run in comparison.runs.itertuples()
    )
    return printable(f"{facts}; models: {runs}").encode("ascii", "backslashreplace").decode()


def _decorate(axes, lines: list[tuple[str, str]]) -> None:
    for line in range(0, len(lines), 2):
        axes.axhspan(line - 0.5, line + 0.5, color="#f2f2f2", zorder=0, linewidth=0)
    axes.axvline(50, color="#555555", linestyle=(0, (4, 3)), linewidth=1, zorder=1)
    axes.set_ylim(len(lines) - 0.5, -0.5)
    low, _ = axes.get_xlim()
    axes.set_xlim(max(-1.0, min(low, 45)), 101)
    axes.set_yticks(range(len(lines)), [literal(name) for _, name in lines], fontsize=8.5)
    for label, (level, _) in zip(axes.get_yticklabels(), lines, strict=True):
        if level == "mean":
            label.set_fontweight("bold")
    axes.axhline(0.5, color="#555555", linewidth=0.8)
    axes.annotate(
        "chance", (50, 0), (3, 2), xycoords=("data", "axes fraction"), textcoords="offset points", fontsize=7
    )
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")


def _axis_label(comparison: Comparison) -> str:
    label = f"accuracy (%), mean and {100 * comparison.level:g}% interval"
    if comparison.baseline is None:
        return label
    base = literal(comparison.baseline)
    if comparison.table.compared_seeds.max() == 1:
        stars = f"(*) this model differs from this {base} model after Holm correction"
        return f"{label} over pairs\none seed: seed variance unknown\n{stars}"
    return f"{label}\n* differs from {base} after Holm correction"
