"""Ctrl-C and SIGTERM: the first one lets a training finish its step; everything else stops at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from babyssa.errors import Stopped
from babyssa.processes import is_main

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass
class StopRequest:
    """Which signal has asked the run to stop, if any."""

    signal: int | None = None


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Within the block, take the first SIGINT or SIGTERM as a request to stop after the step.

    A second signal does what it does elsewhere. Handlers belong to the main thread: in another, nothing changes.
    """
    request = StopRequest()

    def ask(number, frame) -> None:
        request.signal = number
        put_back()
        if is_main():
            # Not print: the signal may have come in the middle of one.
            os.write(2, b"stopping after this step (a second signal stops at once)\n")

    put_back = _handle(ask)
    try:
        yield request
    finally:
        put_back()


@contextmanager
def stopped_at_once(what: str, path: Path, remedy: str) -> Iterator[None]:
    """Within the block, SIGINT and SIGTERM raise Stopped."""

    def stop(number, frame) -> None:
        name = signal.Signals(number).name
        raise Stopped(f"{what} was stopped ({name})", signal=number, path=path, remedy=remedy)

    put_back = _handle(stop)
    try:
        yield
    finally:
        put_back()


def _handle(handler) -> Callable[[], None]:
    """Install a handler of both signals; returns what puts the earlier ones back."""
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in _SIGNALS:
        signal.signal(number, handler)

    def put_back() -> None:
        for number, earlier in before.items():
            signal.signal(number, earlier if earlier is not None else signal.SIG_DFL)

    return put_back
