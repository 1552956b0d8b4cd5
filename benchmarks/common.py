"""What the benchmarks share: interleaved repetitions, peak memory in processes of their own, one table."""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any

from babyssa.corpus import load_tokenizer, prepare, read_corpus, train_tokenizer
from babyssa.display import Column, Table
from babyssa.files import resource


def options(about: str) -> argparse.ArgumentParser:
    """A parser with what every benchmark takes."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5, help="of each, interleaved; medians are shown")
    parser.add_argument("--quick", action="store_true", help="one repetition: does it run, and about how fast?")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    return parser


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The command line's values."""
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.repetitions = 1
    return arguments


def tell(line: str) -> None:
    """Say on stderr what has just been measured; stdout has the table only."""
    print(line, file=sys.stderr, flush=True)


def interleaved(work: dict[str, Callable[[], object]], repetitions: int) -> dict[str, float]:
    """Median seconds of each, one of each in turn, so that all meet the machine's load alike."""
    for run in work.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for number in range(1, repetitions + 1):
        for name, run in work.items():
            started = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - started)
        tell(
            f"{number}/{repetitions}: " + ", ".join(f"{name} {times[-1]:.3g} s" for name, times in seconds.items())
        )
    return {name: statistics.median(times) for name, times in seconds.items()}


def again(name: str) -> str:
    """The last line of this script run again as `--one NAME`, in a process of its own."""
    command = [sys.executable, *sys.argv, "--one", name]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1]


def peak_memory() -> float:
    """The peak resident memory of this process so far, in MB."""
    status = Path("/proc/self/status")
    if status.exists():
        # On Linux ru_maxrss starts from what the parent had when it started this process.
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1]) / 2**10
    return getrusage(RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def corpus_and_tokenizer(corpus: Path | None, tokenizer: Path | None) -> tuple[list[str], Any]:
    """Sentences and a tokenizer: those given, or the packaged sample corpus and one trained on it."""
    with tempfile.TemporaryDirectory() as scratch:
        if corpus is None:
            corpus = Path(scratch, "corpus")
            prepare([resource("data", "sample.csv.gz")], corpus)
        sentences = read_corpus(corpus)
        if tokenizer is not None:
            return sentences, load_tokenizer(tokenizer)
        return sentences, train_tokenizer(corpus, Path(scratch, "tokenizer"))


def show(rows: list[dict[str, object]], path: Path | None) -> None:
    """Print rows as a table in Markdown, and write them as JSON if asked to."""
    columns = [Column(key, ".3g" if isinstance(value, float) else "") for key, value in rows[0].items()]
    print(Table(columns, [tuple(row.values()) for row in rows]).to_markdown())
    if path is not None:
        path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
