"""One cell of an experiment, a variant under one seed: trained and measured here, or in a process of its own.

``python -m babyssa.experiments.cells`` does the cell that :mod:`babyssa.experiments.jobs` writes to its stdin.
"""

from __future__ import annotations

import importlib
import os
import pickle
import platform
import signal
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from babyssa.comparison.cells import CELL, Measured, read_cell, write_cell
from babyssa.console import duration, say
from babyssa.errors import Stopped, describe
from babyssa.experiments.experiment import SETTINGS, Training
from babyssa.experiments.measures import Measure
from babyssa.files import read_checksums, versions
from babyssa.models.run_config import read_settings
from babyssa.processes import forget_launcher
from babyssa.recipes import PROVENANCE
from babyssa.training.devices import device_name
from babyssa.training.run import TrainingRun
from babyssa.training.run_folder import WEIGHTS, is_finished
from babyssa.training.stopping import stopped_at_once

# What a kernel of torch may use; another CPU gives other last digits.
_UNITS = ("avx", "fma", "amx", "bf16", "f16c", "sve", "asimd")
_PATHS = ("corpus", "out", "tokenizer")


@dataclass(frozen=True)
class Cell:
    """One variant under one seed: small, and all that a process needs to do it.

    Parameters
    ----------
    experiment, condition, variant, baseline : str
        What its results call it, and what they are compared with.
    settings : dataclass
        Of the training; ``out`` is the run folder.
    measures : dict of str to Measure
        What is measured.
    results : Path
        The folder of its small files.
    run : TrainingRun, optional
        How this call trained it; None if an earlier one did.
    failure : str, optional
        Why it could not be trained or measured.
    """

    experiment: str
    condition: str
    variant: str
    baseline: str
    settings: Training
    measures: dict[str, Measure]
    results: Path
    run: TrainingRun | None = field(default=None, compare=False)
    failure: str | None = field(default=None, compare=False)

    @property
    def seed(self) -> int:
        return self.settings.seed

    @property
    def folder(self) -> Path:
        return Path(self.settings.out)

    @property
    def name(self) -> str:
        """As in CONDITION/VARIANT-SEED."""
        return "/".join(filter(None, [self.condition, self.folder.name]))

    def failed(self, failure: str) -> Cell:
        """This cell with the reason of its failure, which goes to stderr too."""
        say(f"{self.name} failed: {failure}")
        return replace(self, failure=failure)

    def measured(self) -> dict[str, Measured]:
        """What earlier calls measured of it, among its measures."""
        if not (self.results / CELL).is_file():
            return {}
        stored = read_cell(self.results)
        return {
            name: Measured(m["values"], m["unit"], m.get("suite"), m.get("details"), stored.margins.get(name))
            for name, m in stored.measures.items()
            if name in self.measures
        }


def train(settings: Training) -> TrainingRun:
    """Train a model of any setting."""
    setting = next(name for name, kind in SETTINGS.items() if isinstance(settings, kind))
    return getattr(importlib.import_module(f"babyssa.{setting}.training"), f"train_{setting}")(settings)


def time_left(started: float, done: int, total: int) -> str:
    """How long the rest of some cells will take, from those done since ``time.monotonic()`` was `started`."""
    if not done:
        return ""
    return f", about {duration((time.monotonic() - started) / done * (total - done))} left"


def run_cell(cell: Cell) -> Cell:
    """Train and measure one cell, or what is missing of it; an error becomes its ``failure``."""
    try:
        if not is_finished(cell.folder):
            cell = replace(cell, run=train(cell.settings))
        measured = cell.measured()
        for name, measure in cell.measures.items():
            if name not in measured:
                say(f"{cell.name}: measuring {name}")
                measured[name] = measure(cell.folder)
                # Written after each, so that a stop loses one measure at most.
                write_cell(cell.results, _describe(cell, measured), measured)
    except Stopped:
        raise
    except Exception as error:  # whatever it is, it must not stop the other cells
        return cell.failed(describe(error))
    return cell


def _describe(cell: Cell, measured: dict[str, Measured]) -> dict[str, Any]:
    """What cell.json says besides the numbers."""
    found = read_settings(cell.folder)
    return {
        "experiment": cell.experiment,
        "condition": cell.condition,
        "variant": cell.variant,
        "seed": cell.seed,
        "baseline": cell.baseline,
        # Where files are on this machine says nothing elsewhere; the facts have their hashes.
        "settings": {key: value for key, value in found.items() if key not in (*PROVENANCE, *_PATHS)},
        "kind": found["kind"],
        "facts": found["facts"],
        "trained_with": found["versions"],
        "weights_sha256": read_checksums(cell.folder)[WEIGHTS],
        "measured_on": describe_machine(),
        "measured_with": versions(),
        "measures": {name: cell.measures[name].entry() for name in measured},
    }


def describe_machine() -> dict[str, Any]:
    """The device, and the CPU with those of its units that change the digits of a result."""
    import torch

    found: dict[str, list[str]] = {}
    if Path("/proc/cpuinfo").is_file():
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            found.setdefault(key.strip(), [value.strip()])
    flags = (found.get("flags") or found.get("Features") or [""])[0].split()
    return {
        "device": device_name(),
        "cpu": found.get("model name", [platform.processor() or platform.machine()])[0],
        "units": sorted(flag for flag in flags if any(unit in flag for unit in _UNITS)),
        "kernels": torch.backends.cpu.get_cpu_capability(),
    }


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
            with stopped_at_once(cell.name, cell.folder, "the same command resumes it"):
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
