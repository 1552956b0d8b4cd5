"""What a stopped run goes on from: written whole or not at all, checked before it is used, exact.

RUN/resume/step-N/ is the state after step N:

- state.safetensors: the weights, the optimiser's moments, torch's random state (of several processes, each one's);
- state.json: step, learning-rate schedule, losses since the last line of the log, the other random states, times;
- trainer_state.json: what transformers' Trainer keeps;
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
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import TrainerCallback

from babyssa import processes
from babyssa.console import say
from babyssa.errors import BabySSAError, DataError
from babyssa.files import (
    CHECKSUMS,
    atomic_path,
    atomic_write,
    check_checksums,
    read_json,
    remove_partials,
    sha256,
    write_checksums,
    write_json,
)
from babyssa.training.run_folder import LOG, RESUME
from babyssa.training.stopping import StopRequest

if TYPE_CHECKING:
    from babyssa.training.trainer import BatchTrainer, RunLog

TENSORS, STATE, TRAINER_STATE = "state.safetensors", "state.json", "trainer_state.json"
_FILES = (TENSORS, STATE, TRAINER_STATE)
_SECONDS_BETWEEN = 300.0
# The newest, and one more should that be damaged.
_KEPT = 2


class ResumePoints(TrainerCallback):
    """Writes resume points while a run trains, and puts a run back to one.

    Parameters
    ----------
    out : Path
        The run folder.
    log : RunLog
        The run's log, whose clock goes on too.
    every : int, optional
        Steps between two points; if not given, five minutes. The last step always has one, and so has the
        step at which the run is asked to stop.
    stop : StopRequest
        Says when that is.
    start : Path, optional
        The point to start from.
    """

    def __init__(self, out: Path, log: RunLog, every: int | None, stop: StopRequest, start: Path | None):
        self.out = Path(out)
        self.log = log
        self.every = every
        self.stop = stop
        self.start = start
        self.values: dict[str, Any] = {} if start is None else read_json(start / STATE)
        self.tensors: dict[str, Tensor] = {} if start is None else load_file(start / TENSORS)
        self.saved_at = time.monotonic()

    @property
    def step(self) -> int:
        """The step that the run starts after."""
        return self.values.get("step", 0)

    def attach(self, trainer: BatchTrainer) -> None:
        """Let `trainer` save and restore through this object."""
        self.trainer = trainer
        trainer.resume = self
        trainer.add_callback(self)
        if self.start is not None and processes.is_main():
            self._restore_log()

    def on_train_begin(self, args, state, control, **kwargs):
        self.saved_at = time.monotonic()
        if self.values:
            trainer = self.trainer
            trainer.tokens = self.values["tokens"]
            trainer._tr_loss.fill_(self.values["loss"])
            trainer._total_loss_scalar = self.values["total_loss"]
            trainer._globalstep_last_logged = self.values["last_logged"]
            self.log.restore_clock(self.values["clock"])

    def on_step_end(self, args, state, control, **kwargs):
        if self.every is None:
            due = processes.is_main() and time.monotonic() - self.saved_at >= _SECONDS_BETWEEN
        else:
            due = state.global_step % self.every == 0
        # Of several processes, all stop or save after the same step.
        stopped, due = processes.largest(self.stop.signal is not None, due)
        if stopped:
            control.should_training_stop = True
        control.should_save = bool(due) or control.should_training_stop or state.global_step == state.max_steps

    def save(self) -> None:
        """Write the point of the present step, and remove all but the newest."""
        random_states = _named_by_process(processes.gathered(_random_tensors()))
        if processes.is_main():
            self._save(random_states)

    def _save(self, random_states: dict[str, Tensor]) -> None:
        trainer = self.trainer
        folder = self.out / RESUME / f"step-{trainer.state.global_step}"
        with atomic_path(folder) as partial:
            partial.mkdir()
            self._write(partial, random_states)
        for old in _points(self.out)[_KEPT:]:
            shutil.rmtree(old)
        self.saved_at = time.monotonic()

    def _write(self, folder: Path, random_states: dict[str, Tensor]) -> None:
        trainer = self.trainer
        optimizer = trainer.optimizer.state_dict()
        tensors = {f"model.{name}": value for name, value in own_tensors(trainer.model).items()}
        tensors |= {
            f"optimizer.{number}.{key}": value
            for number, values in optimizer["state"].items()
            for key, value in values.items()
        }
        tensors |= random_states
        save_file({key: value.detach().cpu().contiguous() for key, value in tensors.items()}, folder / TENSORS)
        loss = trainer._tr_loss.item()
        values = {
            "step": trainer.state.global_step,
            "tokens": trainer.tokens,
            "loss": loss,
            "total_loss": trainer._total_loss_scalar,
            "last_logged": trainer._globalstep_last_logged,
            "clock": self.log.clock(),
            "param_groups": optimizer["param_groups"],
            "scheduler": trainer.lr_scheduler.state_dict(),
            "random": _random_values(),
        }
        write_json(folder / STATE, values)
        trainer.state.save_to_json(folder / TRAINER_STATE)
        names = list(_FILES)
        if (self.out / LOG).is_file():
            shutil.copyfile(self.out / LOG, folder / LOG)
            names.append(LOG)
        write_checksums(folder, {name: sha256(folder / name) for name in names})

    def restore_finished(self) -> None:
        """Put back a run whose steps are all done, and that was stopped before it was saved."""
        self.restore_model(self.trainer.model)
        self.trainer.tokens = self.values["tokens"]
        self.log.restore_clock(self.values["clock"])

    def _restore_log(self) -> None:
        """Put log.jsonl back to what it was at the point: lines of later steps will be written again."""
        with atomic_write(self.out / LOG, "wb") as file:
            if (self.start / LOG).is_file():
                file.write((self.start / LOG).read_bytes())

    def restore_model(self, model: nn.Module) -> None:
        """Put the weights back."""
        own = own_tensors(model)
        saved = {key.removeprefix("model."): v for key, v in self.tensors.items() if key.startswith("model.")}
        if own.keys() != saved.keys():
            raise DataError("is of another model", path=self.start, remedy="start anew with --overwrite")
        with torch.no_grad():
            for name, value in own.items():
                value.copy_(saved[name])

    def restore_optimizer(self) -> None:
        """Put the optimiser's moments and the learning-rate schedule back."""
        state: dict[int, dict[str, Tensor]] = {}
        for key, value in self.tensors.items():
            kind, _, rest = key.partition(".")
            if kind == "optimizer":
                number, _, name = rest.partition(".")
                state.setdefault(int(number), {})[name] = value
        groups = self.values["param_groups"]
        self.trainer.optimizer.load_state_dict({"state": state, "param_groups": groups})
        self.trainer.lr_scheduler.load_state_dict(self.values["scheduler"])

    def restore_random(self) -> None:
        """Put every global random state back."""
        version, state, gauss = self.values["random"]["python"]
        random.setstate((version, tuple(state), gauss))
        name, keys, *rest = self.values["random"]["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        for name, put_back in (("torch", torch.set_rng_state), ("cuda", torch.cuda.set_rng_state)):
            state = self.tensors.get(_of_process(f"random.{name}", processes.rank()))
            # A process that the run did not have before draws what it would have drawn from its start.
            if state is not None and (name == "torch" or torch.cuda.is_available()):
                put_back(state)
        # The last thing that Trainer restores.
        self.tensors = {}


def find_resume_point(out: Path) -> Path | None:
    """The newest resume point of a run folder that is whole; names and removes any that is not.

    Only for a process that holds the folder's lock.
    """
    remove_partials(Path(out) / RESUME)
    for folder in _points(out):
        try:
            # A point without checksums was never finished.
            read_json(folder / CHECKSUMS)
            check_checksums(folder)
            for name in (STATE, TRAINER_STATE):
                read_json(folder / name)
            return folder
        except BabySSAError as error:
            say(f"warning: {error.path}: {error.what}; going on from an earlier point")
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


def _random_tensors() -> dict[str, Tensor]:
    states = {"random.torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["random.cuda"] = torch.cuda.get_rng_state()
    return states


def _named_by_process(states: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {
        _of_process(name, number): tensor
        for number, tensors in enumerate(states)
        for name, tensor in tensors.items()
    }


def _of_process(name: str, number: int) -> str:
    """The name under which a process's random state is saved; of one alone, the name as it is."""
    return f"{name}.{number}" if number else name


def _random_values() -> dict[str, Any]:
    name, keys, *rest = np.random.get_state()
    return {"python": random.getstate(), "numpy": [name, keys.tolist(), *rest]}
