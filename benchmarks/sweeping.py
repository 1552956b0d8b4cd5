"""A sweep of as many cells as jobs: all at once, against one after the other with all cores.

Seconds are those of the whole command, with its start and a small probe; "tokens/s" those of the trainings alone,
from their logs, added up over the cells that are trained at once.

    python benchmarks/sweeping.py [--config babyberta] [--corpus DIR --tokenizer DIR] [--steps 150] [--jobs 2]
        [--json FILE]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median

from common import corpus_and_tokenizer, interleaved, options, parse, show


def sweep(arguments: list[str], jobs: int, cells: int, rates: list[float]) -> None:
    """Run the command in a new folder, and add its tokens per second to `rates`."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "babyssa", "sweep", *arguments, "--jobs", str(jobs), "--out", out]
        command += ["--variants", "softmax", "--seeds", *map(str, range(cells)), "--limit", "4"]
        subprocess.run(command, check=True, capture_output=True)
        logs = [path.read_text().splitlines() for path in Path(out).glob("*/log.jsonl")]
        last = [[line for line in map(json.loads, log) if "tokens_per_second" in line][-1] for log in logs]
        rates.append(jobs / cells * sum(line["tokens_per_second"] for line in last))


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--config", default="babyberta", help="a packaged recipe")
    parser.add_argument("--corpus", type=Path, help="a prepared corpus; the packaged sample if not given")
    parser.add_argument("--tokenizer", type=Path, help="one is trained on the corpus if not given")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--jobs", type=int, default=2)
    given = parse(parser)
    with tempfile.TemporaryDirectory() as scratch:
        text, tokenizer = corpus_and_tokenizer(given.corpus, given.tokenizer)
        corpus = Path(scratch, "corpus.txt")
        corpus.write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
        tokenizer.save_pretrained(Path(scratch, "tokenizer"))
        arguments = [
            "--config",
            given.config,
            "--corpus",
            str(corpus),
            "--tokenizer",
            str(Path(scratch, "tokenizer")),
        ]
        arguments += [
            "--optimisation.steps",
            str(given.steps),
            "--evaluation.held_out",
            "0",
            "--evaluation.every",
            "0",
        ]
        rates: dict[int, list[float]] = {1: [], given.jobs: []}
        work = {jobs: partial(sweep, arguments, jobs, given.jobs, rates[jobs]) for jobs in rates}
        seconds = interleaved(work, given.repetitions)
    # The first of each was not timed.
    speeds = {jobs: median(found[1:]) for jobs, found in rates.items()}
    rows = [
        {
            "config": given.config,
            "jobs": jobs,
            "seconds": seconds[jobs],
            "/one job": seconds[1] / seconds[jobs],
            "tokens/s": speeds[jobs],
            "tokens/s, /one job": speeds[jobs] / speeds[1],
        }
        for jobs in rates
    ]
    show(rows, given.json)


if __name__ == "__main__":
    main()
