"""Trains and probes a grid of variants and seeds, skipping what is done, and compares the results."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from babyssa.attention import fit_scoring, scoring_config, scoring_settings
from babyssa.comparison import compare
from babyssa.comparison.results import EARLY_VERSIONS, read_result
from babyssa.console import say
from babyssa.corpus import load_tokenizer, masked_tokenizer, read_corpus, tokenizer_sha256, train_tokenizer
from babyssa.corpus.encoded import encode_corpus
from babyssa.corpus.preparation import corpus_file
from babyssa.encoder.config import EncoderTraining
from babyssa.encoder.model import build_encoder
from babyssa.encoder.training import train_encoder
from babyssa.errors import BabySSAError, ConfigError, Stopped, describe, nearest
from babyssa.experiments.jobs import at_once, refuse_in_a_job
from babyssa.files import check_checksums, locked, read_json, sha256, write_json
from babyssa.models import as_loaded, load_model, weights_sha256
from babyssa.models.scores import METHODS
from babyssa.probing import Suite, check_suite, load_suite, probe
from babyssa.probing.accuracy import write_result
from babyssa.processes import check_one_process
from babyssa.training.devices import check_devices, precision_of
from babyssa.training.run import TrainingRun
from babyssa.training.run_folder import (
    DRAWS,
    PROBE,
    check_same,
    check_same_run,
    is_finished,
    plain,
    remove_leftovers,
)
from babyssa.training.stopping import stopped_at_once

if TYPE_CHECKING:
    from babyssa.comparison.report import Comparison

COMPARISON = "comparison"

# Of the evaluation, only what is held out of training makes a finished run another.
_EVALUATION = "evaluation"
_ORIGIN = "trained_on.json"


@dataclass(frozen=True)
class Probing:
    """What every model of a sweep is probed with.

    Parameters
    ----------
    suite : str
        A suite of minimal pairs, or "packaged".
    order : {"bad-first", "good-first"}, optional
        Order within pairs, where the suite does not state it.
    method : str
        Scoring method: pll, pll-word-l2r or holistic.
    limit : int, optional
        Only so many pairs of each paradigm.
    """

    suite: str = "packaged"
    order: Literal["bad-first", "good-first"] | None = None
    method: str = "pll"
    limit: int | None = None


@dataclass(frozen=True)
class Cell:
    """One variant under one seed, where it is, how it was trained by this call, or why it could not be."""

    variant: str
    seed: int
    folder: Path
    run: TrainingRun | None = field(default=None, compare=False)
    failure: str | None = field(default=None, compare=False)


class Sweep(NamedTuple):
    """The cells of a sweep, and the comparison of those that succeeded."""

    cells: list[Cell]
    comparison: Comparison

    @property
    def failure(self) -> BabySSAError | None:
        """What to raise, once the comparison is shown, if a cell failed."""
        failed = [cell for cell in self.cells if cell.failure is not None]
        if not failed:
            return None
        return BabySSAError(
            f"{len(failed)} of {len(self.cells)} cells failed (see the notes of the comparison)",
            path=failed[0].folder.parent,
            remedy="fix the cause, and give the command again: it trains what is missing",
        )

    def to_markdown(self) -> str:
        """The comparison in Markdown."""
        return self.comparison.to_markdown()


def sweep(
    settings: EncoderTraining,
    variants: Sequence[str],
    seeds: Sequence[int],
    probing: Probing | None = None,
    *,
    jobs: int = 1,
) -> Sweep:
    """Train, probe and compare a grid; :func:`babyssa.sweep` explains the parameters.

    Jobs are processes that start as multiprocessing's "spawn" does: a script that calls this with more than one
    needs ``if __name__ == "__main__":``.
    """
    check_one_process("a sweep")
    refuse_in_a_job("a sweep")
    probing = probing or Probing()
    if not variants or not seeds:
        raise ConfigError("nothing to sweep over", remedy="give at least one variant and one seed")
    for key, default in (("scoring", {}), ("variant", "softmax"), ("seed", 0)):
        if getattr(settings, key) != default:
            raise ConfigError(f"a sweep does not take {key}", remedy="it has --variants and --seeds")
    if min(seeds) < 0:
        raise ConfigError(f"seed is {min(seeds)}", remedy="it is at least 0")
    if jobs < 1:
        raise ConfigError(f"jobs is {jobs}", remedy="it is at least 1")
    check_devices()
    for variant in variants:
        scoring_config(variant)
    fitting = [name for name, method in METHODS.items() if method.kind == "masked"]
    if probing.method not in fitting:
        raise ConfigError(f"method '{probing.method}' does not fit", remedy=nearest(probing.method, fitting))
    suite = load_suite(probing.suite, probing.order).select(limit=probing.limit)
    cells = [
        Cell(variant, seed, Path(settings.out) / f"{variant}-{seed}")
        for seed in dict.fromkeys(seeds)
        for variant in dict.fromkeys(variants)
    ]
    corpus = sha256(corpus_file(settings.corpus))
    with (
        locked(settings.out, "a sweep"),
        stopped_at_once("the sweep", settings.out, "the same command goes on from there"),
    ):
        tokenizer = settings.tokenizer or _sweep_tokenizer(settings, corpus)
        loaded_tokenizer = masked_tokenizer(load_tokenizer(tokenizer))
        loaded_tokenizer.model_max_length = settings.size.max_length
        untrained = build_encoder(settings.size, loaded_tokenizer)
        check_suite(as_loaded((untrained, loaded_tokenizer)), suite, probing.method)
        facts = {
            "corpus_sha256": corpus,
            "tokenizer_sha256": tokenizer_sha256(loaded_tokenizer),
            "draws": DRAWS,
            "precision": precision_of(settings.optimisation),
        }
        for cell in cells:
            if is_finished(cell.folder) and not _is_damaged(cell.folder):
                _refuse_another_run(_cell_settings(settings, cell, tokenizer), facts, cell.folder)
                _refuse_another_probe(cell.folder, suite, probing)
        own_settings = [_cell_settings(settings, cell, tokenizer) for cell in cells]
        if jobs == 1:
            done = []
            for number, (cell, own) in enumerate(zip(cells, own_settings, strict=True), start=1):
                say(f"{number}/{len(cells)}: {cell.folder}")
                done.append(_run_cell(cell, own, suite, probing))
        else:
            # Or each of the first ones would do so.
            encode_corpus(read_corpus(settings.corpus), loaded_tokenizer, corpus_file(settings.corpus))
            done = _run_at_once(cells, own_settings, suite, probing, jobs)
        return Sweep(done, _compare(done, settings.out))


def _compare(cells: list[Cell], out: Path) -> Comparison:
    """The comparison of the cells that succeeded; its notes name the others."""
    variants = list(dict.fromkeys(cell.variant for cell in cells))
    baseline = "softmax" if "softmax" in variants else variants[0]
    failed = [cell for cell in cells if cell.failure is not None]
    good = [cell for cell in cells if cell.failure is None]
    if baseline not in {cell.variant for cell in good}:
        what = f"{len(failed)} of {len(cells)} cells failed, all of the baseline {baseline} among them"
        raise BabySSAError(f"{what}: {failed[0].failure}", path=out, remedy="mend the cause, and sweep again")
    return compare(
        [cell.folder / PROBE for cell in good],
        Path(out) / COMPARISON,
        baseline=baseline,
        overwrite=True,
        notes=[f"{cell.variant}, seed {cell.seed}, failed and is left out ({cell.failure})" for cell in failed],
    )


def _cell_settings(settings: EncoderTraining, cell: Cell, tokenizer: Path | None) -> EncoderTraining:
    return dataclasses.replace(
        settings, variant=cell.variant, seed=cell.seed, out=cell.folder, tokenizer=tokenizer
    )


def _sweep_tokenizer(settings: EncoderTraining, corpus: str) -> Path:
    """The tokenizer that all cells share; trained on the corpus unless an earlier call has done so."""
    folder = Path(settings.out) / "tokenizer"
    wanted = {"corpus_sha256": corpus, "vocab_size": settings.vocab_size}
    if not folder.exists():
        partial = folder.with_name(".tokenizer.partial")
        shutil.rmtree(partial, ignore_errors=True)
        train_tokenizer(settings.corpus, partial, vocab_size=settings.vocab_size)
        write_json(partial / _ORIGIN, wanted)
        os.replace(partial, folder)
    check_same(read_json(folder / _ORIGIN), wanted, "was trained with", folder, "choose another --out")
    return folder


def _run_cell(cell: Cell, settings: EncoderTraining, suite: Suite, probing: Probing) -> Cell:
    run = None
    try:
        if is_finished(cell.folder):
            remove_leftovers(cell.folder)
            check_checksums(cell.folder)
            say("  trained already")
        else:
            run = train_encoder(settings)
        if (cell.folder / PROBE / "summary.json").is_file():
            read_result(cell.folder / PROBE)
            say("  probed already")
        else:
            write_result(probe(cell.folder, suite, method=probing.method), suite, cell.folder / PROBE)
    except Stopped:
        raise
    except Exception as error:  # whatever is wrong with one cell is no reason to lose the others
        failure = describe(error)
        say(f"  failed: {failure}")
        return dataclasses.replace(cell, run=run, failure=failure)
    return dataclasses.replace(cell, run=run)


def _run_at_once(
    cells: list[Cell], settings: list[EncoderTraining], suite: Suite, probing: Probing, jobs: int
) -> list[Cell]:
    """As :func:`_run_cell` of each cell with its settings, several of them at a time."""
    jobs = min(jobs, len(cells))
    say(f"{len(cells)} cells, {jobs} at a time")
    calls = {
        cell.folder.name: partial(_run_stoppable_cell, cell, own, suite, probing)
        for cell, own in zip(cells, settings, strict=True)
    }
    done = []
    for cell, outcome in zip(cells, at_once(calls, jobs).values(), strict=True):
        failed = isinstance(outcome, BabySSAError)
        done.append(dataclasses.replace(cell, failure=describe(outcome)) if failed else outcome)
    return done


def _run_stoppable_cell(cell: Cell, settings: EncoderTraining, suite: Suite, probing: Probing) -> Cell:
    with stopped_at_once("the cell", cell.folder, "the same command goes on from there"):
        return _run_cell(cell, settings, suite, probing)


def _is_damaged(folder: Path) -> bool:
    """Whether a finished cell will be reported as damaged when its turn comes."""
    try:
        check_checksums(folder)
        check_checksums(folder / PROBE)
    except BabySSAError:
        return True
    return False


def _refuse_another_run(settings: EncoderTraining, facts: dict[str, str | int], folder: Path) -> None:
    """Raise OutputExistsError unless the finished run in `folder` is what `settings` would train."""
    wanted = {key: value for key, value in plain(settings).items() if key != _EVALUATION}
    wanted |= {
        "scoring": scoring_settings(fit_scoring(scoring_config(settings.variant), settings.size.max_length)),
        f"{_EVALUATION}.held_out": settings.evaluation.held_out,
        "facts": facts,
    }
    check_same_run(folder, wanted, "was trained with", "choose another --out, or the same settings and data")


def _refuse_another_probe(folder: Path, suite: Suite, probing: Probing) -> None:
    """Raise OutputExistsError if `folder` was probed with anything else, or before it was trained again."""
    summary = folder / PROBE / "summary.json"
    if not summary.is_file():
        return
    wanted = {
        "suite_sha256": suite.sha256,
        "method": probing.method,
        "precision": "float32",
        "model_sha256": weights_sha256(load_model(folder, "cpu").model),
    }
    remedy = "remove that folder, or use the same suite and method"
    check_same(EARLY_VERSIONS | read_json(summary), wanted, "was probed with", summary.parent, remedy)
