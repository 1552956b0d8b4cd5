"""The charts of a page, as plotly's data and layout; the page sets ink and paper for light and dark.

A chart has a line for each name and, on it, a mark with its interval for each variant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from babyssa.figures import COLOURS

_SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x", "star")


@dataclass(frozen=True)
class Mark:
    """What a variant has on one line.

    Parameters
    ----------
    value : float
        Where the mark is.
    low, high : float, optional
        Ends of its interval; None where there is none.
    seeds : sequence of float
        Values of single seeds, drawn as small dots.
    hollow : bool
        Whether the mark is an outline.
    """

    value: float
    low: float | None = None
    high: float | None = None
    seeds: Sequence[float] = field(default=())
    hollow: bool = False


def chart(
    lines: Sequence[str],
    variants: dict[str, Sequence[Mark | None]],
    title: str,
    *,
    unit: str = "",
    reference: float | None = None,
    first_colour: int = 0,
    digits: int = 1,
) -> dict[str, Any]:
    """Draw marks with intervals.

    Parameters
    ----------
    lines : sequence of str
        Names from top to bottom.
    variants : dict of str to sequence of Mark or None
        For each variant a mark on each line, or None.
    title : str
        Of the axis.
    unit : str
        Behind a number that the pointer asks for.
    reference : float, optional
        Where a dashed line stands.
    first_colour : int
        Colour and symbol of the first variant.
    digits : int
        Decimals of a number that the pointer asks for.

    Returns
    -------
    dict
        ``data`` and ``layout`` of plotly.js.
    """
    data = []
    for number, (variant, marks) in enumerate(variants.items()):
        offset = (number - (len(variants) - 1) / 2) * 0.76 / len(variants)
        placed = [(line, line + offset, m) for line, m in enumerate(marks) if m is not None]
        colour = COLOURS[(first_colour + number) % len(COLOURS)]
        symbol = _SYMBOLS[(first_colour + number) % len(_SYMBOLS)]
        dots = [(seed, at) for _, at, mark in placed for seed in mark.seeds]
        if dots:
            data.append(
                {
                    "x": [round(x, 4) for x, _ in dots],
                    "y": [y for _, y in dots],
                    "mode": "markers",
                    "marker": {"color": colour, "symbol": symbol, "size": 5, "opacity": 0.4},
                    "hoverinfo": "skip",
                    "showlegend": False,
                    "legendgroup": variant,
                }
            )
        trace = {
            "name": variant,
            "legendgroup": variant,
            "x": [round(mark.value, 4) for _, _, mark in placed],
            "y": [at for _, at, _ in placed],
            "mode": "markers",
            "marker": {
                "color": colour,
                "size": 9,
                "symbol": [f"{symbol}-open" if mark.hollow else symbol for _, _, mark in placed],
            },
            "text": [f"{lines[line]}<br>{_shown(mark, digits, unit)}" for line, _, mark in placed],
            "hovertemplate": "%{text}<extra>%{fullData.name}</extra>",
        }
        if any(mark.low is not None for _, _, mark in placed):
            trace["error_x"] = {
                "type": "data",
                "symmetric": False,
                "array": [_length(mark.value, mark.high) for _, _, mark in placed],
                "arrayminus": [_length(mark.low, mark.value) for _, _, mark in placed],
                "color": colour,
                "thickness": 1.3,
                "width": 0,
            }
        data.append(trace)
    layout = {
        "height": round(130 + len(lines) * (14 + 11 * len(variants))),
        "margin": {"l": 10, "r": 10, "t": 40, "b": 50},
        "xaxis": {"title": {"text": title}, "automargin": True, "zeroline": False},
        "yaxis": {
            "tickmode": "array",
            "tickvals": list(range(len(lines))),
            "ticktext": list(lines),
            "range": [len(lines) - 0.5, -0.5],
            "automargin": True,
            "showgrid": False,
            "zeroline": False,
        },
        "legend": {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0},
        "hovermode": "closest",
        "showlegend": True,
    }
    if reference is not None:
        dashed = {"width": 1, "dash": "dash", "color": "#808080"}
        across = {"type": "line", "x0": reference, "x1": reference, "yref": "paper", "y0": 0, "y1": 1}
        layout["shapes"] = [across | {"line": dashed, "layer": "below"}]
    return {"data": data, "layout": layout}


def _length(low: float | None, high: float | None) -> float:
    return 0.0 if low is None or high is None else round(max(0.0, high - low), 4)


def _shown(mark: Mark, digits: int, unit: str) -> str:
    interval = "" if mark.low is None else f" [{mark.low:.{digits}f}, {mark.high:.{digits}f}]"
    return f"{mark.value:.{digits}f}{unit}{interval}"
