"""All settings of an encoder run, as frozen dataclasses; the recipes' numbers are in configs/encoder/.

Imports nothing heavy: the command line builds its options from these classes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from babyssa.checks import BelowOne, Domain, NonNegative, Positive, Seed, Settings, Share, at_least
from babyssa.errors import ConfigError
from babyssa.recipes import Recipe
from babyssa.training.config import Evaluation, Optimisation


@dataclass(frozen=True)
class EncoderSize(Settings):
    """The size of a RoBERTa encoder; the defaults are BabyBERTa's (Huebner et al. 2021).

    Parameters
    ----------
    layers : int
        Number of layers.
    heads : int
        Attention heads per layer.
    hidden_size : int
        Width; a multiple of heads.
    feed_forward_size : int
        Width of the feed-forward layers.
    max_length : int
        Longest sequence in tokens, bos and eos included; longer sentences are dropped, never truncated.
    dropout : float
        Dropout probability of hidden states and of attention weights.
    layer_norm_eps : float
        Epsilon of the layer normalisations.
    initializer_range : float
        Standard deviation of the initial weights.
    """

    group: ClassVar[str] = "size"
    layers: Positive = 8
    heads: Positive = 8
    hidden_size: Positive = 256
    feed_forward_size: Positive = 1024
    max_length: Annotated[int, at_least(3)] = 128
    dropout: BelowOne = 0.1
    layer_norm_eps: float = 1e-5
    initializer_range: float = 0.02

    def __post_init__(self):
        super().__post_init__()
        if self.hidden_size % self.heads:
            raise ConfigError(
                f"size.hidden-size {self.hidden_size} is not a multiple of size.heads {self.heads}",
                remedy="change one of them",
            )


@dataclass(frozen=True)
class Masking(Settings):
    """Which tokens of a sentence are predicted, and what replaces them.

    Parameters
    ----------
    probability : float
        Probability that a token is selected; a sentence without one gets one at random.
    random : float
        Share of the selected tokens that a random token replaces.
    unchanged : float
        Share of the selected tokens that stay unchanged; the others become the mask token.
    patterns : int
        Mask patterns of each sentence within one epoch (BabyBERTa: 10); 0 draws a new one in each epoch
        (RoBERTa's dynamic masking).
    """

    group: ClassVar[str] = "masking"
    probability: Annotated[float, Domain("above 0 and at most 1", lambda value: 0 < value <= 1)] = 0.15
    random: Share = 0.1
    unchanged: Share = 0.0
    patterns: NonNegative = 10

    def __post_init__(self):
        super().__post_init__()
        if self.random + self.unchanged > 1:
            raise ConfigError(
                f"masking.unchanged is {self.unchanged}", remedy="it is from 0 to 1 - masking.random"
            )


@dataclass(frozen=True)
class EncoderTraining(Recipe):
    """One encoder run.

    Parameters
    ----------
    corpus : Path
        A prepared corpus: the folder that `babyssa prepare` writes, or a text with a sentence per line.
    out : Path
        The run folder to write.
    tokenizer : Path, optional
        A tokenizer folder; without one, that of `init`, or a new one that is trained on the corpus.
    init : Path, optional
        A run, a checkpoint of one, or a hub id, whose weights this run starts from, such as one on another
        corpus; it has the same variant and size.
    init_revision : str, optional
        Branch, tag or commit of `init` on the hub, such as chck_10M (default: its main branch).
    vocab_size : int
        Vocabulary of the tokenizer, where one is trained.
    variant : str
        Attention scoring: softmax, ssa-1.5, ssa-2, ssa, or another of docs/attention.md.
    scoring : dict
        Parameters of the scoring that differ from the variant's, such as n, b, learn_n, granularity.
    seed : int
        Decides initial weights, masks, order and dropout.
    order : {"shuffled", "age", "reversed"}
        Order of the sentences: at random, as in the corpus (by age), or from its end.
    size : EncoderSize
        Size of the model.
    masking : Masking
        The masking recipe.
    optimisation : Optimisation
        Optimiser, schedule and budget.
    evaluation : Evaluation
        What is measured during training.
    """

    corpus: Path
    out: Path
    tokenizer: Path | None = None
    init: Path | None = None
    init_revision: str | None = None
    vocab_size: int = 8192
    variant: str = "softmax"
    scoring: dict[str, Any] = field(default_factory=dict)
    seed: Seed = 0
    order: Literal["shuffled", "age", "reversed"] = "shuffled"
    size: EncoderSize = field(default_factory=EncoderSize)
    masking: Masking = field(default_factory=Masking)
    optimisation: Optimisation = field(default_factory=Optimisation)
    evaluation: Evaluation = field(default_factory=Evaluation)
