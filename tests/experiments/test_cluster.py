"""Cells as jobs, with submitit's local executor; docs/cluster.md has a run on Slurm itself."""

import dataclasses
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from babyssa.errors import BabySSAError, BusyError, ConfigError, Stopped
from babyssa.experiments import cluster
from babyssa.experiments.cluster import CellJob, make_executor, run_jobs
from babyssa.experiments.grid import make_cells
from babyssa.training.stopping import stopped_at_once

pytest.importorskip("submitit", reason="submitit is not installed: pip install 'babyssa[slurm]'")


@pytest.fixture
def scripted(monkeypatch):
    """Makes stand-ins for cells, each with a script that its job runs; they travel with the job by value."""

    @dataclasses.dataclass
    class Scripted:
        name: str
        script: str
        folder: Path
        failure: str | None = None

        def failed(self, failure):
            return dataclasses.replace(self, failure=failure)

    def run(cell):
        exec(cell.script, {"cell": cell})
        return cell

    monkeypatch.setattr(cluster, "CellJob", lambda cell: CellJob(cell, run))
    monkeypatch.setattr(cluster, "_SECONDS_BETWEEN_LOOKS", 0.05)
    monkeypatch.setattr(cluster, "_SECONDS_OF_GRACE", 0.0)
    return Scripted


WAITS_TO_BE_STOPPED = """
import os, signal, time
from babyssa.errors import Stopped
from babyssa.training.stopping import stop_requests
saved = cell.folder / "saved"
if not saved.exists():
    with stop_requests() as request:
        os.kill(os.getpid(), signal.SIGUSR2)  # as submitit's Slurm jobs get it before their time is over
        while request.signal is None:
            time.sleep(0.01)
        saved.write_text("a resume point")
        raise Stopped("stopped", signal=request.signal)
"""


def test_a_job_is_saved_and_requeued_and_one_that_dies_is_a_failed_cell(scripted, tmp_path, capfd):
    cells = [
        scripted("works", "pass", tmp_path),
        scripted("is requeued", WAITS_TO_BE_STOPPED, tmp_path),
        scripted("dies", "import os; os.kill(os.getpid(), 9)", tmp_path),
        scripted("raises", "raise ValueError('so it is')", tmp_path),
    ]
    works, requeued, dies, raises = run_jobs(cells, make_executor(tmp_path / "jobs", {}, "local"))
    assert (works.failure, requeued.failure) == (None, None) and (tmp_path / "saved").exists()
    assert "ended without a result; see" in dies.failure
    assert "failed: ValueError: so it is; see" in raises.failure
    assert Path(raises.failure.split()[-1]).is_file()
    assert "4 of 4 cells done, 0 running, 0 waiting" in capfd.readouterr().err


def test_a_job_trains_and_measures_its_cell(experiment, tokenizer_folder):
    (cell,) = make_cells(experiment())
    cell = dataclasses.replace(cell, settings=dataclasses.replace(cell.settings, tokenizer=tokenizer_folder))
    before = signal.getsignal(signal.SIGUSR2)
    done = CellJob(cell)()
    assert done == cell and done.failure is None and done.run.steps == 3
    assert done.measured().keys() == {"pairs"} and signal.getsignal(signal.SIGUSR2) == before


def test_a_signal_that_does_not_ask_for_it_ends_a_job_without_a_result(scripted, tmp_path):
    cell = scripted("is stopped", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)", tmp_path)
    with pytest.raises(SystemExit) as stop:
        cluster.CellJob(cell)()
    assert stop.value.code == 143, "no exception, of which submitit would make a result"


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Commands in the place of Slurm's: sbatch keeps the script, squeue prints a file and can stop its caller."""
    commands = {
        "srun": "exit 1",
        "sbatch": "cp $1 script; echo Submitted batch job 7; printf '7_0 R\\n7_1 PD\\n' > queue",
        "squeue": "if rm stop 2> /dev/null; then kill $PPID; sleep 1; fi; cat queue",
    }
    (tmp_path / "bin").mkdir()
    for name, script in commands.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\ncd {tmp_path}\n{script}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return tmp_path


def test_after_a_stop_the_jobs_stay_and_the_same_call_waits_for_them(scripted, slurm, capfd):
    from submitit.core.utils import cloudpickle_dump

    cells = [scripted(name, "pass", slurm) for name in ("a", "b")]

    def run(cells):
        with stopped_at_once("the sweep", slurm, "the same command resumes it"):
            return run_jobs(cells, make_executor(slurm / "jobs", {"partition": "short", "cpus-per-task": "2"}))

    (slurm / "stop").touch()
    with pytest.raises(Stopped):
        run(cells)
    said = capfd.readouterr().err
    assert "submitted as 7_0 to 7_1" in said and "'scancel 7' would remove them" in said
    script = (slurm / "script").read_text()
    for line in ("--partition=short", "--cpus-per-task=2", "--time=60", "--requeue", "--array=0-1%2"):
        assert f"#SBATCH {line}\n" in script
    assert re.search(r"^srun .*--cpus-per-task=2 ", script, re.MULTILINE)

    other = dataclasses.replace(cells[1], script="other")
    with pytest.raises(BusyError, match=r"job 7_1 does b with other settings; .*'scancel 7_1'"):
        run([cells[0], other])

    # Meanwhile the first has ended, and the second is killed.
    cloudpickle_dump(("success", cells[0]), slurm / "jobs/7_0_0_result.pkl")
    (slurm / "bin/squeue").write_text(f"#!/bin/sh\ncat {slurm}/queue; echo 7_9 R > {slurm}/queue\n")
    done, killed = run(cells)
    said = capfd.readouterr().err
    assert "2 of 2 cells are in the queue already" in said and "submitted" not in said
    assert done.failure is None and "its job 7_1 ended without a result; see" in killed.failure


@pytest.mark.parametrize(
    "options, says",
    [
        ({"partitoin": "x"}, "no Slurm parameter 'partitoin'; did you mean 'partition'"),
        ({"time": "1:00:00"}, "time is '1:00:00'; it is a whole number of minutes"),
        ({"time": "3"}, "time is '3'; it is a whole number of minutes, at least 4"),
    ],
)
def test_an_option_that_submitit_does_not_know_is_refused(options, says, slurm):
    with pytest.raises(ConfigError, match=says):
        make_executor(slurm, options)


def test_jobs_that_slurm_refuses_are_one_line(scripted, slurm):
    (slurm / "bin/sbatch").write_text(
        "#!/bin/sh\necho 'sbatch: error: invalid partition specified: x' >&2; exit 1\n"
    )
    with pytest.raises(BabySSAError, match=r"cannot be submitted: .*invalid partition specified: x"):
        run_jobs([scripted("a", "pass", slurm)], make_executor(slurm / "jobs", {}))


def test_what_is_missing_is_named_before_any_work(settings, tmp_path, monkeypatch, run_babyssa):
    command = ("sweep", "--corpus", settings.corpus, "--out", tmp_path, "--variants", "ssa", "--seeds", 0)
    monkeypatch.setenv("PATH", "")
    status, _, stderr = run_babyssa(*command, "--executor", "slurm")
    assert status == 1 and "there is no Slurm here" in stderr
    status, _, stderr = run_babyssa(*command, "--slurm.partition", "x")
    assert status == 2 and "add --executor slurm" in stderr
    monkeypatch.setitem(sys.modules, "submitit", None)
    status, _, stderr = run_babyssa(*command, "--executor", "slurm")
    assert status == 1 and "pip install 'babyssa[slurm]'" in stderr
