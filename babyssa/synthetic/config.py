"""All settings of a run on a synthetic task; the recipes' numbers are in configs/synthetic/.

Imports nothing heavy: the command line builds its options from these classes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from babyssa.checks import NonNegative, Positive, Seed, Settings, at_least
from babyssa.errors import ConfigError
from babyssa.recipes import Recipe
from babyssa.training.config import Optimisation

Data = Literal["designed", "iid"]


@dataclass(frozen=True)
class InContextSize(Settings):
    """The size of the transformer that reads numbers; the defaults are the paper's.

    Parameters
    ----------
    layers : int
        Number of layers.
    heads : int
        Attention heads per layer.
    width : int
        Width of the hidden states; a multiple of heads. The feed-forward layers are four times as wide.
    max_numbers : int
        Longest sequence in numbers, in training and under shift; an example of a linear function is two.
    positions : bool
        Whether learned position embeddings are added. Those beyond the training length keep their initial
        values.
    blocks : {"full", "attention", "feed-forward"}
        What a layer consists of: both parts, or only one.
    """

    group: ClassVar[str] = "size"
    layers: Positive = 12
    heads: Positive = 8
    width: Positive = 256
    max_numbers: Positive = 400
    positions: bool = True
    blocks: Literal["full", "attention", "feed-forward"] = "full"

    def __post_init__(self):
        super().__post_init__()
        if self.width % self.heads:
            raise ConfigError(
                f"size.width {self.width} is not a multiple of size.heads {self.heads}",
                remedy="change one of them",
            )


@dataclass(frozen=True)
class Curriculum(Settings):
    """How the training sequences grow (Garg et al. 2022): `step` longer after each `every` steps.

    Parameters
    ----------
    start : int, optional
        Length of the first sequences; the full length from the first step on if not given.
    step : int
        How much longer they become at a time, up to the full length.
    every : int
        Optimiser steps between two changes.
    """

    group: ClassVar[str] = "curriculum"
    start: Annotated[int, at_least(2)] | None = None
    step: Positive = 2
    every: Positive = 2000

    def length(self, full: int, step: int) -> int:
        """The length of the sequences after `step` steps, which is at most `full`."""
        return full if self.start is None else min(self.start + self.step * (step // self.every), full)


@dataclass(frozen=True)
class SyntheticTraining(Recipe):
    """One run on a synthetic task.

    Parameters
    ----------
    task : {"every", "some", "linear"}
        every or some: whether every (some) number so far is positive, asked after each number; linear: the
        value of a linear function at each x, from the examples before it.
    out : Path
        The run folder to write.
    variant : str
        Attention scoring: softmax, ssa-1.5, ssa-2, ssa, or another of docs/attention.md.
    scoring : dict
        Parameters of the scoring that differ from the variant's, such as n, b, learn_n, granularity.
    seed : int
        Decides initial weights and training data.
    data : {"designed", "iid"}
        How the signs of a quantifier's numbers are drawn: designed balances the answers at every position; iid
        draws every number from N(0, 1). A linear function's numbers are from N(0, 1) in either case.
    answers : bool
        Whether a quantifier's sequence has each answer, 1 or -1, after its number; a linear function's always has.
    length : int
        Numbers (examples, for a linear function) in a training sequence; it trains every shorter context too,
        since the model predicts after each.
    curriculum : Curriculum
        How the sequences grow to that length.
    size : InContextSize
        Size of the model.
    optimisation : Optimisation
        Optimiser, schedule and budget; needs `steps`, since the data never end.
    evaluate_every : int
        Steps between two measurements on new data from the training distribution; 0 measures at the end only.
    """

    task: Literal["every", "some", "linear"]
    out: Path
    variant: str = "softmax"
    scoring: dict[str, Any] = field(default_factory=dict)
    seed: Seed = 0
    data: Data = "designed"
    answers: bool = False
    length: Annotated[int, at_least(2)] = 40
    curriculum: Curriculum = field(default_factory=Curriculum)
    size: InContextSize = field(default_factory=InContextSize)
    optimisation: Optimisation = field(default_factory=Optimisation)
    evaluate_every: NonNegative = 0

    def __post_init__(self):
        super().__post_init__()
        if self.optimisation.steps is None:
            raise ConfigError("optimisation.steps is missing", remedy="the data never end: set the steps")
        if self.curriculum.start is not None and self.curriculum.start > self.length:
            raise ConfigError(
                f"curriculum.start is {self.curriculum.start}", remedy=f"it is at most length, {self.length}"
            )
        if self.numbers > self.size.max_numbers:
            raise ConfigError(
                f"length {self.length} takes {self.numbers} numbers, more than size.max_numbers "
                f"{self.size.max_numbers}",
                remedy="raise size.max_numbers or lower length",
            )
        if self.size.blocks == "feed-forward" and self.variant != "softmax":
            raise ConfigError(
                f"size.blocks is feed-forward: there is no attention for '{self.variant}' to score",
                remedy="leave variant at softmax",
            )

    @property
    def numbers(self) -> int:
        """Numbers in a training sequence."""
        return 2 * self.length - 1 if self.task == "linear" or self.answers else self.length


@dataclass(frozen=True)
class Shifts(Settings):
    """Which shifts are measured, and on how much.

    Parameters
    ----------
    scales : list of float
        Standard deviations of the inputs and, for linear functions, in turn of the coefficients and of both.
    lengths : list of int
        Lengths of sequences, in numbers or, for linear functions, examples.
    deviant : float
        Absolute value of the one deviant input; 0 measures none.
    sequences : int
        New sequences for each shift, the same for every model.
    seed : int
        Decides those sequences.
    data : list of {"designed", "iid"}
        How the signs of a quantifier's numbers are drawn; if not given, in each way that a run was trained on.
    """

    scales: tuple[float, ...] = (2.0, 3.0, 5.0, 10.0, 30.0)
    lengths: tuple[int, ...] = (100, 200)
    deviant: Annotated[float, at_least(0)] = 70.0
    sequences: Annotated[int, at_least(2)] = 500
    seed: Seed = 0
    data: tuple[Data, ...] = ()
