"""The tasks: numbers in, one prediction after each number (quantifiers) or after each x (linear functions).

Quantifiers (Naim et al., arXiv 2508.14685): after each x_k, whether every (or some) x_1..x_k is positive.
Linear functions (Garg et al. 2022): f(x_k) from x_1, f(x_1), ..., x_k, with f(x) = ax + b.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn

from babyssa.checks import check
from babyssa.errors import ConfigError, nearest
from babyssa.synthetic.config import Data

UNSHIFTED = "unshifted"
# The sequences of the deviant, and the predictions after its place, with an ordinary number in that place.
CONTROL = "without the deviant"
# A quantifier's second measure: the share of sequences without a wrong answer, from the fourth number on.
WHOLE = "whole sequences"


@dataclass(frozen=True)
class Shift:
    """How data differ from those of training, in which every number has the size of one from N(0, 1).

    Parameters
    ----------
    input_scale : float
        Scale of the inputs x: their sizes are those of N(0, scale^2).
    coefficient_scale : float
        Standard deviation of the coefficients a and b of a linear function; quantifiers have none.
    length : int, optional
        Numbers (or examples) of a sequence; the training length if not given.
    deviant : float, optional
        Absolute value that one input of each sequence takes.
    control : bool
        The same sequences as with a deviant, and the same predictions counted, but the input keeps its value.
    data : {"designed", "iid"}
        How the signs of a quantifier's numbers are drawn; see :class:`Quantifier`.
    """

    input_scale: float = 1.0
    coefficient_scale: float = 1.0
    length: int | None = None
    deviant: float | None = None
    control: bool = False
    data: Data = "designed"

    def __post_init__(self):
        check("data", self.data, Data)
        if self.input_scale <= 0 or self.coefficient_scale <= 0:
            raise ConfigError(
                f"scales are {self.input_scale} and {self.coefficient_scale}", remedy="both are above 0"
            )
        if self.length is not None and self.length < 2:
            raise ConfigError(f"length is {self.length}", remedy="it is at least 2")
        if self.deviant is not None and self.deviant <= 0:
            raise ConfigError(f"deviant is {self.deviant}", remedy="give its absolute value, above 0")


@dataclass(frozen=True)
class Sample:
    """Some sequences of a task.

    Parameters
    ----------
    values : array of float32, (sequences, numbers)
        What the model reads.
    targets : array of float32, (sequences, predictions)
        What it should predict; of a quantifier 0 or 1.
    weights : array of float32, (sequences, predictions)
        The weight of each prediction in the loss.
    deviant : array of int, (sequences,), optional
        The k of the deviant number, from 0.
    balanced : bool
        Whether both classes of a quantifier count the same at every k, in the loss and in its accuracy.
    """

    values: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    deviant: np.ndarray | None = None
    balanced: bool = True

    def tensors(self) -> dict[str, Tensor]:
        """values, targets and weights as a batch."""
        return {key: torch.from_numpy(getattr(self, key)) for key in ("values", "targets", "weights")}

    def first(self, count: int) -> Sample:
        """The first `count` sequences."""
        deviant = None if self.deviant is None else self.deviant[:count]
        return Sample(self.values[:count], self.targets[:count], self.weights[:count], deviant, self.balanced)


class Task:
    """A generator of sequences, a loss, and a metric."""

    name: str
    metric: str
    numbers_per_example: int = 1
    # Predictions before it, from 0, do not count in a mean over k: their context cannot tell the answer.
    first_determined: int = 0

    def sample(self, generator: np.random.Generator, sequences: int, length: int, shift: Shift) -> Sample:
        """Draw sequences; `shift.length`, where given, replaces `length`."""
        raise NotImplementedError

    def at_predictions(self, outputs: Tensor) -> Tensor:
        """The model's outputs (sequences, numbers) where a prediction is due, (sequences, predictions)."""
        return outputs[:, :: self.numbers_per_example]

    def loss(self, predictions: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        """Mean training loss of predictions (sequences, predictions)."""
        raise NotImplementedError

    def measure(self, predictions: np.ndarray, sample: Sample) -> np.ndarray:
        """The metric of each prediction, (sequences, predictions)."""
        raise NotImplementedError

    def unit(self, shift: Shift) -> float:
        """What the metric is divided by to be comparable between shifts."""
        return 1.0

    def groups(self, sample: Sample) -> list[np.ndarray]:
        """Which predictions form a class, (sequences, predictions) of bool each; all classes count the same."""
        raise NotImplementedError


class Quantifier(Task):
    """Whether every (or some) number so far is positive; cross-entropy.

    The size of each number is that of a draw from N(0, s^2). Its sign is drawn in one of two ways:

    - iid: it is positive with probability 1/2, so the numbers are independent draws from N(0, s^2). At k, only
      2^-k of the sequences are all positive, and every prediction weighs the same.
    - designed: both classes are balanced at every k. Whether a sequence is still all positive can only turn from
      yes to no, so the share of either class at k is fixed by where the first non-positive number stands. That
      place is drawn: in half of the sequences there is none, in the others log(place) is uniform, so every k sees
      many of both classes. Each prediction weighs 1 / (2 P(class at k)), and so the classes are exactly balanced
      at every k by construction. After the first, half of the sequences have no other non-positive number (the
      hard case: only that one number tells), half have them at random.

    Parameters
    ----------
    name : str
        every or some.
    sign : float
        1 for `every`; -1 for `some`, which is `every` with numbers and answers negated.
    answers : bool
        Whether the sequence has each answer, 1 or -1, after its number, as it has those of a linear function.
    """

    metric = "accuracy"

    def __init__(self, name: str, sign: float, answers: bool = False):
        self.name = name
        self.sign = sign
        self.numbers_per_example = 2 if answers else 1

    def sample(self, generator, sequences, length, shift):
        length = shift.length or length
        at = np.arange(length)
        if shift.data == "iid":
            negative = generator.random((sequences, length)) < 0.5
            place = np.where(negative.any(axis=1), negative.argmax(axis=1), length)
        else:
            falsified = generator.random(sequences) < 0.5
            place = np.floor(np.exp(generator.random(sequences) * np.log(length + 1))).astype(int) - 1
            place = np.where(falsified, np.clip(place, 0, length - 1), length)
            alone = generator.random(sequences) < 0.5
            negative = (at > place[:, None]) & ~alone[:, None] & (generator.random((sequences, length)) < 0.5)
            negative |= at == place[:, None]
        size = np.abs(generator.standard_normal((sequences, length))) * shift.input_scale
        deviant = None
        if shift.deviant is not None:
            # A number that changes no answer: the test is whether the others are still seen.
            preferred = generator.random((sequences, length)) - negative - (at == place[:, None])
            deviant = preferred.argmax(axis=1)
            if not shift.control:
                size[np.arange(sequences), deviant] = shift.deviant
            negative[np.arange(sequences), deviant] = False
        values = (np.where(negative, -size, size) * self.sign).astype(np.float32)
        intact = (at < place[:, None]).astype(np.float32)
        targets = intact if self.sign > 0 else 1 - intact
        weights = np.ones_like(targets)
        if shift.data == "designed":
            share = 1.0 - 0.5 * np.log(at + 2) / np.log(length + 1)
            weights = (0.5 / np.where(intact == 1, share, 1 - share)).astype(np.float32)
        if self.numbers_per_example == 2:
            values = _interleaved(values, 2 * targets - 1)
        return Sample(values, targets, weights, deviant, balanced=shift.data == "designed")

    def loss(self, predictions, targets, weights):
        return nn.functional.binary_cross_entropy_with_logits(predictions, targets, weight=weights)

    def measure(self, predictions, sample):
        """1 where the answer is right; the mean over both classes is balanced accuracy."""
        return ((predictions > 0) == (sample.targets > 0.5)).astype(np.float64)

    def groups(self, sample):
        if not sample.balanced:
            return [np.ones(sample.targets.shape, dtype=bool)]
        return [sample.targets > 0.5, sample.targets < 0.5]


class LinearFunction(Task):
    """f(x_k) = a x_k + b from the examples before it; squared error, in units of the variance of y."""

    name = "linear"
    metric = "relative squared error"
    numbers_per_example = 2
    first_determined = 2

    def sample(self, generator, sequences, length, shift):
        length = shift.length or length
        a, b = generator.standard_normal((2, sequences, 1)) * shift.coefficient_scale
        x = generator.standard_normal((sequences, length)) * shift.input_scale
        deviant = None
        if shift.deviant is not None:
            deviant = generator.integers(0, length - 1, sequences)
            if not shift.control:
                x[np.arange(sequences), deviant] = shift.deviant
        x, y = x.astype(np.float32), (a * x + b).astype(np.float32)
        return Sample(_interleaved(x, y), y, np.ones_like(y), deviant)

    def loss(self, predictions, targets, weights):
        return nn.functional.mse_loss(predictions, targets)

    def measure(self, predictions, sample):
        return (predictions.astype(np.float64) - sample.targets) ** 2

    def groups(self, sample):
        return [np.ones(sample.targets.shape, dtype=bool)]

    def unit(self, shift):
        """Variance of y under a shift, its deviant aside: E[a^2] E[x^2] + E[b^2]."""
        return shift.coefficient_scale**2 * (shift.input_scale**2 + 1)


TASKS: dict[str, Task] = {
    task.name: task for task in (Quantifier("every", 1.0), Quantifier("some", -1.0), LinearFunction())
}


@cache
def task_named(name: str, answers: bool = False) -> Task:
    """The task called `name`, with its answers in the sequence or not; ConfigError names the known ones."""
    if name not in TASKS:
        raise ConfigError(f"unknown task '{name}'", remedy=nearest(name, TASKS))
    task = TASKS[name]
    return Quantifier(name, task.sign, answers=True) if answers and isinstance(task, Quantifier) else task


def _interleaved(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x_1, y_1, x_2, y_2 and so on, without the last y: (sequences, 2 * examples - 1)."""
    return np.stack([x, y], axis=2).reshape(len(x), -1)[:, :-1]
