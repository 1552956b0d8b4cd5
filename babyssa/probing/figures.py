"""The figure of attention maps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from babyssa.errors import printable
from babyssa.figures import literal, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def draw_attention_maps(tokens: Sequence[str], weights: Sequence[Any]) -> Figure:
    """Draw the weights of every head, a row of maps per layer; queries run down, keys across.

    Parameters
    ----------
    tokens : sequence of str
        What the queries and keys are.
    weights : sequence of array
        For each layer (heads, query, key). All maps share one scale, from 0 to the largest weight.

    Returns
    -------
    matplotlib.figure.Figure
        Not registered with pyplot; ``figure.savefig(path)`` writes it.
    """
    from matplotlib.figure import Figure

    layers, heads = len(weights), max(len(layer) for layer in weights)
    # Labels of 6 points need 0.1 inch each; where a map has no room for that, only every so many are written.
    side = min(max(0.11 * len(tokens), 1.1), 3.0)
    every = math.ceil(0.1 * len(tokens) / side)
    labels = [_short(token) for token in tokens[::every]]
    margin = 0.055 * max(map(len, labels))
    size = (side * 1.06 * heads + margin + 1.2, side * 1.06 * layers + margin + 0.8)
    figure = Figure(figsize=size, dpi=min(150, 20_000 / max(size)))
    figure.get_layout_engine().set(w_pad=0.02, h_pad=0.02, wspace=0.01, hspace=0.01)
    panels = figure.subplots(layers, heads, squeeze=False)
    largest = max(float(layer.max()) for layer in weights)
    image = None
    for row, layer in enumerate(weights):
        for head, axes in enumerate(panels[row]):
            if head >= len(layer):
                axes.set_axis_off()
                continue
            image = axes.imshow(layer[head], cmap="Blues", vmin=0, vmax=largest or 1, interpolation="nearest")
            axes.set_xticks(range(0, len(tokens), every), labels if row == layers - 1 else [], rotation=90)
            axes.set_yticks(range(0, len(tokens), every), labels if head == 0 else [])
            axes.tick_params(length=0, labelsize=6, pad=1.5)
            axes.spines[:].set(visible=True, color="#aaaaaa")
            if row == 0:
                axes.set_title(f"head {head + 1}", fontsize=8)
            if head == 0:
                axes.set_ylabel(f"layer {row + 1}", fontsize=8)
    figure.supxlabel("down: query, across: key", fontsize=8)
    # About 0.15 inch wide, whatever its height.
    bar = figure.colorbar(image, ax=panels, fraction=0.05, aspect=max(25, side * layers / 0.15), pad=0.01)
    bar.ax.tick_params(labelsize=7)
    bar.set_label("attention weight", fontsize=8)
    return figure


def _short(token: str) -> str:
    """One line of at most 14 printable characters."""
    token = printable(token)
    return literal(token if len(token) <= 14 else f"{token[:13]}…")
