"""What values a parameter or a setting takes: its annotation says so, and is checked here.

    batch_size: Positive = 16

A verb is decorated with :func:`checked`, a settings class inherits :class:`Settings`, and what does not fit the
annotation is one line instead of a traceback from the depths. Imports nothing heavy.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import numbers
import os
import reprlib
import typing
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, ClassVar, Literal, ParamSpec, TypeVar, get_args, get_origin

from babyssa.errors import ConfigError, nearest

P = ParamSpec("P")
T = TypeVar("T")

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60
_LISTS = (list, tuple, Iterable)
# What else is as good as a value of a type.
_ACCEPTED = {int: numbers.Integral, float: numbers.Real, str: (str, os.PathLike), Path: (str, os.PathLike)}
_WORDS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    Path: "a path",
    dict: "a mapping",
    Mapping: "a mapping",
}


class Domain(typing.NamedTuple):
    """Which values a type is narrowed to, in an ``Annotated``: the domain in words, and the test."""

    words: str
    holds: Callable[[Any], bool]


def at_least(low: float) -> Domain:
    """The domain of finite numbers from `low` up."""
    return Domain(f"at least {low}", lambda value: low <= value < math.inf)


Positive = Annotated[int, at_least(1)]
NonNegative = Annotated[int, at_least(0)]
AboveZero = Annotated[float, Domain("above 0", lambda value: 0 < value < math.inf)]
Share = Annotated[float, Domain("from 0 to 1", lambda value: 0 <= value <= 1)]
BelowOne = Annotated[float, Domain("at least 0 and below 1", lambda value: 0 <= value < 1)]
# What every random number generator takes.
Seed = Annotated[int, Domain(f"from 0 to {2**32 - 1}", lambda value: 0 <= value < 2**32)]


class Settings:
    """A frozen dataclass whose values must fit their annotations; in messages they are called ``GROUP.NAME``."""

    group: ClassVar[str] = ""

    def __post_init__(self):
        hints = hints_of(type(self))
        for field in dataclasses.fields(self):
            check(".".join(filter(None, (self.group, field.name))), getattr(self, field.name), hints[field.name])


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a verb so that arguments that do not fit its signature raise ConfigError."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            bound = inspect.signature(function).bind(*args, **kwargs)
        except TypeError as error:
            raise ConfigError(f"{function.__name__}: {error}", remedy="its signature says what it takes") from None
        hints = hints_of(function)
        for name, value in bound.arguments.items():
            if name in hints and bound.signature.parameters[name].kind is not inspect.Parameter.VAR_KEYWORD:
                check(name, value, hints[name])
        return function(*args, **kwargs)

    return call


def hints_of(owner: Callable) -> dict[str, Any]:
    """The annotations of a function's parameters or of a class, evaluated; what a function returns is left out."""
    if inspect.isclass(owner):
        return typing.get_type_hints(owner, include_extras=True)
    # A decorator that changes a signature states it, as inspect.signature knows.
    owner = inspect.unwrap(owner, stop=lambda function: hasattr(function, "__signature__"))
    hints = {name: hint for name, hint in owner.__annotations__.items() if name != "return"}
    return typing.get_type_hints(SimpleNamespace(__annotations__=hints), owner.__globals__, include_extras=True)


def check(name: str, value: Any, hint: Any, **place: Any) -> None:
    """Raise ConfigError, with the name as an option has it, unless a value fits an annotation."""
    if fits(value, hint):
        return
    name = name.replace("_", "-")
    for part in (hint, *get_args(hint)):
        if get_origin(part) is Annotated and fits(value, get_args(part)[0]):
            raise ConfigError(f"{name} is {value}", remedy=f"it is {get_args(part)[1].words}", **place)
    raise mismatch(name, value, hint, **place)


def mismatch(name: str, value: Any, hint: Any, **place: Any) -> ConfigError:
    """The error for a value that does not fit an annotation: what came, what is expected, the nearest choice."""
    choices = [c for part in (hint, *get_args(hint)) if get_origin(part) is Literal for c in get_args(part)]
    # The message has all the choices already.
    guess = nearest(str(value), choices).partition("known:")[0].strip() if choices else None
    what = f"{name} is {_SHORT.repr(value)}, expected {in_words(hint)}"
    return ConfigError(what, remedy=guess or None, **place)


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is what an annotation says; a text is no list, and True is no number."""
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind is Any:
        return True
    if kind is Annotated:
        return fits(value, parts[0]) and all(d.holds(value) for d in parts[1:] if isinstance(d, Domain))
    if kind is Literal:
        return value in parts
    if kind in (typing.Union, UnionType):
        return any(fits(value, part) for part in parts)
    if kind in _LISTS:
        # What is not at hand yet, as of a generator, is not looked at.
        at_hand = value if parts and isinstance(value, list | tuple) else ()
        is_list = isinstance(value, Iterable) and not isinstance(value, str | bytes | os.PathLike)
        is_list = is_list and (kind is Iterable or not isinstance(value, Mapping))
        if kind is tuple and parts[1:] != (...,):
            return is_list and len(value) == len(parts) and all(map(fits, value, parts))
        return is_list and all(fits(one, parts[0]) for one in at_hand)
    if kind in (dict, Mapping) and parts:
        return isinstance(value, Mapping) and all(fits(one, parts[1]) for one in value.values())
    if isinstance(value, bool) and kind in (int, float):
        return False
    return isinstance(value, _ACCEPTED.get(kind, kind))


def in_words(hint: Any) -> str:
    """An annotation in words, as in "expected a whole number"."""
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind is Annotated:
        return in_words(parts[0])
    if kind is Literal:
        return " or ".join(filter(None, (", ".join(map(str, parts[:-1])), str(parts[-1]))))
    if kind in (typing.Union, UnionType):
        return " or ".join(in_words(part) for part in parts if part not in (type(None), Any))
    if kind in _LISTS:
        one = in_words(parts[0])
        return f"a list of {one.removeprefix('a ')}s" if one.startswith("a ") else f"a list of {one}"
    return _WORDS.get(kind) or f"a value of class {kind.__name__}"
