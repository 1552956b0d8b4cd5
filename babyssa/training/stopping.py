"""Ctrl-C and SIGTERM while a model trains: the first is a request, the second an order."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

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
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def put_back() -> None:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def ask(number, frame) -> None:
        request.signal = number
        put_back()
        # Not print: the signal may have come in the middle of one.
        os.write(2, b"stopping after this step (a second signal stops at once)\n")

    for number in _SIGNALS:
        signal.signal(number, ask)
    try:
        yield request
    finally:
        put_back()
