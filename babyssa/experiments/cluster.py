"""Cells as jobs of a Slurm cluster, through submitit (pip install 'babyssa[slurm]').

A job does a cell, or what is missing of it, so it may be stopped and started at any time. Before its time is over,
or where it is preempted, it saves a resume point, and goes back to the queue.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from babyssa.console import say
from babyssa.errors import BabySSAError, BusyError, ConfigError, Stopped, nearest
from babyssa.files import read_json, write_json
from babyssa.processes import forget_launcher
from babyssa.training.stopping import stopped_at_once

if TYPE_CHECKING:
    from submitit import Executor, Job
    from submitit.helpers import DelayedSubmission

    from babyssa.experiments.cells import Cell

JOBS, NUMBERS = "jobs", "jobs.json"

_DEFAULTS = {"job_name": "babyssa", "time": 60, "cpus_per_task": 1, "additional_parameters": {"requeue": True}}
_LINES = ("setup", "teardown", "srun_args")
# The signal comes up to two and a half minutes before a job's time is over, and the start takes some seconds.
_LEAST_MINUTES = 4
# A job that runs out of time has saved: it may come back as often as it needs to.
_MOST_TIMEOUTS = 10_000
_SECONDS_BETWEEN_LOOKS = 10.0
# On a network's file system a result may show up a little later than the end of its job.
_SECONDS_OF_GRACE = 20.0


def run_cell_alone(cell: Cell) -> Cell:
    """Run a cell with as many threads as its job has CPUs."""
    import torch

    from babyssa.experiments.cells import run_cell

    torch.set_num_threads(int(os.environ.get("SLURM_CPUS_PER_TASK", 1)))
    return run_cell(cell)


class CellJob:
    """What a job calls: `run` on a cell, and again if the job is requeued.

    The cell is pickled by itself: to read it takes many seconds, and the signal may come by then.
    """

    def __init__(self, cell: Cell, run: Callable[[Cell], Cell] = run_cell_alone):
        import cloudpickle

        self.name, self.folder, self.pickled = cell.name, cell.folder, cloudpickle.dumps((cell, run))

    def __call__(self) -> Cell:
        """Run the cell; on submitit's signal, which comes before the job's time is over, save and requeue."""
        from submitit import JobEnvironment

        ends = getattr(signal, f"SIG{JobEnvironment.USR_SIG}")
        requeue, asked = signal.getsignal(ends), []

        def save_first(number, frame) -> None:
            asked.append(number)
            os.kill(os.getpid(), signal.SIGTERM)

        forget_launcher()
        signal.signal(ends, save_first)
        try:
            with stopped_at_once(self.name, self.folder, "the same command resumes it"):
                cell, run = pickle.loads(self.pickled)
                return run(cell)
        except Stopped as stop:
            if asked:
                requeue(ends, None)
            # Without a result: Slurm may have stopped this job to run it again.
            sys.exit(stop.exit_code)
        finally:
            signal.signal(ends, requeue)

    def checkpoint(self) -> DelayedSubmission:
        """What submitit runs when the job is back: the same."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def make_executor(folder: Path, options: Mapping[str, str], kind: Literal["slurm", "local"] = "slurm") -> Executor:
    """submitit's executor with its parameters.

    Parameters
    ----------
    folder : Path
        For scripts, logs and job numbers; all nodes must see it.
    options : mapping of str to str
        submitit's parameters of a Slurm job, named as those of sbatch: partition, time (minutes), mem, ...
    kind : {"slurm", "local"}
        "local" runs all jobs at once on this machine, for tests.

    Raises
    ------
    ConfigError
        If an option is unknown.
    BabySSAError
        If submitit or Slurm is missing.
    """
    try:
        import submitit
    except ImportError:
        raise BabySSAError("submitit is not installed", remedy="pip install 'babyssa[slurm]'") from None
    if kind == "local":
        executor = submitit.LocalExecutor(folder, max_num_timeout=_MOST_TIMEOUTS)
        executor.update_parameters(timeout_min=60)
        return executor
    known = sorted(submitit.SlurmExecutor._valid_parameters())
    values: dict[str, Any] = dict(_DEFAULTS)
    for name, text in options.items():
        key = name.replace("-", "_")
        if key not in known:
            raise ConfigError(f"submitit has no Slurm parameter '{name}'", remedy=nearest(key, known))
        value = int(text) if text.isdigit() else text == "true" or text
        values[key] = [value] if key in _LINES else value
    if not isinstance(values["time"], int) or values["time"] < _LEAST_MINUTES:
        remedy = f"it is a whole number of minutes, at least {_LEAST_MINUTES}"
        raise ConfigError(f"--slurm.time is '{values['time']}'", remedy=remedy)
    try:
        executor = submitit.SlurmExecutor(folder, max_num_timeout=_MOST_TIMEOUTS)
    except RuntimeError:
        raise BabySSAError("there is no Slurm here", remedy="run this where 'sbatch' and 'srun' are") from None
    # Since Slurm 22.05, srun does not take it from sbatch.
    values["srun_args"] = [f"--cpus-per-task={values['cpus_per_task']}", *values.get("srun_args", ())]
    executor.update_parameters(**values)
    return executor


def run_jobs(cells: Sequence[Cell], executor: Executor) -> list[Cell]:
    """Run cells as jobs, and wait for them.

    If a signal raises Stopped here, the jobs stay in the queue; the next call waits for those that are still
    there, and submits the others.

    Parameters
    ----------
    cells : sequence of Cell
        What to do.
    executor : Executor
        What :func:`make_executor` gives.

    Returns
    -------
    list of Cell
        With what came of each. A job that ends without a result, such as one that is killed, is a cell that
        failed.

    Raises
    ------
    BabySSAError
        If Slurm refuses the jobs.
    BusyError
        If a job of an earlier call does a cell with other settings.
    """
    from submitit import SlurmExecutor

    numbers = Path(executor.folder) / NUMBERS
    jobs = _in_queue(cells, numbers) if isinstance(executor, SlurmExecutor) else {}
    if jobs:
        say(f"{len(jobs)} of {len(cells)} cells are in the queue already")
    new = [cell for cell in cells if cell.name not in jobs]
    if new:
        try:
            submitted = executor.submit_array([CellJob(cell) for cell in new])
        except Exception as error:  # submitit's own, subprocess's, and the file system's
            said = str(getattr(error, "stderr", None) or error).strip().splitlines()
            raise BabySSAError(f"the jobs cannot be submitted: {said[-1] if said else error!r}") from error
        jobs |= {cell.name: job for cell, job in zip(new, submitted, strict=True)}
        first, last = submitted[0].job_id, submitted[-1].job_id
        say(f"submitted as {first}" + (f" to {last}" if last != first else ""))
    write_json(numbers, {name: job.job_id for name, job in jobs.items()})
    try:
        return _wait(cells, jobs)
    except Stopped:
        arrays = sorted({job.job_id.partition("_")[0] for job in jobs.values()})
        say(f"the jobs stay in the queue; 'scancel {' '.join(arrays)}' would remove them")
        raise


def _in_queue(cells: Sequence[Cell], numbers: Path) -> dict[str, Job]:
    """The jobs of an earlier call that Slurm still has, by the name of their cell."""
    from submitit import SlurmJob

    earlier = read_json(numbers) if numbers.is_file() else {}
    jobs = {cell.name: SlurmJob(numbers.parent, earlier[cell.name]) for cell in cells if cell.name in earlier}
    queue = _states(list(jobs.values()))
    jobs = {name: job for name, job in jobs.items() if job.job_id in queue}
    for cell in cells:
        job = jobs.get(cell.name)
        if job is not None and pickle.loads(job.submission().function.pickled)[0] != cell:
            what = f"job {job.job_id} does {cell.name} with other settings"
            remedy = f"wait for it, or remove it with 'scancel {job.job_id}'"
            raise BusyError(what, path=cell.folder, remedy=remedy)
    return jobs


def _wait(cells: Sequence[Cell], jobs: Mapping[str, Job]) -> list[Cell]:
    """What came of each cell, once all jobs are over; says how far they are."""
    done: dict[str, Cell] = {}
    ended: dict[str, float] = {}
    said = ""
    while True:
        left = [cell for cell in cells if cell.name not in done]
        states = _states([jobs[cell.name] for cell in left])
        for cell in left:
            job, now = jobs[cell.name], time.monotonic()
            if job.paths.result_pickle.exists():
                done[cell.name] = _result(cell, job)
                states.pop(job.job_id, None)
            elif job.job_id in states:
                ended.pop(cell.name, None)
            elif now - ended.setdefault(cell.name, now) >= _SECONDS_OF_GRACE:
                what = f"its job {job.job_id} ended without a result; see {job.paths.stderr}"
                done[cell.name] = cell.failed(what)
        waiting = list(states.values()).count("PD")
        line = f"{len(done)} of {len(cells)} cells done, {len(states) - waiting} running, {waiting} waiting"
        if line != said:
            say(line)
            said = line
        if len(done) == len(cells):
            return [done[cell.name] for cell in cells]
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def _states(jobs: Sequence[Job]) -> dict[str, str]:
    """The states of those jobs that are not over, by their number: PD is pending, R is running."""
    from submitit import SlurmJob

    if not jobs or not isinstance(jobs[0], SlurmJob):
        return {job.job_id: "R" for job in jobs if not job.done()}
    # Not submitit's look at sacct, which not every cluster has.
    arrays = ",".join(sorted({job.job_id.partition("_")[0] for job in jobs}))
    command = ["squeue", "--noheader", "--array", "--format=%i %t", f"--jobs={arrays}"]
    found = subprocess.run(command, capture_output=True, text=True)
    # Slurm forgets a job some minutes after its end.
    if found.returncode and "Invalid job id" not in found.stderr:
        say(f"squeue does not answer: {found.stderr.strip()}")
        return {job.job_id: "unknown" for job in jobs}
    states = dict(line.split() for line in found.stdout.splitlines())
    return {job.job_id: states[job.job_id] for job in jobs if job.job_id in states}


def _result(cell: Cell, job: Job) -> Cell:
    """What a job answered."""
    error = job.exception()
    if error is None:
        return job.result()
    traceback = str(error).partition("-\n")[2].partition("\n-")[0].strip()
    return cell.failed(f"its job {job.job_id} failed: {traceback.splitlines()[-1]}; see {job.paths.stderr}")
