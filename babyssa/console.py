"""What a command says while it works: progress bars on a terminal, plain lines elsewhere, all on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from babyssa.processes import is_main

T = TypeVar("T")

_SECONDS_BETWEEN_LINES = 10.0


def say(message: str) -> None:
    """One line to stderr, with control characters of foreign text made harmless; of several processes, once."""
    if is_main():
        print(printable(message), file=sys.stderr, flush=True)


def printable(text: str) -> str:
    """Foreign text on one line, with control characters made harmless for a terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def progress(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Yield `items`, showing a bar on a terminal and a line every ten seconds elsewhere."""
    if total is None and hasattr(items, "__len__"):
        total = len(items)
    with counting(what, total) as advance:
        for item in items:
            yield item
            advance(1)


@contextmanager
def counting(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A function to be called with the number of things done since; shows what :func:`progress` shows."""
    if sys.stderr.isatty() and is_main():
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda n: bar.advance(task, n)
        return
    started = last = time.monotonic()
    done = 0

    def advance(n: int) -> None:
        nonlocal done, last
        done += n
        now = time.monotonic()
        if now - last >= _SECONDS_BETWEEN_LINES:
            last = now
            of = "" if total is None else f"/{total}"
            say(f"{what}: {done}{of} after {now - started:.0f} s")

    yield advance


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keep transformers' bars and the hub's retries off stderr: what is wrong is raised, not logged."""
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


def table(header: tuple[str, ...], rows: list[tuple[str, ...]], right: set[int], total: bool = False) -> str:
    """Aligned columns, those in `right` to the right; a rule before the last row if it is a `total`."""
    rows = [tuple(printable(cell) for cell in row) for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells: tuple[str, ...]) -> str:
        aligned = [
            c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(aligned).rstrip()

    rule = "  ".join("-" * width for width in widths)
    lines = [line(header), rule, *map(line, rows)]
    if total:
        lines.insert(-1, rule)
    return "\n".join(lines)
