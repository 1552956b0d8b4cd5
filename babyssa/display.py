"""How results show themselves: in a terminal of any width, in a notebook, as Markdown, as a pandas frame.

A result class inherits :class:`Shown` and says once what its tables are::

    @dataclass(frozen=True)
    class ProbeResult(Shown):
        ...

        def tables(self):
            columns = (Column("paradigm"), Column("pairs"), Column("accuracy", percent, "accuracy %"))
            rows = [(p.name, p.n_pairs, p.accuracy) for p in self.paradigms]
            yield Table(columns, rows, title=self.model, notes=("A tie counts one half.",))

It then has ``__rich__``, ``__str__``, ``_repr_html_``, ``to_markdown()`` and ``to_frame()``. Rows hold plain
values; a column's format turns them into text, and the frame keeps them as they are. In a terminal a table never
exceeds the width: headings and names wrap, and a table that is still too wide is split into blocks of columns,
each with the first column(s) repeated. Nothing is cut. :func:`show` prints a result to stdout.

Imports nothing heavy.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from babyssa.errors import printable

if TYPE_CHECKING:
    import pandas as pd

# Between two columns: one space of padding, and rich's divider.
_GAP = 2
_NARROWEST = 8
# A name wraps after these, so that no part of it is lost to the eye.
_PIECES = re.compile(r"[^\s\-_/.,]*[\s\-_/.,]+|[^\s\-_/.,]+")


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Parameters
    ----------
    name : str
        Its name in a frame.
    format : str or callable
        A format specification, such as ``".4f"``, or a function from value to text. None and NaN show as
        nothing.
    heading : str
        What a reader sees; the name if not given.
    right : bool, optional
        Whether it is aligned to the right and its cells never wrap; if not given, where its values are numbers.
    hidden : bool
        Whether it is in the frame only.
    """

    name: str
    format: str | Callable[[Any], str] = ""
    heading: str = ""
    right: bool | None = None
    hidden: bool = False

    def text(self, value: Any) -> str:
        """A value of this column on one line."""
        if value is None or value != value:
            return ""
        if isinstance(value, str | bool):
            return printable(str(value))
        return printable(self.format(value) if callable(self.format) else format(value, self.format))


@dataclass(frozen=True)
class Table:
    """Rows under columns, with a title above and notes below.

    Parameters
    ----------
    columns : sequence of Column
        What is shown of each row.
    rows : sequence of sequence
        Values, not text.
    title : str
        One line, or a paragraph.
    notes : sequence of str
        Paragraphs.
    total : sequence, optional
        A last row under a rule; not part of the frame.
    header : bool
        Whether the headings show.
    keys : int
        How many columns say what a row is: they are repeated where the table is split.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    title: str = ""
    notes: Sequence[str] = ()
    total: Sequence[Any] | None = None
    header: bool = True
    keys: int = 1

    def cells(self) -> list[_Cells]:
        """The visible columns as text."""
        rows = [*self.rows, *([self.total] if self.total is not None else [])]
        return [
            _Cells.of(
                printable(column.heading or column.name) if self.header else "",
                tuple(column.text(row[place]) for row in rows),
                _is_numeric(row[place] for row in self.rows) if column.right is None else column.right,
            )
            for place, column in enumerate(self.columns)
            if not column.hidden
        ]

    def to_frame(self) -> pd.DataFrame:
        """The rows, without the total, as a pandas frame."""
        import pandas as pd

        return pd.DataFrame(list(map(tuple, self.rows)), columns=[column.name for column in self.columns])

    def to_markdown(self) -> str:
        """Title, table and notes in Markdown."""
        cells = self.cells()
        lines = [[escape_markdown(column.heading) for column in cells]]
        lines.append(["---:" if column.right else "---" for column in cells])
        lines += [map(escape_markdown, row) for row in zip(*(column.texts for column in cells), strict=True)]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines) if cells else ""
        return "\n\n".join(filter(None, [escape_markdown(self.title), table, *map(escape_markdown, self.notes)]))

    def to_html(self) -> str:
        """Title, table and notes in HTML."""
        cells = self.cells()
        styles = [f' style="text-align: {"right" if column.right else "left"}"' for column in cells]

        def row(tag: str, texts: Iterable[str]) -> str:
            made = (f"<{tag}{s}>{html.escape(t)}</{tag}>" for t, s in zip(texts, styles, strict=True))
            return f"<tr>{''.join(made)}</tr>"

        head = f"<thead>{row('th', (column.heading for column in cells))}</thead>" if self.header else ""
        body = "".join(row("td", texts) for texts in zip(*(column.texts for column in cells), strict=True))
        title = f"<p><b>{html.escape(self.title)}</b></p>" if self.title else ""
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return f"{title}<table>{head}<tbody>{body}</tbody></table>{notes}" if cells else title + notes

    def __rich_console__(self, console, options) -> Iterator[Any]:
        from rich.text import Text

        if self.title:
            yield Text(printable(self.title), style="bold")
        for number, block in enumerate(_blocks(self.cells(), options.max_width, self.keys)):
            if number:
                yield Text()
            yield self._block(block)
        for note in self.notes:
            yield Text(printable(note))

    def _block(self, block: list[tuple[_Cells, int]]):
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(
            box=box.Box("    \n" * 2 + " -- \n" + "    \n" + " -- \n" + "    \n" * 3, ascii=True),
            show_header=self.header,
            show_edge=False,
            pad_edge=False,
            padding=(0, 1, 0, 0),
        )
        headings = [_wrap(column.heading, width) for column, width in block]
        tallest = max(map(len, headings))
        for heading, (column, width) in zip(headings, block, strict=True):
            lines = [""] * (tallest - len(heading)) + heading
            table.add_column(Text("\n".join(lines)), justify="right" if column.right else "left", width=width)
        rows = list(zip(*(column.texts for column, _ in block), strict=True))
        for number, row in enumerate(rows, start=1):
            wrapped = [Text("\n".join(_wrap(t, width))) for t, (_, width) in zip(row, block, strict=True)]
            before_total = self.total is not None and number == len(rows) - 1
            table.add_row(*wrapped, end_section=before_total)
        return table


class Shown:
    """A result that can show itself. Subclasses define :meth:`tables`."""

    def tables(self) -> Iterable[Table]:
        """What is shown, in order."""
        raise NotImplementedError

    def to_frame(self) -> pd.DataFrame:
        """The rows of all tables as one pandas frame; accuracies in 0..1."""
        import pandas as pd

        return pd.concat([table.to_frame() for table in self.tables()], ignore_index=True)

    def to_markdown(self) -> str:
        """The tables in Markdown."""
        return "\n\n".join(table.to_markdown() for table in self.tables()) + "\n"

    def _repr_html_(self) -> str:
        return "".join(table.to_html() for table in self.tables())

    def __rich__(self):
        from rich.console import Group
        from rich.text import Text

        parts = []
        for table in self.tables():
            parts += [Text(), table] if parts else [table]
        return Group(*parts)

    def __str__(self) -> str:
        import io
        from shutil import get_terminal_size

        text = io.StringIO()
        _print(self, file=text, width=get_terminal_size().columns, color_system=None)
        return text.getvalue().rstrip("\n")


def show(result: Any) -> None:
    """Print a result to stdout: in colours on a terminal; texts line by line."""
    if isinstance(result, Shown):
        _print(result)
    elif isinstance(result, list):
        print(*result, sep="\n")


def _print(result: Any, **options: Any) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False, **options)
    with console.capture() as captured:
        console.print(result)
    # Rich pads every line to the width of the table.
    lines = [line.rstrip() for line in captured.get().splitlines()]
    console.file.write("".join(f"{line}\n" for line in lines))
    console.file.flush()


def percent(share: float) -> str:
    """A share in 0..1 as percent with one decimal; the heading has the sign."""
    return f"{100 * share:.1f}"


def readable_token(token: str) -> str:
    """A token as a reader knows it: byte-level BPE's ``Ġthe`` as ``▁the``, and its bytes as the letters they are.

    >>> readable_token("Ġcaf"), readable_token("Ã©")
    ('▁caf', 'é')
    """
    byte_of = _bytes_of_letters()
    if all(letter in byte_of for letter in token):
        try:
            token = bytes(byte_of[letter] for letter in token).decode()
        except UnicodeDecodeError:  # a part of a letter, or not byte-level
            token = token.replace("Ġ", " ")
    return token.replace(" ", "▁")


@cache
def _bytes_of_letters() -> dict[str, int]:
    """GPT-2's alphabet of bytes: printable Latin-1 letters are themselves, the other bytes count from U+0100."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in own]
    return {chr(byte): byte for byte in own} | {chr(0x100 + n): byte for n, byte in enumerate(others)}


def escape_markdown(text: str) -> str:
    """Foreign text as Markdown shows it literally, on one line."""
    text = printable(str(text)).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"([\\`*|#~$!]|\](?=[(\[:]))", r"\\\1", text)  # brackets matter in links only
    text = re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", text)  # within a word, _ is literal anyway
    return re.sub(r":(?=//)|(?<=www)\.|@", lambda m: f"&#{ord(m.group())};", text)  # no autolinks


@dataclass(frozen=True)
class _Cells:
    """A column as text; at its least width no word and no number is broken, at its natural one nothing wraps."""

    heading: str
    texts: tuple[str, ...]
    right: bool
    least: int
    natural: int

    @classmethod
    def of(cls, heading: str, texts: tuple[str, ...], right: bool) -> _Cells:
        words = texts if right else [piece for text in texts for piece in _pieces(text)]
        least = max(map(_width, (*_pieces(heading), *words)), default=1)
        return cls(heading, texts, right, least, max(map(_width, (heading, *texts))))


def _blocks(columns: list[_Cells], width: int, keys: int) -> Iterator[list[tuple[_Cells, int]]]:
    """Columns with their widths, in as many blocks as it takes to fit into `width`; each starts with the keys."""
    if not columns:
        return
    if _total(column.least for column in columns) > width:
        # There will be several blocks, so none needs to be cramped.
        columns = [replace(c, least=max(c.least, min(c.natural, width // 3))) for c in columns]
    first, others = columns[:keys], columns[keys:]
    while True:
        taken = len(others)
        while taken > 1 and _total(column.least for column in (*first, *others[:taken])) > width:
            taken -= 1
        yield _widths([*first, *others[:taken]], width)
        others = others[taken:]
        if not others:
            return


def _widths(columns: list[_Cells], width: int) -> list[tuple[_Cells, int]]:
    """Each column's least width, and what is left over to the first ones that can use it."""
    widths = [column.least for column in columns]
    spare = width - _total(widths)
    low, high = sorted((0, spare))
    for number, column in enumerate(columns):
        # If not even the words fit, they are broken.
        wanted = column.natural if spare > 0 else min(_NARROWEST, widths[number])
        more = min(max(wanted - widths[number], low), high)
        widths[number] += more
        low, high = sorted((0, low + high - more))
    return list(zip(columns, widths, strict=True))


def _total(widths: Iterable[int]) -> int:
    widths = list(widths)
    return sum(widths) + _GAP * (len(widths) - 1)


def _wrap(text: str, width: int) -> list[str]:
    """Lines of at most `width`, broken after a space, hyphen, underscore, slash, full stop or comma."""
    from rich.cells import chop_cells

    lines = [""]
    for piece in _pieces(text):
        for part in [piece] if _width(piece) <= width else chop_cells(piece, width):
            if lines[-1] and _width(lines[-1] + part) > width:
                lines.append("")
            lines[-1] += part
    return [line.rstrip() for line in lines]


def _pieces(text: str) -> list[str]:
    return _PIECES.findall(text)


def _width(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text.rstrip())


def _is_numeric(values: Iterable[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(hasattr(value, "__float__") and not isinstance(value, bool) for value in known)
