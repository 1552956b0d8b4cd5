"""What a run reports while it trains: log.jsonl, trackers, and how far it is."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from accelerate.tracking import get_available_trackers
from accelerate.utils import LoggerType

from babyssa.console import Advance, counting
from babyssa.errors import ConfigError, nearest
from babyssa.files import atomic_write, storage_errors
from babyssa.processes import is_main
from babyssa.training.run_folder import LOG

_SECONDS_BETWEEN_LOOKS = 0.2


def check_trackers(names: list[str]) -> None:
    """Raise ConfigError if a tracker is unknown, or not installed."""
    known = [str(tracker) for tracker in LoggerType if tracker != LoggerType.ALL]
    installed = {str(tracker) for tracker in get_available_trackers()}
    for name in names:
        if name not in known:
            raise ConfigError(
                f"optimisation.report-to has an unknown tracker '{name}'", remedy=nearest(name, known)
            )
        if name not in installed:
            raise ConfigError(f"optimisation.report-to: {name} is not installed", remedy=f"pip install {name}")


class RunLog:
    """Writes log.jsonl, reports to trackers, and shows progress; all of it in the main process only.

    Parameters
    ----------
    out : Path
        The run folder.
    steps : int
        Steps in all.
    accelerator : Accelerator
        Has the trackers.
    """

    def __init__(self, out: Path, steps: int, accelerator: Accelerator):
        self.path = Path(out) / LOG
        self.steps = steps
        self.accelerator = accelerator
        accelerator.init_trackers("babyssa", init_kwargs={"wandb": {"name": Path(out).name}})
        self.started = self.last_look = time.monotonic()
        self.seconds_measuring = 0.0
        self.loss: float | None = None
        self.bar = ExitStack()
        self.advance: Advance | None = None
        self.shown_step = 0

    def write(self, step: int, values: dict[str, Any]) -> None:
        """Append one object to log.jsonl, and send its numbers to the trackers."""
        self.loss = values.get("loss", self.loss)
        if not is_main():
            return
        line = json.dumps({"step": step, "seconds": round(self.clock()["seconds"], 2), **values}, allow_nan=False)
        with storage_errors(self.path), open(self.path, "a", encoding="utf-8") as file:
            file.write(line + "\n")
        self.accelerator.log({key: v for key, v in values.items() if isinstance(v, int | float)}, step=step)

    def close(self) -> None:
        """Finish the bar and the trackers' runs."""
        self.bar.close()
        for tracker in self.accelerator.trackers:
            tracker.finish()

    def clock(self) -> dict[str, float]:
        """Seconds since the run started, and how many of them went into measuring."""
        return {"seconds": time.monotonic() - self.started, "measuring": self.seconds_measuring}

    @property
    def training_seconds(self) -> float:
        """Seconds since the run started, without those that went into measuring."""
        return time.monotonic() - self.started - self.seconds_measuring

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Count the block as time spent measuring."""
        started = time.monotonic()
        yield
        self.seconds_measuring += time.monotonic() - started

    def restore(self, point: Path, clock: dict[str, float]) -> None:
        """Go back to a resume point's log and clock: later steps will be logged again."""
        self.started = time.monotonic() - clock["seconds"]
        self.seconds_measuring = clock["measuring"]
        if is_main():
            with atomic_write(self.path, "wb") as file:
                if (point / LOG).is_file():
                    file.write((point / LOG).read_bytes())

    def show_progress(self, step: int) -> None:
        """Show how far the run is, how fast, and its loss."""
        if self.advance is None:
            self.advance = self.bar.enter_context(counting("training", self.steps, "steps", done=step))
            self.shown_step = step
        now = time.monotonic()
        if now - self.last_look >= _SECONDS_BETWEEN_LOOKS:
            self.advance(step - self.shown_step, "" if self.loss is None else f"loss {self.loss:.3f}")
            self.last_look, self.shown_step = now, step
        if step == self.steps:
            self.bar.close()
