"""The scoring functions by name, and the named variants that configs and papers speak of."""

from __future__ import annotations

import dataclasses
from typing import Any

from babyssa.attention.cosformer import CosFormer
from babyssa.attention.linear import Linear
from babyssa.attention.mixed import Mixed, MixedConfig
from babyssa.attention.scoring import Scoring, Softmax
from babyssa.attention.self_adjust import SelfAdjustSoftmax
from babyssa.attention.sparse import Entmax, Sparsemax
from babyssa.attention.ssa import SSA, SSAConfig
from babyssa.attention.temperature import Temperature
from babyssa.errors import ConfigError, nearest

SCORINGS: dict[str, type[Scoring]] = {
    scoring.name: scoring
    for scoring in (
        Softmax,
        SSA,
        Temperature,
        Sparsemax,
        Entmax,
        SelfAdjustSoftmax,
        Mixed,
        Linear,
        CosFormer,
    )
}

# Every scoring with its defaults is a variant, under its own name.
VARIANTS: dict[str, Any] = {
    **{name: scoring.Config() for name, scoring in SCORINGS.items()},
    "ssa-1.5": SSAConfig(n=1.5, learn_n=False),
    "ssa-2": SSAConfig(n=2.0, learn_n=False),
}


def scoring_config(variant: str, **changes: Any) -> Any:
    """The config of a named variant, with some parameters changed.

    Raises
    ------
    ConfigError
        For an unknown name or parameter (the nearest known one is suggested) or a value out of domain.
    """
    if variant not in VARIANTS:
        raise ConfigError(f"unknown variant '{variant}'", remedy=nearest(variant, VARIANTS))
    config = VARIANTS[variant]
    known = [field.name for field in dataclasses.fields(config)]
    for key in changes:
        if key not in known:
            remedy = nearest(key, known) if known else "it has no parameters"
            raise ConfigError(f"variant '{variant}' has no parameter '{key}'", remedy=remedy)
    return dataclasses.replace(config, **changes)


def scoring_changes(variant: str, changes: dict[str, Any], max_length: int) -> dict[str, Any]:
    """`changes`, with the model's length where the variant has a `max_length` (CosFormer) and none is given.

    Raises
    ------
    ConfigError
        As :func:`scoring_config`, and for a `max_length` below the model's.
    """
    config = scoring_config(variant, **changes)
    if not hasattr(config, "max_length"):
        return changes
    if changes.get("max_length", max_length) < max_length:
        raise ConfigError(
            f"scoring.max_length is {config.max_length}, and the model reads {max_length} tokens",
            remedy="leave it out, or raise it",
        )
    return {"max_length": max_length, **changes}


def scoring_name(config: Any) -> str:
    """The name under which the scoring of `config` is registered."""
    for name, scoring in SCORINGS.items():
        if type(config) is scoring.Config:
            return name
    raise ConfigError(f"{config!r} is not the config of a scoring", remedy=f"known: {', '.join(SCORINGS)}")


def build_scoring(config: Any, heads: int) -> Scoring:
    """The scoring module of one attention layer with `heads` heads."""
    return SCORINGS[scoring_name(config)](config, heads)


def scoring_to_dict(config: Any) -> dict[str, Any]:
    """A scoring config as plain values, as config.json and config.yaml store it."""
    values = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    if isinstance(config, MixedConfig):
        values["groups"] = [[scoring_to_dict(scoring), heads] for scoring, heads in config.groups]
    return {"name": scoring_name(config), **values}


def scoring_settings(config: Any) -> dict[str, Any]:
    """The parameters of a scoring config as plain values, such as :func:`scoring_config` takes as changes."""
    return {key: value for key, value in scoring_to_dict(config).items() if key != "name"}


def scoring_from_dict(values: dict[str, Any]) -> Any:
    """The inverse of :func:`scoring_to_dict`; ConfigError if the values do not fit.

    The name may be a variant's, and parameters may be left out.
    """
    name = values.get("name") if isinstance(values, dict) else values
    if name not in VARIANTS:
        raise ConfigError(f"unknown scoring '{name}'", remedy=nearest(str(name), VARIANTS))
    return scoring_config(name, **{key: value for key, value in values.items() if key != "name"})
