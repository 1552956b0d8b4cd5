"""What an attention scoring function is: the contract, what logit-based ones share, and Softmax.

A scoring takes queries, keys, values and a mask, and returns the attention output and, where it forms
them, the attention weights. To add one, write a class with a `name` and a frozen dataclass `Config`, and
register it as :mod:`babyssa.attention.registry` says.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from babyssa.attention.dropout import dropout as dropped_out
from babyssa.attention.laws import Law, Setting
from babyssa.errors import ConfigError

# The longest sequence of a scoring that is built outside a model and needs a length.
DEFAULT_LENGTH = 128


def check_parameter(scoring: str, key: str, value: Any, domain: str, holds: Callable[[Any], bool]) -> None:
    """Raise ConfigError, naming scoring and key, unless `value` is in its domain."""
    try:
        valid = bool(holds(value))
    except TypeError:
        valid = False
    if not valid:
        raise ConfigError(
            f"scoring '{scoring}': {key} = {value!r} is out of its domain", remedy=f"{key} is {domain}"
        )


class Scoring(nn.Module):
    """One attention layer's scoring function.

    Parameters
    ----------
    config : dataclass
        An instance of the class's `Config`.
    heads : int
        Number of attention (query) heads of the layer.

    Attributes
    ----------
    name, description, source : str
        What it is called, the weight of a key in one line, and the publication; docs/attention.md has them.
    Config : type
        A frozen dataclass in which everything has a default.
    variants : mapping of str to Config
        Further configs with a name of their own.
    needs_length : bool
        Whether it needs the longest sequence of its model: ``Config.max_length``, None until it is known.
    needs_causal : bool
        Whether it is defined in causal models only.
    forms_weights : bool
        Whether there are weights to return; without them there is no attention dropout either.
    normalised : bool
        Whether the weights of a query always sum to 1, if it may attend to anything.
    positional : bool
        Whether they depend on the query's position among the keys.
    """

    name: ClassVar[str]
    description: ClassVar[str] = ""
    source: ClassVar[str] = ""
    Config: ClassVar[type]
    variants: ClassVar[Mapping[str, Any]] = {}
    needs_length: ClassVar[bool] = False
    needs_causal: bool = False
    forms_weights: bool = True
    normalised: bool = True
    positional: bool = False

    def __init__(self, config: Any, heads: int):
        super().__init__()
        self.config = self.fit(config, DEFAULT_LENGTH)
        self.heads = heads

    @classmethod
    def fit(cls, config: Any, longest: int | None) -> Any:
        """`config` for a model that reads sequences of up to `longest` tokens (None: nobody knows)."""
        if not cls.needs_length or config.max_length is not None:
            return config
        if longest is None:
            raise ConfigError(
                f"scoring '{cls.name}' needs the model's longest sequence, which its config does not tell",
                remedy="give max_length",
            )
        return dataclasses.replace(config, max_length=longest)

    @property
    def shared(self) -> bool:
        """Whether all layers of a model use this one module."""
        return False

    def law(self, setting: Setting) -> Law:
        """What theory says of the weight left to all keys but one; learnable numbers at their initial values."""
        raise ConfigError(f"scoring '{self.name}' states no law of saturation", remedy="define its method law")

    def log_weights(self, logits: Tensor) -> Tensor | None:
        """The logarithms of the weights, up to a constant for each query; None where the weights will do.

        :mod:`babyssa.probing.saturation` reads off them what is too small for a float.
        """
        return None

    def learned(self) -> dict[str, Tensor]:
        """The learnable parameters, if any, in their domain."""
        return {}

    def describe_head(self, head: int) -> tuple[str, dict[str, float]]:
        """The name of one head's scoring, and its numbers, fixed or learned, in their domain."""
        return self.name, {}

    def head_config(self, head: int) -> Any:
        """The config of a scoring that does what one head does now: what is learned is fixed."""
        return self.config

    def reset_parameters(self) -> None:
        """Set the learnable parameters, if any, to their initial values; draws no random number."""

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        *,
        scaling: float,
        dropout: float = 0.0,
        need_weights: bool = True,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend.

        Parameters
        ----------
        query : Tensor
            (batch, heads, query, head_dim).
        key, value : Tensor
            (batch, heads, key, head_dim).
        mask : Tensor of bool, optional
            Broadcasts to (batch, heads, query, key); True where a query may attend to a key.
        scaling : float
            What query-key products are multiplied by, usually head_dim ** -0.5.
        dropout : float
            Probability of dropping a weight; applied in training mode only.
        need_weights : bool
            Whether to return the weights; without them, a scoring may take a path that forms none.

        Returns
        -------
        tuple of Tensor and (Tensor or None)
            Output (batch, heads, query, head_dim), and weights (batch, heads, query, key) after dropout, or
            None where none are formed. A query that may attend to nothing gets an output of 0.
        """
        raise NotImplementedError


class LogitScoring(Scoring):
    """A scoring that maps logits to weights: Softmax, unless a subclass gives `transform` or `normalize`."""

    def transform(self, logits: Tensor) -> Tensor:
        """Map logits (batch, heads, query, key), in float32 or wider, before they are normalised."""
        return logits

    def normalize(self, scores: Tensor) -> Tensor:
        """Map scores to weights that sum to 1 over the last dimension; the lowest scores get exactly 0."""
        return torch.softmax(scores, dim=-1)

    def normalized(self, logits: Tensor, bias: Tensor | None) -> Tensor:
        """The weights of logits, with `bias` (0, or the lowest number where a key is excluded) after `transform`.

        `transform` would make a masked logit finite (SSA maps the lowest float32 to about -130) or poison the
        gradient of its parameters with NaN.
        """
        scores = self.transform(logits)
        return self.normalize(scores if bias is None else scores + bias)

    def weights(self, logits: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attention weights of scaled logits, in float32 or wider."""
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        if mask is None:
            return self.normalized(logits, None)
        # Adding to all scores is several times faster than filling some of them.
        bias = mask.logical_not().to(logits.dtype).mul_(torch.finfo(logits.dtype).min)
        return _without_empty_queries(self.normalized(logits, bias), mask)

    def forward(self, query, key, value, mask=None, *, scaling, dropout=0.0, need_weights=True):
        logits = torch.matmul(query * scaling, key.transpose(-2, -1))
        weights = self.weights(logits, mask).to(value.dtype)
        weights = dropped_out(weights, dropout, self.training)
        return torch.matmul(weights, value), weights


def keys_seen(logits: Tensor, mask: Tensor | None) -> Tensor:
    """How many keys each query may attend to, at least 1: (batch, heads, query, 1), or what broadcasts to it."""
    if mask is None:
        return logits.new_full((), logits.shape[-1])
    return mask.sum(dim=-1, keepdim=True).clamp(min=1).to(logits.dtype)


def _without_empty_queries(weights: Tensor, mask: Tensor) -> Tensor:
    """Set to 0 the weights of queries that may attend to nothing; only theirs are not 0 on masked keys."""
    empty = ~mask.any(dim=-1, keepdim=True)
    # There are rarely any. On a GPU, asking would make the CPU wait; an exported graph cannot ask.
    if weights.device.type == "cpu" and not torch.compiler.is_compiling() and not empty.any():
        return weights
    return weights.masked_fill(empty, 0.0)


@dataclass(frozen=True)
class SoftmaxConfig:
    """Softmax has no parameters."""


class Softmax(LogitScoring):
    """softmax(x): the baseline (Vaswani et al. 2017, equation 1). A lead of D leaves the others e^-D."""

    name = "softmax"
    description = "softmax(x)"
    source = "Vaswani et al. 2017"
    Config = SoftmaxConfig

    def law(self, setting: Setting) -> Law:
        return Law("exponential", -setting.gap)
