"""The whole product in one call: sample corpus -> tokenizer -> four encoders -> probes -> comparison."""

from __future__ import annotations

import dataclasses
import shlex
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from babyssa.console import say
from babyssa.corpus import prepare, train_tokenizer
from babyssa.display import Shown, Table
from babyssa.encoder.config import EncoderTraining
from babyssa.errors import OutputExistsError, Stopped
from babyssa.experiments.experiment import Experiment
from babyssa.experiments.grid import COMPARISON, RESULTS, Sweep, sweep
from babyssa.experiments.measures import Measure, Pairs
from babyssa.files import resource
from babyssa.pages.report import write_report
from babyssa.probing.suites import load_suite
from babyssa.processes import check_one_process

# The baseline and the paper's settings of SSA.
VARIANTS = ("softmax", "ssa-1.5", "ssa-2", "ssa")

PAGE = "report.html"

_MARKER = "demo.txt"


@dataclass(frozen=True)
class Demo(Shown):
    """What the demo made: where, in how many seconds, and its sweep."""

    folder: Path
    seconds: float
    sweep: Sweep

    def tables(self) -> Iterator[Table]:
        """The sweep's tables, what to do next, and what to look at."""
        yield from self.sweep.tables()
        steps = (
            f'babyssa score {self.folder}/ssa-0 "the dogs bark ." "the dogs barks ."',
            "babyssa prepare YOUR_CHILDES_FILES --out corpus",
            "babyssa sweep --config small --corpus corpus --out runs \\",
            "    --variants softmax ssa-1.5 --seeds 0 1 2",
        )
        yield Table((), (), title=f"{self.seconds / 60:.1f} minutes. Next:", notes=steps)
        figure = f"{self.folder / COMPARISON}/comparison.png"
        yield Table((), (), title="To look at:", notes=(f"page    {self.folder / PAGE}", f"figure  {figure}"))


def run_demo(out: str | Path, settings: EncoderTraining, *, pairs: int = 100, overwrite: bool = False) -> Demo:
    """Prepare the packaged sample corpus, train Softmax and SSA encoders on it, probe and compare them.

    Parameters
    ----------
    out : path-like
        Folder to write: corpus/, tokenizer/, one run folder per variant, comparison/ and report.html.
    settings : EncoderTraining
        Of every run, such as configs/encoder/demo.yaml; its corpus, tokenizer and out are not used.
    pairs : int
        How many of the 1,000 pairs of each paradigm are probed.
    overwrite : bool
        Whether an earlier demo in `out` may be replaced.

    Raises
    ------
    OutputExistsError
        If `out` has something in it and `overwrite` is false.
    """
    check_one_process("the demo")
    started = time.monotonic()
    out = Path(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        if not overwrite:
            raise OutputExistsError("already exists", path=out, remedy="choose another --out or pass --overwrite")
        if not (out / _MARKER).is_file():
            raise OutputExistsError("was not made by the demo", path=out, remedy="choose another --out")
        for name in ("corpus", "tokenizer", COMPARISON, RESULTS, *(f"{variant}-0" for variant in VARIANTS)):
            shutil.rmtree(out / name, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    (out / _MARKER).write_text("Made by 'babyssa demo', which may replace what it made here.\n", encoding="utf-8")
    say("1/3 preparing the sample corpus")
    prepare([resource("data", "sample.csv.gz")], out / "corpus")
    say("2/3 training the tokenizer")
    train_tokenizer(out / "corpus", out / "tokenizer", vocab_size=settings.vocab_size)
    say("3/3 training and probing Softmax and SSA encoders")
    settings = dataclasses.replace(settings, corpus=out / "corpus", tokenizer=out / "tokenizer", out=out)
    try:
        swept = sweep(
            Experiment(
                name="demo",
                settings=settings,
                variants={name: {"variant": name} for name in VARIANTS},
                seeds=(0,),
                measures={"packaged": Measure("pairs", Pairs(limit=pairs))},
            )
        )
    except Stopped as stop:
        remedy = "run the command again with --overwrite"
        raise Stopped("the demo was stopped", signal=stop.signal, path=out, remedy=remedy) from None
    # What makes the page again.
    command = shlex.join(["babyssa", "report", str(out / RESULTS), "--suite=packaged", "--out", str(out / PAGE)])
    found, title = swept.comparison, "The demo: four variants, one seed"
    write_report(found.parts, out / PAGE, title, command, load_suite("packaged"), found.notes)
    return Demo(out, time.monotonic() - started, swept)
