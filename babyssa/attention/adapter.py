"""Puts a scoring function into any transformers model that dispatches through AttentionInterface.

``set_scoring(model, config)`` attaches a scoring module to every attention layer and makes the model an
instance of a subclass of its class, whose config has its own model type ("babyssa-roberta") and carries the
scoring. So saving, loading, ``from_config``, ``Trainer`` and pipelines work as for any model, once
``babyssa.attention`` is imported. transformers without this package refuses such a checkpoint for three
reasons: it knows neither the model type nor the attention implementation that config.json names, and it
cannot read one of its labels. The last holds even if a class and an implementation are given explicitly.
"""

from __future__ import annotations

import inspect
import logging
import os
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AutoConfig, PreTrainedConfig, PreTrainedModel
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from babyssa.attention.flat import MODULE, auto_map, modelling_code
from babyssa.attention.registry import (
    build_scoring,
    class_of,
    fit_scoring,
    scoring_config,
    scoring_from_dict,
    scoring_to_dict,
)
from babyssa.attention.scoring import Scoring, Softmax
from babyssa.errors import ConfigError, ModelError

_logger = logging.getLogger(__name__)

IMPLEMENTATION = "babyssa"
_PREFIX = "babyssa-"
# A label whose key is no number: every transformers config raises an error that quotes it.
_GUARD = "attention_scoring needs trust_remote_code=True, or 'import babyssa.attention' first"
_ABOUT_GUARD = "no label: keeps classes that ignore attention_scoring from loading this model as Softmax"
# Whether the running call of a model wants attention weights; a layer called on its own may.
_need_weights: ContextVar[bool] = ContextVar("need_weights", default=True)


def scored_attention_forward(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """The attention function registered with transformers: calls the scoring of the attention layer.

    Takes query (batch, heads, query, head_dim), and key and value with as many or fewer heads (grouped-query
    attention); returns the output as (batch, query, heads, head_dim).
    """
    scoring = scoring_of(module)
    for unsupported, what in _UNSUPPORTED.items():
        if kwargs.get(unsupported) is not None:
            raise _cannot_take(module, what)
    mask = _exclusion(module, attention_mask)
    if mask is None and query.shape[2] > 1 and _is_causal(module, kwargs.get("is_causal")):
        mask = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool, device=query.device).tril()[None, None]
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key = key.repeat_interleave(groups, dim=1)
        value = value.repeat_interleave(groups, dim=1)
    if scaling is None:
        scaling = query.shape[-1] ** -0.5
    output, weights = scoring(
        query, key, value, mask, scaling=scaling, dropout=dropout, need_weights=_need_weights.get()
    )
    return output.transpose(1, 2).contiguous(), weights


# What some models do to their logits, by the keyword that passes it to the attention function.
_UNSUPPORTED = {
    "softcap": "caps its logits (softcap)",
    "s_aux": "has attention sinks (s_aux)",
    "position_bias": "adds a position bias to its logits",
}


def _cannot_take(layer: nn.Module, what: str) -> ModelError:
    message = f"{type(layer).__name__} {what}, which no scoring of this package can do"
    return ModelError(message, remedy="keep this model's own attention")


def _check_logits_are_plain(layer: nn.Module) -> None:
    """Raise ModelError if an attention layer declares that it does more to its logits than scale and mask them."""
    if getattr(layer, "attn_logit_softcapping", None) is not None:
        raise _cannot_take(layer, _UNSUPPORTED["softcap"])
    if isinstance(getattr(layer, "sinks", None), nn.Parameter):
        raise _cannot_take(layer, _UNSUPPORTED["s_aux"])
    if "position_bias" in inspect.unwrap(type(layer).forward).__code__.co_varnames:
        raise _cannot_take(layer, _UNSUPPORTED["position_bias"])


def _exclusion(layer: nn.Module, mask: Tensor | None) -> Tensor | None:
    """A model's own mask as a boolean one; some still build additive masks of 0 and a very low number."""
    if mask is None or mask.dtype == torch.bool:
        return mask
    allowed = mask > -1e4
    # An exported graph cannot look; the call that it was made from did.
    if not torch.compiler.is_compiling() and (mask.masked_fill(~allowed, 0) != 0).any():
        raise _cannot_take(layer, "adds a bias to its logits through its mask")
    return allowed


def _is_causal(layer: nn.Module, argument: bool | None = None) -> bool:
    """Whether a layer that passes no mask is causal, by the convention of transformers' own functions."""
    return getattr(layer, "is_causal", True) if argument is None else argument


def boolean_mask(*args: Any, **kwargs: Any) -> Tensor | None:
    """The mask function registered with transformers: True where a query may attend to a key.

    Always builds causal masks: without one, the attention function could not know of them.
    """
    kwargs["allow_is_causal_skip"] = False
    return sdpa_mask(*args, **kwargs)


AttentionInterface.register(IMPLEMENTATION, scored_attention_forward)
AttentionMaskInterface.register(IMPLEMENTATION, boolean_mask)


def scoring_of(module: nn.Module) -> Scoring:
    """The scoring of an attention layer: its own, or the one that the whole model shares."""
    scoring = getattr(module, "scoring", None) or module.__dict__.get("_shared_scoring")
    if scoring is None:
        raise ModelError(
            f"{type(module).__name__} has no scoring attached",
            remedy="load this checkpoint through an Auto class after 'import babyssa.attention'",
        )
    return scoring


def attention_layers(model: nn.Module) -> list[nn.Module]:
    """The modules of `model` whose forward dispatches through transformers' AttentionInterface."""
    return [module for module in model.modules() if _dispatches(type(module))]


@cache
def _dispatches(kind: type[nn.Module]) -> bool:
    code = getattr(inspect.unwrap(kind.forward), "__code__", None)
    return code is not None and "ALL_ATTENTION_FUNCTIONS" in code.co_names


def _heads_of(layer: nn.Module) -> int:
    for owner in (layer, getattr(layer, "config", None)):
        for name in ("num_attention_heads", "num_heads", "n_head"):
            if isinstance(getattr(owner, name, None), int):
                return getattr(owner, name)
    raise ModelError(f"cannot tell how many heads {type(layer).__name__} has")


def longest_sequence(model: PreTrainedModel) -> int | None:
    """The longest sequence in tokens that a model's positions allow; None if its config does not tell."""
    for name, module in model.named_modules():
        # RoBERTa and its kin count positions from padding_idx + 1.
        is_table = name.endswith("position_embeddings") and isinstance(module, nn.Embedding)
        if is_table and module.padding_idx is not None:
            return module.num_embeddings - module.padding_idx - 1
    return getattr(model.config, "max_position_embeddings", None)


def _attach(model: PreTrainedModel, config: Any) -> None:
    """Give every attention layer its scoring module, or all of them the one they share."""
    layers = attention_layers(model)
    if not layers:
        raise ModelError(
            f"{type(model).__name__} does not dispatch through transformers' AttentionInterface",
            remedy="use a model that takes attn_implementation='sdpa' in transformers 5",
        )
    for layer in layers:
        _check_logits_are_plain(layer)
    first = build_scoring(config, _heads_of(layers[0]))
    if first.needs_causal and not all(map(_is_causal, layers)):
        raise ModelError(
            f"scoring '{first.name}' is defined in causal models only, and {type(model).__name__} is not causal",
            remedy="use another scoring",
        )
    if first.shared:
        model.base_model.scoring = first
    for layer in layers:
        if first.shared:
            # Bypasses nn.Module.__setattr__: registered in each layer, one parameter would have many names.
            layer.__dict__["_shared_scoring"] = first
        else:
            layer.scoring = build_scoring(config, _heads_of(layer))


class ScoredConfigMixin:
    """Adds the scoring to a transformers config; config.json stores it as ``attention_scoring``."""

    def __post_init__(self, **kwargs):
        _check_attention(self, kwargs.get("attn_implementation"))
        kwargs["attn_implementation"] = IMPLEMENTATION
        super().__post_init__(**kwargs)

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs):
        labels = config_dict.get("id2label") or {}
        labels = {key: label for key, label in labels.items() if str(key).isdecimal()}
        config_dict = {key: value for key, value in config_dict.items() if key != "id2label"}
        return super().from_dict({**config_dict, "id2label": labels} if labels else config_dict, **kwargs)

    def to_dict(self) -> dict[str, Any]:
        return _guarded(super().to_dict())

    def to_diff_dict(self) -> dict[str, Any]:
        return _guarded(super().to_diff_dict())


def _check_attention(of: Any, asked: Any) -> None:
    """Raise ModelError if a caller asks for another attention than the scoring."""
    asked = asked.get("") if isinstance(asked, dict) else asked
    if asked not in (None, IMPLEMENTATION):
        raise ModelError(
            f"{type(of).__name__} cannot use attention '{asked}' in place of its scoring",
            remedy="leave attn_implementation out: output_attentions works as it is",
        )


def _guarded(values: dict[str, Any]) -> dict[str, Any]:
    """A config's values, such that transformers alone refuses them."""
    labels = {**{str(key): label for key, label in (values.get("id2label") or {}).items()}, _GUARD: _ABOUT_GUARD}
    return {**values, "attn_implementation": IMPLEMENTATION, "id2label": labels}


class ScoredModelMixin:
    """Adds scoring modules to a transformers model, before any weights are loaded."""

    def __init__(self, config: PreTrainedConfig, *args, **kwargs):
        _check_attention(self, getattr(config, "_attn_implementation_internal", None))
        super().__init__(config, *args, **kwargs)
        if not hasattr(config, "attention_scoring"):
            raise ModelError(f"the config of {type(self).__name__} names no attention_scoring")
        _attach(self, scoring_from_dict(config.attention_scoring))

    def set_attn_implementation(self, attn_implementation: Any, *args, **kwargs) -> None:
        _check_attention(self, attn_implementation)

    def save_pretrained(self, save_directory: str | os.PathLike, *args, **kwargs) -> None:
        """As transformers does, with code that loads the model where this package is not installed.

        Where that code cannot be written, a warning says why: weights are never lost for it.
        """
        stock = next(kind for kind in type(self.config).__mro__ if not issubclass(kind, ScoredConfigMixin))
        try:
            code = modelling_code(stock, self.config.attention_scoring)
        except ModelError as error:
            if stock.__module__.startswith("transformers."):
                _logger.warning("%s will need babyssa to be loaded: %s", save_directory, error)
        else:
            self.config.auto_map = auto_map(stock)
            if kwargs.get("is_main_process", True):
                Path(save_directory).mkdir(parents=True, exist_ok=True)
                (Path(save_directory) / f"{MODULE}.py").write_text(code, encoding="utf-8")
        super().save_pretrained(save_directory, *args, **kwargs)

    def __call__(self, *args, **kwargs):
        wanted = kwargs.get("output_attentions")
        if wanted is None:
            wanted = getattr(self.config, "output_attentions", False)
        if wanted:
            for scoring in scorings(self).values():
                if not scoring.forms_weights:
                    raise ModelError(
                        f"scoring '{scoring.name}' forms no attention weights",
                        remedy="leave out output_attentions, or use another scoring",
                    )
        before = _need_weights.set(bool(wanted))
        try:
            return super().__call__(*args, **kwargs)
        finally:
            _need_weights.reset(before)

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, Scoring):
            # transformers 5.0 to 5.12 calls this for modules whose weights it has loaded.
            loaded = [getattr(value, "_is_hf_initialized", False) for value in module.parameters()]
            if not (loaded and all(loaded)):
                module.reset_parameters()
        else:
            super()._init_weights(module)


@cache
def _scored(base: type) -> type:
    """The subclass of a transformers config or model class with a scoring; importable, so instances pickle."""
    name = f"Scored{base.__name__}"
    if issubclass(base, PreTrainedConfig):
        mixin, own = ScoredConfigMixin, {"model_type": _PREFIX + base.model_type}
    else:
        text = f"{base.__name__} with a scoring function of babyssa.attention in its attention layers."
        mixin, own = ScoredModelMixin, {"config_class": _scored(base.config_class), "__doc__": text}
    globals()[name] = type(name, (mixin, base), {**own, "__module__": __name__, "__qualname__": name})
    return globals()[name]


@cache
def register(config_class: type[PreTrainedConfig]) -> None:
    """Let the Auto classes load checkpoints of this model type with a scoring of this package."""
    scored_config = _scored(config_class)
    AutoConfig.register(scored_config.model_type, scored_config)
    for auto in vars(modeling_auto).values():
        if not inspect.isclass(auto) or getattr(auto, "_model_mapping", None) is None:
            continue
        model_class = auto._model_mapping.get(config_class, None)
        # transformers lists some classes under another model's config (an audio model's under Qwen2's).
        if inspect.isclass(model_class) and model_class.config_class is config_class:
            auto.register(scored_config, _scored(model_class))


def register_checkpoint(name: str | os.PathLike, revision: str | None = None) -> dict[str, Any]:
    """Let the Auto classes load the checkpoint `name`, whatever its model type; returns what its config.json says.

    Importing :mod:`babyssa.attention` registers the model types that it lists. Registers nothing for a checkpoint
    without a scoring of this package.
    """
    values, _ = PreTrainedConfig.get_config_dict(name, revision=revision)
    kind = str(values.get("model_type", ""))
    if kind.startswith(_PREFIX) and kind.removeprefix(_PREFIX) in CONFIG_MAPPING:
        register(CONFIG_MAPPING[kind.removeprefix(_PREFIX)])
    return values


def set_scoring(model: PreTrainedModel, config: Any) -> PreTrainedModel:
    """Replace the scoring function of every attention layer of a transformers model, in place.

    Parameters
    ----------
    model : PreTrainedModel
        Any model that dispatches through AttentionInterface (RoBERTa, GPT-2, Llama, Nemotron, ...). Its
        weights stay; learnable parameters of the scoring are added to its state dict.
    config : dataclass
        The config of a scoring, such as ``SSAConfig(n=2)`` or ``scoring_config("ssa-1.5")``. A `max_length`
        that is None (CosFormer) becomes the model's longest sequence.

    Returns
    -------
    PreTrainedModel
        The same object, now of a class "Scored...", which ``save_pretrained`` and the Auto classes'
        ``from_pretrained`` know.

    Raises
    ------
    ModelError
        If the model has a scoring already, does not dispatch through AttentionInterface, is not causal where
        the scoring must be, or does more to its logits than scale and mask them (Gemma 2 caps them, T5 adds a
        position bias). A bias hidden in the mask is refused at the first forward pass.
    """
    if isinstance(model, ScoredModelMixin):
        raise ModelError(f"{type(model).__name__} has a scoring already", remedy="start from the stock model")
    device = next(model.parameters()).device
    config = fit_scoring(config, longest_sequence(model))
    base_config = type(model.config)
    register(base_config)
    _attach(model, config)
    model.config.__class__ = _scored(base_config)
    model.config.attention_scoring = scoring_to_dict(config)
    model.config._attn_implementation = IMPLEMENTATION
    model.__class__ = _scored(type(model))
    return model.to(device)


def new_model(
    model_class: type[PreTrainedModel],
    config: PreTrainedConfig,
    variant: str = "softmax",
    changes: dict[str, Any] | None = None,
    *,
    seed: int = 0,
) -> PreTrainedModel:
    """A newly initialised model with the scoring of a named variant.

    Under one seed, every parameter that variants have in common gets the same initial value: the scoring is
    attached afterwards and draws no random number. With Softmax this is the stock model, and its checkpoints
    load without this package.

    Parameters
    ----------
    model_class, config : type of PreTrainedModel, PreTrainedConfig
        The stock model.
    variant : str
        Attention scoring, such as "ssa-1.5".
    changes : dict, optional
        Parameters of the scoring that differ from the variant's.
    seed : int
        Decides the initial weights; the global random state is unchanged.

    Raises
    ------
    ConfigError
        For an unknown variant or parameter, and for a `max_length` below the model's longest sequence.
    """
    scoring = scoring_config(variant, **(changes or {}))
    kind = class_of(scoring)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = model_class(config)
    longest = longest_sequence(model)
    if kind.needs_length and (scoring.max_length or longest) < longest:
        raise ConfigError(
            f"scoring.max_length is {scoring.max_length}, and the model reads {longest} tokens",
            remedy="leave it out, or raise it",
        )
    return model if kind is Softmax else set_scoring(model, scoring)


def scorings(model: nn.Module) -> dict[str, Scoring]:
    """The scoring modules of a model by name; empty for a stock model."""
    found: dict[str, Scoring] = {}
    for name, module in model.named_modules():
        # A mixed scoring's groups are scorings too, but of some heads only.
        if isinstance(module, Scoring) and not any(name.startswith(f"{whole}.") for whole in found):
            found[name] = module
    return found


def scoring_parameters(model: nn.Module) -> dict[str, dict[str, list[float]]]:
    """The learned parameters of each scoring module, in their domain (for SSA n and b, one value per head)."""
    return {
        name: {key: value.detach().tolist() for key, value in module.learned().items()}
        for name, module in scorings(model).items()
    }
