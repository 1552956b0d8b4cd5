"""Trains and probes a grid of variants and seeds, skipping what is done, and compares the results."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from babyssa.attention import scoring_config, scoring_to_dict
from babyssa.console import say
from babyssa.data import load_tokenizer, train_tokenizer
from babyssa.encoder.config import EncoderTraining
from babyssa.encoder.training import EncoderRun, train_encoder
from babyssa.errors import ConfigError, OutputExistsError
from babyssa.files import read_json
from babyssa.probing import Suite, compare, load_suite, probe
from babyssa.training.run_folder import is_finished, plain, read_settings

if TYPE_CHECKING:
    from babyssa.probing.comparison import Comparison

PROBE = "probe"
COMPARISON = "comparison"

# What may differ between a cell and the run found in its folder without making it another run.
_NOT_COMPARED = ("corpus", "out", "tokenizer", "evaluation")


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
    """One variant under one seed, and where it is."""

    variant: str
    seed: int
    folder: Path
    run: EncoderRun | None = field(default=None, compare=False)


def sweep(
    settings: EncoderTraining, variants: Sequence[str], seeds: Sequence[int], probing: Probing | None = None
) -> tuple[list[Cell], Comparison]:
    """Train and probe every variant under every seed, and compare them.

    Under one seed, all variants start from the same values of the parameters they share and see the same
    masks in the same order, with one tokenizer. A cell that is trained or probed already is skipped, so a
    sweep that was stopped goes on where it was, and one with more seeds or variants adds only those.

    Parameters
    ----------
    settings : EncoderTraining
        Of every run; ``out`` is the sweep's folder, ``variant`` and ``seed`` are not used.
    variants : sequence of str
        Such as "softmax", "ssa-1.5". The first is the baseline unless "softmax" is among them.
    seeds : sequence of int
        Seeds.
    probing : Probing
        What the models are probed with.

    Returns
    -------
    tuple of list of Cell, Comparison
        Writes OUT/VARIANT-SEED/ (a run folder with probe/ inside), OUT/tokenizer/ and OUT/comparison/, the
        last anew at each call.

    Raises
    ------
    OutputExistsError
        If a cell's folder holds a run with other settings; names the first that differs.
    """
    probing = probing or Probing()
    if not variants or not seeds:
        raise ConfigError("nothing to sweep over", remedy="give at least one variant and one seed")
    if settings.scoring:
        raise ConfigError("a sweep takes its scorings from the variants", remedy="leave out scoring")
    for variant in variants:
        scoring_config(variant)
    suite = load_suite(probing.suite, probing.order).select(limit=probing.limit)
    cells = [
        Cell(variant, seed, Path(settings.out) / f"{variant}-{seed}")
        for seed in dict.fromkeys(seeds)
        for variant in dict.fromkeys(variants)
    ]
    for cell in cells:
        if is_finished(cell.folder):
            _refuse_another_run(_cell_settings(settings, cell, settings.tokenizer), cell.folder)
    tokenizer = settings.tokenizer or _sweep_tokenizer(settings)
    done = []
    for number, cell in enumerate(cells, start=1):
        say(f"{number}/{len(cells)}: {cell.folder}")
        done.append(_run_cell(cell, _cell_settings(settings, cell, tokenizer), suite, probing))
    baseline = "softmax" if "softmax" in variants else variants[0]
    comparison = compare(
        [cell.folder / PROBE for cell in cells],
        Path(settings.out) / COMPARISON,
        baseline=baseline,
        overwrite=True,
    )
    return done, comparison


def _cell_settings(settings: EncoderTraining, cell: Cell, tokenizer: Path | None) -> EncoderTraining:
    return dataclasses.replace(
        settings, variant=cell.variant, seed=cell.seed, out=cell.folder, tokenizer=tokenizer
    )


def _sweep_tokenizer(settings: EncoderTraining) -> Path:
    """The tokenizer that all cells share; trained on the corpus unless an earlier call has done so."""
    folder = Path(settings.out) / "tokenizer"
    if (folder / "tokenizer.json").is_file():
        load_tokenizer(folder)
    else:
        train_tokenizer(settings.corpus, folder, vocab_size=settings.vocab_size)
    return folder


def _run_cell(cell: Cell, settings: EncoderTraining, suite: Suite, probing: Probing) -> Cell:
    run = None
    if is_finished(cell.folder):
        say("  trained already")
    else:
        # config.yaml without weights is what a stopped run leaves behind: it is trained again.
        run = train_encoder(settings, overwrite=True)
    summary = cell.folder / PROBE / "summary.json"
    if summary.is_file():
        _refuse_another_probe(summary, suite, probing)
        say("  probed already")
    else:
        probe(cell.folder, suite, method=probing.method, out=cell.folder / PROBE, overwrite=True)
    return dataclasses.replace(cell, run=run)


def _refuse_another_run(settings: EncoderTraining, folder: Path) -> None:
    scoring = scoring_to_dict(scoring_config(settings.variant))
    wanted = {**plain(settings), "scoring": scoring}
    found = read_settings(folder)
    for key, value in _flat({k: v for k, v in wanted.items() if k not in _NOT_COMPARED}).items():
        there = _flat(found).get(key)
        if there != value:
            raise OutputExistsError(
                f"was trained with {key} {there!r}, not {value!r}",
                path=folder,
                remedy="choose another --out, or the same settings",
            )


def _refuse_another_probe(summary: Path, suite: Suite, probing: Probing) -> None:
    found = read_json(summary)
    for key, value in {"suite_sha256": suite.sha256, "method": probing.method}.items():
        if found.get(key) != value:
            raise OutputExistsError(
                f"was probed with {key} {found.get(key)!r}, not {value!r}",
                path=summary.parent,
                remedy="remove that folder, or use the same suite and method",
            )


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted name."""
    flat = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
