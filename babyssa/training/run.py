"""Trains one model of any kind and keeps its run folder: what encoder, decoder and synthetic runs share."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from torch.utils.data import Dataset, Sampler
from transformers import PreTrainedModel, set_seed

from babyssa.attention import scoring_config, scoring_settings
from babyssa.console import quiet_transformers, say
from babyssa.training.config import Optimisation
from babyssa.training.run_folder import plain, save_model, start_run
from babyssa.training.trainer import (
    BatchTrainer,
    Checkpoints,
    LearningCurve,
    Loss,
    Measure,
    RunLog,
    device_name,
    precision_of,
    training_arguments,
)


class RunSettings(Protocol):
    """What the settings of every kind of run have: a frozen dataclass with these fields among others."""

    out: Path
    variant: str
    scoring: dict[str, Any]
    seed: int
    optimisation: Optimisation


@dataclass(frozen=True)
class TrainingRun:
    """What a finished run came to.

    Parameters
    ----------
    folder : Path
        The run folder; transformers loads the model from it.
    variant : str
        Attention scoring.
    seed : int
        The seed.
    parameters : int
        Trainable parameters.
    steps : int
        Optimiser steps.
    tokens : int
        Real (non-padding) tokens seen, all epochs and mask patterns together; of a synthetic task, numbers.
    seconds : float
        Wall-clock time of the training loop, without the measurements.
    measured : dict
        The last measurements, such as pseudo_perplexity.
    """

    folder: Path
    variant: str
    seed: int
    parameters: int
    steps: int
    tokens: int
    seconds: float
    measured: dict[str, float]


def run_training(
    kind: str,
    settings: RunSettings,
    model: PreTrainedModel,
    *,
    dataset: Dataset,
    batches: Sampler,
    loss: Loss,
    measure: Measure,
    measure_every: int = 0,
    tokenizer: Any = None,
    facts: dict[str, Any] | None = None,
    about: str = "",
) -> TrainingRun:
    """Train `model` and write its run folder.

    Whatever can be refused is refused before this call: an earlier run's files in ``settings.out`` go first.

    Parameters
    ----------
    kind : str
        "encoder", "decoder" or "synthetic"; config.yaml has it under `kind`.
    settings : RunSettings
        Everything that decides the run; config.yaml has all of it.
    model : PreTrainedModel
        The new model, trained in place.
    dataset, batches : Dataset, Sampler
        As :class:`BatchTrainer` takes them.
    loss : callable
        (model, batch) to the mean loss.
    measure : callable
        The model to numbers by name, at each point of the learning curve.
    measure_every : int
        Steps between two measurements; 0 measures at the end only.
    tokenizer : PreTrainedTokenizerBase, optional
        Saved with the model.
    facts : dict, optional
        What the run was made from, for config.yaml.
    about : str
        What it is trained on, for the first line of the log.
    """
    parameters = sum(parameter.numel() for parameter in model.parameters())
    precision = precision_of(settings.optimisation)
    facts = {**(facts or {}), "parameters": parameters, "device": device_name(), "precision": precision}
    scoring = scoring_settings(scoring_config(settings.variant, **settings.scoring))
    start_run(settings.out, {"kind": kind, **plain(settings), "scoring": scoring, "facts": facts})
    say(
        f"{settings.variant}, seed {settings.seed}: "
        + ", ".join(filter(None, [f"{parameters:,} parameters", about, facts["device"], precision]))
    )
    # The one place where global random state is set: dropout draws from it.
    set_seed(settings.seed)
    with quiet_transformers():
        arguments = training_arguments(settings.optimisation, settings.out, settings.seed, len(batches))
        trainer = BatchTrainer(model, arguments, dataset, batches, loss)
        log = RunLog(settings.out, lambda: trainer.tokens)
        curve = LearningCurve(log, measure, measure_every)
        trainer.add_callback(log)
        trainer.add_callback(curve)
        trainer.add_callback(Checkpoints(settings.out, tokenizer, settings.optimisation.checkpoint_every))
        started = time.monotonic()
        trainer.train()
        seconds = time.monotonic() - started - log.measuring
        save_model(settings.out, model, tokenizer)
        measured = curve.measure_now(model, trainer.state.global_step)
    return TrainingRun(
        folder=Path(settings.out),
        variant=settings.variant,
        seed=settings.seed,
        parameters=parameters,
        steps=trainer.state.global_step,
        tokens=trainer.tokens,
        seconds=seconds,
        measured=measured,
    )
