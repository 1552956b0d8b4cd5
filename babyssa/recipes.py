"""Recipes: YAML files with the settings of a run, in configs/ or the user's own, read into settings classes.

cyclopts turns text into values of the right type, for recipes as for options: each key of a recipe becomes a token
whose source is ``FILE:LINE``, below whatever was given explicitly. The command line and :class:`Recipe` share
this, and the errors with it.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, get_args, get_origin

from babyssa.checks import Settings, checked
from babyssa.errors import ConfigError, nearest
from babyssa.files import read_yaml, resource_folder

if TYPE_CHECKING:
    from cyclopts import App, CycloptsError
    from cyclopts.argument import Argument, ArgumentCollection

T = TypeVar("T")

# What the config.yaml of a run folder holds besides the settings themselves.
PROVENANCE = ("kind", "facts", "versions")


class Recipe(Settings):
    """Settings of a run that can be read from a recipe."""

    @classmethod
    @checked
    def from_recipe(cls, name: str | Path, **changes: Any) -> Self:
        """The settings of a recipe, with changes.

        Parameters
        ----------
        name : str or path-like
            A packaged recipe, such as ``"small"``, or a YAML file.
        **changes
            Settings that differ from the recipe's; those of a group as a dict: ``optimisation={"steps": 100}``.

        Raises
        ------
        ConfigError
            If there is no such recipe, or a setting is unknown, missing or out of its domain.

        Examples
        --------
        >>> from babyssa import EncoderTraining
        >>> settings = EncoderTraining.from_recipe("small", corpus="corpus/", out="runs/ssa", seed=1)
        """

        def feed(app, commands, arguments):
            add_values(arguments, changes)
            add_recipe(arguments, name, cls)
            check_whole_numbers(arguments)

        app = make_app(cls.__name__, config=feed)
        app.default(cls)
        return with_typed_values(parse(app, []))


def build_settings(
    settings: type[T],
    values: Mapping[str, Any],
    base: T | None = None,
    path: Path | None = None,
    lines: Mapping[str, int] = {},
) -> T:
    """An instance of a settings class from plain values, those of `base` where there is no other.

    Parameters
    ----------
    settings : type
        A dataclass.
    values : mapping
        As in a recipe.
    base : dataclass, optional
        What else is set.
    path, lines
        Where the values are from, as in :func:`add_values`.

    Raises
    ------
    ConfigError
        If a setting is unknown, missing or out of its domain; names the line.
    """

    def feed(app, commands, arguments):
        add_values(arguments, values, path, lines)
        if base is not None:
            add_values(arguments, {f.name: getattr(base, f.name) for f in dataclasses.fields(base)})
        check_whole_numbers(arguments)

    app = make_app(settings.__name__, config=feed)
    app.default(settings)
    return with_typed_values(parse(app, []))


def find_recipe(name: str | Path, settings: type) -> Path:
    """The YAML file called `name`: a path, or a packaged recipe, such as ``small``.

    Raises
    ------
    ConfigError
        If there is neither; names the packaged recipes.
    """
    if Path(name).is_file():
        return Path(name)
    # The recipes of babyssa.encoder are in configs/encoder/.
    folder = settings.__module__.split(".")[1]
    packaged = {path.stem: path for path in sorted((resource_folder("configs") / folder).glob("*.yaml"))}
    if name not in packaged:
        raise ConfigError(f"no file and no packaged {folder} recipe '{name}'", remedy=nearest(str(name), packaged))
    return packaged[name]


def add_recipe(arguments: ArgumentCollection, name: str | Path, settings: type) -> None:
    """Add the values of a recipe to those arguments that have none yet."""
    path = find_recipe(name, settings)
    found = read_yaml(path, ConfigError)
    values = {key: value for key, value in found.values.items() if key not in PROVENANCE}
    add_values(arguments, values, path, found.lines)


def add_values(
    arguments: ArgumentCollection,
    values: Mapping[str, Any],
    path: Path | None = None,
    lines: Mapping[str, int] = {},
    above: str = "",
) -> None:
    """Add nested settings to those arguments that have no value yet.

    Parameters
    ----------
    arguments : ArgumentCollection
        What a settings class takes.
    values : mapping
        Setting to value; a mapping for a group of settings.
    path, lines
        Where the values are from: a file, and the line of each dotted key in it.
    above : str
        The dotted key of the group that `values` belong to, with a full stop at its end.

    Raises
    ------
    ConfigError
        If a key is unknown, or a group is not a mapping; names the line, and the nearest name.
    """
    from cyclopts import Token

    for key, value in values.items():
        dotted = f"{above}{key}"
        place = {"path": path, "line": lines.get(dotted)}
        argument, keys = _find(arguments, dotted, place)
        if dataclasses.is_dataclass(value):
            value = dataclasses.asdict(value)
        if argument.children or (get_origin(argument.hint) is dict and not keys):
            if not isinstance(value, Mapping):
                remedy = nearest(f"{option(dotted)}.", map(option, known_options(arguments)))
                raise ConfigError(f"{option(dotted)} is {value!r}, expected a mapping", **place, remedy=remedy)
            add_values(arguments, value, path, lines, f"{dotted}.")
        elif not any(token.keys == keys for token in argument.tokens):
            takes_list = get_origin(argument.hint) in (list, tuple)
            if isinstance(value, Mapping) or (isinstance(value, list | tuple) and not keys and not takes_list):
                raise ConfigError(f"{option(dotted)} is {value!r}, expected {_kind(argument.hint)}", **place)
            source = "" if path is None else f"{path}:{place['line']}"
            if takes_list and not keys and not value and value is not None:
                argument.append(Token(keyword=f"--{option(dotted)}", implicit_value=value, source=source))
            for index, one in enumerate(value if isinstance(value, list | tuple) and not keys else [value]):
                # What is free-form is read as YAML again, which JSON is.
                text = json.dumps(one) if keys else str(one)
                given = {"implicit_value": None} if one is None and not keys else {"value": text}
                given |= {"keyword": f"--{option(dotted)}", "source": source, "index": index, "keys": keys}
                argument.append(Token(**given))


def _find(arguments: ArgumentCollection, dotted: str, place: dict[str, Any]) -> tuple[Argument, tuple[str, ...]]:
    """The argument that a dotted key of a recipe is for, and the keys that are left over for a free-form one."""
    try:
        argument, keys, _ = arguments.match(f"--{option(dotted)}")
    except ValueError:
        argument, keys = None, ()
    # A group takes any key without a word.
    unknown = argument is None or not argument.field_info.is_keyword or argument.name == "--config"
    if unknown or (keys and get_origin(argument.hint) is not dict):
        known = [option(known) for known in known_options(arguments) if known != "config"]
        raise ConfigError(f"unknown key '{option(dotted)}'", **place, remedy=nearest(option(dotted), known))
    return argument, keys


def option(name: str) -> str:
    """A setting as it is written on the command line: dashes, not underscores."""
    return name.replace("_", "-")


def known_options(arguments: ArgumentCollection) -> list[str]:
    """The long names of what can be given, without their dashes, groups left out."""
    return [a.name.removeprefix("--") for a in arguments if not a.children and a.field_info.is_keyword and a.parse]


def make_app(name: str, **options: Any) -> App:
    """A cyclopts App that returns what its function returns, and raises errors instead of printing them."""
    from cyclopts import App, Parameter

    def shown(default: Any) -> str | None:
        if isinstance(default, list | tuple | dict):
            return " ".join(map(str, default)) or None
        return None if default is False or default is None else str(default)

    return App(
        name=name,
        help_format="plaintext",
        help_flags=[],
        version_flags=[],
        default_parameter=Parameter(negative=(), consume_multiple=(1, None), show_default=shown),
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
        **options,
    )


def with_typed_values(settings: Any) -> Any:
    """The same settings with the texts in free-form fields, such as scoring, read as YAML reads them."""
    import yaml

    def typed(name: str, value: Any) -> Any:
        try:
            return yaml.safe_load(value) if isinstance(value, str) else value
        except yaml.YAMLError:
            raise ConfigError(f"--{option(name)} is '{value}', which is broken YAML") from None

    free = {
        field.name: {
            key.replace("-", "_"): typed(f"{field.name}.{key}", value)
            for key, value in getattr(settings, field.name).items()
        }
        for field in dataclasses.fields(settings)
        if isinstance(getattr(settings, field.name), dict)
    }
    return dataclasses.replace(settings, **free)


def parse(app: App, words: Iterable[str]) -> Any:
    """Call the app's function with the command line `words`.

    Raises
    ------
    ConfigError
        If they do not fit its signature: one line with place and remedy.
    """
    from cyclopts import CycloptsError

    try:
        command, bound, _ = app.parse_args(list(words), exit_on_error=False, print_error=False)
    except CycloptsError as error:
        raise _usage_error(error, app.name[0]) from None
    return command(*bound.args, **bound.kwargs)


def check_groups(arguments: ArgumentCollection) -> None:
    """Raise ConfigError where a value is given for a group of settings: cyclopts would give it to the first."""
    for argument in arguments:
        if argument.children and argument.tokens and argument.field_info.is_keyword:
            name = argument.tokens[0].keyword or argument.name
            remedy = nearest(f"{name}.", [child.name for child in argument.children])
            raise ConfigError(f"{name} is a group of options and takes no value", remedy=remedy)


def check_whole_numbers(arguments: ArgumentCollection) -> None:
    """Raise ConfigError where 1.5 is given for a whole number: cyclopts would round it."""
    for argument in arguments:
        whole = argument.hint is int or (int in get_args(argument.hint) and float not in get_args(argument.hint))
        for token in argument.tokens if whole else ():
            if not re.fullmatch(r"[+-]?[\d_]+", token.value) and token.implicit_value is not None:
                raise _invalid(argument, token)


def _usage_error(error: CycloptsError, name: str) -> ConfigError:
    """What cyclopts says, as one line with place and remedy."""
    from cyclopts import CoercionError, MissingArgumentError, UnknownOptionError, UnusedCliTokensError

    error.verbose, in_shell = False, name.startswith("babyssa ")
    argument, token = error.argument, getattr(error, "token", None)
    if isinstance(error, UnknownOptionError):
        unknown = (token.keyword or token.value).partition("=")[0]
        known = (f"--{known}" for known in known_options(error.argument_collection))
        remedy = "put -- before text that begins with a dash" if " " in unknown else nearest(unknown, known)
        return ConfigError(f"unknown option '{unknown}'", remedy=remedy)
    if isinstance(error, CoercionError) and argument is not None and token is not None:
        return _invalid(argument, token)
    what = " ".join(str(error).split()).rstrip(".")
    if isinstance(error, UnusedCliTokensError):
        what = f"unexpected argument '{error.unused_tokens[0]}'"
    elif isinstance(error, MissingArgumentError) and not argument.tokens and error.keyword is None:
        plain = argument.name.removeprefix("--")
        shown = plain.upper() if argument.field_info.is_positional else argument.name
        what = f"{shown if in_shell else plain} is missing"
    return ConfigError(what, remedy=f"see '{name} --help'" if in_shell else None)


def _invalid(argument: Argument, token: Any) -> ConfigError:
    path, _, line = token.source.rpartition(":")
    name = token.keyword or argument.name
    if token.source != "cli":
        name = name.removeprefix("--")
    kinds = get_args(argument.hint)
    choices = [c for kind in (argument.hint, *kinds) if get_origin(kind) is Literal for c in get_args(kind)]
    return ConfigError(
        f"{name} is '{token.value}', expected {_kind(argument.hint)}",
        path=path or None,
        line=int(line) if path else None,
        # The message has all the choices already.
        remedy=nearest(token.value, choices).partition("known:")[0].strip() or None,
    )


def _kind(hint: Any) -> str:
    """A type in words."""
    names = {int: "a whole number", float: "a number", bool: "true or false"}
    if get_origin(hint) is Literal:
        *others, last = map(str, get_args(hint))
        return f"{', '.join(others)} or {last}" if others else last
    if get_origin(hint) in (list, tuple):
        return f"a list of {_kind(get_args(hint)[0])}"
    if get_args(hint):
        return " or ".join(dict.fromkeys(_kind(kind) for kind in get_args(hint) if kind is not type(None)))
    return names.get(hint, getattr(hint, "__name__", "text").lower().replace("str", "text"))
