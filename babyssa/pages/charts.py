"""The charts of a page, as plotly's data and layout; the page sets ink and paper for light and dark.

A :func:`chart` has a line for each name and, on it, a mark with its interval for each variant; :func:`curves` run
along training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from babyssa.figures import COLOURS

_DASHES = ("solid", "dash", "dashdot", "dot")
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
        layout["shapes"] = [_dashed({"x0": reference, "x1": reference, "yref": "paper", "y0": 0, "y1": 1})]
    return {"data": data, "layout": layout}


def curves(
    lines: dict[str, Sequence[tuple[float, Mark]]],
    across: str,
    *,
    height: int = 240,
    reference: float | None = None,
    legend: bool = False,
    digits: int = 1,
    unit: str = "",
) -> dict[str, Any]:
    """Draw values along training, a line with a band of intervals for each name.

    Parameters
    ----------
    lines : dict of str to sequence of (float, Mark)
        For each name its points from left to right.
    across : str
        Title of the horizontal axis.
    height : int
        In pixels.
    reference : float, optional
        Where a dashed line stands.
    legend : bool
        Whether the names are shown.
    digits, unit
        As in :func:`chart`.

    Returns
    -------
    dict
        ``data`` and ``layout`` of plotly.js.
    """
    data = []
    for number, (name, points) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        known = [(at, mark) for at, mark in points if mark.low is not None]
        if known:
            ends = [(at, mark.high) for at, mark in known] + [(at, mark.low) for at, mark in reversed(known)]
            data.append(
                {
                    "x": [at for at, _ in ends],
                    "y": [round(end, 4) for _, end in ends],
                    "mode": "none",
                    "fill": "toself",
                    "fillcolor": colour,
                    "opacity": 0.15,
                    "hoverinfo": "skip",
                    "showlegend": False,
                    "legendgroup": name,
                }
            )
        data.append(
            {
                "name": name,
                "legendgroup": name,
                "x": [at for at, _ in points],
                "y": [round(mark.value, 4) for _, mark in points],
                "mode": "lines+markers" if len(points) < 30 else "lines",
                "marker": {"color": colour, "symbol": _SYMBOLS[number % len(_SYMBOLS)], "size": 6},
                "line": {"color": colour, "width": 1.6, "dash": _DASHES[number // len(COLOURS) % len(_DASHES)]},
                "text": [_shown(mark, digits, unit) for _, mark in points],
                "hovertemplate": "%{x:,}: %{text}<extra>%{fullData.name}</extra>",
            }
        )
    layout = {
        "height": height,
        "margin": {"l": 10, "r": 10, "t": 30 if legend else 10, "b": 10},
        "xaxis": {"title": {"text": across}, "automargin": True, "zeroline": False, "nticks": 6},
        "yaxis": {"automargin": True, "zeroline": False},
        "legend": {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0},
        "hovermode": "closest",
        "showlegend": legend,
    }
    if reference is not None:
        layout["shapes"] = [_dashed({"y0": reference, "y1": reference, "xref": "paper", "x0": 0, "x1": 1})]
    return {"data": data, "layout": layout}


def _dashed(ends: dict[str, Any]) -> dict[str, Any]:
    line = {"width": 1, "dash": "dash", "color": "#808080"}
    return {"type": "line", "layer": "below", "line": line, **ends}


def _length(low: float | None, high: float | None) -> float:
    return 0.0 if low is None or high is None else round(max(0.0, high - low), 4)


def _shown(mark: Mark, digits: int, unit: str) -> str:
    interval = "" if mark.low is None else f" [{mark.low:.{digits}f}, {mark.high:.{digits}f}]"
    return f"{mark.value:.{digits}f}{unit}{interval}"
