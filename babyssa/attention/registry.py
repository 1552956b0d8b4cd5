"""The scoring functions by name, and the named variants that configs and papers speak of."""

from __future__ import annotations

import dataclasses
from typing import Any

from babyssa.attention.scoring import Scoring, Softmax, SoftmaxConfig
from babyssa.attention.ssa import SSA, SSAConfig
from babyssa.errors import ConfigError, nearest

SCORINGS: dict[str, type[Scoring]] = {scoring.name: scoring for scoring in (Softmax, SSA)}

VARIANTS: dict[str, Any] = {
    "softmax": SoftmaxConfig(),
    "ssa-1.5": SSAConfig(n=1.5, learn_n=False),
    "ssa-2": SSAConfig(n=2.0, learn_n=False),
    "ssa": SSAConfig(),
}


def scoring_config(variant: str, **changes: Any) -> Any:
    """The config of a named variant (or of a scoring with its defaults), with some parameters changed.

    Raises
    ------
    ConfigError
        For an unknown name or parameter (the nearest known one is suggested) or a value out of domain.
    """
    if variant in VARIANTS:
        config = VARIANTS[variant]
    elif variant in SCORINGS:
        config = SCORINGS[variant].Config()
    else:
        raise ConfigError(f"unknown variant '{variant}'", remedy=nearest(variant, {*VARIANTS, *SCORINGS}))
    known = [field.name for field in dataclasses.fields(config)]
    for key in changes:
        if key not in known:
            remedy = nearest(key, known) if known else "it has no parameters"
            raise ConfigError(f"variant '{variant}' has no parameter '{key}'", remedy=remedy)
    return dataclasses.replace(config, **changes)


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
    return {"name": scoring_name(config), **dataclasses.asdict(config)}


def scoring_from_dict(values: dict[str, Any]) -> Any:
    """The inverse of :func:`scoring_to_dict`; ConfigError if the values do not fit."""
    if "name" not in values or values["name"] not in SCORINGS:
        name = values.get("name")
        raise ConfigError(f"unknown scoring '{name}'", remedy=nearest(str(name), SCORINGS))
    values = dict(values)
    return scoring_config(values.pop("name"), **values)
