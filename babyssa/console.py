"""Messages and progress on stderr: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from babyssa.errors import printable
from babyssa.processes import is_main

T = TypeVar("T")

_SECONDS_BETWEEN_LINES = 10.0


def say(message: str) -> None:
    """Print one line to stderr; of several processes that train together, only the main one does."""
    if is_main():
        print(printable(message), file=sys.stderr, flush=True)


def progress(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Yield `items` and show how many are done: a bar on a terminal, a line every ten seconds elsewhere."""
    if total is None and hasattr(items, "__len__"):
        total = len(items)
    with counting(what, total) as advance:
        for item in items:
            yield item
            advance(1)


@contextmanager
def counting(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of items just done; shows what :func:`progress` shows."""
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
