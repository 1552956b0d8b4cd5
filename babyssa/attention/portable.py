"""What a checkpoint with a scoring needs to load in any transformers from 4.51 on, without this package.

:mod:`babyssa.attention.flat` writes this module, the adapter, the scoring and what they use into one file of the
checkpoint. Where this module and another define the same name, this one counts there.

Attention layers dispatch to a registered function in newer versions of transformers (RoBERTa from 5.0 on). Those
that do not call ``torch.nn.functional.scaled_dot_product_attention``, and the scoring answers in its place.
"""

from __future__ import annotations

import inspect
import sys
from functools import cache
from typing import Any

from torch import nn
from torch.overrides import TorchFunctionMode
from transformers import AttentionInterface

from babyssa.attention.adapter import (
    IMPLEMENTATION,
    ScoredConfigMixin,
    ScoredModelMixin,
    boolean_mask,
    scored_attention_forward,
)
from babyssa.errors import ModelError

# Its own in each checkpoint, as this package may be imported beside it.
REGISTERED = f"{IMPLEMENTATION} {__name__}"

try:
    from transformers.masking_utils import AttentionMaskInterface, sdpa_mask  # noqa: F401
except ImportError:
    # Before 4.53 a registered function could not have masks of its own.
    AttentionMaskInterface = None
else:
    AttentionInterface.register(REGISTERED, scored_attention_forward)
    AttentionMaskInterface.register(REGISTERED, boolean_mask)


class PortableConfig(ScoredConfigMixin):
    """A transformers config with a scoring."""

    def __init__(self, **kwargs):
        # Versions before 5 call this, later ones __post_init__; the model names the implementation.
        _check_attention(self, kwargs.pop("attn_implementation", None))
        super().__init__(**kwargs)

    def __post_init__(self, **kwargs):
        _check_attention(self, kwargs.get("attn_implementation"))
        super().__post_init__(**kwargs)


class PortableModel(ScoredModelMixin):
    """A transformers model with a scoring."""

    def __init__(self, config, *args, **kwargs):
        _check_attention(self, getattr(config, "_attn_implementation_internal", None))
        config._attn_implementation = REGISTERED if _dispatches(type(self)) else "sdpa"
        super().__init__(config, *args, **kwargs)
        if config._attn_implementation != REGISTERED:
            for layer in attention_layers(self):
                layer.__class__ = _intercepted(type(layer))


def _check_attention(of: Any, asked: str | None) -> None:
    """Raise ModelError if a caller asks for another attention than the scoring; "sdpa" is also a default."""
    if asked not in (None, "sdpa", IMPLEMENTATION, REGISTERED):
        raise ModelError(
            f"{type(of).__name__} cannot use attention '{asked}' in place of its scoring",
            remedy="leave out attn_implementation",
        )


def _dispatches(model_class: type) -> bool:
    """Whether the attention layers of a model class call a registered function."""
    stock = (kind for kind in model_class.__mro__ if kind.__module__.startswith("transformers.models."))
    module = sys.modules[next(stock).__module__]
    return AttentionMaskInterface is not None and hasattr(module, "ALL_ATTENTION_FUNCTIONS")


def attention_layers(model: nn.Module) -> list[nn.Module]:
    """The modules whose forward method dispatches to a registered function, or calls torch's attention."""
    ways = {"ALL_ATTENTION_FUNCTIONS", "scaled_dot_product_attention"}

    def attends(kind: type) -> bool:
        code = getattr(inspect.unwrap(kind.forward), "__code__", None)
        return code is not None and not ways.isdisjoint(code.co_names)

    return [module for module in model.modules() if attends(type(module))]


class _Interception(TorchFunctionMode):
    """While it is active, the scoring of an attention layer answers calls of scaled_dot_product_attention."""

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.layer = layer
        self.answered = False

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is not nn.functional.scaled_dot_product_attention:
            return func(*args, **(kwargs or {}))
        self.answered = True
        return self.attend(*args, **(kwargs or {}))

    def attend(self, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None):
        output, _ = scored_attention_forward(
            self.layer, query, key, value, attn_mask, scaling=scale, dropout=dropout_p, is_causal=is_causal
        )
        return output.transpose(1, 2)


@cache
def _intercepted(kind: type[nn.Module]) -> type[nn.Module]:
    """The subclass of an attention layer's class that scores; importable, so instances pickle."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with _Interception(self) as interception:
            output = kind.forward(self, *args, **kwargs)
        if not interception.answered:
            raise ModelError(
                f"{kind.__name__} does not call its scoring in this version of transformers",
                remedy="leave out output_attentions and head_mask",
            )
        return output

    name = f"Scored{kind.__name__}"
    globals()[name] = type(name, (kind,), {"forward": forward, "__module__": __name__, "__qualname__": name})
    return globals()[name]
