"""The figure of a comparison: the accuracies of every paradigm, and beside them the paired differences."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from babyssa.comparison.report import Comparison, in_order, mark
from babyssa.errors import printable
from babyssa.figures import SMALL, WIDTHS, Width, fill, literal, series, set_caption, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Heights in inches: of a line's edges, of each variant and of each line of its label, and of a heading.
_EDGES, _VARIANT, _LABEL, _HEADING = 0.07, 0.055, 0.095, 0.15


@dataclass(frozen=True)
class _Line:
    """A line of the figure, its rows of the table by variant; none under the name of a phenomenon."""

    label: str
    level: str = "phenomenon"
    name: str = ""
    rows: dict[str, Any] = field(default_factory=dict)


@styled
def draw_comparison(comparison: Comparison, width: Width = "page") -> Figure:
    """Draw accuracies, and beside them the paired differences to the baseline, with their intervals and stars.

    The mean stands first; below, paradigms stand under their phenomenon, those that the baseline knows best first.
    Small dots are single seeds. A variant with one seed has neither interval nor star.

    Returns
    -------
    matplotlib.figure.Figure
        Not registered with pyplot; ``figure.savefig(path)`` writes it.
    """
    from matplotlib.figure import Figure

    variants, inches = comparison.variants, WIDTHS[width]
    labelled = (0.33 if width == "column" else 0.26) * inches
    lines = list(_lines(comparison, labelled))
    heights = [
        _EDGES + max(_VARIANT * len(variants), _LABEL * (line.label.count("\n") + 1)) if line.rows else _HEADING
        for line in lines
    ]
    ends = np.cumsum(heights)
    figure = Figure(figsize=(inches, ends[-1] + 1.1))
    figure.get_layout_engine().set(w_pad=0.02, h_pad=0.02)
    panels = figure.subplots(1, 1 if comparison.baseline is None else 2, sharey=True, squeeze=False)[0]
    _draw_lines(panels, lines, ends, labelled)
    seeds = dict(list(comparison.seeds.groupby(["level", "name", "variant"])))
    for number, variant in enumerate(variants):
        style = series(number) | {"linestyle": ""}
        at = ends - np.array(heights) / 2 + (number - (len(variants) - 1) / 2) * _VARIANT
        at = at[[bool(line.rows) for line in lines]]
        rows = [line.rows[variant] for line in lines if line.rows]
        of_seeds = [seeds[row.level, row.name, variant] for row in rows]
        low, high = ([getattr(row, end) if row.n_seeds > 1 else np.nan for row in rows] for end in ("low", "high"))
        label = literal(variant)
        _draw_marks(panels[0], at, [row.accuracy for row in rows], low, high, style, label)
        _draw_seeds(panels[0], at, [own.accuracy for own in of_seeds if len(own) > 1], style)
        if number:
            known = [row.compared_seeds > 1 for row in rows]
            low, high = (
                np.where(known, [getattr(row, f"difference_{end}") for row in rows], np.nan)
                for end in ("low", "high")
            )
            _draw_marks(panels[1], at, [row.difference for row in rows], low, high, style, label)
            _draw_seeds(panels[1], at, [own.difference for own in of_seeds if known[0]], style)
            for y, row in zip(at, rows, strict=True):
                if row.compared_seeds > 1:
                    _draw_star(panels[1], y, mark(row, 1 - comparison.level), style["color"])
    panels[0].set_xlim(min(45, max(-1, panels[0].get_xlim()[0])), 101)
    panels[0].set_xlabel("accuracy (%)\ndashed: chance")
    panels[0].axvline(50, color="#555555", linestyle=(0, (4, 3)), linewidth=0.8, zorder=1)
    if comparison.baseline is not None:
        panel = (inches - labelled) / 2 - 0.15
        panels[1].set_xlabel(fill(f"difference to {literal(comparison.baseline)} (points)", panel, 7.5))
        panels[1].axvline(0, color="#555555", linewidth=0.8, zorder=1)
    figure.legend(
        *panels[0].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=min(len(variants), int(inches / 0.75)),
        handletextpad=0.2,
        columnspacing=1.2,
    )
    set_caption(figure, figure_caption(comparison))
    return figure


def figure_caption(comparison: Comparison) -> str:
    """What the marks, intervals and stars of the figure are, and over how many seeds."""
    mean = comparison.table[comparison.table.level == "mean"]
    counts = dict(zip(mean.variant, mean.n_seeds, strict=True))
    what = f"{', '.join(comparison.facts['suite'])}".partition(" (sha256")[0]
    parts = [f"{literal(what)}, {mean.n_pairs.iloc[0]:,} pairs, {', '.join(comparison.facts['method'])}."]
    if max(counts.values()) == 1:
        alone = "One seed per variant" if len(counts) > 1 else "One seed"
        return f"{parts[0]} {alone}: what another seed would give is unknown, so no interval and no star is drawn."
    same = len(set(counts.values())) == 1
    how_many = f"{max(counts.values())} seeds" if same else ", ".join(f"{n} of {v}" for v, n in counts.items())
    parts.append(
        f"Small dots: single seeds ({literal(how_many)}). Accuracies: means with {100 * comparison.level:g}% "
        "t intervals over seeds."
    )
    compared = mean[mean.compared_seeds > 1]
    if len(compared):
        methods = " or ".join(compared.difference_interval.unique())
        alpha = 1 - comparison.level
        stars = [
            f"{'*' * n} p < {bound:.3g}" for n, bound in ((1, alpha), (2, 0.01), (3, 0.001)) if bound <= alpha
        ]
        parts.append(
            f"Differences: paired, {methods} intervals; {', '.join(stars)} after Holm correction over paradigms."
        )
    if min(counts.values()) == 1 or len(compared) < len(counts) - 1:
        parts.append("With one seed no interval and no star is drawn.")
    return " ".join(parts)


def provenance(comparison: Comparison) -> str:
    """What made the figure, for the text that its file carries."""
    facts = "; ".join(f"{key}: {', '.join(values)}" for key, values in comparison.facts.items())
    runs = "; ".join(
        f"{run.variant} seed {run.seed} sha256 {run.model_sha256[:12]}" for run in comparison.runs.itertuples()
    )
    return printable(f"{facts}; models: {runs}").encode("ascii", "backslashreplace").decode()


def _lines(comparison: Comparison, inches: float) -> Iterator[_Line]:
    """The mean, then the paradigms of each phenomenon, those that the first variant knows best first."""
    rows, first = in_order(comparison.table), comparison.variants[0]

    def best_first(level: str) -> list[tuple[str, str]]:
        return sorted((key for key in rows if key[0] == level), key=lambda key: -rows[key][first].accuracy)

    members: dict[str, list[str]] = {}
    for key in best_first("paradigm"):
        members.setdefault(rows[key][first].phenomenon, []).append(key[1])
    ((mean, name),) = best_first("mean")
    yield _Line(fill(_words(name), 0.85 * inches), mean, name, rows[mean, name])
    for _, phenomenon in best_first("phenomenon"):
        names, start, indent = members[phenomenon], "", ""
        if len(members) > 1 and len(names) > 1:
            # Zorro's phenomenon is the part before the first hyphen, as in filler-gap-wh_question.
            parts = zip(*(name.split("-") for name in names), strict=False)
            start = "-".join(part[0] for part in itertools.takewhile(lambda part: len(set(part)) == 1, parts))
            indent = "   "
            yield _Line(_words(start or phenomenon))
        for name in names:
            short = _words(name.removeprefix(start).lstrip("-_ ") or name)
            label = textwrap.indent(fill(short, inches - 0.03 * len(indent)), indent)
            yield _Line(label, "paradigm", name, rows["paradigm", name])


def _words(name: str) -> str:
    return literal(name).replace("_", " ")


def _draw_lines(panels: Sequence[Axes], lines: Sequence[_Line], ends: np.ndarray, inches: float) -> None:
    """Label the lines, in at most so many inches, and shade every second one."""
    starts = np.concatenate([[0.0], ends[:-1]])
    for panel in panels:
        panel.set_ylim(ends[-1], 0)
        panel.tick_params(axis="y", length=0)
        panel.spines["left"].set_visible(False)
        panel.grid(axis="x")
        panel.axhline(ends[0], color="#555555", linewidth=0.6)
        for start, end in [(s, e) for s, e, line in zip(starts, ends, lines, strict=True) if line.rows][::2]:
            panel.axhspan(start, end, color="#f2f2f2", zorder=0, linewidth=0)
    panels[0].set_yticks((starts + ends) / 2, [line.label for line in lines], fontsize=SMALL, linespacing=0.95)
    for line, label in zip(lines, panels[0].get_yticklabels(), strict=True):
        label.set(horizontalalignment="left", fontweight="bold" if line.level == "mean" else "normal")
        label.set_fontstyle("normal" if line.rows else "italic")
    # Labels begin at the left, so that the paradigms of a phenomenon are indented below its name.
    panels[0].tick_params(axis="y", pad=72 * inches + 4)


def _draw_marks(axes: Axes, at, values, low, high, style: dict[str, str], label: str) -> None:
    """A mark for each share in 0..1, and its interval where there is one."""
    values, low, high = (100 * np.array(shares, dtype=float) for shares in (values, low, high))
    bars = np.stack([values - low, high - values]).clip(min=0)
    edge = {"markeredgecolor": "white", "markeredgewidth": 0.3}
    axes.errorbar(values, at, xerr=bars, elinewidth=0.9, markersize=3.6, label=label, zorder=4, **edge, **style)


def _draw_seeds(axes: Axes, at, of_seeds: Sequence[Any], style: dict[str, str]) -> None:
    """A small dot for each seed of each line."""
    dot = {"color": style["color"], "markerfacecolor": "white", "markersize": 1.8, "markeredgewidth": 0.5}
    for y, values in zip(at, of_seeds, strict=False):
        axes.plot(100 * values, [y] * len(values), "o", zorder=3, **dot)


def _draw_star(axes: Axes, at: float, stars: str, colour: str) -> None:
    """Stars at the right of the panel."""
    place = {"xycoords": ("axes fraction", "data"), "xytext": (2, -1.8), "textcoords": "offset points"}
    axes.annotate(stars, (1, at), color=colour, fontsize=SMALL, va="center", annotation_clip=False, **place)
