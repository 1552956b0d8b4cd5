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
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Self, TypeVar, get_args, get_origin

from babyssa.checks import Settings, check, checked, mismatch
from babyssa.errors import ConfigError, nearest
from babyssa.files import read_yaml, resource_folder

if TYPE_CHECKING:
    from cyclopts import App, CycloptsError, Token
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
        Setting to value; a mapping for a group of settings. None stands for the default.
    path, lines
        Where the values are from: a file, and the line of each dotted key in it.
    above : str
        The dotted key of the group that `values` belong to, with a full stop at its end.

    Raises
    ------
    ConfigError
        If a key is unknown or stands twice, or a value does not fit; names the line.
    """
    from cyclopts import Token

    names = set()
    for key, value in values.items():
        dotted = f"{above}{key}"
        name, place = option(dotted), {"path": path, "line": lines.get(dotted)}
        if name in names:
            raise ConfigError(f"duplicate key '{name}': dashes and underscores are the same", **place)
        names.add(name)
        argument, keys = _find(arguments, name, place)
        if dataclasses.is_dataclass(value):
            value = dataclasses.asdict(value)
        if argument.children or (get_origin(argument.hint) is dict and not keys):
            if not isinstance(value, Mapping | None):
                remedy = nearest(f"{name}.", map(option, known_options(arguments)))
                raise ConfigError(f"{name} is {value!r}, expected a mapping", **place, remedy=remedy)
            add_values(arguments, value or {}, path, lines, f"{dotted}.")
        elif not any(token.keys == keys for token in argument.tokens):
            given = {"keyword": f"--{name}", "source": f"{path}:{place['line']}" if path else "", "keys": keys}
            if keys:
                # What is free-form is read as YAML again, which JSON is.
                argument.append(Token(value=json.dumps(value), **given))
                continue
            if value is None:
                value = argument.field_info.default
            # YAML's own rules take 1e-4 for a text, and a text in a file may be any value.
            elif path is None or not isinstance(value, str):
                check(name, value, argument.field_info.annotation, **place)
            if isinstance(value, str | int | float | PurePath):
                argument.append(Token(value=str(value), **given))
            elif isinstance(value, list | tuple) and value:
                argument.tokens += [Token(value=str(one), index=at, **given) for at, one in enumerate(value)]
            elif value is not argument.field_info.empty:
                argument.append(Token(implicit_value=value, **given))


def _find(arguments: ArgumentCollection, name: str, place: dict[str, Any]) -> tuple[Argument, tuple[str, ...]]:
    """The argument that a key of a recipe is for, and the keys that are left over for a free-form one."""
    try:
        argument, keys, _ = arguments.match(f"--{name}")
    except ValueError:
        argument, keys = None, ()
    # A group takes any key without a word.
    unknown = argument is None or not argument.field_info.is_keyword or argument.name == "--config"
    if unknown or (keys and get_origin(argument.hint) is not dict):
        known = [option(known) for known in known_options(arguments) if known != "config"]
        raise ConfigError(f"unknown key '{name}'", **place, remedy=nearest(name, known))
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

    collected: list[Argument] = []
    app.config = (*app.config, lambda app, commands, arguments: collected.extend(arguments))
    try:
        command, bound, _ = app.parse_args(list(words), exit_on_error=False, print_error=False)
    except CycloptsError as error:
        raise _usage_error(error, app.name[0]) from None
    except ConfigError as error:
        # What is wrong with several settings together begins with the name of one.
        name = f"--{error.what.split()[0].rstrip(':')}"
        token = next((a.tokens[0] for a in collected if a.name == name and a.tokens), None)
        if error.path is None and token is not None:
            raise ConfigError(error.what, remedy=error.remedy, **_place(token)) from None
        raise
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


def _invalid(argument: Argument, token: Token) -> ConfigError:
    name = token.keyword or argument.name
    if token.source != "cli":
        name = name.removeprefix("--")
    hint = argument.hint
    one = get_args(hint)[0] if get_origin(hint) in (list, tuple) else hint
    return mismatch(name, token.value, one, **_place(token))


def _place(token: Token) -> dict[str, Any]:
    """Where a value was given: path and line of a recipe, nothing for the command line."""
    path, _, line = token.source.rpartition(":")
    return {"path": path, "line": int(line)} if path else {}
