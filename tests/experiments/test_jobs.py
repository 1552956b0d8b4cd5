"""Several cells at a time: the same files as one after the other, and nothing left behind by a stop."""

import dataclasses
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest
import torch

from babyssa.encoder import EncoderTraining
from babyssa.encoder.config import EncoderSize, Evaluation
from babyssa.errors import BabySSAError, ConfigError, Stopped
from babyssa.experiments.grid import Probing, sweep
from babyssa.experiments.jobs import at_once
from babyssa.files import locked
from babyssa.training.config import Optimisation


@pytest.fixture
def threads():
    """Four threads to share out; the tests run with one, and so would the processes that they start."""
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("good,bad,paradigm\nthe dogs are big .,the dogs is big .,agreement\n")
    return str(path)


@pytest.fixture
def settings(corpus, tokenizer_folder, tmp_path):
    return EncoderTraining(
        corpus=corpus,
        out=tmp_path / "at-once",
        tokenizer=tokenizer_folder,
        size=EncoderSize(layers=1, heads=2, hidden_size=16, feed_forward_size=24),
        optimisation=Optimisation(batch_size=8, steps=3, learning_rate=0.01),
        evaluation=Evaluation(held_out=5),
    )


# A function of this file would not be found by another process.
STOPS = partial(exec, "from babyssa.errors import Stopped; raise Stopped('it was stopped', signal=15)")


def test_results_are_those_of_the_calls_each_in_a_process_with_its_share_of_the_threads(threads, capfd):
    calls = {
        "threads": torch.get_num_threads,
        "process": os.getpid,
        "line": partial(os.write, 2, b"said\n"),
    }
    found = at_once(calls, jobs=2)
    assert list(found) == list(calls)
    assert found["threads"] == 2 and found["process"] != os.getpid()
    assert "line: said" in capfd.readouterr().err.splitlines()


def test_a_process_that_dies_is_named_and_does_not_stop_the_others(capfd):
    found = at_once({"exits": partial(os._exit, 3), "aborts": os.abort, "works": os.getcwd}, jobs=3)
    assert found["works"] == os.getcwd()
    assert isinstance(found["exits"], BabySSAError) and "ended too early (exit status 3)" in str(found["exits"])
    assert "ended too early (SIGABRT)" in str(found["aborts"])
    assert "exits: the process ended too early (exit status 3)" in capfd.readouterr().err


def test_a_process_that_dies_before_it_knows_what_to_call(capfd):
    # More than fits into a pipe.
    calls = {"dies": partial(len, bytes(1_000_000)), "works": partial(len, bytes(2_000_000))}

    def kill_the_first() -> None:
        while not (children := multiprocessing.active_children()):
            time.sleep(0.01)
        children[0].kill()

    killer = threading.Thread(target=kill_the_first)
    killer.start()
    found = at_once(calls, jobs=1)
    killer.join()
    assert "ended too early (SIGKILL); is there memory for so many jobs?" in str(found["dies"])
    assert found["works"] == 2_000_000


def run_script(text: str, path: Path, **options) -> subprocess.Popen:
    path.write_text(text)
    return subprocess.Popen([sys.executable, path], stderr=subprocess.PIPE, text=True, **options)


def test_a_process_whose_words_cannot_be_passed_on_ends(tmp_path):
    script = """
import os
from functools import partial
from babyssa.experiments.jobs import at_once
if __name__ == "__main__":
    at_once({"speaks": partial(os.write, 2, 200_000 * b"x\\n")}, jobs=2)
"""
    process = run_script(script, tmp_path / "script.py")
    process.stderr.close()
    assert process.wait(timeout=240) != 0


def test_a_script_without_a_main_guard_is_told_of_it(tmp_path):
    script = """
import os
from babyssa.experiments.jobs import at_once, refuse_in_a_job
refuse_in_a_job("a sweep")
at_once({"job": os.getpid}, jobs=2)
"""
    _, said = run_script(script, tmp_path / "script.py").communicate(timeout=240)
    assert 'put what your script does under: if __name__ == "__main__":' in said
    assert "ended too early (exit status 1); see what it said" in said


def test_a_call_that_is_stopped_stops_the_others():
    started = time.monotonic()
    with pytest.raises(Stopped, match=r"stops was stopped \(SIGTERM\)") as stopped:
        at_once({"stops": STOPS, "sleeps": partial(time.sleep, 600)}, jobs=2)
    assert stopped.value.signal == signal.SIGTERM and time.monotonic() - started < 300


def test_cells_at_once_are_those_of_one_after_the_other(settings, suite, threads):
    cells, comparison = sweep(settings, ["softmax", "ssa"], [0], Probing(suite), jobs=2)
    torch.set_num_threads(2)
    other = dataclasses.replace(settings, out=settings.out.parent / "in-turn")
    in_turn, expected = sweep(other, ["softmax", "ssa"], [0], Probing(suite))
    assert [(cell.variant, cell.seed, cell.failure) for cell in cells] == [("softmax", 0, None), ("ssa", 0, None)]
    for cell, twin in zip(cells, in_turn, strict=True):
        for name in ("model.safetensors", "probe/pairs.csv"):
            assert (cell.folder / name).read_bytes() == (twin.folder / name).read_bytes()
        assert cell.run.measured == twin.run.measured and cell.run.tokens == twin.run.tokens
    assert comparison.variants == expected.variants


def test_a_cell_that_fails_in_its_process_is_left_out(settings, suite):
    settings.out.mkdir()
    (settings.out / "ssa-0").write_text("in the way")
    cells, comparison = sweep(settings, ["softmax", "ssa"], [0], Probing(suite), jobs=9)
    assert cells[0].failure is None and "ssa-0" in cells[1].failure
    assert comparison.variants == ("softmax",)


def test_no_jobs_are_refused(settings, suite):
    with pytest.raises(ConfigError, match="jobs is 0; it is at least 1"):
        sweep(settings, ["softmax"], [0], Probing(suite), jobs=0)


def test_a_killed_and_a_stopped_sweep_end_their_processes_and_go_on(settings, suite, tmp_path):
    size = settings.size
    words = [
        *("sweep", "--corpus", settings.corpus, "--tokenizer", settings.tokenizer, "--out", settings.out),
        *("--variants", "softmax", "ssa", "--seeds", 0, "--suite", suite, "--jobs", 2, "--evaluation.held_out", 5),
        *("--size.layers", size.layers, "--size.heads", size.heads, "--size.hidden_size", size.hidden_size),
        *("--size.feed_forward_size", size.feed_forward_size, "--optimisation.batch_size", 8),
        *("--optimisation.steps", 100_000, "--optimisation.resume_every", 2),
    ]
    command = [sys.executable, "-m", "babyssa", *map(str, words)]
    cells = [settings.out / "softmax-0", settings.out / "ssa-0"]
    with open(tmp_path / "said", "w+") as said:
        killed = subprocess.Popen(command, stdout=said, stderr=said)
        deadline = time.monotonic() + 240
        while not all(any(cell.glob("resume/step-*")) for cell in cells):
            assert killed.poll() is None and time.monotonic() < deadline, said.read()
            time.sleep(0.1)
        killed.kill()
        killed.wait()
    for cell in cells:
        wait_for_lock(cell, seconds=60)

    stopped = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    lines = []
    for line in stopped.stderr:
        lines.append(line)
        if sum("resuming after step" in line for line in lines) == 2:
            stopped.terminate()
            break
    lines += stopped.stderr
    assert stopped.wait() == 143, lines
    assert "the sweep was stopped (SIGTERM); the same command goes on from there" in lines[-1]
    assert all(
        any(line.startswith(f"{cell.name}: {cell}: resuming after step") for line in lines) for cell in cells
    )
    for cell in cells:
        wait_for_lock(cell, seconds=0)


def wait_for_lock(folder, seconds: float) -> None:
    """Wait until no other process holds it."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            with locked(folder, "a look"):
                return
        except BabySSAError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
