"""Trains one model on a synthetic task: fresh sequences at every step, and others to measure on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from babyssa.processes import joined
from babyssa.synthetic.config import SyntheticTraining
from babyssa.synthetic.model import build_transformer
from babyssa.synthetic.tasks import Sample, Shift, Task, task_named
from babyssa.training.batches import ConsecutiveBatches
from babyssa.training.loop import Objective
from babyssa.training.run import TrainingRun, check_run, run_training

# Training and every evaluation draw from different streams of random numbers.
TRAINING_STREAM, EVALUATION_STREAM = 0, 1
_EVALUATED_AT_ONCE = 64


class SampledBatches(Dataset):
    """Sequences of a task; item `i * batch_size + j` is sequence j of batch i, which the settings decide."""

    def __init__(self, settings: SyntheticTraining):
        self.settings = settings
        self.task = task_named(settings.task, settings.answers)

    def __getitems__(self, items: list[int]) -> dict[str, Tensor]:
        """Some sequences of one batch."""
        settings, optimisation = self.settings, self.settings.optimisation
        number = items[0] // optimisation.batch_size
        rows = [item - number * optimisation.batch_size for item in items]
        length = settings.curriculum.length(settings.length, number // optimisation.gradient_accumulation)
        generator = np.random.default_rng([settings.seed, TRAINING_STREAM, number])
        batch = self.task.sample(generator, optimisation.batch_size, length, Shift(data=settings.data)).tensors()
        return {key: value[rows] for key, value in batch.items()}


@joined()
def train_synthetic(settings: SyntheticTraining, *, overwrite: bool = False) -> TrainingRun:
    """Train one model and write its run folder; :func:`babyssa.train_synthetic` explains the parameters."""
    check_run(settings, overwrite)
    task = task_named(settings.task, settings.answers)
    model = build_transformer(
        settings.size, variant=settings.variant, scoring=settings.scoring, seed=settings.seed
    )
    optimisation = settings.optimisation
    objective = Objective(
        SampledBatches(settings),
        ConsecutiveBatches(optimisation.steps * optimisation.gradient_accumulation, optimisation.batch_size),
        loss=task_loss(task),
        predictions=lambda batch: batch["targets"].numel(),
        measure=learning_curve(task, settings),
        measure_every=settings.evaluate_every,
    )
    return run_training(
        "synthetic",
        settings,
        model,
        objective,
        overwrite=overwrite,
        about=f"{settings.task}, {settings.data}, lengths up to {settings.length}",
    )


def predict(model: nn.Module, task: Task, sample: Sample) -> np.ndarray:
    """The model's predictions for a sample, (sequences, predictions), in evaluation mode."""
    training = model.training
    model.eval()
    device = next(model.parameters()).device
    try:
        with torch.inference_mode():
            outputs = [
                task.at_predictions(model(values=part.to(device)).predictions).float().cpu().numpy()
                for part in torch.from_numpy(sample.values).split(_EVALUATED_AT_ONCE)
            ]
    finally:
        model.train(training)
    return np.concatenate(outputs)


def task_loss(task: Task) -> Callable[[nn.Module, dict[str, Tensor]], Tensor]:
    """The function from a model and a batch of :class:`SampledBatches` to the task's mean loss."""

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        predictions = task.at_predictions(model(values=batch["values"]).predictions)
        return task.loss(predictions, batch["targets"], batch["weights"])

    return loss


def learning_curve(task: Task, settings: SyntheticTraining) -> Callable[[nn.Module], dict[str, float]]:
    """A function that measures the task's metric on fresh sequences: its mean over positions, and at the last one.

    The metric is that of :func:`babyssa.synthetic.shifts.measure_shifts`.
    """
    generator = np.random.default_rng([settings.seed, EVALUATION_STREAM])
    sample = task.sample(generator, 1024, settings.length, Shift(data=settings.data))
    name = task.metric.replace(" ", "_")

    def measure(model: nn.Module) -> dict[str, float]:
        values = task.measure(predict(model, task, sample), sample) / task.unit(Shift())
        by_position = np.mean([np.average(values, axis=0, weights=g) for g in task.groups(sample)], axis=0)
        mean = by_position[task.first_determined :].mean()
        return {name: float(mean), f"{name}_at_{settings.length}": float(by_position[-1])}

    return measure
