"""Verbs that train one model: an encoder, a decoder, or a model of a synthetic task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from babyssa.checks import checked
from babyssa.decoder.config import DecoderTraining
from babyssa.encoder.config import EncoderTraining
from babyssa.synthetic.config import SyntheticTraining

if TYPE_CHECKING:
    from babyssa.training.run import TrainingRun


@checked
def train_encoder(settings: EncoderTraining, *, overwrite: bool = False) -> TrainingRun:
    """Train one BabyBERTa-style masked language model, or resume the run that was stopped in its folder.

    Writes a run folder: the model in save_pretrained's format, its tokenizer, config.yaml with every
    resolved setting, log.jsonl, checksums.json, and checkpoints if asked for. A run that was stopped resumes when
    the same command is given again.

    Parameters
    ----------
    settings : EncoderTraining
        everything that decides the run
    overwrite : bool
        start from the beginning, in place of an earlier run in --out

    Returns
    -------
    TrainingRun

    Raises
    ------
    OutputExistsError
        If ``settings.out`` holds a finished run, or an unfinished one with other settings.
    BusyError
        If another process trains in ``settings.out``.
    Stopped
        If Ctrl-C or SIGTERM came: the run is saved, and the same call resumes it.
    DataError, ModelError, ConfigError
        If corpus, tokenizer or settings cannot be used; the message says which, and what to do.

    Examples
    --------
    babyssa train encoder --config small --corpus corpus/ --out runs/softmax
    babyssa train encoder --config small --corpus corpus/ --out runs/ssa \\
        --variant ssa-1.5 --seed 1
    babyssa train encoder --config babyberta --corpus corpus/ --out runs/age \\
        --order age
    babyssa train encoder --config small --corpus corpus/ --out runs/n17 \\
        --variant ssa --scoring.n 1.7
    babyssa train encoder --config small --corpus written/ --out runs/then \\
        --init runs/softmax
    """
    from babyssa.encoder.training import train_encoder

    return train_encoder(settings, overwrite=overwrite)


@checked
def train_decoder(settings: DecoderTraining, *, overwrite: bool = False) -> TrainingRun:
    """Train one Nemotron-style causal language model, or resume the run that was stopped in its folder.

    Documents are tokenized, each followed by an end token, concatenated and cut into full sequences. Writes a run
    folder, as `babyssa train encoder` does.

    Parameters
    ----------
    settings : DecoderTraining
        everything that decides the run
    overwrite : bool
        start from the beginning, in place of an earlier run in --out

    Returns
    -------
    TrainingRun

    Raises
    ------
    OutputExistsError, BusyError, Stopped, DataError, ModelError, ConfigError
        As :func:`train_encoder`.

    Examples
    --------
    babyssa train decoder --config mini --corpus corpus/ --out runs/decoder
    babyssa train decoder --config mini --corpus corpus/ --out runs/ssa \\
        --variant ssa --scoring.learn-b false
    babyssa train decoder --config nemotron-114m --out runs/fineweb \\
        --corpus HuggingFaceFW/fineweb-edu:sample-10BT --streaming true \\
        --tokenizer tokenizer/ --variant ssa --scoring.learn-b false
    """
    from babyssa.decoder.training import train_decoder

    return train_decoder(settings, overwrite=overwrite)


@checked
def train_synthetic(settings: SyntheticTraining, *, overwrite: bool = False) -> TrainingRun:
    """Train one model on a synthetic in-context task (every, some or linear), or resume one that was stopped.

    Writes a run folder, as `babyssa train encoder` does, but without a tokenizer: the model reads numbers.

    Parameters
    ----------
    settings : SyntheticTraining
        everything that decides the run
    overwrite : bool
        start from the beginning, in place of an earlier run in --out

    Returns
    -------
    TrainingRun

    Raises
    ------
    OutputExistsError, BusyError, Stopped, ConfigError
        As :func:`train_encoder`.

    Examples
    --------
    babyssa train synthetic --config mini --task every --out runs/every/softmax-0
    babyssa train synthetic --config mini --task linear --variant ssa --seed 1 \\
        --out runs/linear/ssa-1
    babyssa train synthetic --config mini --task some --size.blocks attention \\
        --out runs/some/attention-0
    """
    from babyssa.synthetic.training import train_synthetic

    return train_synthetic(settings, overwrite=overwrite)
