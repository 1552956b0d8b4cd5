"""Several calls at once, each in a process of its own with its share of the CPU's cores."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from typing import Generic, TypeVar

import torch

from babyssa.console import say
from babyssa.errors import BabySSAError, ConfigError, Stopped, describe
from babyssa.processes import forget_launcher

T = TypeVar("T")

# A forked process would inherit the threads of torch in a state in which they cannot be used.
_CONTEXT = multiprocessing.get_context("spawn")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def refuse_in_a_job(what: str) -> None:
    """Raise ConfigError in a job's process that runs the script anew, to know its definitions, and comes here."""
    # As multiprocessing itself looks for it.
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise ConfigError(
            f"the process of a job came to start {what}",
            remedy='put what your script does under: if __name__ == "__main__":',
        )


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
                say(f"{len(calls) - len(waiting)}/{len(calls)}: {name}")
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
        self._call = ForkingPickler.dumps(call)
        calls, self._calls = _CONTEXT.Pipe(duplex=False)
        self.result, result = _CONTEXT.Pipe(duplex=False)
        self._said, said = _CONTEXT.Pipe(duplex=False)
        self._there = (calls, result, said)
        # As a daemon, it is ended with this process at the latest.
        self._process = _CONTEXT.Process(target=_work, args=(*self._there, threads), name=name, daemon=True)
        self._speaker = threading.Thread(target=self._converse, daemon=True)

    def start(self) -> None:
        # Until it is in a group of its own, a signal to ours would reach it too.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        # Without our copies of its ends, all pipes end with the process.
        for end in self._there:
            end.close()
        self._speaker.start()

    def _converse(self) -> None:
        """Tell the process what to call, and say what it says."""
        with suppress(OSError):
            # Waits for the process to read it, which it may not live to do.
            self._calls.send_bytes(self._call)
        try:
            with open(self._said.fileno(), encoding="utf-8", errors="replace", closefd=False) as lines:
                for line in lines:
                    say(f"{self.name}: {line.strip()}")
        except OSError:
            # Nobody hears us: it is to notice that too, and not to wait for ever to be heard.
            self._said.close()

    def value(self) -> T | BabySSAError:
        """What the call returned; waits for it, and for the end of the process."""
        try:
            value, stopped = self.result.recv()
        except (EOFError, OSError):
            self.wait()
            code = self._process.exitcode
            if -code not in _SIGNALS:
                how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
                remedy = "is there memory for so many jobs?" if code == -signal.SIGKILL else "see what it said"
                return BabySSAError(f"the process ended too early ({how})", remedy=remedy)
            value, stopped = None, -code
        self.wait()
        if stopped is not None:
            what = f"{self.name} was stopped ({signal.Signals(stopped).name})"
            raise Stopped(what, signal=stopped, remedy="the same command goes on from there")
        return value

    def ask_to_stop(self) -> None:
        if self._process.is_alive():
            self._process.terminate()

    def wait(self) -> None:
        """Wait until the process has ended, and what it said is said."""
        if self._process.pid is not None:
            self._process.join()
            if self._speaker.is_alive():
                # What it started itself may live on, with the pipe in its hands.
                self._speaker.join(timeout=5)


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


def _work(calls: Connection, result: Connection, said: Connection, threads: int) -> None:
    """What the process of a job does."""
    # A terminal sends Ctrl-C to a group of processes: to the first alone, which passes it on as SIGTERM.
    os.setpgrp()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(said.fileno(), 2)
    said.close()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    forget_launcher()
    torch.set_num_threads(threads)
    try:
        outcome = (pickle.loads(calls.recv_bytes())(), None)
    except Stopped as stopped:
        # It would not pickle.
        outcome = (None, stopped.signal)
    result.send(outcome)


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()
    # As if killed with it: nobody would hear of what comes of this call.
    os._exit(1)
