"""All settings of a run on a synthetic task; the recipes' numbers are in configs/synthetic/.

Imports nothing heavy: the command line builds its options from these classes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from babyssa.errors import ConfigError
from babyssa.recipes import Recipe
from babyssa.training.config import Optimisation, check_seed


@dataclass(frozen=True)
class InContextSize:
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

    layers: int = 12
    heads: int = 8
    width: int = 256
    max_numbers: int = 400
    positions: bool = True
    blocks: Literal["full", "attention", "feed-forward"] = "full"

    def __post_init__(self):
        for key in ("layers", "heads", "width", "max_numbers"):
            if getattr(self, key) < 1:
                raise ConfigError(f"size.{key} is {getattr(self, key)}", remedy="it is at least 1")
        if self.width % self.heads:
            raise ConfigError(
                f"size.width {self.width} is not a multiple of size.heads {self.heads}",
                remedy="change one of them",
            )


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
    length : int
        Numbers (examples, for a linear function) in a training sequence; it trains every shorter context too,
        since the model predicts after each.
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
    seed: int = 0
    length: int = 40
    size: InContextSize = field(default_factory=InContextSize)
    optimisation: Optimisation = field(default_factory=Optimisation)
    evaluate_every: int = 0

    def __post_init__(self):
        check_seed(self.seed)
        if self.evaluate_every < 0:
            raise ConfigError(f"evaluate_every is {self.evaluate_every}", remedy="it is at least 0")
        if self.optimisation.steps is None:
            raise ConfigError("optimisation.steps is missing", remedy="the data never end: set the steps")
        if self.length < 2:
            raise ConfigError(f"length is {self.length}", remedy="it is at least 2")
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
        return 2 * self.length - 1 if self.task == "linear" else self.length


@dataclass(frozen=True)
class Shifts:
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
    """

    scales: tuple[float, ...] = (2.0, 3.0, 5.0, 10.0, 30.0)
    lengths: tuple[int, ...] = (100, 200)
    deviant: float = 70.0
    sequences: int = 500
    seed: int = 0

    def __post_init__(self):
        if self.sequences < 2 or self.seed < 0 or self.deviant < 0:
            raise ConfigError(
                f"sequences is {self.sequences}, seed {self.seed} and deviant {self.deviant}",
                remedy="they are at least 2, 0 and 0",
            )
