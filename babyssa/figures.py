"""What all figures have in common: style, colours, markers, and how they are saved."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from babyssa.errors import printable
from babyssa.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

P = ParamSpec("P")
T = TypeVar("T")

# The colours of Okabe & Ito, which readers with any colour vision can tell apart, darkest first; each has a
# marker of its own, for print in grey.
COLOURS = ("#000000", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":")

STYLE: dict[str, Any] = {
    "figure.dpi": 150,
    "figure.constrained_layout.use": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
}


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function so that it draws in the project's style."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> T:
        import matplotlib

        with matplotlib.rc_context(STYLE):
            return draw(*args, **kwargs)

    return drawn


def literal(text: str) -> str:
    """A foreign name as a figure shows it: one printable line, its dollar signs no mathematics."""
    return printable(text).replace("$", r"\$")


def series(number: int) -> dict[str, str]:
    """Colour, marker and line style of the `number`-th thing drawn in one panel, from 0."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": LINES[number // len(COLOURS) % len(LINES)],
    }


@styled
def save_figure(figure: Figure, path: Path, description: str = "") -> None:
    """Write a figure as PNG, PDF or SVG, by the name's end, with `description` in its metadata.

    Glyphs that the font lacks give no warning.
    """
    kind = Path(path).suffix[1:].lower()
    key = "Subject" if kind == "pdf" else "Description"
    with warnings.catch_warnings(), atomic_write(path, "wb") as file:
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(file, format=kind, metadata={key: description} if description else None)
