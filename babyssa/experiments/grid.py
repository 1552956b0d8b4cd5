"""Trains and probes a grid of variants and seeds, skipping what is done, and compares the results."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from babyssa.attention import fit_scoring, scoring_config, scoring_settings
from babyssa.comparison import compare
from babyssa.comparison.results import read_result
from babyssa.console import say
from babyssa.corpus import load_tokenizer, masked_tokenizer, read_corpus, tokenizer_sha256, train_tokenizer
from babyssa.corpus.encoded import encode_corpus
from babyssa.corpus.preparation import corpus_file
from babyssa.display import Column, Shown, Table, percent
from babyssa.encoder.config import EncoderTraining
from babyssa.encoder.model import build_encoder
from babyssa.errors import BabySSAError, ConfigError, describe, nearest
from babyssa.experiments.cells import Cell, Probing, run_cell
from babyssa.experiments.jobs import run_cells
from babyssa.files import atomic_path, check_checksums, locked, read_json, remove_partials, sha256, write_json
from babyssa.models import as_loaded, load_model, weights_sha256
from babyssa.models.scores import METHODS
from babyssa.probing import Suite, check_suite
from babyssa.processes import check_one_process
from babyssa.training.devices import check_devices, precision_of
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
    import pandas as pd

    from babyssa.comparison.report import Comparison

COMPARISON = "comparison"

_ORIGIN = "trained_on.json"


@dataclass(frozen=True)
class Sweep(Shown):
    """What a sweep came to.

    Parameters
    ----------
    cells : tuple of Cell
        Every variant under every seed; one that failed says why in its ``failure``.
    comparison : Comparison
        Of the cells that succeeded; its notes name the others.
    """

    cells: tuple[Cell, ...]
    comparison: Comparison

    @property
    def failure(self) -> BabySSAError | None:
        """The error to raise, once the comparison is shown, if a cell failed."""
        failed = [cell for cell in self.cells if cell.failure is not None]
        if not failed:
            return None
        return BabySSAError(
            f"{len(failed)} of {len(self.cells)} cells failed (see the notes of the comparison)",
            path=failed[0].folder.parent,
            remedy="fix the cause and run the command again: it trains what is missing",
        )

    def tables(self) -> Iterator[Table]:
        """The cells, and the tables of their comparison."""
        runs = self.comparison.runs
        accuracies = dict(zip(runs.folder, runs.accuracy, strict=True))
        columns = (
            Column("variant"),
            Column("seed"),
            Column("state"),
            Column("steps", ","),
            Column("accuracy", percent, "accuracy %"),
            Column("failure", hidden=True),
            Column("folder", hidden=True),
        )
        rows = []
        for cell in self.cells:
            state = "failed" if cell.failure else "skipped: done already" if cell.run is None else "trained"
            accuracy = accuracies.get(str(cell.folder / PROBE))
            steps = cell.run and cell.run.steps
            rows.append((cell.variant, cell.seed, state, steps, accuracy, cell.failure, str(cell.folder)))
        trained, scored = (", ".join(sorted(set(runs[key]))) for key in ("training_precision", "precision"))
        yield Table(columns, rows, title=f"Cells, trained in {trained} and scored in {scored}")
        yield from self.comparison.tables()

    def to_frame(self) -> pd.DataFrame:
        """One row per cell; ``comparison.to_frame()`` has the estimates."""
        return next(self.tables()).to_frame()

    def to_markdown(self) -> str:
        """The comparison in Markdown, as in comparison.md."""
        return self.comparison.to_markdown()


def sweep(
    settings: EncoderTraining,
    variants: Sequence[str],
    seeds: Sequence[int],
    probing: Probing | None = None,
    *,
    jobs: int = 1,
) -> Sweep:
    """Train, probe and compare a grid; :func:`babyssa.sweep` explains the parameters."""
    check_one_process("a sweep")
    probing = probing or Probing()
    _check_grid(settings, variants, seeds, probing, jobs)
    check_devices()
    suite = probing.load_suite()
    out, corpus = Path(settings.out), corpus_file(settings.corpus)
    corpus_sha256 = sha256(corpus)
    with locked(out, "a sweep"), stopped_at_once("the sweep", out, "the same command resumes it"):
        remove_partials(out)
        tokenizer_folder = settings.tokenizer or _shared_tokenizer(settings, corpus_sha256)
        tokenizer = masked_tokenizer(load_tokenizer(tokenizer_folder))
        tokenizer.model_max_length = settings.size.max_length
        untrained = build_encoder(settings.size, tokenizer)
        check_suite(as_loaded((untrained, tokenizer)), suite, probing.method)
        facts = {
            "corpus_sha256": corpus_sha256,
            "tokenizer_sha256": tokenizer_sha256(tokenizer),
            "draws": DRAWS,
            "precision": precision_of(settings.optimisation),
        }
        cells = []
        for seed in dict.fromkeys(seeds):
            for variant in dict.fromkeys(variants):
                own = {"variant": variant, "seed": seed, "out": out / f"{variant}-{seed}"}
                cells.append(Cell(dataclasses.replace(settings, **own, tokenizer=tokenizer_folder), probing))
        done = {cell.folder: found for cell in cells if (found := _find_done(cell, facts, suite)) is not None}
        missing = [cell for cell in cells if cell.folder not in done]
        if done:
            say(f"{len(done)} of {len(cells)} cells need no work")
        if jobs > 1 and missing:
            # Encode once what the first cells would otherwise each encode.
            encode_corpus(read_corpus(settings.corpus), tokenizer, corpus)
            done |= {cell.folder: cell for cell in run_cells(missing, min(jobs, len(cells)))}
        else:
            for number, cell in enumerate(missing, start=1):
                say(f"{number}/{len(missing)}: {cell.folder}")
                done[cell.folder] = run_cell(cell)
        cells = [done[cell.folder] for cell in cells]
        return Sweep(tuple(cells), _compare(cells, out))


def _check_grid(
    settings: EncoderTraining, variants: Sequence[str], seeds: Sequence[int], probing: Probing, jobs: int
) -> None:
    """Raise ConfigError if this cannot be swept."""
    if not variants or not seeds:
        raise ConfigError("nothing to sweep over", remedy="give at least one variant and one seed")
    for key, default in (("scoring", {}), ("variant", "softmax"), ("seed", 0)):
        if getattr(settings, key) != default:
            raise ConfigError(f"a sweep does not take {key}", remedy="it has --variants and --seeds")
    if min(seeds) < 0:
        raise ConfigError(f"seed is {min(seeds)}", remedy="it is at least 0")
    if jobs < 1:
        raise ConfigError(f"jobs is {jobs}", remedy="it is at least 1")
    for variant in variants:
        scoring_config(variant)
    fitting = [name for name, method in METHODS.items() if method.kind == "masked"]
    if probing.method not in fitting:
        raise ConfigError(f"method '{probing.method}' does not fit", remedy=nearest(probing.method, fitting))


def _shared_tokenizer(settings: EncoderTraining, corpus_sha256: str) -> Path:
    """The tokenizer of all cells; trained on the corpus unless an earlier call has done so."""
    folder = Path(settings.out) / "tokenizer"
    wanted = {"corpus_sha256": corpus_sha256, "vocab_size": settings.vocab_size}
    if not folder.exists():
        with atomic_path(folder) as partial:
            train_tokenizer(settings.corpus, partial, vocab_size=settings.vocab_size)
            write_json(partial / _ORIGIN, wanted)
    check_same(read_json(folder / _ORIGIN), wanted, "was trained with", folder, "choose another --out")
    return folder


def _find_done(cell: Cell, facts: dict[str, Any], suite: Suite) -> Cell | None:
    """The cell if it needs no work, or is damaged; raise OutputExistsError if it belongs to another sweep."""
    folder = cell.folder
    if not is_finished(folder):
        return None
    probed = (folder / PROBE / "summary.json").is_file()
    try:
        remove_leftovers(folder)
        check_checksums(folder)
        result = read_result(folder / PROBE) if probed else None
    except BabySSAError as error:
        return cell.failed(describe(error))
    settings = cell.settings
    # Of the evaluation, only what is held out of training makes it another run.
    wanted = {key: value for key, value in plain(settings).items() if key != "evaluation"} | {
        "scoring": scoring_settings(fit_scoring(scoring_config(settings.variant), settings.size.max_length)),
        "evaluation.held_out": settings.evaluation.held_out,
        "facts": facts,
    }
    check_same_run(folder, wanted, "was trained with", "choose another --out, or the same settings and data")
    if result is None:
        return None
    wanted = {
        "suite_sha256": suite.sha256,
        "method": cell.probing.method,
        "precision": "float32",
        "model_sha256": weights_sha256(load_model(folder, "cpu").model),
    }
    remedy = "remove that folder, or use the same suite and method"
    check_same(result.summary, wanted, "was probed with", folder / PROBE, remedy)
    return cell


def _compare(cells: Sequence[Cell], out: Path) -> Comparison:
    """The comparison of the cells that succeeded; its notes name the others."""
    variants = [cell.variant for cell in cells]
    baseline = "softmax" if "softmax" in variants else variants[0]
    failed = [cell for cell in cells if cell.failure is not None]
    good = [cell for cell in cells if cell.failure is None]
    if baseline not in {cell.variant for cell in good}:
        what = f"{len(failed)} of {len(cells)} cells failed, all of the baseline {baseline} among them"
        raise BabySSAError(f"{what}: {failed[0].failure}", path=out, remedy="fix the cause and sweep again")
    return compare(
        [cell.folder / PROBE for cell in good],
        out / COMPARISON,
        baseline=baseline,
        overwrite=True,
        notes=[f"{cell.variant}, seed {cell.seed}, failed and is left out ({cell.failure})" for cell in failed],
    )
