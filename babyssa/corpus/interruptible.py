"""Lets Ctrl-C stop work that is done in Rust, as by tokenizers and pylangacq."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def interruptible(function: Callable[[], T]) -> T:
    """The result of `function`, called in a thread: the main one stays in Python, where Ctrl-C is answered.

    After Ctrl-C the thread works on until the process ends; what it returns is lost.
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
