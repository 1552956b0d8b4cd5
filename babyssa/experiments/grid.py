"""Runs an experiment: trains and measures its cells, skipping what is done, and compares the results."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from babyssa.attention import fit_scoring, scoring_config, scoring_settings
from babyssa.comparison import compare
from babyssa.comparison.cells import CELL, read_cell
from babyssa.console import counting, say
from babyssa.corpus import load_tokenizer, masked_tokenizer, read_corpus, tokenizer_sha256, train_tokenizer
from babyssa.corpus.encoded import encode_corpus
from babyssa.corpus.preparation import corpus_file
from babyssa.decoder.config import DecoderTraining
from babyssa.decoder.model import build_decoder
from babyssa.decoder.packing import causal_tokenizer
from babyssa.decoder.training import identity
from babyssa.display import Column, Shown, Table
from babyssa.encoder.config import EncoderTraining
from babyssa.encoder.model import build_encoder
from babyssa.errors import BabySSAError, ConfigError, OutputExistsError, describe
from babyssa.experiments.cells import Cell, run_cell, time_left, train
from babyssa.experiments.cluster import run_jobs
from babyssa.experiments.experiment import Experiment, Training
from babyssa.experiments.jobs import run_cells
from babyssa.experiments.measures import KINDS
from babyssa.files import (
    atomic_path,
    check_checksums,
    locked,
    read_checksums,
    read_json,
    remove_partials,
    sha256,
    write_json,
)
from babyssa.models import as_loaded
from babyssa.processes import check_one_process
from babyssa.synthetic.config import SyntheticTraining
from babyssa.training.devices import check_devices, precision_of
from babyssa.training.run_folder import (
    DRAWS,
    EARLIER,
    LOG,
    NOT_COMPARED,
    WEIGHTS,
    check_same,
    check_same_run,
    flat,
    is_finished,
    plain,
    remove_leftovers,
)
from babyssa.training.stopping import stopped_at_once

if TYPE_CHECKING:
    import pandas as pd
    from submitit import Executor

    from babyssa.comparison.report import Comparisons

COMPARISON, RESULTS = "comparison", "results"

_ORIGIN = "trained_on.json"
_TRIED_STEPS = 8


@dataclass(frozen=True)
class Sweep(Shown):
    """What a sweep came to.

    Parameters
    ----------
    cells : tuple of Cell
        Every variant under every seed; one that failed says why in its ``failure``.
    comparison : Comparisons
        Of the cells that succeeded, measure by measure; its notes name the others.
    """

    cells: tuple[Cell, ...]
    comparison: Comparisons

    @property
    def failure(self) -> BabySSAError | None:
        """The error to raise, once the comparison is shown, if a cell failed."""
        failed = [cell for cell in self.cells if cell.failure is not None]
        if not failed:
            return None
        return BabySSAError(
            f"{len(failed)} of {len(self.cells)} cells failed (see the notes of the comparison)",
            path=failed[0].folder.parent,
            remedy="fix the cause and run the command again: it does what is missing",
        )

    def tables(self) -> Iterator[Table]:
        """The cells with the first number of each measure, and the tables of their comparison."""
        measures = {name: None for cell in self.cells for name in cell.measures}
        columns = (
            Column("condition", hidden=not any(cell.condition for cell in self.cells)),
            Column("variant"),
            Column("seed"),
            Column("state"),
            Column("steps", ","),
            *(Column(name, ".4g") for name in measures),
            Column("failure", hidden=True),
            Column("folder", hidden=True),
        )
        rows, precisions = [], set()
        for cell in self.cells:
            state = "failed" if cell.failure else "trained earlier" if cell.run is None else "trained"
            stored = None if cell.failure else read_cell(cell.results)
            numbers = [None if stored is None else _first(stored.measures.get(name)) for name in measures]
            if stored is not None:
                precisions.add(stored.values["facts"]["precision"])
            steps = cell.run and cell.run.steps
            place = (cell.failure, str(cell.folder))
            rows.append((cell.condition, cell.variant, cell.seed, state, steps, *numbers, *place))
        yield Table(columns, rows, title=f"Cells, trained in {', '.join(sorted(precisions))}")
        yield from self.comparison.tables()

    def to_frame(self) -> pd.DataFrame:
        """One row per cell; ``comparison.to_frame()`` has the estimates."""
        return next(self.tables()).to_frame()

    def to_markdown(self) -> str:
        """The comparison in Markdown, as in comparison.md."""
        return self.comparison.to_markdown()


def sweep(
    experiment: Experiment,
    *,
    results: Path | None = None,
    jobs: int = 1,
    executor: Executor | None = None,
    measure_only: bool = False,
) -> Sweep:
    """Train, measure and compare the cells of an experiment; :func:`babyssa.sweep` explains the parameters."""
    check_one_process("a sweep")
    if jobs < 1:
        raise ConfigError(f"jobs is {jobs}", remedy="it is at least 1")
    cells = make_cells(experiment, results)
    check_devices()
    out = Path(experiment.settings.out)
    with locked(out, "a sweep"), stopped_at_once("the sweep", out, "the same command resumes it"):
        remove_partials(out)
        cells, facts = _prepare(experiment, cells)
        done = {cell.folder: found for cell in cells if (found := _find_done(cell, facts)) is not None}
        missing = [cell for cell in cells if cell.folder not in done]
        if measure_only:
            untrained = [cell for cell in missing if not is_finished(cell.folder)]
            missing = [cell for cell in missing if is_finished(cell.folder)]
            cells = [cell for cell in cells if cell not in untrained]
            if untrained:
                say(f"{len(untrained)} cells are not trained, and left out")
        if done:
            say(f"{len(done)} of {len(cells)} cells need no work")
        if (jobs > 1 or executor is not None) and missing:
            if isinstance(experiment.settings, EncoderTraining):
                _encode_once(experiment.settings, cells[0].settings.tokenizer)
            finished = run_jobs(missing, executor) if executor else run_cells(missing, min(jobs, len(missing)))
        else:
            finished = _run_in_turn(missing)
        done |= {cell.folder: cell for cell in finished}
        cells = [done[cell.folder] for cell in cells]
        return Sweep(tuple(cells), _compare(cells, experiment.baseline, out))


@dataclass(frozen=True)
class PlannedCell:
    """A cell that is to be done, or is done; hours are those of its training, 0 if it is trained."""

    cell: Cell
    state: str
    parameters: int
    steps: int
    hours: float


@dataclass(frozen=True)
class Plan(Shown):
    """What a sweep would do.

    Parameters
    ----------
    cells : tuple of PlannedCell
        Every variant under every seed.
    measured_steps : int
        How many steps of each variant the hours were estimated from.
    """

    cells: tuple[PlannedCell, ...]
    measured_steps: int

    def tables(self) -> Iterator[Table]:
        columns = (
            Column("condition", hidden=not any(planned.cell.condition for planned in self.cells)),
            Column("variant"),
            Column("seed"),
            Column("state"),
            Column("parameters", ","),
            Column("steps", ","),
            Column("hours", ".2f"),
        )
        rows = [
            (p.cell.condition, p.cell.variant, p.cell.seed, p.state, p.parameters, p.steps, p.hours)
            for p in self.cells
        ]
        hours = sum(planned.hours for planned in self.cells)
        note = (
            f"Hours are of training, one cell at a time, from {self.measured_steps} steps of each variant on this "
            f"machine as busy as it is now. Measured of each: {', '.join(self.cells[0].cell.measures)}."
        )
        total = ("", "total", None, "", None, None, hours)
        yield Table(columns, rows, title=f"{len(self.cells)} cells", notes=[note], total=total)


def plan(experiment: Experiment, *, results: Path | None = None) -> Plan:
    """What a sweep would do, and how long its trainings would take; writes nothing into its folders.

    A few steps of each variant are trained in a temporary folder.
    """
    cells = make_cells(experiment, results)
    with tempfile.TemporaryDirectory() as scratch:
        settings = dataclasses.replace(experiment.settings, out=Path(scratch))
        prepared, facts = _prepare(dataclasses.replace(experiment, settings=settings), cells)
        tried: dict[tuple[str, str], tuple[int, int, float]] = {}
        planned = []
        for cell in prepared:
            place = cell.condition, cell.variant
            if place not in tried:
                say(f"trying {' '.join(filter(None, place))}")
                tried[place] = _try(cell.settings, Path(scratch) / f"{len(tried)}")
            parameters, steps, seconds = tried[place]
            found = _find_done(cell, facts)
            trained = found is not None or is_finished(cell.folder)
            state = "done" if found is not None else "trained, to be measured" if trained else "to be trained"
            planned.append(PlannedCell(cell, state, parameters, steps, 0.0 if trained else steps * seconds / 3600))
    return Plan(tuple(planned), _TRIED_STEPS)


def _try(settings: Training, out: Path) -> tuple[int, int, float]:
    """Parameters, steps, and the seconds of a step, from a few steps in the folder `out`."""
    tried = dataclasses.replace(settings.optimisation, steps=_TRIED_STEPS, log_every=1, checkpoint_every=0)
    run = train(dataclasses.replace(settings, out=out, optimisation=tried))
    log = [json.loads(line) for line in (out / LOG).read_text(encoding="utf-8").splitlines()]
    log = [record for record in log if "loss" in record]
    # The first step waits for memory and caches.
    seconds = (log[-1]["seconds"] - log[0]["seconds"]) / (len(log) - 1)
    of_epoch = round(log[-1]["step"] / log[-1]["epoch"])
    steps = settings.optimisation.steps or math.ceil(of_epoch * settings.optimisation.epochs)
    return run.parameters, steps, seconds


def make_cells(experiment: Experiment, results: Path | None = None) -> list[Cell]:
    """The cells, seed by seed, so that a sweep that is stopped can be compared."""
    out = Path(experiment.settings.out)
    results = Path(results or out / RESULTS)
    places = list(itertools.product(experiment.conditions, experiment.variants))
    settings = {place: experiment.run_settings(*place) for place in places}
    for own in settings.values():
        scoring_config(own.variant, **own.scoring)
    return [
        Cell(
            experiment=experiment.name,
            condition=condition,
            variant=variant,
            baseline=experiment.baseline,
            settings=dataclasses.replace(
                settings[condition, variant], seed=seed, out=out / condition / f"{variant}-{seed}"
            ),
            measures=experiment.measures,
            results=results / condition / f"{variant}-{seed}",
        )
        for seed in experiment.seeds
        for condition, variant in places
    ]


def _prepare(experiment: Experiment, cells: Sequence[Cell]) -> tuple[list[Cell], dict[str, Any]]:
    """The cells with the tokenizer that all share, and what a run of theirs must have been made from.

    Raises
    ------
    BabySSAError
        If a measure could not be made of such a model.
    """
    settings = experiment.settings
    facts: dict[str, Any] = {"draws": DRAWS}
    if isinstance(settings, SyntheticTraining):
        return list(cells), facts
    if isinstance(settings, EncoderTraining):
        facts["corpus_sha256"] = sha256(corpus_file(settings.corpus))
        fit, build = masked_tokenizer, build_encoder
    else:
        facts |= identity(settings)
        fit, build = causal_tokenizer, build_decoder
    folder = settings.tokenizer or _shared_tokenizer(settings)
    tokenizer = fit(load_tokenizer(folder))
    tokenizer.model_max_length = settings.size.max_length
    facts["tokenizer_sha256"] = tokenizer_sha256(tokenizer)
    checks = [(KINDS[m.kind].check, m.resolved) for m in experiment.measures.values() if KINDS[m.kind].check]
    if checks:
        untrained = as_loaded((build(settings.size, tokenizer), tokenizer))
        for check, options in checks:
            check(untrained, options)
    return [_with_tokenizer(cell, folder) for cell in cells], facts


def _with_tokenizer(cell: Cell, folder: Path) -> Cell:
    return dataclasses.replace(cell, settings=dataclasses.replace(cell.settings, tokenizer=folder))


def _shared_tokenizer(settings: EncoderTraining | DecoderTraining) -> Path:
    """The tokenizer of all cells; trained on the corpus unless an earlier call has done so."""
    folder = Path(settings.out) / "tokenizer"
    corpus = corpus_file(settings.corpus)
    if not corpus.is_file():
        raise ConfigError("a sweep on a dataset needs a tokenizer", remedy="pass --tokenizer, a tokenizer folder")
    wanted = {"corpus_sha256": sha256(corpus), "vocab_size": settings.vocab_size}
    if not folder.exists():
        with atomic_path(folder) as partial:
            train_tokenizer(settings.corpus, partial, vocab_size=settings.vocab_size)
            write_json(partial / _ORIGIN, wanted)
    check_same(read_json(folder / _ORIGIN), wanted, "was trained with", folder, "choose another --out")
    return folder


def _encode_once(settings: EncoderTraining, folder: Path) -> None:
    """Encode the corpus, which the first cells would otherwise each do."""
    tokenizer = masked_tokenizer(load_tokenizer(folder))
    tokenizer.model_max_length = settings.size.max_length
    encode_corpus(read_corpus(settings.corpus), tokenizer, corpus_file(settings.corpus))


def _find_done(cell: Cell, facts: dict[str, Any]) -> Cell | None:
    """The cell if it needs no work, or is damaged; raise OutputExistsError if it belongs to another sweep."""
    folder, trained = cell.folder, is_finished(cell.folder)
    stored = None
    try:
        if trained:
            remove_leftovers(folder)
            check_checksums(folder)
        if (cell.results / CELL).is_file():
            stored = read_cell(cell.results)
    except BabySSAError as error:
        return cell.failed(describe(error))
    wanted = _wanted(cell.settings, facts)
    if trained:
        check_same_run(folder, wanted, "was trained with", "choose another --out, or the same settings and data")
    if stored is None:
        return None
    remedy = "choose another --results, or remove that folder"
    found = EARLIER | flat({**stored.values["settings"], "facts": stored.values["facts"]})
    compared = {key: value for key, value in flat(wanted).items() if key not in NOT_COMPARED}
    check_same(found, compared, "is of a model with", cell.results, remedy)
    if trained and read_checksums(folder).get(WEIGHTS) != stored.values["weights_sha256"]:
        raise OutputExistsError(f"is of another model than {folder}", path=cell.results, remedy=remedy)
    for name, measure in cell.measures.items():
        earlier = stored.measures.get(name)
        if earlier is not None:
            check_same(earlier, measure.entry(), f"has '{name}' with", cell.results, remedy)
            if "suite" in earlier:
                suite = {"suite_sha256": measure.resolved.load_suite().sha256}
                check_same(earlier["suite"], suite, f"has '{name}' with", cell.results, remedy)
    return cell if cell.measures.keys() <= stored.measures.keys() else None


def _wanted(settings: Training, facts: dict[str, Any]) -> dict[str, Any]:
    """What the config.yaml of a run with these settings says."""
    # Of the evaluation, only what is held out of training makes it another run.
    values = {key: value for key, value in plain(settings).items() if key not in ("evaluation", "evaluate_every")}
    longest = getattr(settings.size, "max_length", None) or settings.size.max_numbers
    config = fit_scoring(scoring_config(settings.variant, **settings.scoring), longest)
    values["scoring"] = scoring_settings(config)
    if hasattr(settings, "evaluation"):
        values["evaluation.held_out"] = settings.evaluation.held_out
    return {**values, "facts": {**facts, "precision": precision_of(settings.optimisation)}}


def _run_in_turn(cells: Sequence[Cell]) -> list[Cell]:
    """Run cells here, one after the other, and say how long the rest will take."""
    done: list[Cell] = []
    started = time.monotonic()
    with counting("sweep", len(cells), "cells") as advance:
        for cell in cells:
            say(f"{len(done) + 1}/{len(cells)}: {cell.name}{time_left(started, len(done), len(cells))}")
            done.append(run_cell(cell))
            advance(1)
    return done


def _first(measure: dict[str, Any] | None) -> float | None:
    """The first number of a measure."""
    return next(iter(measure["values"].values()), None) if measure else None


def _compare(cells: Sequence[Cell], baseline: str, out: Path) -> Comparisons:
    """The comparison of the cells that succeeded; its notes name the others."""
    failed = [cell for cell in cells if cell.failure is not None]
    good = [cell for cell in cells if cell.failure is None]
    if failed and baseline not in {cell.variant for cell in good}:
        what = f"{len(failed)} of {len(cells)} cells failed, all of the baseline {baseline} among them"
        raise BabySSAError(f"{what}: {failed[0].failure}", path=out, remedy="fix the cause and sweep again")
    if not good:
        raise BabySSAError("no cell is trained", path=out, remedy="train some first")
    return compare(
        [cell.results for cell in good],
        out / COMPARISON,
        overwrite=True,
        notes=[f"{cell.variant}, seed {cell.seed}, failed and is left out ({cell.failure})" for cell in failed],
    )
