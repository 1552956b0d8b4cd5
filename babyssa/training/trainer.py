"""transformers' Trainer with this project's batches, loss, log and learning curves."""

from __future__ import annotations

import json
import math
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
from babyssa.errors import BabySSAError
from babyssa.training.config import Optimisation
from babyssa.training.run_folder import CHECKPOINTS, LOG

Loss = Callable[[nn.Module, dict[str, Tensor], nn.Module], Tensor]
Measure = Callable[[nn.Module], dict[str, float]]

_SECONDS_BETWEEN_LINES = 10.0


def training_arguments(
    optimisation: Optimisation, out: Path, seed: int, batches_per_epoch: int
) -> TrainingArguments:
    """Translate this project's settings into Trainer's."""
    every = optimisation.checkpoint_every
    steps = optimisation.steps or math.ceil(batches_per_epoch * optimisation.epochs)
    warmup = optimisation.warmup_steps
    if warmup is None:
        warmup = round(steps * optimisation.warmup_fraction)
    return TrainingArguments(
        output_dir=str(Path(out) / CHECKPOINTS),
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
        logging_steps=optimisation.log_every,
        logging_nan_inf_filter=False,
        save_strategy="steps" if every else "no",
        save_steps=every or 500,
        save_total_limit=2,
        report_to=optimisation.report_to or "none",
        disable_tqdm=True,
        remove_unused_columns=False,
        seed=seed,
    )


class LanguageModelTrainer(Trainer):
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
        (model, batch, head) to the mean loss in nats.
    """

    def __init__(self, model, args, dataset: Dataset, batches: Sampler, loss: Loss, **kwargs: Any):
        super().__init__(model=model, args=args, train_dataset=dataset, **kwargs)
        self.remove_callback(PrinterCallback)
        self._batches = batches
        self._loss = loss
        self._head = _head_of(model)
        self.tokens = 0

    def get_train_dataloader(self) -> DataLoader:
        loader = DataLoader(self.train_dataset, batch_sampler=self._batches, collate_fn=lambda batch: batch)
        return self.accelerator.prepare(loader)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        mask = inputs.get("attention_mask")
        self.tokens += inputs["input_ids"].numel() if mask is None else int(mask.sum())
        return self._loss(model, inputs, self._head)

    def get_decay_parameter_names(self, model) -> list[str]:
        scoring = {
            f"{name}.{parameter}"
            for name, module in model.named_modules()
            if isinstance(module, Scoring)
            for parameter, _ in module.named_parameters()
        }
        return [name for name in super().get_decay_parameter_names(model) if name not in scoring]


def _head_of(model: nn.Module) -> nn.Module:
    """The module that maps hidden states to logits over the vocabulary."""
    return model.lm_head


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
        seconds = max(time.monotonic() - self.started, 1e-9)
        rate = self.tokens() / seconds
        kept = {key: logs[key] for key in ("loss", "learning_rate", "grad_norm", "epoch") if key in logs}
        self.write(state.global_step, {**kept, "tokens": self.tokens(), "tokens_per_second": round(rate)})

    def on_step_end(self, args, state, control, **kwargs):
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
        Steps between two measurements; 0 measures at the end only.
    """

    def __init__(self, log: RunLog, measure: Measure, every: int):
        self.log = log
        self.measure = measure
        self.every = every
        self.last: dict[str, float] = {}

    def _measure(self, state, model) -> None:
        training = model.training
        model.eval()
        self.last = self.measure(model)
        model.train(training)
        parameters = scoring_parameters(model)
        learned = {"scoring": parameters} if any(parameters.values()) else {}
        if self.last or learned:
            self.log.write(state.global_step, {**self.last, **learned})
        if self.last:
            say(
                f"step {state.global_step}: " + ", ".join(f"{key} {value:.4g}" for key, value in self.last.items())
            )

    def on_step_end(self, args, state, control, model, **kwargs):
        if self.every and state.global_step % self.every == 0 and state.global_step < state.max_steps:
            self._measure(state, model)

    def on_train_end(self, args, state, control, model, **kwargs):
        self._measure(state, model)


def device_name() -> str:
    """What the run computes on, for the log."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f"CPU, {torch.get_num_threads()} threads"
