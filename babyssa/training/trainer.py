"""transformers' Trainer with this project's batches, loss, log and learning curves."""

from __future__ import annotations

import ctypes
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from accelerate.data_loader import prepare_data_loader
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import get_total_norm
from torch.utils.data import DataLoader, Dataset, Sampler
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from babyssa import processes
from babyssa.attention import Scoring, scoring_parameters
from babyssa.console import say
from babyssa.files import storage_errors
from babyssa.models.run_config import CHECKPOINTS
from babyssa.training.batches import NOTHING, OwnShare
from babyssa.training.config import Optimisation
from babyssa.training.devices import precision_of
from babyssa.training.finite import check_finite, not_finite
from babyssa.training.run_folder import LOG, save_model

if TYPE_CHECKING:
    from babyssa.training.resume import ResumePoints

Loss = Callable[[nn.Module, dict[str, Tensor]], Tensor]
Predictions = Callable[[dict[str, Tensor]], int]
Measure = Callable[[nn.Module], dict[str, float]]

_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_BETWEEN_TRIMS = 60.0


def training_arguments(
    optimisation: Optimisation, out: Path, seed: int, batches_per_epoch: int
) -> TrainingArguments:
    """Translate this project's settings into Trainer's."""
    steps_per_epoch = math.ceil(batches_per_epoch / optimisation.gradient_accumulation)
    steps = optimisation.steps or math.ceil(steps_per_epoch * optimisation.epochs)
    warmup = optimisation.warmup_steps
    if warmup is None:
        warmup = round(steps * optimisation.warmup_fraction)
    if warmup >= steps:
        say(f"warning: {warmup} warm-up steps of {steps} in all: the learning rate never reaches its peak")
    bf16 = precision_of(optimisation) == "bfloat16"
    return TrainingArguments(
        output_dir=str(out),
        per_device_train_batch_size=optimisation.batch_size,
        gradient_accumulation_steps=optimisation.gradient_accumulation,
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
        # Trainer takes bfloat16, or several processes, on a CPU only where it is told that it is to run there.
        use_cpu=(bf16 or processes.launched()) and not torch.cuda.is_available(),
        logging_steps=optimisation.log_every,
        logging_nan_inf_filter=False,
        save_strategy="no",
        report_to=optimisation.report_to or "none",
        disable_tqdm=True,
        log_level_replica="error",
        remove_unused_columns=False,
        seed=seed,
    )


class BatchTrainer(Trainer):
    """Trainer over ready-made batches, with a loss of its own.

    Of several processes, each computes its share of every batch. The loss of each is the mean over the whole
    batch, and the gradients that they end with are those of that mean.

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
    predictions : callable
        A batch to the number of predictions that its loss is the mean over.

    """

    def __init__(
        self, model, args, dataset: Dataset, batches: Sampler, loss: Loss, predictions: Predictions, **kwargs: Any
    ):
        super().__init__(model=model, args=args, train_dataset=dataset, **kwargs)
        self.remove_callback(PrinterCallback)
        # The loss is a mean already: Trainer averages it over the accumulated batches, whatever the model takes.
        self.model_accepts_loss_kwargs = False
        self._batches = batches
        self._loss = loss
        self._predictions = predictions
        self._main_input = model.main_input_name
        self.tokens = 0
        self.resume: ResumePoints | None = None

    def get_train_dataloader(self) -> DataLoader:
        dataset = OwnShare(self.train_dataset) if processes.launched() else self.train_dataset
        loader = DataLoader(dataset, batch_sampler=self._batches, collate_fn=lambda batch: batch)
        # As for one process: accelerate would give whole batches to each.
        return prepare_data_loader(loader, self.args.device, num_processes=1, process_index=0, put_on_device=True)

    def _wrap_model(self, model, training=True, dataloader=None):
        if not processes.launched():
            return super()._wrap_model(model, training, dataloader)
        # What accelerate does to a model but for the wrapping, which needs a module whose output is the loss.
        self.accelerator.prepare_model(model, evaluation_mode=True)
        summed = SummedLoss(model, self._loss, self._predictions)
        devices = [self.args.device] if self.args.device.type == "cuda" else None
        with warnings.catch_warnings():
            # Newer versions of torch have another name for what leaves the (constant) buffers alone.
            warnings.simplefilter("ignore", FutureWarning)
            return DistributedDataParallel(summed, device_ids=devices, broadcast_buffers=False)

    def training_step(self, model, inputs, num_items_in_batch=None):
        # Trainer's own puts every module into training mode at every step.
        if not self.model.training:
            model.train()
        inputs = self._prepare_inputs(inputs)
        # What accelerate does in the model's forward, for a loss that goes past it.
        with self.accelerator.autocast():
            loss = self.compute_loss(model, inputs)
        loss = loss / self.current_gradient_accumulation_steps
        self.accelerator.backward(loss)
        return loss.detach()

    def floating_point_ops(self, inputs) -> int:
        """Not counted: Trainer would count the model's parameters at every step for it."""
        return 0

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        if processes.launched():
            loss = self._loss_of_all(model, inputs)
        else:
            self.tokens += self._tokens(inputs)
            loss = self._loss(model, inputs)
        self._check("loss", loss)
        return loss

    def _loss_of_all(self, model: DistributedDataParallel, share: dict[str, Tensor]) -> Tensor:
        """The mean loss over the predictions of all processes, with the gradient of this one's share in it."""
        counts = (0, 0) if share.keys() == NOTHING.keys() else (self._tokens(share), self._predictions(share))
        tokens, predictions = processes.sums(*counts)
        self.tokens += tokens
        # The wrapper divides the sum of the gradients by the number of processes, as the mean does of the losses.
        own = model(share) * (processes.number_of_processes() / predictions)
        return processes.mean(own.detach()) + (own - own.detach())

    def _tokens(self, batch: dict[str, Tensor]) -> int:
        mask = batch.get("attention_mask")
        return batch[self._main_input].numel() if mask is None else int(mask.sum())

    def _clip_grad_norm(self, model) -> Tensor:
        """The norm of the gradients, which the optimiser's step is to divide by what exceeds max_grad_norm.

        As torch.nn.utils.clip_grad_norm_, but the fused optimiser scales them while it reads them.
        """
        if self.args.device.type not in ("cpu", "cuda"):
            # Elsewhere it does not.
            return super()._clip_grad_norm(model)
        parameters = [parameter for group in self.optimizer.param_groups for parameter in group["params"]]
        norm = get_total_norm([p.grad for p in parameters if p.grad is not None], foreach=True)
        self.optimizer.optimizer.grad_scale = ((norm + 1e-6) / self.args.max_grad_norm).clamp(min=1.0)
        return norm

    def _get_grad_norm(self, model, grad_norm=None):
        grad_norm = super()._get_grad_norm(model, grad_norm)
        self._check("gradient norm", grad_norm)
        return grad_norm

    def _check(self, what: str, value: Tensor) -> None:
        # On a GPU a look at every step would wait for it; RunLog looks at every line of the log.
        if value.device.type == "cpu" and not math.isfinite(value.item()):
            raise not_finite(self, what, value.item(), self.state.global_step + 1)

    # Trainer's own checkpoints are pickles, and lack what the log needs.

    def _save_checkpoint(self, model, trial) -> None:
        check_finite(self)
        self.resume.save()

    def _load_from_checkpoint(self, resume_from_checkpoint, model=None) -> None:
        self.resume.restore_model(self.model)

    def _load_optimizer_and_scheduler(self, checkpoint) -> None:
        if checkpoint is not None:
            self.resume.restore_optimizer()

    def _load_rng_state(self, checkpoint) -> None:
        if checkpoint is not None:
            self.resume.restore_random()

    def _load_scaler(self, checkpoint) -> None:
        """There is none: training is in float32 or bfloat16."""

    def get_decay_parameter_names(self, model) -> list[str]:
        scoring = scoring_names(model)
        return [name for name in super().get_decay_parameter_names(model) if name not in scoring]


class SummedLoss(nn.Module):
    """A model whose forward pass gives the loss of a batch, summed over its predictions; 0 for :data:`NOTHING`."""

    def __init__(self, model: nn.Module, loss: Loss, predictions: Predictions):
        super().__init__()
        self.model = model
        self.loss = loss
        self.predictions = predictions

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        if batch.keys() == NOTHING.keys():
            # Every parameter takes part in the exchange of gradients.
            return sum((parameter * 0).sum() for parameter in self.model.parameters())
        return self.loss(self.model, batch) * self.predictions(batch)


def scoring_names(model: nn.Module) -> set[str]:
    """The names of the parameters that belong to a model's attention scoring."""
    return {
        f"{name}.{parameter}"
        for name, module in model.named_modules()
        if isinstance(module, Scoring)
        for parameter, _ in module.named_parameters()
    }


class RunLog(TrainerCallback):
    """Writes log.jsonl and says now and then how far the run is; stops it if a loss or gradient is not finite.

    Parameters
    ----------
    trainer : BatchTrainer
        What is logged.
    out : Path
        The run folder.
    """

    def __init__(self, trainer: BatchTrainer, out: Path):
        self.trainer = trainer
        self.path = Path(out) / LOG
        self.started = self.last_line = time.monotonic()
        self.measuring = 0.0

    def write(self, step: int, values: dict[str, Any]) -> None:
        """Append one object to log.jsonl."""
        if not processes.is_main():
            return
        line = json.dumps({"step": step, "seconds": round(self.clock()["seconds"], 2), **values}, allow_nan=False)
        with storage_errors(self.path), open(self.path, "a", encoding="utf-8") as file:
            file.write(line + "\n")

    def clock(self) -> dict[str, float]:
        """Seconds since the run started, and how many of them went into measuring."""
        return {"seconds": time.monotonic() - self.started, "measuring": self.measuring}

    def restore_clock(self, clock: dict[str, float]) -> None:
        """Go on from an earlier :meth:`clock`."""
        self.started = time.monotonic() - clock["seconds"]
        self.measuring = clock["measuring"]

    def on_train_begin(self, args, state, control, **kwargs):
        self.started = self.last_line = time.monotonic()

    def on_log(self, args, state, control, logs, **kwargs):
        if "loss" not in logs:
            return
        for what, key in (("loss", "loss"), ("gradient norm", "grad_norm")):
            if not math.isfinite(logs.get(key, 0.0)):
                raise not_finite(self.trainer, what, logs[key], state.global_step)
        rate = self.trainer.tokens / max(time.monotonic() - self.started - self.measuring, 1e-9)
        kept = {key: logs[key] for key in ("loss", "learning_rate", "grad_norm", "epoch") if key in logs}
        self.write(state.global_step, {**kept, "tokens": self.trainer.tokens, "tokens_per_second": round(rate)})

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == state.max_steps:
            control.should_log = True
        if not processes.is_main():
            return
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
        if processes.is_main() and sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class MemoryTrimmer(TrainerCallback):
    """Gives free memory back to the system, once a minute.

    Batches differ in length and their tensors in size, so the heap of glibc gets holes: a `small` training came to
    hold 1.8 GB, of which 0.6 were in use between two steps.
    """

    def __init__(self):
        # Of the C libraries of Linux, too, not all have it.
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
        self._last = time.monotonic()

    def on_step_end(self, args, state, control, **kwargs):
        if self._trim is not None and time.monotonic() - self._last >= _SECONDS_BETWEEN_TRIMS:
            self._trim(ctypes.c_size_t(0))
            self._last = time.monotonic()


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
        with _own_forward(model):
            measured = self.measure(model)
        for what, value in measured.items():
            if not math.isfinite(value):
                raise not_finite(self.log.trainer, what, value, step)
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


@contextmanager
def _own_forward(model: nn.Module) -> Iterator[None]:
    """Take off for the block what accelerate puts around a model's forward pass to train it in bfloat16."""
    wrapped = vars(model).pop("forward", None)
    try:
        yield
    finally:
        if wrapped is not None:
            model.forward = wrapped


class Checkpoints(TrainerCallback):
    """Saves the model with its tokenizer every so many steps, as folders that can be probed.

    Parameters
    ----------
    trainer : BatchTrainer
        Trains the model; a state that is not finite is not saved but raised.
    out : Path
        The run folder.
    tokenizer : PreTrainedTokenizerBase
        Saved with each checkpoint.
    every : int
        Steps between two checkpoints; 0 saves none.
    """

    def __init__(self, trainer: BatchTrainer, out: Path, tokenizer: Any, every: int):
        self.trainer = trainer
        self.folder = Path(out) / CHECKPOINTS
        self.tokenizer = tokenizer
        self.every = every

    def on_step_end(self, args, state, control, model, **kwargs):
        if self.every and state.global_step % self.every == 0:
            check_finite(self.trainer)
            save_model(self.folder / f"step-{state.global_step}", model, self.tokenizer)
