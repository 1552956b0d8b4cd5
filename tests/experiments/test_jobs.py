"""Several cells at a time: the same files as one after the other, and nothing left behind by a stop."""

import contextlib
import dataclasses
import os
import signal
import sys
import threading
import time

import pytest
import torch

from babyssa.cli import main
from babyssa.errors import BabySSAError, Stopped
from babyssa.experiments.grid import make_cells
from babyssa.experiments.jobs import run_cells
from babyssa.files import locked
from babyssa.training.stopping import stopped_at_once


@pytest.fixture
def threads():
    """Four threads to share out; the tests run with one, and so would the processes that they start."""
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def cells(experiment):
    """Cells in the folders "first" and "second"."""
    (cell,) = make_cells(experiment())
    folders = (cell.folder.parent / name for name in ("first", "second"))
    return [
        dataclasses.replace(cell, settings=dataclasses.replace(cell.settings, out=folder)) for folder in folders
    ]


@pytest.fixture
def running(monkeypatch):
    """Let the processes run a script instead; ``name`` in it says whether it has the first cell or the second."""

    def replace(script: str) -> None:
        start = "import os, pickle, signal, sys, time\nread = os.read(0, 1 << 16)\n"
        start += "name = 'first' if b'first' in read else 'second'\n"
        answer = "sys.stdout.buffer.write(pickle.dumps(name))\n"
        command = [sys.executable, "-c", f"{start}{script}\n{answer}"]
        monkeypatch.setattr("babyssa.experiments.jobs._COMMAND", command)

    return replace


def test_messages_of_a_process_appear_after_its_name(cells, running, capfd):
    running("print(name.upper(), file=sys.stderr)")
    assert run_cells(cells, jobs=2) == ["first", "second"]
    assert {"first: FIRST", "second: SECOND"} <= set(capfd.readouterr().err.splitlines())


@pytest.mark.parametrize(
    "dies, says",
    [
        ("os._exit(3)", r"its process died \(exit status 3\)"),
        ("os.abort()", r"its process died \(SIGABRT\)"),
        ("os.kill(os.getpid(), signal.SIGKILL)", r"died \(SIGKILL\); is there memory for so many jobs\?"),
    ],
)
def test_a_process_that_dies_is_a_failed_cell_and_does_not_stop_the_others(dies, says, cells, running, capfd):
    running(f"if name == 'first': {dies}")
    failed, worked = run_cells(cells, jobs=1)
    assert worked == "second"
    with pytest.raises(BabySSAError, match=says):
        raise BabySSAError(failed.failure)
    assert f"first failed: {failed.failure}" in capfd.readouterr().err


def test_a_process_that_dies_before_it_reads_its_cell_is_a_failed_cell(cells, monkeypatch):
    monkeypatch.setattr("babyssa.experiments.jobs._COMMAND", ["false"])
    assert "its process died (exit status 1)" in run_cells(cells[:1], jobs=1)[0].failure


def test_a_process_that_is_stopped_stops_the_others(cells, running):
    running("if name == 'first': os.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(600)")
    started = time.monotonic()
    with pytest.raises(Stopped, match=r"first was stopped \(SIGTERM\)") as stopped:
        run_cells([*cells, cells[0]], jobs=2)
    assert stopped.value.signal == signal.SIGTERM and time.monotonic() - started < 300


def test_every_signal_is_passed_on(cells, running, tmp_path):
    running(f"""
os.chdir({str(tmp_path)!r})
def ask_again(*_):
    open("asked", "w").close()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.signal(signal.SIGTERM, ask_again)
open("ready", "w").close()
for _ in range(6000): time.sleep(0.1)
""")

    def ask_twice() -> None:
        for name in ("ready", "asked"):
            while not (tmp_path / name).exists():
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGTERM)

    asker = threading.Thread(target=ask_twice)
    with pytest.raises(Stopped, match="the test was stopped"), stopped_at_once("the test", tmp_path, "wait"):
        asker.start()
        run_cells(cells[:1], jobs=1)
    asker.join()


def start(function, stderr: int) -> int:
    """Call a function in a forked process, which has everything imported; its id."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.dup2(stderr, 2)
            sys.stderr = os.fdopen(2, "w", buffering=1)
            os._exit(function())
        os._exit(1)
    return child


def exit_status(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_process_whose_messages_cannot_be_passed_on_ends(cells, running):
    running("for _ in range(200_000): os.write(2, b'x\\n')")
    reading, writing = os.pipe()
    os.close(reading)
    assert exit_status(start(lambda: len(run_cells(cells, jobs=2)), writing)) == 1
    os.close(writing)


@pytest.mark.slow
def test_a_cell_in_a_process_is_that_of_one_in_turn_and_may_fail(settings, run, threads, capfd):
    settings.out.mkdir()
    (settings.out / "ssa-1").write_text("in the way")
    good, failed = run(["ssa"], [0, 1], jobs=2).cells
    said = capfd.readouterr().err.splitlines()
    assert any(line.startswith("ssa-0: ") and "CPU, 2 threads" in line for line in said)
    assert good.failure is None and "ssa-1: is a file" in failed.failure
    torch.set_num_threads(2)
    settings = dataclasses.replace(settings, out=settings.out.parent / "in-turn")
    (twin,) = run(["ssa"], [0], settings=settings).cells
    assert (good.folder / "model.safetensors").read_bytes() == (twin.folder / "model.safetensors").read_bytes()
    assert (good.results / "margins.npz").read_bytes() == (twin.results / "margins.npz").read_bytes()
    assert good.run.measured == twin.run.measured and good.run.tokens == twin.run.tokens


@pytest.mark.slow
def test_a_killed_and_a_stopped_sweep_end_their_processes_and_resume(settings, suite, tokenizer_folder, tmp_path):
    size = settings.size
    words = [
        *("sweep", "--corpus", settings.corpus, "--tokenizer", tokenizer_folder, "--out", settings.out),
        *("--variants", "softmax", "ssa", "--seeds", 0, "--suite", suite, "--jobs", 2, "--evaluation.held-out", 5),
        *("--size.layers", size.layers, "--size.heads", size.heads, "--size.hidden-size", size.hidden_size),
        *("--size.feed-forward-size", size.feed_forward_size, "--optimisation.batch-size", 8),
        *("--optimisation.steps", 100_000, "--optimisation.resume-every", 2),
    ]
    words = [str(word) for word in words]
    cells = [settings.out / "softmax-0", settings.out / "ssa-0"]
    path = tmp_path / "said"
    with open(path, "a") as said:

        def wait_until(happened, child: int) -> None:
            deadline = time.monotonic() + 240
            while not happened():
                assert os.waitpid(child, os.WNOHANG) == (0, 0) and time.monotonic() < deadline, path.read_text()
                time.sleep(0.1)

        killed = start(lambda: main(words), said.fileno())
        wait_until(lambda: all(any(cell.glob("resume/step-*")) for cell in cells), killed)
        os.kill(killed, signal.SIGKILL)
        assert exit_status(killed) == -signal.SIGKILL
        for cell in cells:
            wait_for_lock(cell, seconds=60)
        said.truncate(0)
        stopped = start(lambda: main(words), said.fileno())
        wait_until(lambda: path.read_text().count("resuming after step") == 2, stopped)
        os.kill(stopped, signal.SIGTERM)
        assert exit_status(stopped) == 143
    lines = path.read_text().splitlines()
    assert "the sweep was stopped (SIGTERM); the same command resumes it" in lines[-1]
    for cell in cells:
        assert any(f"{cell.name}: {cell}: resuming after step" in line for line in lines)
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
