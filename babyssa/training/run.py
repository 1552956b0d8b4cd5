"""Trains one model of any kind and keeps its run folder: what encoder, decoder and synthetic runs share."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from torch.utils.data import Dataset, Sampler
from transformers import PreTrainedModel, set_seed

from babyssa import processes
from babyssa.attention import scoring_config, scoring_settings
from babyssa.console import quiet_transformers, say
from babyssa.errors import Stopped
from babyssa.files import locked, remove_partials, tensors_sha256, versions
from babyssa.models.run_config import CHECKPOINTS, CONFIG, read_settings
from babyssa.training.config import Optimisation
from babyssa.training.devices import computes_in_bfloat16, device_name, precision_of
from babyssa.training.resume import ResumePoints, find_resume_point, own_tensors
from babyssa.training.run_folder import (
    DRAWS,
    NOT_COMPARED,
    RESUME,
    finish_run,
    is_finished,
    plain,
    refuse_another_run,
    refuse_earlier_run,
    start_run,
)
from babyssa.training.stopping import stop_requests
from babyssa.training.trainer import (
    BatchTrainer,
    Checkpoints,
    LearningCurve,
    Loss,
    Measure,
    MemoryTrimmer,
    Predictions,
    RunLog,
    scoring_names,
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
    predictions: Predictions,
    measure: Measure,
    measure_every: int = 0,
    tokenizer: Any = None,
    facts: dict[str, Any] | None = None,
    about: str = "",
    overwrite: bool = False,
) -> TrainingRun:
    """Train `model` and write its run folder, or go on with the run that was stopped in it.

    A run that goes on ends with the bytes of one that was never stopped, on the same machine and with the same
    number of threads; only the times in its log differ. What can be refused of the settings is refused before
    this call: the files of an earlier, finished run in ``settings.out`` go first.

    Parameters
    ----------
    kind : str
        "encoder", "decoder" or "synthetic"; config.yaml has it under `kind`.
    settings : RunSettings
        Everything that decides the run; config.yaml has all of it.
    model : PreTrainedModel
        The new model, trained in place.
    dataset, batches, loss, predictions : Dataset, Sampler, callable, callable
        As :class:`BatchTrainer` takes them.
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
    overwrite : bool
        Whether an unfinished run in ``settings.out`` is replaced, and not gone on with.

    Raises
    ------
    OutputExistsError
        If the unfinished run in ``settings.out`` has other settings; names the first that differs.
    BusyError
        If another process trains in ``settings.out``.
    Stopped
        If Ctrl-C or SIGTERM came: the step is finished and saved.
    """
    parameters = sum(parameter.numel() for parameter in model.parameters())
    facts = {
        **(facts or {}),
        "draws": DRAWS,
        "parameters": parameters,
        "initial_weights_sha256": common_weights_sha256(model),
        "device": device_name(),
        "precision": precision_of(settings.optimisation),
    }
    scoring = scoring_settings(scoring_config(settings.variant, **settings.scoring))
    out = Path(settings.out)
    with ExitStack() as held:

        def start() -> Path | None:
            held.enter_context(locked(out, "training"))
            return _start({"kind": kind, **plain(settings), "scoring": scoring, "facts": facts}, out, overwrite)

        point = processes.of_main(start)
        say(
            f"{settings.variant}, seed {settings.seed}: "
            + ", ".join(filter(None, [f"{parameters:,} parameters", about, facts["device"], facts["precision"]]))
        )
        if facts["precision"] == "float32" and computes_in_bfloat16():
            say("this machine computes in bfloat16, which is faster: --optimisation.precision auto uses it")
        # The one place where global random state is set: dropout draws from it.
        seed = own_seed(settings.seed)
        set_seed(seed)
        with quiet_transformers():
            arguments = training_arguments(settings.optimisation, out, seed, len(batches))
            trainer = BatchTrainer(model, arguments, dataset, batches, loss, predictions)
            log = RunLog(trainer, out)
            curve = LearningCurve(log, measure, measure_every)
            trainer.add_callback(log)
            trainer.add_callback(MemoryTrimmer())
            if processes.is_main():
                trainer.add_callback(curve)
                trainer.add_callback(Checkpoints(trainer, out, tokenizer, settings.optimisation.checkpoint_every))
            with stop_requests() as stop:
                resume = ResumePoints(out, log, settings.optimisation.resume_every, stop, point)
                resume.attach(trainer)
                steps = arguments.max_steps
                if resume.step < steps:
                    trainer.train(resume_from_checkpoint=None if point is None else str(point))
                    done = trainer.state.global_step
                else:
                    # It was stopped while it was measured or saved.
                    resume.restore_finished()
                    done = resume.step
            (stopped,) = processes.largest(stop.signal or 0)
            if stopped:
                raise Stopped(
                    f"stopped after step {done} of {steps} ({signal.Signals(stopped).name})",
                    signal=stopped,
                    path=out,
                    remedy=f"the same command goes on from there{', without --overwrite' if overwrite else ''}",
                )
            clock = log.clock()

            def finish() -> dict[str, float]:
                measured = curve.measure_now(model, done)
                finish_run(out, model, tokenizer)
                return measured

            measured = processes.of_main(finish)
    return TrainingRun(
        folder=out,
        variant=settings.variant,
        seed=settings.seed,
        parameters=parameters,
        steps=done,
        tokens=trainer.tokens,
        seconds=clock["seconds"] - clock["measuring"],
        measured=measured,
    )


def own_seed(seed: int) -> int:
    """The seed of this process's global random state: each draws its own dropout, the main one as if alone."""
    if processes.is_main():
        return seed
    return int(np.random.SeedSequence([seed, processes.rank()]).generate_state(1)[0])


def common_weights_sha256(model: PreTrainedModel) -> str:
    """Hash of the weights but those of the scoring: of an untrained model the same for all variants of a seed."""
    scoring = scoring_names(model)
    return tensors_sha256({name: t for name, t in own_tensors(model).items() if name not in scoring})


def _start(wanted: dict[str, Any], out: Path, overwrite: bool) -> Path | None:
    """Make the run folder ready; the resume point to go on from, if there is one."""
    # Again, now that no other process can finish a run in between.
    refuse_earlier_run(out, overwrite)
    remove_partials(out)
    unfinished = (out / CONFIG).is_file() and not is_finished(out)
    # Where nothing but a config was written, there is nothing to lose.
    if unfinished and not overwrite and any((out / name).exists() for name in (RESUME, CHECKPOINTS)):
        refuse_another_run(
            out,
            wanted,
            "holds an unfinished run with",
            "give the same settings to go on with it, pass --overwrite to start anew, or choose another --out",
            ignored=(*NOT_COMPARED, "facts.device"),
        )
        point = find_resume_point(out)
        if point is not None:
            _warn_of_another_machine(out, wanted["facts"]["device"])
            say(f"{out}: going on after step {point.name.removeprefix('step-')}")
            return point
    if unfinished:
        say(f"{out}: starting an unfinished run from the beginning")
    start_run(out, wanted)
    return None


def _warn_of_another_machine(out: Path, device: str) -> None:
    """Say what may make the rest of the run differ, in its last digits, from one that was never stopped."""
    found = read_settings(out)
    now = {"device": device, **versions()}
    then = {"device": found["facts"]["device"], **found["versions"]}
    changed = [f"{key} was {then.get(key)}, is {value}" for key, value in now.items() if then.get(key) != value]
    if changed:
        say(f"warning: the numbers may differ from those of an uninterrupted run: {'; '.join(changed)}")
