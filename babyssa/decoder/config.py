"""All settings of a decoder run, as frozen dataclasses; the recipes' numbers are in configs/decoder/.

Imports nothing heavy: the command line builds its options from these classes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from babyssa.checks import BelowOne, Positive, Seed, Settings, at_least
from babyssa.errors import ConfigError
from babyssa.recipes import Recipe
from babyssa.training.config import Evaluation, Optimisation


@dataclass(frozen=True)
class DecoderSize(Settings):
    """The size of a Nemotron decoder; the defaults are those of the released 114 M model.

    The architecture fixes the rest: squared ReLU, layer normalisation with a bias, rotary positions on half of
    each head's dimensions, no bias in attention and feed-forward layers, tied embeddings.

    Parameters
    ----------
    layers : int
        Number of layers.
    heads : int
        Attention (query) heads per layer.
    key_value_heads : int
        Heads of keys and values, each shared by heads / key_value_heads queries.
    hidden_size : int
        Width; a multiple of 4 x heads.
    feed_forward_size : int
        Width of the feed-forward layers.
    max_length : int
        Tokens per sequence, and the longest sequence that the model reads.
    attention_dropout : float
        Dropout probability of attention weights (the architecture has no other dropout).
    norm_eps : float
        Epsilon of the layer normalisations.
    initializer_range : float
        Standard deviation of the initial weights.
    """

    group: ClassVar[str] = "size"
    layers: Positive = 12
    heads: Positive = 24
    key_value_heads: Positive = 8
    hidden_size: Positive = 768
    feed_forward_size: Positive = 3072
    max_length: Annotated[int, at_least(2)] = 1024
    attention_dropout: BelowOne = 0.0
    norm_eps: float = 1e-5
    initializer_range: float = 0.0134

    def __post_init__(self):
        super().__post_init__()
        if self.heads % self.key_value_heads:
            raise ConfigError(
                f"size.heads {self.heads} is not a multiple of size.key-value-heads {self.key_value_heads}",
                remedy="change one of them",
            )
        if self.hidden_size % (4 * self.heads):
            raise ConfigError(
                f"size.hidden-size {self.hidden_size} is not a multiple of 4 x size.heads {self.heads}",
                remedy="half of each head's dimensions are rotated in pairs: change one of the two",
            )


@dataclass(frozen=True)
class DecoderTraining(Recipe):
    """One decoder run.

    Parameters
    ----------
    corpus : str
        A text file, the folder that `babyssa prepare` writes, a .jsonl, .json, .parquet, .csv or .arrow file, a
        folder that `datasets` loads, or a dataset of the hub (id, or id:config).
    out : Path
        The run folder to write.
    documents : {"lines", "blocks"}
        How documents are laid out in a text file: one per line, or separated by empty lines.
    text_column : str
        The column of text in a dataset.
    split : str, optional
        The split of a dataset; train, or the only one, if not given.
    streaming : bool
        Read the corpus during training without holding it in memory; needs optimisation.steps and a tokenizer.
    shuffle_buffer : int
        Documents of a stream from which the next one is drawn; 1 reads them in their order.
    tokenizer : Path, optional
        A tokenizer folder; without one, a tokenizer is trained on the corpus.
    vocab_size : int
        Vocabulary of the tokenizer, where one is trained.
    variant : str
        Attention scoring: softmax, ssa-1.5, ssa-2, ssa, or another of docs/attention.md.
    scoring : dict
        Parameters of the scoring that differ from the variant's, such as n, b, learn_n, learn_b.
    seed : int
        Decides initial weights, order and dropout.
    size : DecoderSize
        Size of the model.
    optimisation : Optimisation
        Optimiser, schedule and budget.
    evaluation : Evaluation
        What is measured during training.
    """

    corpus: str
    out: Path
    documents: Literal["lines", "blocks"] = "lines"
    text_column: str = "text"
    split: str | None = None
    streaming: bool = False
    shuffle_buffer: Positive = 10_000
    tokenizer: Path | None = None
    vocab_size: int = 8192
    variant: str = "softmax"
    scoring: dict[str, Any] = field(default_factory=dict)
    seed: Seed = 0
    size: DecoderSize = field(default_factory=DecoderSize)
    optimisation: Optimisation = field(default_factory=Optimisation)
    evaluation: Evaluation = field(default_factory=Evaluation)

    def __post_init__(self):
        super().__post_init__()
        if self.streaming and self.tokenizer is None:
            raise ConfigError("streaming: true needs a tokenizer", remedy="pass --tokenizer, a tokenizer folder")
        if self.streaming and self.optimisation.steps is None:
            raise ConfigError(
                "streaming: true needs optimisation.steps", remedy="the length of an epoch of a stream is unknown"
            )
