"""The charts of a page, as plotly's data and layout; the page sets ink and paper for light and dark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from babyssa.comparison.report import in_order, mark
from babyssa.figures import COLOURS

if TYPE_CHECKING:
    import numpy as np

    from babyssa.comparison.report import Comparison

_SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x", "star")


def accuracy_chart(comparison: Comparison, seeds: Mapping[tuple[str, str], np.ndarray]) -> dict[str, Any]:
    """Accuracies with their intervals, and every seed as a small dot.

    Parameters
    ----------
    comparison : Comparison
        With its table.
    seeds : mapping
        For each paradigm (or mean) and variant, the accuracies ``(seeds,)`` in 0..1.
    """
    lines = _lines(comparison)
    data = []
    for number, variant in enumerate(comparison.variants):
        rows = [of_variant[variant] for of_variant in lines.values()]
        at = _places(number, len(comparison.variants), len(lines))
        of_seeds = [100 * seeds[name, variant] for _, name in lines]
        if rows[0].n_seeds > 1:
            data.append(
                {
                    "x": [round(x, 3) for values in of_seeds for x in values.tolist()],
                    "y": [y for values, y in zip(of_seeds, at, strict=True) for _ in values],
                    "mode": "markers",
                    "marker": _marker(number) | {"size": 5, "opacity": 0.35},
                    "hoverinfo": "skip",
                    "showlegend": False,
                    "legendgroup": variant,
                }
            )
        data.append(
            _trace(
                variant,
                number,
                at,
                [100 * row.accuracy for row in rows],
                [100 * row.low for row in rows] if rows[0].n_seeds > 1 else None,
                [100 * row.high for row in rows],
                list(lines),
                "%",
            )
        )
    axis = {"title": {"text": "accuracy (%); dashed: chance"}, "range": [None, 101], "zeroline": False}
    chance = {"type": "line", "x0": 50, "x1": 50, "yref": "paper", "y0": 0, "y1": 1}
    return _chart(data, lines, len(comparison.variants), axis, chance)


def difference_chart(comparison: Comparison) -> dict[str, Any]:
    """Paired differences to the baseline with their intervals; filled where Holm-adjusted p is below the level."""
    lines, variants = _lines(comparison), comparison.variants[1:]
    data = []
    for number, variant in enumerate(variants):
        rows = [of_variant[variant] for of_variant in lines.values()]
        trace = _trace(
            f"{variant} − {comparison.baseline}",
            number + 1,
            _places(number, len(variants), len(lines)),
            [100 * row.difference for row in rows],
            [100 * row.difference_low for row in rows] if rows[0].compared_seeds > 1 else None,
            [100 * row.difference_high for row in rows],
            list(lines),
            " points",
        )
        shown = [bool(mark(row, 1 - comparison.level)) for row in rows]
        symbol = _SYMBOLS[(number + 1) % len(_SYMBOLS)]
        trace["marker"]["symbol"] = [symbol if is_shown else f"{symbol}-open" for is_shown in shown]
        data.append(trace)
    title = f"difference to {comparison.baseline} (points); filled: shown after Holm correction"
    axis = {"title": {"text": title}, "zeroline": False}
    none = {"type": "line", "x0": 0, "x1": 0, "yref": "paper", "y0": 0, "y1": 1}
    return _chart(data, lines, len(variants), axis, none)


def _lines(comparison: Comparison) -> dict[tuple[str, str], dict[str, Any]]:
    return {key: rows for key, rows in in_order(comparison.table).items() if key[0] != "phenomenon"}


def _places(number: int, variants: int, lines: int) -> list[float]:
    return [line + (number - (variants - 1) / 2) * 0.76 / variants for line in range(lines)]


def _marker(number: int) -> dict[str, Any]:
    return {"color": COLOURS[number % len(COLOURS)], "symbol": _SYMBOLS[number % len(_SYMBOLS)], "size": 9}


def _trace(name, number, at, values, lows, highs, lines, unit) -> dict[str, Any]:
    texts = [f"{line}<br>{value:.1f}{unit}" for (_, line), value in zip(lines, values, strict=True)]
    trace = {
        "name": name,
        "legendgroup": name,
        "x": [round(value, 3) for value in values],
        "y": at,
        "mode": "markers",
        "marker": _marker(number),
        "text": texts,
        "hovertemplate": "%{text}<extra>%{fullData.name}</extra>",
    }
    if lows is not None:
        trace["error_x"] = {
            "type": "data",
            "symmetric": False,
            "array": [round(max(0.0, high - value), 3) for value, high in zip(values, highs, strict=True)],
            "arrayminus": [round(max(0.0, value - low), 3) for value, low in zip(values, lows, strict=True)],
            "color": COLOURS[number % len(COLOURS)],
            "thickness": 1.3,
            "width": 0,
        }
        trace["text"] = [
            f"{text} [{low:.1f}, {high:.1f}]" for text, low, high in zip(texts, lows, highs, strict=True)
        ]
    return trace


def _chart(data, lines, variants: int, axis: dict[str, Any], line: dict[str, Any]) -> dict[str, Any]:
    names = [f"<b>{name}</b>" if level == "mean" else name for level, name in lines]
    layout = {
        "height": round(130 + len(lines) * (14 + 11 * variants)),
        "margin": {"l": 10, "r": 10, "t": 40, "b": 50},
        "xaxis": axis | {"automargin": True},
        "yaxis": {
            "tickmode": "array",
            "tickvals": list(range(len(names))),
            "ticktext": names,
            "range": [len(names) - 0.5, -0.5],
            "automargin": True,
            "showgrid": False,
            "zeroline": False,
        },
        "legend": {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0},
        "hovermode": "closest",
        "showlegend": True,
        "shapes": [line | {"line": {"width": 1, "dash": "dash", "color": "#808080"}, "layer": "below"}],
    }
    return {"data": data, "layout": layout}
