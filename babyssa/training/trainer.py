"""transformers' Trainer with this project's batches, loss, log and learning curves."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, Sampler
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from babyssa.attention import Scoring, scoring_parameters
from babyssa.console import say
from babyssa.errors import BabySSAError, ConfigError
from babyssa.training.config import Optimisation
from babyssa.training.run_folder import CHECKPOINTS, LOG, save_model

Loss = Callable[[nn.Module, dict[str, Tensor]], Tensor]
Measure = Callable[[nn.Module], dict[str, float]]

_SECONDS_BETWEEN_LINES = 10.0


def training_arguments(
    optimisation: Optimisation, out: Path, seed: int, batches_per_epoch: int
) -> TrainingArguments:
    """Translate this project's settings into Trainer's."""
    steps = optimisation.steps or math.ceil(batches_per_epoch * optimisation.epochs)
    warmup = optimisation.warmup_steps
    if warmup is None:
        warmup = round(steps * optimisation.warmup_fraction)
    if warmup >= steps:
        say(f"warning: {warmup} warm-up steps of {steps} in all: the learning rate never reaches its peak")
    bf16 = precision_of(optimisation) == "bfloat16"
    return TrainingArguments(
        output_dir=str(out),
        per_device_train_batch_size=optimisation.batch_size,
        max_steps=steps,
        learning_rate=optimisation.learning_rate,
        lr_scheduler_type="linear",
        warmup_steps=warmup,
        weight_decay=optimisation.weight_decay,
        adam_beta1=optimisation.beta1,
        adam_beta2=optimisation.beta2,
        max_grad_norm=optimisation.max_grad_norm,
        optim="adamw_torch_fused",
        bf16=bf16,
        # Trainer takes bfloat16 on a CPU only where it is told that it is to run there.
        use_cpu=bf16 and not torch.cuda.is_available(),
        logging_steps=optimisation.log_every,
        logging_nan_inf_filter=False,
        save_strategy="no",
        report_to=optimisation.report_to or "none",
        disable_tqdm=True,
        remove_unused_columns=False,
        seed=seed,
    )


class BatchTrainer(Trainer):
    """Trainer over ready-made batches, with a loss of its own.

    Parameters
    ----------
    model : PreTrainedModel
        What is trained.
    args : TrainingArguments
        See :func:`training_arguments`.
    dataset : Dataset
        Fetches a whole batch at once (``__getitems__``).
    batches : Sampler
        Yields the item numbers of each batch.
    loss : callable
        (model, batch) to the mean loss.
    """

    def __init__(self, model, args, dataset: Dataset, batches: Sampler, loss: Loss, **kwargs: Any):
        super().__init__(model=model, args=args, train_dataset=dataset, **kwargs)
        self.remove_callback(PrinterCallback)
        self._batches = batches
        self._loss = loss
        self._main_input = model.main_input_name
        self.tokens = 0

    def get_train_dataloader(self) -> DataLoader:
        loader = DataLoader(self.train_dataset, batch_sampler=self._batches, collate_fn=lambda batch: batch)
        return self.accelerator.prepare(loader)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        mask = inputs.get("attention_mask")
        self.tokens += inputs[self._main_input].numel() if mask is None else int(mask.sum())
        return self._loss(model, inputs)

    def get_decay_parameter_names(self, model) -> list[str]:
        scoring = {
            f"{name}.{parameter}"
            for name, module in model.named_modules()
            if isinstance(module, Scoring)
            for parameter, _ in module.named_parameters()
        }
        return [name for name in super().get_decay_parameter_names(model) if name not in scoring]


class RunLog(TrainerCallback):
    """Writes log.jsonl and says now and then how far the run is; stops it if the loss is not finite.

    Parameters
    ----------
    out : Path
        The run folder.
    tokens : callable
        Returns the real (non-padding) tokens seen so far.
    """

    def __init__(self, out: Path, tokens: Callable[[], int]):
        self.path = Path(out) / LOG
        self.tokens = tokens
        self.started = self.last_line = time.monotonic()
        self.measuring = 0.0

    def write(self, step: int, values: dict[str, Any]) -> None:
        """Append one object to log.jsonl."""
        seconds = time.monotonic() - self.started
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, "seconds": round(seconds, 2), **values}) + "\n")

    def on_train_begin(self, args, state, control, **kwargs):
        self.started = self.last_line = time.monotonic()

    def on_log(self, args, state, control, logs, **kwargs):
        if "loss" not in logs:
            return
        if not math.isfinite(logs["loss"]):
            raise BabySSAError(
                f"the loss is {logs['loss']} at step {state.global_step}",
                path=self.path,
                remedy="lower optimisation.learning_rate or optimisation.max_grad_norm",
            )
        rate = self.tokens() / max(time.monotonic() - self.started - self.measuring, 1e-9)
        kept = {key: logs[key] for key in ("loss", "learning_rate", "grad_norm", "epoch") if key in logs}
        self.write(state.global_step, {**kept, "tokens": self.tokens(), "tokens_per_second": round(rate)})

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == state.max_steps:
            control.should_log = True
        now = time.monotonic()
        if now - self.last_line < (1.0 if sys.stderr.isatty() else _SECONDS_BETWEEN_LINES):
            return
        self.last_line = now
        left = (now - self.started) / state.global_step * (state.max_steps - state.global_step)
        line = f"step {state.global_step}/{state.max_steps}, {left:.0f} s left"
        if state.log_history and "loss" in state.log_history[-1]:
            line += f", loss {state.log_history[-1]['loss']:.3f}"
        if sys.stderr.isatty():
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
        else:
            say(line)

    def on_train_end(self, args, state, control, **kwargs):
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class LearningCurve(TrainerCallback):
    """Measures the model every so many steps, and writes what it finds to log.jsonl.

    Parameters
    ----------
    log : RunLog
        Where the measurements go.
    measure : callable
        The model to numbers by name.
    every : int
        Steps between two measurements; 0 measures not at all while training.
    """

    def __init__(self, log: RunLog, measure: Measure, every: int):
        self.log = log
        self.measure = measure
        self.every = every

    def measure_now(self, model: nn.Module, step: int) -> dict[str, float]:
        """Measure the model as it is after `step` steps."""
        started = time.monotonic()
        measured = self.measure(model)
        self.log.measuring += time.monotonic() - started
        parameters = scoring_parameters(model)
        learned = {"scoring": parameters} if any(parameters.values()) else {}
        if measured or learned:
            self.log.write(step, {**measured, **learned})
        if measured:
            values = ", ".join(f"{key} {value:.4g}" for key, value in measured.items())
            say(f"step {step}: {values}")
        return measured

    def on_step_end(self, args, state, control, model, **kwargs):
        if self.every and state.global_step % self.every == 0 and state.global_step < state.max_steps:
            self.measure_now(model, state.global_step)


class Checkpoints(TrainerCallback):
    """Saves the model with its tokenizer every so many steps, as folders that can be probed.

    Parameters
    ----------
    out : Path
        The run folder.
    tokenizer : PreTrainedTokenizerBase
        Saved with each checkpoint.
    every : int
        Steps between two checkpoints; 0 saves none.
    """

    def __init__(self, out: Path, tokenizer: Any, every: int):
        self.folder = Path(out) / CHECKPOINTS
        self.tokenizer = tokenizer
        self.every = every

    def on_step_end(self, args, state, control, model, **kwargs):
        if self.every and state.global_step % self.every == 0:
            save_model(self.folder / f"step-{state.global_step}", model, self.tokenizer)


def refuse_several_devices() -> None:
    """Raise ConfigError where Trainer would spread a batch over processes or GPUs, which the loss cannot take."""
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if processes > 1 or torch.cuda.device_count() > 1:
        raise ConfigError(
            f"{processes} processes and {torch.cuda.device_count()} GPUs: training runs on one device",
            remedy="start one process, and choose a GPU with CUDA_VISIBLE_DEVICES=0",
        )


def precision_of(optimisation: Optimisation) -> str:
    """float32 or bfloat16; an emulated bfloat16 would be several times slower than float32."""
    if optimisation.precision != "auto":
        return optimisation.precision
    return "bfloat16" if _computes_in_bfloat16() else "float32"


def _computes_in_bfloat16() -> bool:
    if torch.cuda.is_available():
        return torch.cuda.is_bf16_supported(including_emulation=False)
    flags = Path("/proc/cpuinfo")
    return flags.exists() and not {"amx_bf16", "avx512_bf16"}.isdisjoint(flags.read_text().split())


def device_name() -> str:
    """What the run computes on, for the log."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f"CPU, {torch.get_num_threads()} threads"
