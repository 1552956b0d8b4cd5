"""Work in a thread, with results and errors as of a call."""

import signal
import threading
import time

import pytest

from babyssa.corpus.interruptible import interruptible


def test_results_and_errors_are_those_of_the_function():
    assert interruptible(lambda: 7) == 7
    for error in (ValueError("no"), TimeoutError("no")):
        with pytest.raises(type(error), match="no"):
            interruptible(lambda error=error: (_ for _ in ()).throw(error))


def test_ctrl_c_comes_through_at_once():
    release = threading.Event()
    threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            interruptible(lambda: release.wait(20))
    finally:
        release.set()
    assert time.monotonic() - started < 1.3
