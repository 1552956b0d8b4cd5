"""Several calls at once, each in a process of its own with its share of the CPU's cores."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection, wait
from typing import Generic, TypeVar

import torch

from babyssa.console import say
from babyssa.errors import BabySSAError, Stopped, describe
from babyssa.processes import forget_launcher

T = TypeVar("T")

# A forked process would inherit the threads of torch in a state in which they cannot be used.
_CONTEXT = multiprocessing.get_context("spawn")


def at_once(calls: Mapping[str, Callable[[], T]], jobs: int) -> dict[str, T | BabySSAError]:
    """Make `calls`, `jobs` of them at a time, each with as many threads as torch has here for one of `jobs`.

    What a process says on stderr is said here, after its name. If a signal raises Stopped here, the processes get
    SIGTERM and are waited for; with another signal they get another. If this process is killed, they end too.

    Parameters
    ----------
    calls : mapping of callable
        What to call, by name. What goes into a call and what it returns has to pickle.
    jobs : int
        How many at a time, at least 1.

    Returns
    -------
    dict
        What each returned; a BabySSAError where a process ended without that, as one does that the system kills
        for want of memory.

    Raises
    ------
    Stopped
        If a call raised it, or a signal; what a call that goes on then returns is lost.
    """
    threads = max(1, torch.get_num_threads() // jobs)
    waiting = list(calls.items())
    running: list[_Job] = []
    results = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                name, call = waiting.pop(0)
                running.append(_Job(name, call, threads))
                running[-1].start()
            finished = wait([job.result for job in running])
            for job in [job for job in running if job.result in finished]:
                results[job.name] = value = job.value()
                running.remove(job)
                if isinstance(value, BabySSAError):
                    say(f"{job.name}: {describe(value)}")
    finally:
        _stop(running)
    return {name: results[name] for name in calls}


class _Job(Generic[T]):
    """One call in a process of its own."""

    def __init__(self, name: str, call: Callable[[], T], threads: int):
        self.name = name
        self.result, self._result_there = _CONTEXT.Pipe(duplex=False)
        self._said, self._said_there = _CONTEXT.Pipe(duplex=False)
        self._process = _CONTEXT.Process(
            target=_work,
            args=(call, threads, self._result_there, self._said_there),
            name=name,
            # It is ended with this process at the latest.
            daemon=True,
        )
        self._speaker = threading.Thread(target=self._say, daemon=True)

    def start(self) -> None:
        self._process.start()
        # Without our copies of its ends, both pipes end with the process.
        self._result_there.close()
        self._said_there.close()
        self._speaker.start()

    def _say(self) -> None:
        with open(self._said.fileno(), encoding="utf-8", errors="replace", closefd=False) as lines:
            for line in lines:
                say(f"{self.name}: {line.strip()}")

    def value(self) -> T | BabySSAError:
        """What the call returned; waits for it, and for the end of the process."""
        try:
            value, stopped = self.result.recv()
        except EOFError:
            self.wait()
            code = self._process.exitcode
            how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
            return BabySSAError(f"the process ended too early ({how})", remedy="is there memory for so many jobs?")
        self.wait()
        if stopped is not None:
            raise Stopped(f"{self.name} was stopped ({signal.Signals(stopped).name})", signal=stopped)
        return value

    def ask_to_stop(self) -> None:
        if self._process.is_alive():
            self._process.terminate()

    def wait(self) -> None:
        """Wait until the process has ended, and all that it said is said."""
        if self._process.pid is not None:
            self._process.join()
            self._speaker.join()


def _stop(jobs: list[_Job]) -> None:
    """Ask the processes that still work to stop, once and at each further signal, and wait until they have."""
    while True:
        try:
            for job in jobs:
                job.ask_to_stop()
            for job in jobs:
                job.wait()
            return
        except Stopped:
            continue


def _work(call: Callable[[], T], threads: int, result: Connection, said: Connection) -> None:
    """What the process of a job does."""
    # A terminal sends Ctrl-C to a group of processes: to the first alone, which passes it on.
    os.setpgrp()
    os.dup2(said.fileno(), 2)
    said.close()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    forget_launcher()
    torch.set_num_threads(threads)
    try:
        outcome = (call(), None)
    except Stopped as stopped:
        # It would not pickle.
        outcome = (None, stopped.signal)
    result.send(outcome)


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()
    # As if killed with it: nobody would hear of what comes of this call.
    os._exit(1)
