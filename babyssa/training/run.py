"""Trains one model of any kind and keeps its run folder: what encoder, decoder and synthetic runs share."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase, set_seed

from babyssa import processes
from babyssa.attention import Scoring, scoring_config, variant_name
from babyssa.console import quiet_transformers, say
from babyssa.corpus import load_tokenizer, tokenizer_sha256, train_tokenizer
from babyssa.display import Column, Shown, Table
from babyssa.errors import Stopped
from babyssa.files import locked, remove_partials, tensors_sha256, versions
from babyssa.models.products import BLAS, multiplying
from babyssa.models.run_config import CHECKPOINTS, CONFIG, read_settings
from babyssa.training.config import Optimisation
from babyssa.training.devices import (
    check_devices,
    computes_in_bfloat16,
    device_name,
    precision_of,
    products_library,
)
from babyssa.training.log import check_trackers
from babyssa.training.loop import Loop, Objective
from babyssa.training.resume import find_resume_point, own_tensors
from babyssa.training.run_folder import (
    DRAWS,
    NOT_COMPARED,
    RESUME,
    check_earlier_run,
    check_same_run,
    finish_run,
    is_finished,
    plain,
    start_run,
)
from babyssa.training.stopping import stop_requests

if TYPE_CHECKING:
    import pandas as pd


class RunSettings(Protocol):
    """What the settings of every kind of run have: a frozen dataclass with these fields among others."""

    out: Path
    variant: str
    scoring: dict[str, Any]
    seed: int
    optimisation: Optimisation


@dataclass(frozen=True)
class TrainingRun(Shown):
    """What a finished run amounts to.

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
        Real (non-padding) tokens seen, over all epochs and mask patterns; of a synthetic task, numbers.
    seconds : float
        Wall-clock time of the training loop, measurements excluded.
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

    def tables(self) -> Iterator[Table]:
        rows = [
            ("steps", f"{self.steps:,}"),
            ("tokens", f"{self.tokens:,}"),
            ("seconds", f"{self.seconds:,.0f}"),
            ("tokens per second", f"{self.tokens / self.seconds:,.0f}"),
            *((name, f"{value:.4g}") for name, value in self.measured.items()),
        ]
        columns = (Column("measure"), Column("value", right=True))
        yield Table(columns, rows, f"model: {self.folder}", header=False)

    def to_frame(self) -> pd.DataFrame:
        """One row with everything."""
        import pandas as pd

        return pd.DataFrame([{**asdict(self), **self.measured}]).drop(columns="measured")


def check_run(settings: RunSettings, overwrite: bool) -> None:
    """Check what can be checked before any data is read.

    Raises
    ------
    OutputExistsError
        If ``settings.out`` holds a finished run, and `overwrite` is false.
    ConfigError
        If there is no such scoring or tracker, or the processes do not fit the GPUs.
    """
    check_devices()
    check_trackers(settings.optimisation.report_to)
    check_earlier_run(settings.out, overwrite)
    scoring_config(settings.variant, **settings.scoring)


def run_tokenizer(
    folder: Path | None,
    text: Path | Iterable[str],
    vocab_size: int,
    max_length: int,
    revision: str | None = None,
) -> PreTrainedTokenizerBase:
    """The tokenizer in `folder`, or without one, a new one trained on `text`: a file, or its lines."""
    if folder is not None:
        tokenizer = load_tokenizer(folder, revision=revision)
    else:
        say(f"no tokenizer given: training one of {vocab_size} tokens on the corpus")
        with tempfile.TemporaryDirectory() as scratch:
            if not isinstance(text, Path):
                lines, text = text, Path(scratch) / "corpus.txt"
                with open(text, "w", encoding="utf-8", newline="\n") as file:
                    file.writelines(f"{line}\n" for line in lines)
            tokenizer = train_tokenizer(text, scratch, vocab_size=vocab_size, overwrite=True)
    tokenizer.model_max_length = max_length
    return tokenizer


def run_training(
    kind: str,
    settings: RunSettings,
    model: PreTrainedModel,
    objective: Objective,
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    facts: dict[str, Any] | None = None,
    about: str = "",
    overwrite: bool = False,
) -> TrainingRun:
    """Train `model` and write its run folder, or resume the run that was stopped in it.

    A resumed run ends with the bytes of one that was never stopped, on the same machine and with the same number
    of threads; only the times in its log differ. Check the settings before this call: it begins by deleting the
    files of an earlier, finished run in ``settings.out``.

    Parameters
    ----------
    kind : str
        "encoder", "decoder" or "synthetic"; config.yaml has it under `kind`.
    settings : RunSettings
        Everything that decides the run; config.yaml has all of it.
    model : PreTrainedModel
        The new model, trained in place.
    objective : Objective
        What it is trained on, and what is measured of it.
    tokenizer : PreTrainedTokenizerBase, optional
        Saved with the model.
    facts : dict, optional
        What the run was made from, for config.yaml.
    about : str
        What it is trained on, for the first line on stderr.
    overwrite : bool
        Whether to replace an unfinished run in ``settings.out`` instead of resuming it.

    Raises
    ------
    OutputExistsError
        If the unfinished run in ``settings.out`` has other settings; names the first that differs.
    BusyError
        If another process trains in ``settings.out``.
    Stopped
        On Ctrl-C or SIGTERM, after the step is finished and saved.
    """
    parameters = sum(parameter.numel() for parameter in model.parameters())
    facts = dict(facts or {})
    if tokenizer is not None:
        facts |= {"tokenizer_sha256": tokenizer_sha256(tokenizer), "vocabulary": len(tokenizer)}
    facts |= {
        "draws": DRAWS,
        "parameters": parameters,
        "initial_weights_sha256": common_weights_sha256(model),
        "device": device_name(),
        "precision": precision_of(settings.optimisation),
    }
    scoring = {**getattr(model.config, "attention_scoring", {})}
    scoring.pop("name", None)
    out = Path(settings.out)
    with ExitStack() as held:

        def start() -> tuple[Path | None, str | None]:
            held.enter_context(locked(out, "training"))
            return _start({"kind": kind, **plain(settings), "scoring": scoring, "facts": facts}, out, overwrite)

        point, products = processes.broadcast(start)
        made_with = [facts["device"], products and f"products by {products}", facts["precision"]]
        variant = variant_name(settings.variant, settings.scoring)
        say(
            f"{variant}, seed {settings.seed}: "
            + ", ".join(filter(None, [f"{parameters:,} parameters", about, *made_with]))
        )
        if facts["precision"] == "float32" and computes_in_bfloat16():
            say("this machine computes in bfloat16, which is faster: --optimisation.precision auto uses it")
        # The one place where global random state is set: dropout draws from it.
        set_seed(own_seed(settings.seed))
        with quiet_transformers(), multiplying(products) if products else nullcontext():
            identity = {
                "run": out.absolute().name,
                "kind": kind,
                "variant": settings.variant,
                "scoring": scoring,
                "seed": settings.seed,
                "training_precision": facts["precision"],
            }
            loop = Loop(
                model, objective, settings.optimisation, out, tokenizer=tokenizer, identity=identity, point=point
            )
            held.callback(loop.log.close)
            with stop_requests() as stop:
                loop.run(stop)
            (stopped,) = processes.all_reduce(stop.signal or 0, op="MAX")
            if stopped:
                raise Stopped(
                    f"stopped after step {loop.step} of {loop.steps} ({signal.Signals(stopped).name})",
                    signal=stopped,
                    path=out,
                    remedy=f"the same command{', without --overwrite,' if overwrite else ''} resumes it",
                )
            seconds = loop.log.training_seconds

            def finish() -> dict[str, float]:
                measured = loop.measure()
                finish_run(out, model, tokenizer, loop.seen())
                return measured

            measured = processes.broadcast(finish)
    return TrainingRun(
        folder=out,
        variant=variant,
        seed=settings.seed,
        parameters=parameters,
        steps=loop.step,
        tokens=loop.tokens,
        seconds=seconds,
        measured=measured,
    )


def own_seed(seed: int) -> int:
    """The seed of this process's global random state: each draws its own dropout, the main one as if alone."""
    if processes.is_main():
        return seed
    return int(np.random.SeedSequence([seed, processes.rank()]).generate_state(1)[0])


def common_weights_sha256(model: PreTrainedModel) -> str:
    """Hash of all weights except the scoring's: the same for untrained models of all variants under one seed."""
    scoring = {id(p) for module in model.modules() if isinstance(module, Scoring) for p in module.parameters()}
    return tensors_sha256({name: t for name, t in own_tensors(model).items() if id(t) not in scoring})


def _start(wanted: dict[str, Any], out: Path, overwrite: bool) -> tuple[Path | None, str | None]:
    """Prepare the run folder; return the resume point to start from, if any, and what multiplies its matrices."""
    # Checked again, now that no other process can finish a run meanwhile.
    check_earlier_run(out, overwrite)
    remove_partials(out)
    unfinished = (out / CONFIG).is_file() and not is_finished(out)
    # Where nothing but a config was written, there is nothing to lose.
    if unfinished and not overwrite and any((out / name).exists() for name in (RESUME, CHECKPOINTS)):
        check_same_run(
            out,
            wanted,
            "holds an unfinished run with",
            "give the same settings to resume it, pass --overwrite to start anew, or choose another --out",
            ignored=(*NOT_COMPARED, "facts.device"),
        )
        point = find_resume_point(out)
        if point is not None:
            found = read_settings(out)
            # Earlier versions knew no other library.
            then = {"products": BLAS, **found["facts"], **found["versions"]}
            products = products_library(then["products"])
            now = {"device": wanted["facts"]["device"], **versions()} | (
                {"products": products} if products else {}
            )
            _warn_of_change(then, now)
            say(f"{out}: resuming after step {point.name.removeprefix('step-')}")
            return point, products
    if unfinished:
        say(f"{out}: starting an unfinished run from the beginning")
    wanted["facts"]["products"] = products_library()
    start_run(out, wanted)
    return None, wanted["facts"]["products"]


def _warn_of_change(then: dict[str, Any], now: dict[str, Any]) -> None:
    """Say what may make the rest of the run differ, in the last digits, from an uninterrupted one."""
    changed = [f"{key} was {then.get(key)}, is {value}" for key, value in now.items() if then.get(key) != value]
    if changed:
        say(f"warning: the numbers may differ from those of an uninterrupted run: {'; '.join(changed)}")
