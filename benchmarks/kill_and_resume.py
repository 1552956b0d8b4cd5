"""Kills trainings and sweeps with SIGKILL, gives the same command again, and compares every byte.

    python benchmarks/kill_and_resume.py [--kills 20] [--sweep-kills 5] [--seed 0]

A third of the kills of trainings, and of five at least, hit while a resume point is being written, which is
seen by the half-written folder that they leave. The times in log.jsonl are the only thing left out of the
comparison. Exit status 1 if any file of any run differs. Takes three minutes on one core.
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
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from babyssa.cli import main as babyssa
from babyssa.data import prepare, train_tokenizer
from babyssa.experiments.grid import sweep  # noqa: F401  imported here once, not in every child
from babyssa.probing.figures import draw_comparison  # noqa: F401
from babyssa.resources import resource

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


def kill_when(child: int, moment: Callable[[], bool]) -> bool:
    """Kill a child at a moment; False if it ended before."""
    while not moment():
        if os.waitpid(child, os.WNOHANG)[0]:
            return False
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def contents(folder: Path) -> dict[str, str]:
    """The hash of every file under a folder, with the times in logs and what hashes those left out."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
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
    return any(out.rglob("resume/.step-*.partial"))


def trial(name: str, argv: list[str], out: Path, expected: dict[str, str], moment, log: Path) -> dict:
    """One kill and its resumption."""
    shutil.rmtree(out, ignore_errors=True)
    started = time.monotonic()
    killed = kill_when(spawn(argv, log), moment)
    after = time.monotonic() - started
    writing = half_written(out)
    points = sorted(int(path.name.split("-")[1]) for path in out.rglob("resume/step-*"))
    finished = (out / "model.safetensors").exists()
    if not finished:
        finish(argv, log)
    found = contents(out)
    differing = sorted(k for k in expected.keys() | found.keys() if expected.get(k) != found.get(k))
    return {
        "what": name,
        "killed": killed,
        "after": after,
        "writing": writing,
        "point": points[-1] if points else "-",
        "differing": differing,
    }


def report(results: list[dict]) -> None:
    for number, result in enumerate(results, start=1):
        same = "identical" if not result["differing"] else f"DIFFERS: {', '.join(result['differing'])}"
        when = "while writing a point" if result["writing"] else ""
        print(
            f"{number:3} {result['what']:8} killed after {result['after']:5.2f} s, newest point "
            f"{result['point']!s:>4}  {same}  {when}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--sweep-kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    generator = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        log = work / "log.txt"
        with open(work / "prepare.txt", "w") as quiet, contextlib.redirect_stderr(quiet):
            prepare([resource("data", "sample.csv.gz")], work / "all")
            lines = (work / "all" / "corpus.txt").read_text().splitlines(keepends=True)[:600]
            (work / "corpus.txt").write_text("".join(lines))
            train_tokenizer(work / "corpus.txt", work / "tokenizer", vocab_size=512)
        data = ["--corpus", str(work / "corpus.txt"), "--tokenizer", str(work / "tokenizer"), *TINY]

        out = work / "run"
        budget = [
            "--optimisation.steps",
            "250",
            "--optimisation.log_every",
            "9",
            "--optimisation.resume_every",
            "6",
        ]
        measured = [
            "--optimisation.checkpoint_every",
            "90",
            "--evaluation.held_out",
            "40",
            "--evaluation.every",
            "70",
        ]
        train = ["train", "encoder", *data, *budget, *measured, "--variant", "ssa", "--out", str(out)]
        started = time.monotonic()
        finish(train, log)
        seconds = time.monotonic() - started
        expected = contents(out)
        print(f"a training of 120 steps takes {seconds:.1f} s; {len(expected)} files are compared")
        wanted_writing = max(5, options.kills // 3) if options.kills >= 5 else 0
        results: list[dict] = []
        while len(results) < options.kills:
            due = time.monotonic() + generator.uniform(0.02, 0.95) * seconds
            writing_left = wanted_writing - sum(r["writing"] for r in results)
            if options.kills - len(results) <= writing_left or generator.random() < 0.3:
                moment = lambda: time.monotonic() >= due and half_written(out)  # noqa: B023, E731
            else:
                moment = lambda: time.monotonic() >= due  # noqa: B023, E731
            result = trial("training", train, out, expected, moment, log)
            if result["killed"]:
                results.append(result)
        report(results)
        good = sum(not r["differing"] for r in results)
        print(
            f"{good} of {len(results)} killed trainings end with identical files; "
            f"{sum(r['writing'] for r in results)} were killed while a resume point was being written"
        )

        out = work / "sweep"
        grid = ["--variants", "softmax", "ssa", "--seeds", "0", "1", "--limit", "4", "--evaluation.held_out", "10"]
        budget = ["--optimisation.steps", "40", "--optimisation.resume_every", "5"]
        command = ["sweep", *data, *budget, *grid, "--out", str(out)]
        started = time.monotonic()
        finish(command, log)
        seconds = time.monotonic() - started
        expected = contents(out)
        print(f"a sweep of 2 variants and 2 seeds takes {seconds:.1f} s; {len(expected)} files are compared")
        swept: list[dict] = []
        while len(swept) < options.sweep_kills:
            due = time.monotonic() + generator.uniform(0.02, 0.95) * seconds
            result = trial("sweep", command, out, expected, lambda: time.monotonic() >= due, log)  # noqa: B023
            if result["killed"]:
                swept.append(result)
        report(swept)
        same = sum(not r["differing"] for r in swept)
        print(f"{same} of {len(swept)} killed sweeps end with identical files")
    return 0 if good == len(results) and same == len(swept) else 1


if __name__ == "__main__":
    sys.exit(main())
