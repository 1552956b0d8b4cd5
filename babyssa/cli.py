"""The ``babyssa`` command: finds the subcommand, builds its options from its signature, prints its errors.

Each subcommand is one typed function in :mod:`babyssa.commands`. Its signature is its command line:
positional parameters become arguments, ``*names`` a list of arguments, keyword-only parameters options, and
a keyword-only dataclass is spread out into ``--key.sub value`` options with a ``--config FILE`` beside
them. Its docstring is its help. Those modules import nothing heavy, so ``--help`` is fast.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import inspect
import os
import re
import sys
import traceback
import typing
from collections.abc import Callable
from typing import NamedTuple

from babyssa.errors import BabySSAError, ConfigError, Stopped, describe, nearest
from babyssa.processes import first_to_fail


class Command(NamedTuple):
    """Where a subcommand's function is, and the line that the overview gives it."""

    module: str
    function: str
    summary: str


COMMANDS = {
    "demo": Command("babyssa.commands.demo", "demo", "train and probe four variants on the sample corpus"),
    "sample": Command("babyssa.commands.data", "sample", "generate the sample corpus of child-directed speech"),
    "prepare": Command("babyssa.commands.data", "prepare", "read, clean and order a corpus"),
    "tokenizer": Command("babyssa.commands.data", "tokenizer", "train the byte-level BPE tokenizer"),
    "train encoder": Command("babyssa.commands.train", "encoder", "train one masked language model"),
    "train decoder": Command("babyssa.commands.train", "decoder", "train one causal language model"),
    "train synthetic": Command("babyssa.commands.train", "synthetic", "train one model on an in-context task"),
    "shift": Command("babyssa.commands.shift", "shift", "test in-context models under shift"),
    "suite": Command("babyssa.commands.suite", "suite", "generate the minimal-pair suite"),
    "probe": Command("babyssa.commands.probe", "probe", "score a suite of minimal pairs with a model"),
    "score": Command("babyssa.commands.probe", "score", "score sentences, token by token"),
    "perplexity": Command("babyssa.commands.decoder", "perplexity", "measure the perplexity of a text"),
    "generate": Command("babyssa.commands.decoder", "generate", "let a causal model write text"),
    "evaluate": Command("babyssa.commands.decoder", "evaluate", "run tasks of lm-evaluation-harness"),
    "diagnose": Command("babyssa.commands.probe", "diagnose", "classify grammatical features from hidden states"),
    "saturation": Command(
        "babyssa.commands.attention", "saturation", "measure how scoring functions saturate, against theory"
    ),
    "attention": Command("babyssa.commands.attention", "attention", "show where each head looks in a text"),
    "compare": Command("babyssa.commands.compare", "compare", "compare variants over seeds from probe results"),
    "sweep": Command("babyssa.commands.train", "sweep", "train and probe variants x seeds, then compare"),
}


def main(argv: list[str] | None = None) -> int:
    """Run one command line; returns the exit status (0 success, 1 failure, 2 wrong usage)."""
    argv = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in argv
    argv = [word for word in argv if word != "--debug"]
    try:
        return run(argv)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 1
    except BrokenPipeError:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        _complain("interrupted")
        return 130
    except Stopped as stop:
        _complain(describe(stop))
        return stop.exit_code
    except Exception as error:
        _complain(f"error: {describe(error)}", traceback.format_exc() if debug else "")
        return error.exit_code if isinstance(error, BabySSAError) else 1


def _complain(line: str, details: str = "") -> None:
    """Say why the command ends; of several processes, the first that fails does."""
    if first_to_fail():
        print(f"{details}babyssa: {line}", file=sys.stderr)


def run(argv: list[str]) -> int:
    """Find the subcommand in `argv`, parse the rest by its signature, and call it."""
    if not argv or argv[0] in ("-h", "--help"):
        print(overview())
        return 0 if argv else 2
    if argv[0] == "--version":
        from babyssa import __version__

        print(f"babyssa {__version__}")
        return 0
    for words in (2, 1):
        name = " ".join(argv[:words])
        if name in COMMANDS:
            return invoke(name, argv[words:])
    family = {name for name in COMMANDS if name.startswith(f"{argv[0]} ")}
    if family and argv[1:2] and argv[1] in ("-h", "--help"):
        print(overview(family))
        return 0
    name = " ".join(argv[:2]) if family else argv[0]
    raise ConfigError(f"unknown command '{name}'", remedy=nearest(name, family or COMMANDS))


def overview(only: set[str] | None = None) -> str:
    """The help of ``babyssa`` itself."""
    width = max(map(len, COMMANDS)) + 2
    rows = [f"  {name:<{width}}{c.summary}" for name, c in COMMANDS.items() if only is None or name in only]
    return "\n".join(
        [
            "usage: babyssa COMMAND [options]",
            "",
            "Train BabyBERTa-style language models with Softmax or Scaled Signed Averaging attention,",
            "and probe the grammar they learned.",
            "",
            "commands:",
            *rows,
            "",
            "babyssa COMMAND --help explains a command, with examples. --debug shows tracebacks.",
            "Start with: babyssa demo",
        ]
    )


def invoke(name: str, argv: list[str]) -> int:
    """Parse `argv` by the signature of the command called `name`, and call it."""
    import jsonargparse

    if "" in argv:
        raise ConfigError(f"{name}: an argument is empty", remedy="is a variable of the shell not set?")
    command = COMMANDS[name]
    function = getattr(importlib.import_module(command.module), command.function)
    parser, positional, settings = build_parser(name, function)
    words, recipe = _with_recipes([_with_underscores(word) for word in argv], parser, settings)
    try:
        parsed = parser.parse_args(words)
    except jsonargparse.ArgumentError as error:
        raise _usage_error(error, parser, name, recipe, words) from None
    values = parser.instantiate(parsed)
    values.pop("config", None)
    values.pop("__path__", None)
    arguments = []
    for parameter in positional:
        value = values.pop(parameter.name)
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            arguments.extend(value)
        else:
            arguments.append(value)
    if settings is not None:
        keyword, kind = settings
        names = {field.name for field in dataclasses.fields(kind)}
        own = {key: values.pop(key) for key in list(vars(values)) if key in names}
        return function(*arguments, **{keyword: kind(**own)}, **values.as_dict()) or 0
    return function(*arguments, **values.as_dict()) or 0


def build_parser(name: str, function: Callable):
    """Build the parser of one command.

    Returns
    -------
    tuple
        The parser, the positional parameters in order, and (parameter name, dataclass) of the settings
        that are spread out into options, or None.
    """
    import jsonargparse

    summary, examples, documented = _read_docstring(function)
    parser = jsonargparse.ArgumentParser(
        prog=f"babyssa {name}",
        description=summary,
        epilog=examples,
        exit_on_error=False,
        formatter_class=_formatter(),
    )
    hints = typing.get_type_hints(function)
    positional, settings = [], None
    for parameter in inspect.signature(function).parameters.values():
        hint = hints.get(parameter.name, str)
        about = {"help": documented.get(parameter.name, "")}
        default = list(parameter.default) if isinstance(parameter.default, tuple) else parameter.default
        option = f"--{parameter.name}"
        required = parameter.default is inspect.Parameter.empty
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            positional.append(parameter)
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                about["nargs"] = "*"
            parser.add_argument(parameter.name, type=hint, metavar=parameter.name.upper(), **about)
        elif dataclasses.is_dataclass(hint):
            settings = (parameter.name, hint)
            about["help"] = "a packaged recipe's name, or a YAML file, with any of the options below"
            parser.add_argument("--config", action="config", **about)
            parser.add_class_arguments(hint)
        elif hint is bool and parameter.default is False:
            parser.add_argument(option, action="store_true", **about)
        else:
            if typing.get_origin(hint) is list:
                (hint,) = typing.get_args(hint)
                about["nargs"] = "+"
            if required:
                parser.add_argument(option, type=hint, required=True, **about)
            else:
                parser.add_argument(option, type=hint, default=default, **about)
    return parser, positional, settings


def _formatter():
    """Help with its examples left as they are written."""
    import argparse

    from jsonargparse import DefaultHelpFormatter

    class Formatter(DefaultHelpFormatter, argparse.RawDescriptionHelpFormatter):
        pass

    return Formatter


def _read_docstring(function: Callable) -> tuple[str, str, dict[str, str]]:
    """Split a numpy-style docstring into description, examples (for the epilog) and parameter texts."""
    import docstring_parser

    text = inspect.cleandoc(function.__doc__ or "")
    text, _, examples = text.partition("\nExamples\n--------\n")
    parsed = docstring_parser.parse(text)
    about = {p.arg_name.lstrip("*"): " ".join((p.description or "").split()) for p in parsed.params}
    description = "\n\n".join(filter(None, [parsed.short_description, parsed.long_description]))
    return description, f"examples:\n{_indent(examples)}" if examples else "", about


def _indent(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in inspect.cleandoc(text).splitlines())


def _with_recipes(argv: list[str], parser, settings: tuple[str, type] | None) -> tuple[list[str], Recipe]:
    """Replace what follows each ``--config`` by what jsonargparse takes, and read it for error messages."""
    words = [part for word in argv for part in (word.split("=", 1) if word.startswith("--config=") else [word])]
    recipe = Recipe()
    if settings is None:
        return words, recipe
    from babyssa.commands.settings import find_recipe, recipes_for

    for number in range(1, len(words)):
        if words[number - 1] == "--config":
            path = find_recipe(words[number], recipes_for(settings[1]))
            words[number] = recipe.read(str(path), _known_options(parser))
    return words, recipe


def _with_underscores(word: str) -> str:
    """``--min-words=3`` and ``--min_words=3`` are the same option."""
    match = re.match(r"--[A-Za-z][\w.-]*", word)
    return word if match is None else match.group().replace("-", "_").replace("__", "--", 1) + word[match.end() :]


class Recipe:
    """The YAML files given with ``--config``: the place of each dotted key in them."""

    def __init__(self):
        self.places: dict[str, tuple[str, int]] = {}

    def read(self, path: str, known: set[str]) -> str:
        """Read one file; returns it as jsonargparse takes it, without a run folder's provenance.

        Raises
        ------
        ConfigError
            If the file is not UTF-8 or not a YAML mapping, or has a key that `known` lacks.
        """
        groups = {key.rpartition(".")[0] for key in known if "." in key}
        import json

        from babyssa.files import read_yaml
        from babyssa.models.run_config import PROVENANCE

        found = read_yaml(path, ConfigError)
        for name, line in found.lines.items():
            parent = name.rpartition(".")[0]
            if name.partition(".")[0] in PROVENANCE or parent in known - groups:
                continue
            if name not in known | groups:
                raise ConfigError(f"unknown key '{name}'", path=path, line=line, remedy=nearest(name, known))
            self.places[name] = (path, line)
        for name in groups & found.lines.keys():
            value = functools.reduce(lambda values, key: values[key], name.split("."), found.values)
            if not isinstance(value, dict):
                what = f"{name} is {value!r}, expected a mapping"
                raise ConfigError(what, path=path, line=found.lines[name], remedy=nearest(name + ".", known))
        return json.dumps({key: value for key, value in found.values.items() if key not in PROVENANCE})


def _known_options(parser) -> set[str]:
    own = ("help", "print_config", "print_shtab")
    return {action.dest for action in parser._actions if action.dest not in own}


def _usage_error(error: Exception, parser, name: str, recipe: Recipe, words: list[str]) -> ConfigError:
    """Turn what argparse and jsonargparse say into one line with place and remedy."""
    message = " ".join(str(error).split()).replace("typing.", "")
    message = re.sub(r"<class '(?:[\w.]*\.)?(\w+)'>", r"\1", message)
    unknown = re.search(r"unrecognized arguments: --([\w.]+)", message)
    if unknown:
        remedy = nearest(unknown.group(1), _known_options(parser))
        return ConfigError(f"{name}: unknown option '{unknown.group(1)}'", remedy=remedy)
    invalid = re.match(r'Parser key "([\w.]+)":', message)
    place = recipe.places.get(invalid.group(1), (None, None)) if invalid else (None, None)
    if invalid and any(re.match(rf"--{re.escape(invalid.group(1))}(=|$)", word) for word in words):
        place = (None, None)
    if invalid:
        expected = re.findall(r"Expected an? ([\w.\[\]', -]+?)(?=\.? (?:-|Got|Given)|$)", message)
        got = re.search(r"(?:Got|Given) value: (.*)$", message)
        if expected and got:
            kinds = " or ".join(dict.fromkeys(_readable(kind) for kind in expected))
            message = f"{invalid.group(1)} is {got.group(1)!r}, expected {kinds}"
    return ConfigError(f"{name}: {message}", path=place[0], line=place[1], remedy=f"see 'babyssa {name} --help'")


def _readable(kind: str) -> str:
    """A type as jsonargparse writes it, in words."""
    choices = re.fullmatch(r"Literal\[(.*)\]", kind)
    return " or ".join(re.findall(r"'([^']*)'", choices.group(1))) if choices else kind.replace("NoneType", "null")
