"""The figure of attention maps."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from babyssa.errors import printable
from babyssa.figures import literal, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def draw_attention_maps(
    tokens: Sequence[str],
    weights: Sequence[Any],
    *,
    title: str = "",
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
) -> Figure:
    """Draw the weights of heads, a row of maps per layer; queries run down, keys across.

    Parameters
    ----------
    tokens : sequence of str
        What the queries and keys are.
    weights : sequence of array
        For each layer (heads, query, key). All maps share one scale, which the colour bar states: from 0, or the
        lowest weight if that is negative, to the largest.
    title : str
        What read what.
    layers, heads : sequence of int, optional
        Their numbers (default: from 1 on).

    Returns
    -------
    matplotlib.figure.Figure
        Not registered with pyplot; ``figure.savefig(path)`` writes it.
    """
    from matplotlib.figure import Figure

    layers = range(1, len(weights) + 1) if layers is None else layers
    heads = range(1, max(map(len, weights)) + 1) if heads is None else heads
    # Labels of 6 points need 0.1 inch each; where a map has no room for that, only every so many are written.
    side = min(max(0.11 * len(tokens), 1.1), 3.0)
    every = math.ceil(0.1 * len(tokens) / side)
    labels = [_short(token) for token in tokens[::every]]
    margin = 0.055 * max(map(len, labels))
    size_of = (side * 1.06 * len(heads) + margin + 1.2, side * 1.06 * len(layers) + margin + 1.0)
    figure = Figure(figsize=size_of, dpi=min(150, 20_000 / max(size_of)))
    figure.get_layout_engine().set(w_pad=0.02, h_pad=0.02, wspace=0.01, hspace=0.01)
    panels = figure.subplots(len(layers), len(heads), squeeze=False)
    smallest = min(0.0, *(float(layer.min()) for layer in weights))
    largest = max(float(layer.max()) for layer in weights) or 1.0
    scale = {"cmap": "Blues", "vmin": 0.0, "vmax": largest}
    if smallest < 0:
        widest = max(-smallest, largest)
        scale = {"cmap": "RdBu", "vmin": -widest, "vmax": widest}
    image = None
    for row, layer in enumerate(weights):
        for head, axes in enumerate(panels[row]):
            if head >= len(layer):
                axes.set_axis_off()
                continue
            image = axes.imshow(layer[head], interpolation="nearest", **scale)
            axes.set_xticks(range(0, len(tokens), every), labels if row == len(layers) - 1 else [], rotation=90)
            axes.set_yticks(range(0, len(tokens), every), labels if head == 0 else [])
            axes.tick_params(length=0, labelsize=6, pad=1.5)
            axes.spines[:].set(visible=True, color="#aaaaaa")
            if row == 0:
                axes.set_title(f"head {heads[head]}", fontsize=8)
            if head == 0:
                axes.set_ylabel(f"layer {layers[row]}", fontsize=8)
    if title:
        wide = max(int(size_of[0] * 14), 20)
        figure.suptitle(textwrap.fill(literal(title), wide), fontsize=8)
    figure.supxlabel("down: query, across: key", fontsize=8)
    # About 0.15 inch wide, whatever its height.
    bar = figure.colorbar(image, ax=panels, fraction=0.05, aspect=max(25, side * len(layers) / 0.15), pad=0.01)
    bar.ax.tick_params(labelsize=7)
    bar.set_label(f"attention weight, {smallest:.2g} to {largest:.2g} in all maps", fontsize=8)
    return figure


def _short(token: str) -> str:
    """One line of at most 14 printable characters."""
    token = printable(token)
    return literal(token if len(token) <= 14 else f"{token[:13]}…")
