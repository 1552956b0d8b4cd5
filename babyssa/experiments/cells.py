"""One cell of a sweep, a variant under one seed: trained and probed here, or in a process of its own.

``python -m babyssa.experiments.cells`` does the cell that :mod:`babyssa.experiments.jobs` writes to its stdin.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from babyssa.console import say
from babyssa.encoder.config import EncoderTraining
from babyssa.encoder.training import train_encoder
from babyssa.errors import Stopped, describe
from babyssa.probing import Suite, load_suite, probe
from babyssa.probing.accuracy import write_result
from babyssa.processes import forget_launcher
from babyssa.training.run import TrainingRun
from babyssa.training.run_folder import PROBE, is_finished
from babyssa.training.stopping import stopped_at_once


@dataclass(frozen=True)
class Probing:
    """What every model of a sweep is probed with.

    Parameters
    ----------
    suite : str
        A suite of minimal pairs, or "packaged".
    order : {"bad-first", "good-first"}, optional
        Order within pairs, where the suite does not state it.
    method : str
        Scoring method: pll, pll-word-l2r or holistic.
    limit : int, optional
        Only so many pairs of each paradigm.
    """

    suite: str = "packaged"
    order: Literal["bad-first", "good-first"] | None = None
    method: str = "pll"
    limit: int | None = None

    def load_suite(self) -> Suite:
        """The pairs themselves."""
        return load_suite(self.suite, self.order).select(limit=self.limit)


@dataclass(frozen=True)
class Cell:
    """One variant under one seed.

    Parameters
    ----------
    settings : EncoderTraining
        Of the training; ``out`` is the cell's folder.
    probing : Probing
        What the model is probed with.
    run : TrainingRun, optional
        How this call trained it; None if an earlier one did.
    failure : str, optional
        Why it could not be trained or probed.
    """

    settings: EncoderTraining
    probing: Probing
    run: TrainingRun | None = field(default=None, compare=False)
    failure: str | None = field(default=None, compare=False)

    @property
    def variant(self) -> str:
        return self.settings.variant

    @property
    def seed(self) -> int:
        return self.settings.seed

    @property
    def folder(self) -> Path:
        return Path(self.settings.out)

    def failed(self, failure: str) -> Cell:
        """This cell with the reason of its failure, which goes to stderr too."""
        say(f"{self.folder.name} failed: {failure}")
        return replace(self, failure=failure)


def run_cell(cell: Cell) -> Cell:
    """Train and probe one cell, or what is missing of it; an error becomes its ``failure``."""
    try:
        if not is_finished(cell.folder):
            cell = replace(cell, run=train_encoder(cell.settings))
        suite = cell.probing.load_suite()
        write_result(probe(cell.folder, suite, method=cell.probing.method), suite, cell.folder / PROBE)
    except Stopped:
        raise
    except Exception as error:  # whatever it is, it must not stop the other cells
        return cell.failed(describe(error))
    return cell


def main() -> int:
    """Run the cell on stdin and write it, with what came of it, to stdout; stop when stdin ends."""
    import torch

    # What libraries print must not mix with the answer.
    with os.fdopen(os.dup(1), "wb") as answer:
        os.dup2(2, 1)
        cell, threads = pickle.load(sys.stdin.buffer)
        threading.Thread(target=_stop_with_parent, daemon=True).start()
        forget_launcher()
        torch.set_num_threads(threads)
        try:
            with stopped_at_once(cell.folder.name, cell.folder, "the same command resumes it"):
                pickle.dump(run_cell(cell), answer)
        except Stopped as stop:
            say(describe(stop))
            return stop.exit_code
    return 0


def _stop_with_parent() -> None:
    """Stop this process as SIGTERM does when the parent, which holds stdin open, is gone, and stderr with it."""
    while os.read(0, 1024):
        pass
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
