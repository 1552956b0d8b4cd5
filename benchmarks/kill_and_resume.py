"""Kills trainings and sweeps with SIGKILL, gives the same command again, and compares every byte.

    python benchmarks/kill_and_resume.py [--kills 20] [--sweep-kills 5] [--seed 0]

A third of the kills of trainings, and five at least, hit while a resume point is being written, which shows in
the half-written folder that they leave. Left out of the comparison are the times in log.jsonl, and the file of
a lock, which a killed process may leave and which locks nothing.
Exit status 1 if any file of any run differs. Takes five minutes on one core that has nothing else to do.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from babyssa.cli import main as babyssa
from babyssa.comparison.figures import draw_comparison  # noqa: F401
from babyssa.corpus import prepare, train_tokenizer
from babyssa.experiments.grid import sweep  # noqa: F401  imported here once, not in every child
from babyssa.files import LOCK, resource

TINY = [
    *("--size.layers", "1", "--size.heads", "2", "--size.hidden_size", "16", "--size.feed_forward_size", "32"),
    *("--optimisation.batch_size", "16", "--optimisation.learning_rate", "0.003", "--masking.patterns", "3"),
    *("--optimisation.weight_decay", "0.01", "--size.dropout", "0.1"),
]
TIMES = ("seconds", "tokens_per_second")


def spawn(argv: list[str], log: Path) -> int:
    """Run one command line in a child process; its process id."""
    child = os.fork()
    if child == 0:
        with open(log, "a") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            os._exit(babyssa(argv))
    return child


def finish(argv: list[str], log: Path) -> None:
    """Run one command line to its end, which must be a success."""
    _, status = os.waitpid(spawn(argv, log), 0)
    if status != 0:
        sys.exit(f"{' '.join(argv)}\nended with status {status}:\n{log.read_text()}")


def kill_at(child: int, due: float, out: Path, while_writing: bool) -> bool:
    """Kill a child when it is due and, if asked for, writes a resume point; False if it ended before."""
    while time.monotonic() < due or (while_writing and not half_written(out)):
        if os.waitpid(child, os.WNOHANG)[0]:
            return False
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def contents(folder: Path) -> dict[str, str]:
    """The hash of every file under a folder, with the times in logs and what hashes those left out."""
    found = {}
    for path in sorted(folder.rglob("*")):
        # A killed holder leaves its lock's file, which locks nothing.
        if not path.is_file() or path.name == LOCK:
            continue
        content = path.read_bytes()
        if path.name == "log.jsonl":
            lines = [json.loads(line) for line in content.splitlines()]
            content = json.dumps([{k: v for k, v in x.items() if k not in TIMES} for x in lines]).encode()
        elif path.name == "checksums.json":
            sums = json.loads(content)["sha256"]
            content = json.dumps({k: v for k, v in sums.items() if k != "log.jsonl"}).encode()
        found[str(path.relative_to(folder))] = hashlib.sha256(content).hexdigest()
    return found


def half_written(out: Path) -> bool:
    return any((out / "resume").glob(".step-*.partial"))


@dataclass(frozen=True)
class Trial:
    """One kill and what came of it."""

    after: float
    writing: bool
    point: int | None
    differing: list[str]


def kill_and_resume(
    argv: list[str], out: Path, expected: dict[str, str], log: Path, delay: float, while_writing: bool = False
) -> Trial | None:
    """Kill one command after `delay` seconds and give it again; None if it had ended before."""
    shutil.rmtree(out, ignore_errors=True)
    started = time.monotonic()
    if not kill_at(spawn(argv, log), started + delay, out, while_writing):
        return None
    after = time.monotonic() - started
    writing = half_written(out)
    points = [int(path.name.removeprefix("step-")) for path in out.rglob("resume/step-*")]
    if (out / "model.safetensors").exists():
        # Killed in its last moment: the same command says that the run is there, and tidies up.
        os.waitpid(spawn(argv, log), 0)
    else:
        finish(argv, log)
    found = contents(out)
    differing = sorted(k for k in expected.keys() | found.keys() if expected.get(k) != found.get(k))
    return Trial(after, writing, max(points, default=None), differing)


def report(what: str, number: int, trial: Trial) -> None:
    same = f"DIFFERS: {', '.join(trial.differing)}" if trial.differing else "identical"
    when = ", while writing a point" if trial.writing else ""
    print(
        f"{number:3} {what} killed after {trial.after:.2f} s{when}, newest point {trial.point}: {same}", flush=True
    )


def kill_trainings(data: list[str], work: Path, kills: int, generator: random.Random) -> bool:
    """Whether every killed training ended with the files of one that was not."""
    out, log = work / "run", work / "log.txt"
    budget = "--optimisation.steps 100 --optimisation.log_every 9 --optimisation.resume_every 4"
    measured = "--optimisation.checkpoint_every 40 --evaluation.held_out 10 --evaluation.every 30"
    command = [
        "train",
        "encoder",
        *data,
        *budget.split(),
        *measured.split(),
        "--variant",
        "ssa",
        "--out",
        str(out),
    ]
    started = time.monotonic()
    finish(command, log)
    seconds = time.monotonic() - started
    expected = contents(out)
    print(f"a training of 100 steps takes {seconds:.1f} s; {len(expected)} files are compared", flush=True)
    trials: list[Trial] = []
    while len(trials) < kills:
        missing = max(5, kills // 3) - sum(trial.writing for trial in trials)
        while_writing = missing > 0 and (kills - len(trials) <= missing or generator.random() < 0.3)
        delay = generator.uniform(0.02, 0.95) * seconds
        trial = kill_and_resume(command, out, expected, log, delay, while_writing)
        if trial is not None:
            trials.append(trial)
            report("training", len(trials), trial)
    good = sum(not trial.differing for trial in trials)
    writing = sum(trial.writing for trial in trials)
    print(
        f"{good} of {kills} killed trainings end with identical files; {writing} were killed while writing a point"
    )
    return good == kills


def kill_sweeps(data: list[str], work: Path, kills: int, generator: random.Random) -> bool:
    """Whether every killed sweep ended with the files of one that was not."""
    out, log = work / "sweep", work / "log.txt"
    budget = "--optimisation.steps 24 --optimisation.resume_every 3 --evaluation.held_out 10"
    grid = "--variants softmax ssa --seeds 0 1 --limit 4"
    command = ["sweep", *data, *budget.split(), *grid.split(), "--out", str(out)]
    started = time.monotonic()
    finish(command, log)
    seconds = time.monotonic() - started
    expected = contents(out)
    print(
        f"a sweep of 2 variants and 2 seeds takes {seconds:.1f} s; {len(expected)} files are compared", flush=True
    )
    trials: list[Trial] = []
    while len(trials) < kills:
        trial = kill_and_resume(command, out, expected, log, generator.uniform(0.02, 0.95) * seconds)
        if trial is not None:
            trials.append(trial)
            report("sweep", len(trials), trial)
    good = sum(not trial.differing for trial in trials)
    print(f"{good} of {kills} killed sweeps end with identical files")
    return good == kills


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--sweep-kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    generator = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        with open(work / "prepare.txt", "w") as quiet, contextlib.redirect_stderr(quiet):
            prepare([resource("data", "sample.csv.gz")], work / "all")
            lines = (work / "all" / "corpus.txt").read_text().splitlines(keepends=True)[:600]
            (work / "corpus.txt").write_text("".join(lines))
            train_tokenizer(work / "corpus.txt", work / "tokenizer", vocab_size=512)
        data = ["--corpus", str(work / "corpus.txt"), "--tokenizer", str(work / "tokenizer"), *TINY]
        good = kill_trainings(data, work, options.kills, generator)
        return 0 if kill_sweeps(data, work, options.sweep_kills, generator) and good else 1


if __name__ == "__main__":
    sys.exit(main())
