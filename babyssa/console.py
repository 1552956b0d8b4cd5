"""Messages and progress on stderr: bars on a terminal, plain lines elsewhere.

Work that is counted within other work has a bar below that one's. A process that works for another one, such as a
cell of a sweep, sends its progress as lines of JSON, for the other to show (:func:`relaying`).
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from babyssa.errors import printable
from babyssa.processes import is_main

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")
# Takes how many items were just done, and what else is known, such as a loss.
Advance = Callable[..., None]

# Where this variable is set, progress goes to the process that started this one: lines that begin with the mark.
RELAYED = "BABYSSA_RELAYED_PROGRESS"
_MARK = "\x1e"

_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_BETWEEN_RELAYED = 0.5
_SECONDS_BETWEEN_UPDATES = 0.1

_lock = threading.Lock()
_shown: Progress | None = None


def say(message: str) -> None:
    """Print one line to stderr; of several processes that train together, only the main one does."""
    if is_main():
        print(printable(message), file=sys.stderr, flush=True)


def on_terminal() -> bool:
    """Whether stderr can show bars."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def progress(items: Iterable[T], what: str, total: int | None = None, unit: str = "") -> Iterator[T]:
    """Yield `items` and show how many are done: a bar on a terminal, a line every ten seconds elsewhere."""
    if total is None and hasattr(items, "__len__"):
        total = len(items)
    with counting(what, total, unit) as advance:
        for item in items:
            yield item
            advance(1)


@contextmanager
def counting(what: str, total: int | None, unit: str = "", done: int = 0) -> Iterator[Advance]:
    """Yield a function to call with the number of items just done, and with a note if there is news.

    Parameters
    ----------
    what : str
        The work.
    total : int, optional
        How many items there are; None if that is not known.
    unit : str
        What an item is, in the plural.
    done : int
        How many are done already.
    """
    if not is_main():
        yield lambda n, note="": None
    elif RELAYED in os.environ:
        yield _every(_SECONDS_BETWEEN_RELAYED, done, _relay(what, total, unit))
    elif on_terminal():
        with _bar(what, total, unit, done) as update:
            yield _every(_SECONDS_BETWEEN_UPDATES, done, lambda n, note: update(completed=n, note=note))
    else:
        yield _every(_SECONDS_BETWEEN_LINES, done, _lines(what, total, unit, done))


def _every(seconds: float, done: int, show: Callable[[int, str], None]) -> Advance:
    """Count, and show the count and the last note from time to time."""
    last, noted = time.monotonic(), ""

    def advance(n: int, note: str = "") -> None:
        nonlocal done, last, noted
        done, noted = done + n, note or noted
        now = time.monotonic()
        if now - last >= seconds:
            last = now
            show(done, noted)

    return advance


def _lines(what: str, total: int | None, unit: str, before: int) -> Callable[[int, str], None]:
    started = time.monotonic()

    def show(done: int, note: str) -> None:
        rate = (done - before) / (time.monotonic() - started)
        say(f"{what}: {_state(done, total, unit, rate, note)}")

    return show


def _relay(what: str, total: int | None, unit: str) -> Callable[[int, str], None]:
    def show(done: int, note: str) -> None:
        print(_MARK + json.dumps([what, total, unit, done, note]), file=sys.stderr, flush=True)

    return show


@contextmanager
def relaying(name: str) -> Iterator[Callable[[str], None]]:
    """Yield a function for the lines of another process: progress becomes a bar, the rest is said after `name`."""
    if not on_terminal():
        yield lambda line: say(f"{name}: {line}")
        return
    before: list[Any] | None = None
    with _bar(name, None, "", 0) as update:

        def show(line: str) -> None:
            nonlocal before
            if not line.startswith(_MARK):
                say(f"{name}: {line}")
                return
            *work, done, note = json.loads(line.removeprefix(_MARK))
            if work != before:
                before = work
                what, total, unit = work
                update(reset=True, description=f"{name}: {what}", total=total, unit=unit, note="")
            update(completed=done, note=note)

        yield show


@contextmanager
def _bar(what: str, total: int | None, unit: str, done: int) -> Iterator[Callable[..., None]]:
    """A bar among those that are shown, and the function that changes it."""
    global _shown
    with _lock:
        if _shown is None:
            _shown = _bars()
            _shown.start()
        bars = _shown
        task = bars.add_task(printable(what), total=total, completed=done, unit=unit, note="")

    def update(*, reset: bool = False, **changes: Any) -> None:
        if reset:
            bars.reset(task)
        bars.update(task, **changes)

    try:
        yield update
    finally:
        with _lock:
            bars.remove_task(task)
            if not bars.tasks:
                bars.stop()
                _shown = None


def _bars() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
    from rich.table import Column
    from rich.text import Text

    class State(ProgressColumn):
        def render(self, task) -> Text:
            fields = (task.fields["unit"], task.speed or 0, task.fields["note"])
            return Text(_state(int(task.completed), task.total and int(task.total), *fields))

    # A blue of Okabe & Ito on grey: no colour has a meaning, and no two differ as red and green do.
    colours = {"complete_style": "#56B4E9", "finished_style": "#56B4E9", "pulse_style": "#56B4E9"}
    one_line = {"no_wrap": True, "overflow": "ellipsis"}
    return Progress(
        TextColumn("{task.description}", markup=False, table_column=Column(**one_line, max_width=26)),
        BarColumn(bar_width=14, style="grey50", **colours),
        State(table_column=Column(**one_line)),
        console=Console(stderr=True),
        refresh_per_second=4,
        transient=True,
        redirect_stdout=False,
    )


def _state(done: int, total: int | None, unit: str, rate: float, note: str) -> str:
    """How far a piece of work is, how fast, and how long it will take."""
    count = f"{done:,}" if total is None else f"{done:,}/{total:,}"
    parts = [f"{count} {unit}".rstrip()]
    if rate > 0:
        parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s")
        if total is not None:
            parts.append(f"{duration((total - done) / rate)} left")
    return ", ".join([*parts, *filter(None, [note])])


def duration(seconds: float) -> str:
    """A time in its usual unit: "71 s", "12 min", "3.2 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keep the bars of transformers and the retries of the hub off stderr; errors are still raised."""
    from huggingface_hub.utils import logging as hub
    from transformers.utils import logging

    verbosity, bars, hub_verbosity = (
        logging.get_verbosity(),
        logging.is_progress_bar_enabled(),
        hub.get_verbosity(),
    )
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    hub.set_verbosity_error()
    try:
        yield
    finally:
        hub.set_verbosity(hub_verbosity)
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
