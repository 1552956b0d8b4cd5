"""What all figures have in common: sizes, style, colours, markers, and how they are saved."""

from __future__ import annotations

import functools
import textwrap
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, get_args

from babyssa.errors import ConfigError, printable
from babyssa.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

P = ParamSpec("P")
T = TypeVar("T")

Format = Literal["png", "pdf", "svg"]
Width = Literal["column", "page"]
# In inches: a column and both columns of an ACL paper. Figures keep their size in print, and so their fonts.
WIDTHS: dict[Width, float] = {"column": 3.03, "page": 6.3}
# Points, of captions and of labels that stand close together.
SMALL = 6.5

# The colours of Okabe & Ito, which readers with any colour vision can tell apart, darkest first; each has a
# marker of its own, for print in grey.
COLOURS = ("#000000", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":")

STYLE: dict[str, Any] = {
    "figure.dpi": 200,
    "figure.constrained_layout.use": True,
    "font.size": 8,
    "axes.labelsize": 7.5,
    "axes.titlesize": 7.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "figure.titlesize": 7.5,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.0,
    "lines.markersize": 3.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    # Letters stay letters in a PDF, and the same figure gives the same file.
    "pdf.fonttype": 42,
    "svg.hashsalt": "babyssa",
}
# What would put the time of writing into a file.
_UNDATED = {"png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}


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


def fill(text: str, inches: float, points: float = SMALL) -> str:
    """A text in lines of at most so many inches, in letters of so many points."""
    # A letter of DejaVu Sans is a little more than half as wide as its size.
    return textwrap.fill(text, max(int(inches * 72 / (0.54 * points)), 10))


def set_caption(figure: Figure, text: str) -> None:
    """Write what a figure shows below it, in lines as long as it is wide."""
    figure.supxlabel(fill(text, figure.get_figwidth()), fontsize=SMALL)


@styled
def save_figure(figure: Figure, path: str | Path, description: str = "") -> Path:
    """Write a figure as PNG, PDF or SVG, by the name's end, with `description` in its metadata.

    Glyphs that the font lacks give no warning.

    Raises
    ------
    ConfigError
        If the name ends otherwise.
    """
    path = Path(path)
    kind = path.suffix[1:].lower()
    if kind not in _UNDATED:
        remedy = f"let its name end in {', '.join(f'.{known}' for known in get_args(Format))}"
        raise ConfigError(f"'{path.name}' is no name of a figure", remedy=remedy)
    key = "Subject" if kind == "pdf" else "Description"
    metadata = _UNDATED[kind] | ({key: description} if description else {})
    with warnings.catch_warnings(), atomic_write(path, "wb") as file:
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(file, format=kind, metadata=metadata)
    return path


def replace_figure(figure: Figure, stem: Path, format: Format, description: str = "") -> Path:
    """Write a figure as `stem` with the ending of its format, and remove an earlier one of another format."""
    for other in get_args(Format):
        stem.with_name(f"{stem.name}.{other}").unlink(missing_ok=True)
    return save_figure(figure, stem.with_name(f"{stem.name}.{format}"), description)
