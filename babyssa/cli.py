"""The ``babyssa`` command: finds the verb, builds its options from its signature, shows its result or its error.

Each verb is one function in :mod:`babyssa.commands`, the same one that Python calls. Its signature is its command
line and its docstring is its help; cyclopts does the rest. Two things are the shell's alone: a settings class
is spread out into ``--key.sub VALUE`` options with a ``--config FILE`` beside them, and some results can be
printed as JSON. Those modules import nothing heavy, so ``--help`` is fast.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
import json
import os
import re
import sys
import textwrap
import traceback
from collections.abc import Callable, Sequence
from typing import Annotated, NamedTuple

from babyssa.checks import hints_of
from babyssa.errors import BabySSAError, ConfigError, Stopped, describe, nearest
from babyssa.processes import first_to_fail, is_main


class Verb(NamedTuple):
    """Where a verb's function is, and the line that the overview gives it."""

    module: str
    function: str
    summary: str


VERBS = {
    "demo": Verb("experiments", "demo", "train and probe four variants on the sample corpus"),
    "sample": Verb("corpus", "generate_sample", "generate the sample corpus of child-directed speech"),
    "prepare": Verb("corpus", "prepare", "read, clean and order a corpus"),
    "tokenizer": Verb("corpus", "train_tokenizer", "train the byte-level BPE tokenizer"),
    "train encoder": Verb("training", "train_encoder", "train one masked language model"),
    "train decoder": Verb("training", "train_decoder", "train one causal language model"),
    "train synthetic": Verb("training", "train_synthetic", "train one model on an in-context task"),
    "shift": Verb("experiments", "shift", "test in-context models under shift"),
    "suite": Verb("corpus", "generate_suite", "generate the minimal-pair suite"),
    "probe": Verb("probing", "probe", "score a suite of minimal pairs with a model"),
    "score": Verb("models", "score", "score sentences, token by token"),
    "perplexity": Verb("models", "perplexity", "measure the perplexity of a text"),
    "generate": Verb("models", "generate", "let a causal model write text"),
    "evaluate": Verb("models", "evaluate", "run tasks of lm-evaluation-harness"),
    "diagnose": Verb("probing", "diagnose", "classify grammatical features from hidden states"),
    "saturation": Verb("probing", "saturation", "measure how scoring functions saturate, against theory"),
    "attention": Verb("probing", "attention_maps", "show where each head looks, and what it learned"),
    "compare": Verb("experiments", "compare", "compare variants over seeds from probe results"),
    "report": Verb("reporting", "report", "write a page of results, for any browser"),
    "sweep": Verb("experiments", "sweep", "train and probe variants x seeds, then compare"),
    "export": Verb("sharing", "export", "write a model that loads without babyssa"),
    "push": Verb("sharing", "push", "send a run to the Hugging Face hub"),
}
WITH_JSON = ("score", "perplexity", "attention")
WIDEST_HELP = 100
COMPLETION = "--install-completion"


def main(argv: list[str] | None = None) -> int:
    """Run one command line; returns the exit status (0 success, 1 failure, 2 wrong usage)."""
    argv = list(sys.argv[1:] if argv is None else argv)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        # The next file that is opened would take its place.
        _complain("error: standard output is closed")
        return 1
    for stream in (sys.stdout, sys.stderr):
        # A terminal may know fewer letters than the text has.
        stream.reconfigure(errors="backslashreplace")
    if os.environ.get("COLUMNS", "").strip() in ("0", "1"):
        # Some terminals say so; rich would take it for a width, and never end.
        del os.environ["COLUMNS"]
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
    """Say why the command ends; of several processes, only the first to fail does."""
    if first_to_fail():
        print(f"{details}babyssa: {line}", file=sys.stderr)


def run(argv: list[str]) -> int:
    """Find the verb in `argv`, and run it or print help."""
    if not argv or argv[0] in ("-h", "--help"):
        print(overview())
        return 0 if argv else 2
    if argv[0] == "--version":
        from babyssa import __version__

        print(f"babyssa {__version__}")
        return 0
    if argv[0] == COMPLETION:
        print(f"wrote {install_completion()}; it works in shells started from now on")
        return 0
    name = next((name for words in (2, 1) if (name := " ".join(argv[:words])) in VERBS), None)
    if name is not None:
        return invoke(name, argv[len(name.split()) :])
    family = {name for name in VERBS if name.startswith(f"{argv[0]} ")}
    if family and argv[1:2] and argv[1] in ("-h", "--help"):
        print(overview(family))
        return 0
    name = " ".join(argv[:2]) if family else argv[0]
    raise ConfigError(f"unknown command '{name}'", remedy=nearest(name, family or VERBS))


def overview(only: set[str] | None = None) -> str:
    """The help of ``babyssa`` itself, which needs no parser."""
    width = max(map(len, VERBS)) + 2
    rows = [f"  {name:<{width}}{v.summary}" for name, v in VERBS.items() if only is None or name in only]
    return "\n".join(
        [
            "usage: babyssa COMMAND [options]",
            "",
            "Train BabyBERTa-style language models with Softmax or Scaled Signed Averaging",
            "attention, and probe the grammar they learned.",
            "",
            "commands:",
            *rows,
            "",
            "babyssa COMMAND --help explains a command, with examples.",
            "--debug shows tracebacks; --install-completion lets the shell complete options.",
            "Start with: babyssa demo",
        ]
    )


def invoke(name: str, argv: list[str]) -> int:
    """Run the verb called `name`, and show its result."""
    options = argv[: argv.index("--")] if "--" in argv else argv
    if "-h" in options or "--help" in options:
        print_help(name, argv)
        return 0
    if "" in argv:
        raise ConfigError(f"{name}: an argument is empty", remedy="is a variable of the shell not set?")
    from babyssa import display
    from babyssa.recipes import parse

    app = verb_app(name, argv)
    result, as_json = parse(app, _normalize(argv, app.assemble_argument_collection()))
    if as_json:
        print(json.dumps(result.summary(), indent=2, ensure_ascii=False))
    elif is_main():
        display.show(result)
    failure = getattr(result, "failure", None)
    if failure is not None:
        raise failure
    return 0


def print_help(name: str, argv: Sequence[str] = ()) -> None:
    """Print a verb's docstring and options, filled to the terminal's width, and its examples as they are."""
    from cyclopts.help import DefaultFormatter
    from rich.console import Console

    class Filled(DefaultFormatter):
        def __call__(self, console, options, panel):
            for entry in panel.entries:
                _fill(entry.description.primary_renderable)
            super().__call__(console, options, panel)

        def render_description(self, console, options, description):
            _fill(description.primary_renderable)
            super().render_description(console, options, description)

    app = verb_app(name, argv)
    app.help_formatter = Filled()
    app.help_print([], console=Console(width=min(Console().width, WIDEST_HELP)))
    examples = inspect.cleandoc(find_function(name).__doc__).partition("Examples\n--------\n")[2]
    print("examples:\n" + textwrap.indent(examples, "  "))


def _fill(text) -> None:
    """Make each paragraph of a rich text one line, without backticks; the terminal wraps it."""
    paragraphs = text.plain.replace("`", "").split("\n\n")
    text.plain = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def find_function(name: str) -> Callable:
    """The function of a verb."""
    verb = VERBS[name]
    return getattr(importlib.import_module(f"babyssa.commands.{verb.module}"), verb.function)


def verb_app(name: str, argv: Sequence[str] = ()):
    """The cyclopts App of one verb: its function, and what is the shell's alone.

    A settings class becomes options with --config beside them, and a verb with JSON takes --json. The options of a
    sweep are those of the experiment that `argv` begins with. The function called returns the verb's result, and
    whether it is to be printed as JSON.
    """
    from cyclopts import Parameter

    from babyssa.recipes import (
        add_recipe,
        add_values,
        check_groups,
        check_whole_numbers,
        make_app,
        with_typed_values,
    )

    function = find_function(name)
    hints, parameters, settings, experiment = hints_of(function), [], None, None
    if name == "sweep":
        from babyssa.experiments.experiment import SETTINGS, read_experiment

        experiment = read_experiment(argv[0]) if argv and not argv[0].startswith("-") else None
        hints["settings"] = experiment.training if experiment else SETTINGS["encoder"]
    for parameter in inspect.signature(function).parameters.values():
        if dataclasses.is_dataclass(hints[parameter.name]):
            settings = hints[parameter.name]
            hints[parameter.name] = Annotated[settings, Parameter(name="*")]
            parameter = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        parameters.append(parameter)
    if settings is not None:
        text = "a packaged recipe, or a YAML file with any of these options; the last one counts most"
        hints["config"] = Annotated[list[str], Parameter(help=text, metavar="FILE", consume_multiple=False)]
        parameters.insert(0, inspect.Parameter("config", inspect.Parameter.KEYWORD_ONLY, default=[]))
    if name in WITH_JSON:
        hints["json"] = Annotated[bool, Parameter(help="print JSON instead of a table")]
        parameters.append(inspect.Parameter("json", inspect.Parameter.KEYWORD_ONLY, default=False))

    def call(*arguments, config=None, json=False, **options):
        if settings is not None:
            options = {key: with_typed_values(v) if type(v) is settings else v for key, v in options.items()}
        # A settings class may stand first in Python, where it is no word of the command line.
        return function(**dict(zip(positional, arguments, strict=False)), **options), json

    def complete(app, commands, arguments):
        check_groups(arguments)
        for token in reversed(arguments.get("--config").tokens) if settings is not None else ():
            add_recipe(arguments, token.value, settings)
        if experiment is not None:
            add_values(arguments, *experiment.part("settings"))
            if "recipe" in experiment.yaml.values:
                add_recipe(arguments, experiment.yaml.values["recipe"], settings)
        check_whole_numbers(arguments)

    call.__doc__ = function.__doc__
    call.__annotations__ = hints
    call.__signature__ = inspect.Signature(sorted(parameters, key=lambda parameter: parameter.kind))
    positional = [p.name for p in call.__signature__.parameters.values() if p.kind is not p.KEYWORD_ONLY]
    app = make_app(f"babyssa {name}", config=complete)
    app.default(call)
    return app


def _normalize(argv: list[str], arguments) -> list[str]:
    """Options with dashes, ``--flag true`` as ``--flag=true``, and the last of an option that takes one value."""
    flags = {name for argument in arguments if argument.hint is bool for name in argument.names}
    single = {name for argument in arguments if not argument.token_count()[1] for name in argument.names}
    end = argv.index("--") if "--" in argv else len(argv)
    words = []
    for word in argv[:end]:
        option = re.match(r"--[A-Za-z][\w.-]*", word)
        if option:
            word = "--" + option.group()[2:].replace("_", "-") + word[option.end() :]
        if words and words[-1] in flags and word.lower() in ("true", "false"):
            words[-1] += f"={word.lower()}"
        else:
            words.append(word)
    kept, given = [], set()
    for word in reversed(words):
        name, equals, _ = word.partition("=")
        if name in given and name in single:
            if not equals and name not in flags:
                if not kept or kept[-1].startswith("--"):
                    raise ConfigError(f"{name} has no value", remedy="give one, or leave it out")
                kept.pop()
        else:
            kept.append(word)
            given.add(name)
    return kept[::-1] + argv[end:]


def install_completion() -> str:
    """Let the shell complete verbs and their options; returns the file that this takes."""
    from cyclopts import App

    apps = {"": App(name="babyssa")}
    for name in VERBS:
        family, _, last = name.rpartition(" ")
        if family not in apps:
            apps[family] = App(name=family)
            apps[""].command(apps[family])
        apps[family].command(verb_app(name), name=last)
    return str(apps[""].install_completion())
