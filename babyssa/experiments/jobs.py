"""Several cells at a time, each in a process of its own with its share of the CPU's cores."""

from __future__ import annotations

import io
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path

import torch

import babyssa
from babyssa.console import RELAYED, counting, on_terminal, relaying, say
from babyssa.errors import Stopped
from babyssa.experiments.cells import Cell, time_left

_COMMAND = [sys.executable, "-P", "-m", "babyssa.experiments.cells"]


def run_cells(cells: Sequence[Cell], jobs: int) -> list[Cell]:
    """Run cells in processes of their own, `jobs` at a time, each with 1 / `jobs` of torch's threads.

    What a process writes to stderr appears here after the name of its cell; on a terminal its progress is a bar.
    If a signal raises Stopped here, the processes get SIGTERM and are waited for; a second signal sends a second
    SIGTERM. If this process is killed, the others find their stdin closed, and stop too.

    Returns
    -------
    list of Cell
        With what came of each. A process that dies, such as one that is killed for lack of memory, is a cell
        that failed.

    Raises
    ------
    Stopped
        If a signal came to this process or to one of the others.
    """
    threads = max(1, torch.get_num_threads() // jobs)
    started: list[subprocess.Popen] = []
    stopping, futures, begun = threading.Event(), [], time.monotonic()

    def run(number: int, cell: Cell) -> Cell:
        done = sum(future.done() for future in futures)
        say(f"{number}/{len(cells)}: {cell.name}{time_left(begun, done, len(cells))}")
        return _run(cell, threads, started, stopping)

    with counting("sweep", len(cells), "cells") as advance, ThreadPoolExecutor(jobs) as pool:
        for number, cell in enumerate(cells, start=1):
            futures.append(pool.submit(run, number, cell))
            futures[-1].add_done_callback(lambda _: advance(1))
        try:
            for future in wait(futures, return_when=FIRST_EXCEPTION).done:
                future.result()
        finally:
            _stop(futures, started, stopping)
    return [future.result() for future in futures]


def _run(cell: Cell, threads: int, started: list[subprocess.Popen], stopping: threading.Event) -> Cell:
    path = os.pathsep.join(filter(None, [str(Path(babyssa.__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    relayed = {RELAYED: "1"} if on_terminal() else {}
    with (
        relaying(cell.name) as relay,
        subprocess.Popen(
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": path} | relayed,
            # A terminal sends Ctrl-C to a whole group: to this process alone, which passes it on.
            process_group=0,
        ) as process,
    ):
        started.append(process)
        if stopping.is_set():
            process.terminate()
        with suppress(BrokenPipeError):
            os.write(process.stdin.fileno(), pickle.dumps((cell, threads)))
        for line in io.TextIOWrapper(process.stderr, encoding="utf-8", errors="replace"):
            relay(line.rstrip())
        answer = process.stdout.read()
        code = process.wait()
    stopped_by = -code if code < 0 else code - 128
    if stopped_by in (signal.SIGINT, signal.SIGTERM):
        what = f"{cell.name} was stopped ({signal.Signals(stopped_by).name})"
        raise Stopped(what, signal=stopped_by, remedy="the same command resumes it")
    if code == 0:
        return pickle.loads(answer)
    how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
    remedy = "is there memory for so many jobs?" if code == -signal.SIGKILL else "see its messages"
    return cell.failed(f"its process died ({how}); {remedy}")


def _stop(futures: Sequence[Future], started: Sequence[subprocess.Popen], stopping: threading.Event) -> None:
    """Stop the processes that are still running, and wait for them."""
    stopping.set()
    while True:
        try:
            for future in futures:
                future.cancel()
            for process in started:
                process.terminate()
            wait(futures)
            return
        except Stopped:
            continue  # pass on this signal too
