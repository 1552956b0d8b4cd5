"""The training loop: batches, loss, backward, clip, step, schedule, measure, log, save, stop.

Read :meth:`Loop.run`. `accelerate` places the model, and wraps it where several processes train it. Each of them
computes its share of every batch; the loss, and so the gradient, is the mean over the predictions of all shares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import ProjectConfiguration, send_to_device
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, Sampler
from transformers import PreTrainedModel

from babyssa import processes
from babyssa.attention import scoring_parameters
from babyssa.console import say
from babyssa.models.run_config import CHECKPOINTS
from babyssa.training.batches import OwnShare, show_words, words_mark
from babyssa.training.config import Optimisation
from babyssa.training.devices import precision_of
from babyssa.training.finite import first_not_finite, not_finite
from babyssa.training.heap import Heap
from babyssa.training.log import RunLog
from babyssa.training.optimiser import build_optimizer, build_schedule, clip_gradients
from babyssa.training.resume import ResumePoints, restore, restore_random
from babyssa.training.run_folder import save_model
from babyssa.training.stopping import StopRequest

Batch = dict[str, Tensor]


@dataclass(frozen=True)
class Objective:
    """What a model is trained on, and what is measured of it.

    Parameters
    ----------
    dataset : Dataset
        Fetches a whole batch at once (``__getitems__``).
    batches : Sampler
        Yields the item numbers of each batch of an epoch; its ``set_epoch``, if it has one, gets the epoch first.
    loss : callable
        (model, batch) to the mean loss over the batch's predictions.
    predictions : callable
        A batch to the number of its predictions.
    measure : callable
        The model to numbers by name, at each point of the learning curve.
    measure_every : int
        Steps between two measurements; 0 measures at the end only.
    words : callable, optional
        A batch to the number of its words, where they can be counted.
    """

    dataset: Dataset
    batches: Sampler
    loss: Callable[[nn.Module, Batch], Tensor]
    predictions: Callable[[Batch], int]
    measure: Callable[[nn.Module], dict[str, float]]
    measure_every: int = 0
    words: Callable[[Batch], int] | None = None


class WeightedLoss(nn.Module):
    """A model whose forward pass gives the loss of a batch times a weight: what DistributedDataParallel wraps."""

    def __init__(self, model: nn.Module, loss: Callable[[nn.Module, Batch], Tensor]):
        super().__init__()
        self.model = model
        self.loss = loss

    def forward(self, batch: Batch, weight: float) -> Tensor:
        if not batch:
            # Every parameter takes part in the all_reduce of the gradients.
            return sum((parameter * 0).sum() for parameter in self.model.parameters())
        return self.loss(self.model, batch) * weight


class Loop:
    """A model in training, with everything that changes from step to step.

    Parameters
    ----------
    model : PreTrainedModel
        Trained in place.
    objective : Objective
        What it is trained on.
    optimisation : Optimisation
        Optimiser, schedule and budget.
    out : Path
        The run folder.
    tokenizer : PreTrainedTokenizerBase, optional
        Saved with each checkpoint.
    identity : dict, optional
        What checkpoint.json says of the run.
    point : Path, optional
        The resume point to start from.

    Attributes
    ----------
    step, steps, tokens : int
        Steps done, steps in all, and real (non-padding) tokens seen.
    words : int, optional
        Words seen.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        objective: Objective,
        optimisation: Optimisation,
        out: Path,
        *,
        tokenizer: Any = None,
        identity: dict[str, Any] | None = None,
        point: Path | None = None,
    ):
        self.model, self.objective, self.optimisation = model, objective, optimisation
        self.out, self.tokenizer, self.identity, self.point = Path(out), tokenizer, identity or {}, point
        self.accelerator = Accelerator(
            # On a CPU, several processes are connected only where this says that they stay there.
            cpu=processes.launched() and not torch.cuda.is_available(),
            # Autocast is in _backward: accelerate's would stay around the forward pass that is measured and saved.
            mixed_precision="no",
            log_with=optimisation.report_to or None,
            project_config=ProjectConfiguration(logging_dir=str(self.out / "runs")),
        )
        self.bfloat16 = precision_of(optimisation) == "bfloat16"
        self.weighted_loss = self.accelerator.prepare_model(WeightedLoss(model, objective.loss))
        self.batches_per_epoch = len(objective.batches)
        self.steps = optimisation.total_steps(self.batches_per_epoch)
        self.optimizer = build_optimizer(model, optimisation)
        self.schedule = build_schedule(self.optimizer, optimisation, self.steps)
        self.log = RunLog(self.out, self.steps, self.accelerator)
        self.resume_points = ResumePoints(self.out, optimisation.resume_every)
        self.step = self.tokens = self.logged_step = 0
        self.words = None if objective.words is None else 0
        # Summed since the last line of the log.
        self.loss = torch.zeros((), device=self.accelerator.device)
        if point is not None:
            saved = restore(point, model, self.optimizer, self.schedule)
            self.step, self.tokens, self.logged_step = saved["step"], saved["tokens"], saved["last_logged"]
            # Early versions did not count words.
            self.words = saved.get("words")
            self.loss.fill_(saved["loss"])
            self.log.restore(point, saved["clock"])

    def run(self, stop: StopRequest) -> None:
        """Train to the last step, or until `stop` holds a signal; the state after the final step is saved."""
        settings = self.optimisation
        heap = Heap()
        self.weighted_loss.train()
        while self.step < self.steps:
            epoch, done = divmod(self.step, settings.steps_per_epoch(self.batches_per_epoch))
            for batches in self._steps_of_epoch(epoch, done):
                words = self.words
                for number, batch in enumerate(batches, start=1):
                    accumulating = number < len(batches)
                    with self.accelerator.no_sync(self.weighted_loss) if accumulating else nullcontext():
                        self._backward(batch, len(batches))
                norm = clip_gradients(self.optimizer, settings.max_grad_norm)
                self._check_on_cpu("gradient norm", norm)
                learning_rate = self.schedule.get_last_lr()[0]
                self.optimizer.step()
                self.schedule.step()
                self.optimizer.zero_grad()
                heap.trim_if_due()

                self.step += 1
                done += 1
                last = self.step == self.steps
                if processes.is_main():
                    if _is_due(self.objective.measure_every, self.step) and not last:
                        self.measure()
                        self.weighted_loss.train()
                    if _is_due(settings.checkpoint_every, self.step):
                        self._save_checkpoint(f"step-{self.step}")
                    mark = words_mark(words or 0, self.words or 0, settings.checkpoint_words)
                    if mark is not None:
                        self._save_checkpoint(f"words-{show_words(mark)}")
                if _is_due(settings.log_every, self.step) or last:
                    passed = min(done * settings.gradient_accumulation, self.batches_per_epoch)
                    self._log(norm, learning_rate, epoch + passed / self.batches_per_epoch)
                self.log.show_progress(self.step)
                # Of several processes, all save or stop after the same step.
                due = self.resume_points.is_due(self.step)
                stopped, due = processes.all_reduce(stop.signal is not None, due, op="MAX")
                if stopped or due or last:
                    self._save_resume_point()
                if stopped or last:
                    return

    def measure(self) -> dict[str, float]:
        """Measure the model as it is, and log what is found and the scoring's parameters."""
        with self.log.measuring():
            measured = self.objective.measure(self.model)
        for what, value in measured.items():
            self._check(what, value)
        parameters = scoring_parameters(self.model)
        learned = {"scoring": parameters} if any(parameters.values()) else {}
        if measured or learned:
            self.log.write(self.step, {**measured, **learned})
        if measured:
            say(f"step {self.step}: " + ", ".join(f"{key} {value:.4g}" for key, value in measured.items()))
        return measured

    def _steps_of_epoch(self, epoch: int, done: int) -> Iterator[list[Batch]]:
        """The batches of each step of an epoch but the first `done` ones: this process's share of each."""
        batches, accumulation = self.objective.batches, self.optimisation.gradient_accumulation
        if hasattr(batches, "set_epoch"):
            batches.set_epoch(epoch)
        if self.point is not None and not done:
            restore_random(self.point)
        rest = islice(batches, done * accumulation, None)
        # DataLoader draws a number from torch's random state here, at the start of each epoch.
        fetched = iter(DataLoader(OwnShare(self.objective.dataset), batch_sampler=rest, collate_fn=lambda b: b))
        if self.point is not None and done:
            restore_random(self.point)
        self.point = None
        return iter(lambda: list(islice(fetched, accumulation)), [])

    def _backward(self, batch: Batch, batches: int) -> None:
        """Add the gradient of a batch, of which there are `batches` in the step."""
        own = self.objective.predictions(batch) if batch else 0
        words = 0 if self.words is None else self.objective.words(batch)
        tokens, words, predictions = processes.all_reduce(self._tokens(batch), words, own, op="SUM")
        # The gradients are averaged over the processes.
        weight = own * processes.number_of_processes() / predictions
        device = self.accelerator.device
        with torch.autocast(device.type, torch.bfloat16, enabled=self.bfloat16):
            loss = self.weighted_loss(send_to_device(batch, device), weight)
        mean = processes.all_reduce_mean(loss.detach())
        self._check_on_cpu("loss", mean)
        (loss / batches).backward()
        self.tokens += tokens
        if self.words is not None:
            self.words += words
        self.loss += mean / batches

    def _tokens(self, batch: Batch) -> int:
        """Real tokens in a batch; of a synthetic task, numbers."""
        if not batch:
            return 0
        mask = batch.get("attention_mask")
        return batch[self.model.main_input_name].numel() if mask is None else int(mask.sum())

    def _log(self, norm: Tensor, learning_rate: float, epoch: float) -> None:
        loss, norm = self.loss.item() / (self.step - self.logged_step), norm.item()
        self._check("loss", loss)
        self._check("gradient norm", norm)
        self.loss.zero_()
        self.logged_step = self.step
        values = {"loss": loss, "learning_rate": learning_rate, "grad_norm": norm, "epoch": epoch}
        rate = round(self.tokens / max(self.log.training_seconds, 1e-9))
        self.log.write(self.step, {**values, "tokens": self.tokens, "tokens_per_second": rate})

    def seen(self) -> dict[str, Any]:
        """What checkpoint.json says of the model as it is: its run, and what it has seen so far."""
        return {**self.identity, "step": self.step, "words": self.words, "tokens": self.tokens}

    def _save_checkpoint(self, name: str) -> None:
        self._check_state()
        save_model(self.out / CHECKPOINTS / name, self.model, self.tokenizer, self.seen())

    def _save_resume_point(self) -> None:
        self._check_state()
        values = {
            "step": self.step,
            "tokens": self.tokens,
            "words": self.words,
            "loss": self.loss.item(),
            "last_logged": self.logged_step,
            "clock": self.log.clock(),
        }
        self.resume_points.save(values, self.model, self.optimizer, self.schedule)

    def _check_state(self) -> None:
        """Raise before a state is saved whose loss or weights are not finite; on a GPU no step has looked yet."""
        self._check("loss", self.loss.item())
        weight = first_not_finite((name, p.detach()) for name, p in self.model.named_parameters())
        if weight is not None:
            self._check(f"weight {weight}", math.nan)

    def _check_on_cpu(self, what: str, value: Tensor) -> None:
        """Check a number of the step in progress; on a GPU that would wait for it, and only log and saves do."""
        if value.device.type == "cpu":
            self._check(what, value.item(), self.step + 1)

    def _check(self, what: str, value: float, step: int | None = None) -> None:
        if not math.isfinite(value):
            learning_rate = self.schedule.get_last_lr()[0]
            step = self.step if step is None else step
            raise not_finite(what, value, step=step, model=self.model, learning_rate=learning_rate, out=self.out)


def _is_due(every: int, step: int) -> bool:
    return every > 0 and step % every == 0
