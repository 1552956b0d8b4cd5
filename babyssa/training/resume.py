"""Resume points: what a stopped run continues from; written whole or not at all, checked before use, exact.

RUN/resume/step-N/ is the state after step N:

- state.safetensors: the weights, the optimiser's moments, torch's random state (of several processes, each one's);
- state.json: step, learning-rate schedule, losses since the last line of the log, the other random states, times;
- log.jsonl: the log so far;
- checksums.json: written last; a folder whose files it does not describe is not used.

Batches and mask patterns are functions of the seed and the epoch, so a position in the data is a step. Nothing
is pickled.
"""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from babyssa import processes
from babyssa.console import say
from babyssa.errors import BabySSAError, DataError
from babyssa.files import (
    CHECKSUMS,
    atomic_path,
    check_checksums,
    read_json,
    remove_partials,
    sha256,
    write_checksums,
    write_json,
)
from babyssa.training.run_folder import LOG, RESUME

TENSORS, STATE = "state.safetensors", "state.json"
_SECONDS_BETWEEN = 300.0
# The newest, and one more in case that is damaged.
_KEPT = 2


class ResumePoints:
    """Writes a run's resume points.

    Parameters
    ----------
    out : Path
        The run folder.
    every : int, optional
        Steps between two points; if not given, five minutes.
    """

    def __init__(self, out: Path, every: int | None):
        self.out = Path(out)
        self.every = every
        self.saved_at = time.monotonic()

    def is_due(self, step: int) -> bool:
        """Whether a point is due after this step; where time decides, the main process knows."""
        if self.every is not None:
            return step % self.every == 0
        return processes.is_main() and time.monotonic() - self.saved_at >= _SECONDS_BETWEEN

    def save(self, values: dict[str, Any], model: nn.Module, optimizer: Optimizer, schedule: LRScheduler) -> None:
        """Write the point of the present step, and remove all but the newest.

        Parameters
        ----------
        values : dict
            The step and whatever else JSON holds; :func:`restore` returns it.
        model, optimizer, schedule : nn.Module, Optimizer, LRScheduler
            Saved as they are.
        """
        random_states = processes.all_gather(_torch_random_states())
        if not processes.is_main():
            return
        optimizer_state = optimizer.state_dict()
        tensors = {f"model.{name}": value for name, value in own_tensors(model).items()}
        for number, moments in optimizer_state["state"].items():
            tensors |= {f"optimizer.{number}.{key}": value for key, value in moments.items()}
        for number, states in enumerate(random_states):
            tensors |= {_of_process(name, number): state for name, state in states.items()}
        name, keys, *rest = np.random.get_state()
        values = {
            **values,
            "param_groups": optimizer_state["param_groups"],
            "scheduler": schedule.state_dict(),
            "random": {"python": random.getstate(), "numpy": [name, keys.tolist(), *rest]},
        }
        with atomic_path(self.out / RESUME / f"step-{values['step']}") as folder:
            folder.mkdir()
            save_file({key: t.detach().cpu().contiguous() for key, t in tensors.items()}, folder / TENSORS)
            write_json(folder / STATE, values)
            if (self.out / LOG).is_file():
                shutil.copyfile(self.out / LOG, folder / LOG)
            write_checksums(folder, {path.name: sha256(path) for path in sorted(folder.iterdir())})
        for old in _points(self.out)[_KEPT:]:
            shutil.rmtree(old)
        self.saved_at = time.monotonic()


def restore(point: Path, model: nn.Module, optimizer: Optimizer, schedule: LRScheduler) -> dict[str, Any]:
    """Put weights, moments and schedule back to a resume point; returns the values that were saved with it.

    Raises
    ------
    DataError
        If the point is of another model.
    """
    moments: dict[int, dict[str, Tensor]] = {}
    weights: dict[str, Tensor] = {}
    for key, value in load_file(point / TENSORS).items():
        kind, _, name = key.partition(".")
        if kind == "model":
            weights[name] = value
        elif kind == "optimizer":
            number, _, name = name.partition(".")
            moments.setdefault(int(number), {})[name] = value
    own = own_tensors(model)
    if own.keys() != weights.keys():
        raise DataError("is of another model", path=point, remedy="start anew with --overwrite")
    with torch.no_grad():
        for name, value in own.items():
            value.copy_(weights[name])
    values = read_json(point / STATE)
    optimizer.load_state_dict({"state": moments, "param_groups": values["param_groups"]})
    schedule.load_state_dict(values["scheduler"])
    return values


def restore_random(point: Path) -> None:
    """Put every global random state back to a resume point."""
    states = read_json(point / STATE)["random"]
    version, state, gauss = states["python"]
    random.setstate((version, tuple(state), gauss))
    name, keys, *rest = states["numpy"]
    np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
    with safe_open(point / TENSORS, "pt") as saved:
        for name, put_back in (("random.torch", torch.set_rng_state), ("random.cuda", torch.cuda.set_rng_state)):
            name = _of_process(name, processes.rank())
            # A process that the run did not have before starts from its seed.
            if name in saved.keys() and (put_back is torch.set_rng_state or torch.cuda.is_available()):  # noqa: SIM118
                put_back(saved.get_tensor(name))


def find_resume_point(out: Path) -> Path | None:
    """The newest resume point of a run folder that is whole; names and removes any that is not.

    Call it only while holding the folder's lock.
    """
    remove_partials(Path(out) / RESUME)
    for folder in _points(out):
        try:
            # A point without checksums was never finished.
            read_json(folder / CHECKSUMS)
            check_checksums(folder)
            read_json(folder / STATE)
            return folder
        except BabySSAError as error:
            say(f"warning: {error.path}: {error.what}; resuming from an earlier point")
            shutil.rmtree(folder)
    return None


def own_tensors(model: nn.Module) -> dict[str, Tensor]:
    """A model's state dict with each tensor under one name only, where layers share it."""
    found: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, value in model.state_dict(keep_vars=True).items():
        if id(value) not in seen:
            seen.add(id(value))
            found[name] = value
    return found


def _points(out: Path) -> list[Path]:
    """The resume points of a run folder, newest first."""
    found = []
    for path in (Path(out) / RESUME).glob("step-*"):
        number = path.name.removeprefix("step-")
        if number.isdecimal() and path.is_dir():
            found.append((int(number), path))
    return [path for _, path in sorted(found, reverse=True)]


def _torch_random_states() -> dict[str, Tensor]:
    states = {"random.torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["random.cuda"] = torch.cuda.get_rng_state()
    return states


def _of_process(name: str, number: int) -> str:
    """The name under which a process's random state is saved; the first one's has no number."""
    return f"{name}.{number}" if number else name
