"""``babyssa train`` of encoder, decoder and synthetic, and ``babyssa sweep``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from babyssa.decoder.config import DecoderTraining
from babyssa.encoder.config import EncoderTraining
from babyssa.errors import BabySSAError
from babyssa.processes import is_main
from babyssa.synthetic.config import SyntheticTraining

if TYPE_CHECKING:
    from babyssa.training.run import TrainingRun


def encoder(*, settings: EncoderTraining, overwrite: bool = False) -> None:
    """Train one BabyBERTa-style masked language model.

    Writes a run folder: the model in save_pretrained's format, its tokenizer, config.yaml with every
    resolved setting, log.jsonl, checksums.json, and checkpoints where asked for. A run that was stopped goes on
    when the same command is given again.

    Parameters
    ----------
    overwrite
        start anew, in place of an earlier run in --out

    Examples
    --------
    babyssa train encoder --config small --corpus corpus/ --out runs/softmax
    babyssa train encoder --config small --corpus corpus/ --variant ssa-1.5 --seed 1 --out runs/ssa
    babyssa train encoder --config babyberta --corpus corpus/ --order age --out runs/babyberta
    babyssa train encoder --config small --corpus corpus/ --variant ssa --scoring.n 1.7 --out runs/n17
    """
    from babyssa.encoder import train_encoder

    _report(train_encoder(settings, overwrite=overwrite), "tokens")


def decoder(*, settings: DecoderTraining, overwrite: bool = False) -> None:
    """Train one Nemotron-style causal language model.

    Documents are tokenized, ended by an end token each, laid end to end and cut into full sequences. Writes a run
    folder, as `babyssa train encoder` does.

    Parameters
    ----------
    overwrite
        replace an earlier run in --out

    Examples
    --------
    babyssa train decoder --config mini --corpus corpus/ --out runs/decoder
    babyssa train decoder --config mini --corpus corpus/ --variant ssa --scoring.learn_b false --out runs/ssa
    babyssa train decoder --config nemotron-114m --corpus HuggingFaceFW/fineweb-edu:sample-10BT \
        --streaming true --tokenizer tokenizer/ --variant ssa --scoring.learn_b false --out runs/fineweb
    """
    from babyssa.decoder import train_decoder

    _report(train_decoder(settings, overwrite=overwrite), "tokens")


def synthetic(*, settings: SyntheticTraining, overwrite: bool = False) -> None:
    """Train one model on a synthetic in-context task: every, some or linear.

    Writes a run folder, as train encoder does, without a tokenizer: the model reads numbers.

    Parameters
    ----------
    overwrite
        replace an earlier run in --out

    Examples
    --------
    babyssa train synthetic --config mini --task every --out runs/every/softmax-0
    babyssa train synthetic --config mini --task linear --variant ssa --seed 1 --out runs/linear/ssa-1
    babyssa train synthetic --config mini --task some --size.blocks attention --out runs/some/attention-0
    """
    from babyssa.synthetic import train_synthetic

    _report(train_synthetic(settings, overwrite=overwrite), "numbers")


def sweep(
    *,
    settings: EncoderTraining,
    variants: list[str],
    seeds: list[int],
    suite: str = "packaged",
    suite_order: Literal["bad-first", "good-first"] | None = None,
    method: str = "pll",
    limit: int | None = None,
    jobs: int = 1,
) -> None:
    """Train and probe every variant under every seed, and compare them.

    Writes OUT/VARIANT-SEED/ for each cell and OUT/comparison/. What is trained and probed already is
    skipped, so the same command goes on after a stop, and one with more seeds adds only those. A cell that
    fails does not stop the others: the comparison says which and why, and the exit status is 1.

    Parameters
    ----------
    variants
        attention scorings: softmax, ssa-1.5, ssa-2, ssa, or others by name
    seeds
        seeds; below five the comparison says little
    suite
        suite of minimal pairs to probe, or packaged
    suite_order
        order within the suite's pairs, where it does not state it
    method
        scoring method: pll, pll-word-l2r or holistic
    limit
        only so many pairs of each paradigm
    jobs
        cells at a time, each in a process of its own with its share of the CPU's cores

    Examples
    --------
    babyssa sweep --config small --corpus corpus/ --variants softmax ssa-1.5 --seeds 0 1 2 --out runs --jobs 2
    babyssa sweep --config small --corpus corpus/ --variants softmax ssa --seeds 0 --out runs \
        --suite zorro/ --suite-order bad-first
    """
    from babyssa.experiments.grid import Probing, sweep

    cells, comparison = sweep(settings, variants, seeds, Probing(suite, suite_order, method, limit), jobs=jobs)
    print(comparison.to_markdown())
    failed = sum(cell.failure is not None for cell in cells)
    if failed:
        raise BabySSAError(
            f"{failed} of {len(cells)} cells failed (see the notes of the comparison)",
            path=settings.out,
            remedy="mend the cause, and give the command again: it trains what is missing",
        )


def _report(run: TrainingRun, unit: str) -> None:
    if not is_main():
        return
    rate = run.tokens / run.seconds
    print(f"model: {run.folder}")
    print(f"{run.steps:,} steps, {run.tokens:,} {unit} in {run.seconds:.0f} s ({rate:,.0f} {unit}/s)")
    for name, value in run.measured.items():
        print(f"{name}: {value:.4g}")
