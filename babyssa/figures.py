"""What all figures have in common: their style, colours and markers."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

# The colours of Okabe & Ito, which readers with any colour vision can tell apart, darkest first; each has a
# marker of its own, for print in grey.
COLOURS = ("#000000", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

STYLE: dict[str, Any] = {
    "figure.dpi": 150,
    "figure.constrained_layout.use": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    # Names of paradigms and tokens may have dollar signs.
    "text.parse_math": False,
}


def style() -> AbstractContextManager:
    """A context in which figures are drawn in the project's style."""
    import matplotlib

    return matplotlib.rc_context(STYLE)
