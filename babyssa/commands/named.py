"""The options of every verb that names a model: its revision on the hub, and whether its own code may run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from babyssa.checks import hints_of
from babyssa.errors import ConfigError

P = ParamSpec("P")
T = TypeVar("T")

_HINTS = {"revision": str | None, "trust_remote_code": bool}
_DEFAULTS = {"revision": None, "trust_remote_code": False}
_ABOUT = """
    revision : str, optional
        branch, tag or commit of a model on the hub (default: its main branch)
    trust_remote_code : bool
        run the Python code that comes with a model, which can do whatever you can; a model with a class of its
        own needs it

    Returns
"""


def names_model(function: Callable[P, T]) -> Callable[..., T]:
    """Decorate a verb whose first parameter names a model, or a list of them: adds the options and their help.

    Where one of them is given, the verb gets a :class:`babyssa.models.loading.ModelSource` for each name.
    """
    signature = inspect.signature(function)
    first = next(iter(signature.parameters))

    @functools.wraps(function)
    def call(*args: Any, revision: str | None = None, trust_remote_code: bool = False, **kwargs: Any) -> T:
        bound = signature.bind(*args, **kwargs)
        if revision is not None or trust_remote_code:
            bound.arguments[first] = _source(bound.arguments[first], revision, trust_remote_code)
        return function(*bound.args, **bound.kwargs)

    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_DEFAULTS[name], annotation=hint)
        for name, hint in _HINTS.items()
    ]
    call.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *added])
    call.__annotations__ = {**hints_of(function), **_HINTS}
    call.__doc__ = function.__doc__.replace("\n\n    Returns\n", _ABOUT, 1)
    return call


def _source(named: Any, revision: str | None, trust_remote_code: bool) -> Any:
    from babyssa.models.loading import ModelSource

    if isinstance(named, list):
        return [_source(each, revision, trust_remote_code) for each in named]
    if isinstance(named, str | Path):
        return ModelSource(str(named), revision, trust_remote_code)
    if revision is not None:
        raise ConfigError("revision is given for a model in memory", remedy="leave it out")
    return named
