"""Lets Ctrl-C interrupt calls into Rust code (tokenizers, pylangacq)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def interruptible(function: Callable[[], T]) -> T:
    """Call `function` in a thread, so that the main thread stays in Python and handles Ctrl-C.

    After Ctrl-C the thread keeps running until the process ends; its result is lost.
    """
    done: Future[T] = Future()

    def run():
        try:
            done.set_result(function())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    while True:
        try:
            return done.result(timeout=0.2)
        except TimeoutError:
            if done.done():
                raise
