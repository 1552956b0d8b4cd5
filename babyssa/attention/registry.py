"""The scoring functions by name, and the named variants that configs and papers speak of.

A scoring is one class in a file of its own and one line in ``_PACKAGED``. A package of yours adds one without
touching this one, through the entry-point group ``babyssa.scorings``; in its setup.cfg::

    [options.entry_points]
    babyssa.scorings =
        toy = toy_package.toy:Toy
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from babyssa.attention.scoring import Scoring
from babyssa.errors import ConfigError, describe, nearest

GROUP = "babyssa.scorings"
_PACKAGED = {
    "softmax": "babyssa.attention.scoring:Softmax",
    "ssa": "babyssa.attention.ssa:SSA",
    "temperature": "babyssa.attention.temperature:Temperature",
    "sparsemax": "babyssa.attention.sparse:Sparsemax",
    "entmax": "babyssa.attention.sparse:Entmax",
    "entmax-alpha": "babyssa.attention.sparse:AlphaEntmax",
    "ssmax": "babyssa.attention.scalable:ScalableSoftmax",
    "sink": "babyssa.attention.sink:Sink",
    "softpick": "babyssa.attention.softpick:Softpick",
    "sigmoid": "babyssa.attention.sigmoid:Sigmoid",
    "sas": "babyssa.attention.self_adjust:SelfAdjustSoftmax",
    "mixed": "babyssa.attention.mixed:Mixed",
    "linear": "babyssa.attention.linear:Linear",
    "cosformer": "babyssa.attention.cosformer:CosFormer",
}


@cache
def _entries() -> dict[str, list[EntryPoint]]:
    """The entry points under each name, this package's first; several under one name clash."""
    found = {name: [EntryPoint(name, value, GROUP)] for name, value in _PACKAGED.items()}
    for entry in entry_points(group=GROUP):
        found.setdefault(entry.name, []).append(entry)
    return found


@cache
def scoring_class(name: str) -> type[Scoring]:
    """The class of the scoring called `name`.

    Raises
    ------
    ConfigError
        If there is none, if two packages give one, or if another package's cannot be loaded.
    """
    entries = _entries().get(name)
    if entries is None:
        raise ConfigError(f"unknown scoring '{name}'", remedy=nearest(name, _entries()))
    values = sorted({entry.value for entry in entries})
    if len(values) > 1:
        raise ConfigError(
            f"scoring '{name}' is registered as {' and as '.join(values)}",
            remedy="uninstall or rename all but one",
        )
    where = f"scoring '{name}' ({values[0]})"
    try:
        kind = entries[0].load()
        kind.Config()
    except Exception as error:  # whatever another package raises
        raise ConfigError(f"{where} cannot be loaded: {describe(error)}", remedy="fix or uninstall it") from error
    # An inherited name or Config would mean two scorings.
    own = vars(kind)
    if not issubclass(kind, Scoring) or own.get("name") != name or not dataclasses.is_dataclass(own.get("Config")):
        raise ConfigError(f"{where} is not a Scoring with this name and a dataclass Config", remedy="fix it")
    return kind


@cache
def scoring_classes() -> dict[str, type[Scoring]]:
    """Every scoring by name; another package's that cannot be loaded is left out, with a logged warning."""
    found = {}
    for name in _entries():
        try:
            found[name] = scoring_class(name)
        except ConfigError as error:
            logging.getLogger(__name__).warning("left out: %s", error)
    return found


@cache
def variants() -> dict[str, Any]:
    """The config of every named variant: each scoring with its defaults, then what their classes name."""
    found = {name: kind.Config() for name, kind in scoring_classes().items()}
    for name, kind in scoring_classes().items():
        for variant, config in kind.variants.items():
            if variant in found or variant in _entries():
                logging.getLogger(__name__).warning("left out: '%s' of scoring '%s', a name in use", variant, name)
            else:
                found[variant] = config
    return found


def scoring_config(variant: str, **changes: Any) -> Any:
    """The config of a named variant, with some parameters changed.

    Raises
    ------
    ConfigError
        For an unknown name or parameter (the nearest known one is suggested) or a value out of domain.
    """
    if variant in _entries():
        config = scoring_class(variant).Config()
    elif variant in variants():
        config = variants()[variant]
    else:
        raise ConfigError(f"unknown variant '{variant}'", remedy=nearest(variant, variants()))
    known = [field.name for field in dataclasses.fields(config)]
    for key in changes:
        if key not in known:
            remedy = nearest(key, known) if known else "it has no parameters"
            raise ConfigError(f"variant '{variant}' has no parameter '{key}'", remedy=remedy)
    return dataclasses.replace(config, **changes)


def variant_name(variant: str, changes: Mapping[str, Any]) -> str:
    """What a variant is called once some of its parameters are changed, so that no name stands for two scorings.

    Its own name if nothing differs, another variant's if it is that one now, and otherwise that of its scoring
    with what differs from the scoring's defaults. A parameter that a variant leaves open, which its model fills
    in, does not count.

    Parameters
    ----------
    variant : str
        A variant; an unknown one keeps its name.
    changes : mapping
        Parameters of its scoring, such as the settings of a trained model.

    Examples
    --------
    >>> variant_name("ssa-1.5", {"b": 0.8}), variant_name("ssa-1.5", {"n": 2})
    ('ssa-1.5', 'ssa-2')
    >>> variant_name("ssa-1.5", {"n": 1.7})
    'ssa, n 1.7, learn_n False'
    """
    if variant not in variants():
        return variant
    kind = class_of(variants()[variant])
    alike = {name: scoring_settings(c) for name, c in variants().items() if class_of(c) is kind}
    own = {**alike[variant], **changes}
    for name in (variant, *alike):
        if all(value is None or own[key] == value for key, value in alike[name].items()):
            return name
    default = scoring_settings(kind.Config())
    differing = (f"{key} {value}" for key, value in own.items() if value != default.get(key))
    return ", ".join([kind.name, *differing])


def class_of(config: Any) -> type[Scoring]:
    """The class whose Config `config` is."""
    for kind in scoring_classes().values():
        if type(config) is kind.Config:
            return kind
    known = ", ".join(scoring_classes())
    raise ConfigError(f"{config!r} is not the config of a scoring", remedy=f"known: {known}")


def fit_scoring(config: Any, longest: int | None) -> Any:
    """`config` with what it needs to know of a model that reads up to `longest` tokens, where it does not say."""
    return class_of(config).fit(config, longest)


def build_scoring(config: Any, heads: int) -> Scoring:
    """The scoring module of one attention layer with `heads` heads."""
    return class_of(config)(config, heads)


def scoring_to_dict(config: Any) -> dict[str, Any]:
    """A scoring config as plain values, as config.json stores it."""
    values = {field.name: _plain(getattr(config, field.name)) for field in dataclasses.fields(config)}
    return {"name": class_of(config).name, **values}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return scoring_to_dict(value)
    return [_plain(part) for part in value] if isinstance(value, (list, tuple)) else value


def scoring_settings(config: Any) -> dict[str, Any]:
    """The parameters of a scoring config as plain values, such as :func:`scoring_config` takes as changes."""
    return {key: value for key, value in scoring_to_dict(config).items() if key != "name"}


def scoring_from_dict(values: dict[str, Any]) -> Any:
    """The inverse of :func:`scoring_to_dict`; the name may be a variant's, and parameters may be left out.

    Raises
    ------
    ConfigError
        If the values do not fit.
    """
    name = values.get("name") if isinstance(values, dict) else values
    if name not in _entries() and name not in variants():
        raise ConfigError(f"unknown scoring '{name}'", remedy=nearest(str(name), variants()))
    return scoring_config(name, **{key: value for key, value in values.items() if key != "name"})
