"""The front door: help, start-up, options, recipes, errors."""

import dataclasses
import importlib
import inspect
import os
import re
import subprocess
import sys
import typing

import pytest

import babyssa
from babyssa.cli import VERBS, find_function, main, verb_app
from babyssa.errors import BabySSAError, ConfigError, describe, nearest


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_explains_itself_within_80_columns(name, run_babyssa):
    status, stdout, _ = run_babyssa(*name.split(), "--help")
    assert status == 0
    assert max(map(len, stdout.splitlines())) <= 80
    assert f"Usage: babyssa {name}" in stdout and "examples:\n" in stdout and f"  babyssa {name} " in stdout
    assert "<class" not in stdout and "Parameters\n---" not in stdout


@pytest.mark.parametrize("name", VERBS)
def test_help_says_what_every_option_is_and_lists_its_choices(name, run_babyssa, monkeypatch):
    monkeypatch.setenv("COLUMNS", "500")
    monkeypatch.setattr("babyssa.cli.WIDEST_HELP", 500)
    lines = [
        line.strip("│ *") for line in run_babyssa(*name.split(), "--help")[1].splitlines() if line[0:1] == "│"
    ]
    rows = {word: line for line in lines for word in re.split("  +", line)[0].split()}
    for argument in verb_app(name).assemble_argument_collection(parse_docstring=True):
        if argument.children:
            continue
        row = rows[argument.name]
        assert argument.parameter.help, argument.name
        for hint in (argument.hint, *typing.get_args(argument.hint)):
            if typing.get_origin(hint) is typing.Literal:
                assert f"[choices: {', '.join(typing.get_args(hint))}]" in row
        default = argument.field_info.default
        if isinstance(default, int | float | str) and default is not False:
            assert f"[default: {default}]" in row


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_is_one_documented_function_for_python_and_the_shell(name):
    function = find_function(name)
    assert getattr(babyssa, function.__name__) is function
    for section in ("Parameters", "Returns", "Raises", "Examples"):
        assert f"\n{section}\n{'-' * len(section)}\n" in inspect.cleandoc(function.__doc__)
    documented = inspect.cleandoc(function.__doc__).split("\nParameters\n")[1].split("\nReturns\n")[0]
    for parameter in inspect.signature(function).parameters:
        assert f"\n{parameter} : " in documented


def test_the_overview_lists_every_verb(run_babyssa):
    status, stdout, _ = run_babyssa("--help")
    assert status == 0 and all(f"  {name} " in stdout for name in VERBS)
    assert max(map(len, stdout.splitlines())) <= 80
    status, stdout, _ = run_babyssa("train", "--help")
    assert status == 0 and "train encoder" in stdout and "  probe" not in stdout
    status, stdout, _ = run_babyssa("--version")
    assert (status, stdout) == (0, f"babyssa {babyssa.__version__}\n")


HEAVY = {"torch", "transformers", "datasets", "pandas", "numpy", "scipy", "sklearn", "matplotlib", "pylangacq"}


@pytest.mark.slow
def test_help_imports_nothing_heavy():
    names = [*map(str.split, VERBS), []]
    code = (
        "import sys, babyssa, babyssa.cli\n"
        f"for name in {names}:\n"
        "    assert babyssa.cli.main([*name, '--help']) == 0\n"
        f"    assert not {HEAVY} & set(sys.modules), (name, {HEAVY} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_overview_does_not_wait_for_the_parser():
    code = (
        "import sys, babyssa.cli; babyssa.cli.main(['--help']); assert not {'cyclopts', 'rich'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


GIVEN = ("--corpus", "c", "--out", "o")


@pytest.mark.parametrize(
    "argv, says",
    [
        (["prepar"], "unknown command 'prepar'; did you mean 'prepare'?"),
        (["train", "encodr"], "unknown command 'train encodr'; did you mean 'train encoder'?"),
        (["train"], "unknown command 'train'"),
        (["probe", "m", "--methd", "pll"], "unknown option '--methd'; did you mean '--method'?"),
        (["probe", "m", "--method", "pl"], "--method is 'pl', expected pll, pll-word-l2r, holistic or loglik"),
        (["probe", "m", "--order", "bad"], "did you mean 'bad-first'?"),
        (["probe", "m", "--limit", "few"], "--limit is 'few', expected a whole number"),
        (["probe", "m", "--limit", "1.5"], "--limit is '1.5', expected a whole number"),
        (["compare", "r", "--level", "high"], "--level is 'high', expected a number"),
        (["prepare", "x"], "--out is missing; see 'babyssa prepare --help'"),
        (["probe"], "MODEL is missing"),
        (["probe", "m", "s", "t"], "unexpected argument 't'"),
        (["sample", "--out", "x.csv", "--utterances"], "--utterances requires an argument"),
        (["saturation", "--scorings"], "--scorings requires at least 1 element"),
        (["score", "m", "- no ."], "unknown option '- no .'; put -- before text that begins with a dash"),
        (["score", "m", ""], "score: an argument is empty"),
        (
            ["train", "encoder", *GIVEN, "--optimisation.batch-sise", "3"],
            "did you mean '--optimisation.batch-size'?",
        ),
        (["train", "encoder", *GIVEN, "--optimisation.batch_size", "0"], "is 0"),
    ],
)
def test_wrong_usage_gets_one_line_and_status_2(argv, says, run_babyssa):
    status, stdout, stderr = run_babyssa(*argv)
    assert status == 2 and not stdout
    assert len(stderr.splitlines()) == 1 and stderr.startswith("babyssa: error: ") and says in stderr


@pytest.fixture
def settings_of(monkeypatch):
    """The settings that a command line trains with."""

    def parse(*argv, kind="encoder"):
        taken = []
        module = importlib.import_module(f"babyssa.{kind}.training")
        monkeypatch.setattr(module, f"train_{kind}", lambda settings, overwrite: taken.append(settings))
        assert main(["train", kind, *map(str, argv)]) == 0
        return taken[0]

    return parse


def test_a_recipe_lies_below_the_options_whatever_their_order(settings_of, tmp_path):
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("seed: 3\noptimisation:\n  batch_size: 8\n  beta-1: 0.5\n".replace("beta-1", "beta1"))
    for argv in (
        ["--config", recipe, "--optimisation.batch-size", 4],
        ["--optimisation.batch_size=4", f"--config={recipe}"],
    ):
        found = settings_of(*GIVEN, *argv)
        assert (found.seed, found.optimisation.batch_size, found.optimisation.beta1) == (3, 4, 0.5)
    assert (
        settings_of(*GIVEN, "--config", "small").size.layers
        == babyssa.EncoderTraining.from_recipe("small", corpus="c", out="o").size.layers
    )


def test_options_add_to_the_free_form_settings_of_a_recipe(settings_of, tmp_path):
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("variant: ssa\nscoring:\n  n: 1.7\n  learn_b: false\n  granularity: layer\n")
    found = settings_of(*GIVEN, "--config", recipe, "--scoring.b", "2", "--scoring.learn-n", "false")
    assert found.scoring == {"n": 1.7, "learn_b": False, "granularity": "layer", "b": 2, "learn_n": False}
    assert settings_of(*GIVEN, "--config", recipe, "--scoring.n", "2.5").scoring["n"] == 2.5


def test_yaml_keys_may_have_dashes(settings_of, tmp_path):
    (tmp_path / "mine.yaml").write_text("vocab-size: 300\noptimisation: {gradient-accumulation: 2}\n")
    found = settings_of(*GIVEN, "--config", tmp_path / "mine.yaml")
    assert (found.vocab_size, found.optimisation.gradient_accumulation) == (300, 2)


def test_the_last_of_an_option_counts(settings_of):
    twice = ("--seed", 1, "--optimisation.batch_size=2", "--seed=3", "--optimisation.batch-size", 4)
    found = settings_of(*twice, *GIVEN, "--out", "other")
    assert (found.seed, found.optimisation.batch_size, str(found.out)) == (3, 4, "other")


def test_flags_may_be_followed_by_true_or_false(settings_of):
    kind, given = "synthetic", ("--task", "every", "--out", "o", "--optimisation.steps", 1)
    assert settings_of(*given, kind=kind).size.positions
    assert not settings_of(*given, "--size.positions", "false", kind=kind).size.positions
    assert not settings_of(*given, "--size.positions=false", kind=kind).size.positions


@pytest.mark.parametrize(
    "text, line, says",
    [
        ("seed: 1\nsead: 2\n", 2, "unknown key 'sead'; did you mean 'seed'?"),
        ("seed: 1\noptimisation:\n  batch_sise: 2\n", 3, "unknown key 'optimisation.batch-sise'; did you mean"),
        ("optimisation:\n\n  batch_size: many\n", 3, "optimisation.batch-size is 'many', expected a whole number"),
        ("seed: 1.5\n", 1, "seed is 1.5, expected a whole number"),
        ("optimisation: 3\n", 1, "optimisation is 3, expected a mapping; did you mean 'optimisation."),
        ("scoring: 3\n", 1, "scoring is 3, expected a mapping"),
        ("seed: {a: 1}\n", 1, "seed is {'a': 1}, expected a whole number"),
        (
            "order: shufled\n",
            1,
            "order is 'shufled', expected shuffled, age or reversed; did you mean 'shuffled'?",
        ),
        ("optimisation:\n  learning_rate: fast\n", 2, "optimisation.learning-rate is 'fast', expected a number"),
        ("seed: 1\nseed: 2\n", 2, "duplicate key 'seed'"),
        (
            "vocab-size: 300\nvocab_size: 400\n",
            2,
            "duplicate key 'vocab-size': dashes and underscores are the same",
        ),
        ("optimisation:\n  log-every: 3\n  log_every: 4\n", 3, "duplicate key 'optimisation.log-every'"),
        ("seed: 1\noptimisation: {epochs: -1}\n", 2, "optimisation.epochs is -1; it is above 0"),
        ("\nseed: -1\n", 2, "seed is -1; it is from 0 to 4294967295"),
        ("size:\n  heads: 3\n  hidden_size: 16\n", 3, "size.hidden-size 16 is not a multiple of size.heads 3"),
        ("optimisation:\n  report_to: true\n", 2, "optimisation.report-to is True, expected a list of text"),
        ("variant: 1.5\n", 1, "variant is 1.5, expected text"),
        ("tokenizer: [a, b]\n", 1, "tokenizer is ['a', 'b'], expected a path"),
        ("- 1\n", None, "is not a mapping"),
        ("seed: [1\n", None, "broken YAML"),
    ],
)
def test_a_bad_recipe_is_named_with_its_line(text, line, says, run_babyssa, tmp_path):
    recipe = tmp_path / "bad.yaml"
    recipe.write_text(text)
    status, _, stderr = run_babyssa("train", "encoder", "--config", recipe, *GIVEN)
    assert status == 2 and len(stderr.splitlines()) == 1
    assert says in stderr and (f"{recipe}:{line}: " if line else f"{recipe}") in stderr
    with pytest.raises(ConfigError) as error:
        babyssa.EncoderTraining.from_recipe(recipe, corpus="c", out="o")
    assert says in str(error.value)


def test_an_unknown_recipe_names_the_packaged_ones(run_babyssa):
    status, _, stderr = run_babyssa("train", "encoder", "--config", "smal", *GIVEN)
    assert status == 2 and "no packaged encoder recipe 'smal'; did you mean 'small'?" in stderr


def test_python_reads_recipes_with_changes():
    made = babyssa.EncoderTraining.from_recipe(
        "small", corpus="c", out="o", seed=1, optimisation={"steps": 7}, scoring={"n": 1.7}
    )
    assert (made.seed, made.optimisation.steps, made.scoring) == (1, 7, {"n": 1.7})
    plain = babyssa.EncoderTraining.from_recipe("small", corpus="c", out="o")
    assert dataclasses.replace(made.optimisation, steps=None) == dataclasses.replace(
        plain.optimisation, steps=None
    )
    assert babyssa.DecoderTraining.from_recipe("mini", corpus="c", out="o").corpus == "c"
    assert babyssa.SyntheticTraining.from_recipe("mini", task="some", out="o").task == "some"
    with pytest.raises(ConfigError, match="unknown key 'sead'"):
        babyssa.EncoderTraining.from_recipe("small", corpus="c", out="o", sead=1)
    with pytest.raises(ConfigError, match=r"^corpus is missing"):
        babyssa.EncoderTraining.from_recipe("small", out="o")


def test_no_verb_prints_the_overview_as_wrong_usage(run_babyssa):
    status, stdout, _ = run_babyssa()
    assert status == 2 and "commands:" in stdout


def test_dashes_and_underscores_name_the_same_option(run_babyssa, tmp_path):
    for number, option in enumerate(["--min-words", "--min_words"]):
        (tmp_path / "a.txt").write_text("yes .\nthe dog barks .\n")
        out = tmp_path / str(number)
        status, _, stderr = run_babyssa("prepare", tmp_path / "a.txt", "--out", out, option, 4)
        assert status == 0, stderr
        assert (out / "corpus.txt").read_text() == "the dog barks .\n"


def test_a_traceback_is_shown_with_debug_only(run_babyssa):
    status, _, stderr = run_babyssa("prepare", "/nowhere", "--out", "/tmp/x")
    assert status == 1 and "Traceback" not in stderr and len(stderr.splitlines()) == 1
    status, _, stderr = run_babyssa("prepare", "/nowhere", "--out", "/tmp/x", "--debug")
    assert status == 1 and "Traceback" in stderr and stderr.splitlines()[-1].startswith("babyssa: error: ")


def test_the_shell_learns_to_complete_options(run_babyssa, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/bin/bash")
    status, stdout, stderr = run_babyssa("--install-completion")
    assert status == 0, stderr
    script = next(path for path in tmp_path.rglob("*") if path.is_file() and str(path) in stdout).read_text()
    assert "--min-words" in script and "pll-word-l2r" in script and "--optimisation.batch-size" in script


def test_the_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "babyssa", "--version"], capture_output=True, text=True)
    assert done.stdout == f"babyssa {babyssa.__version__}\n"


def test_a_closed_pipe_is_no_traceback():
    command = f"{sys.executable} -m babyssa --help | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert "Traceback" not in done.stderr


def test_an_interruption_is_no_traceback(monkeypatch, capsys):
    def interrupt(argv):
        raise KeyboardInterrupt

    monkeypatch.setattr("babyssa.cli.run", interrupt)
    assert main(["demo"]) == 130 and "interrupted" in capsys.readouterr().err


def test_an_error_says_what_where_and_what_to_do():
    error = BabySSAError("bad\nrow", path="a.csv", line=3, remedy="fix it")
    assert str(error) == "a.csv:3: bad row; fix it"
    assert str(ConfigError("bad")) == "bad" and ConfigError.exit_code == 2
    assert "--debug" in describe(ValueError("x")) and describe(OSError(28, "No space", "f")) == "f: No space"


def test_the_nearest_name_is_suggested():
    assert nearest("sofmax", ["softmax", "ssa"]) == "did you mean 'softmax'? known: softmax, ssa"
    assert nearest("zzz", ["softmax", "ssa"]) == "known: softmax, ssa"


def test_every_exported_name_exists():
    packages = ("corpus", "decoder", "encoder", "language", "models", "probing", "synthetic", "comparison")
    for package in (babyssa, *(importlib.import_module(f"babyssa.{name}") for name in packages)):
        for name in package.__all__:
            assert callable(getattr(package, name)) or name.isupper(), name


def test_the_choices_of_an_option_are_those_of_its_registry():
    from babyssa.corpus.preparation import READERS, Order
    from babyssa.models.scores import METHODS
    from babyssa.probing.diagnostic import DIAGNOSTIC_TASKS
    from babyssa.probing.suites import PAIR_ORDERS
    from babyssa.synthetic.tasks import TASKS

    def choices(verb, option):
        hint = verb_app(verb).assemble_argument_collection().get(option).hint
        literal = next(h for h in (hint, *typing.get_args(hint)) if typing.get_origin(h) is typing.Literal)
        return typing.get_args(literal)

    assert choices("prepare", "--kind") == ("auto", *READERS)
    assert choices("prepare", "--order") == typing.get_args(Order)
    assert choices("score", "--method") == choices("probe", "--method") == tuple(METHODS)
    assert choices("probe", "--order") == PAIR_ORDERS
    assert choices("train synthetic", "--task") == tuple(TASKS)
    assert choices("diagnose", "--task") == tuple(DIAGNOSTIC_TASKS)


def test_a_terminal_of_no_known_width_gets_help_of_80_columns(run_babyssa, monkeypatch):
    monkeypatch.setenv("COLUMNS", "0")
    status, stdout, _ = run_babyssa("score", "--help")
    assert status == 0 and max(map(len, stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    "words, says",
    [
        (("--variant", "--seed", "--seed", "1"), "--seed has no value"),
        (("--variant", "softmax", "--variant", "--seed", "1"), "--variant"),
        (("--size", "3"), "--size is a group of options"),
        (("--scoring.n", "{"), "--scoring.n is '{', which is broken YAML"),
    ],
)
def test_no_value_is_taken_for_another_options(words, says, run_babyssa, tmp_path, corpus):
    status, _, stderr = run_babyssa("train", "encoder", "--corpus", corpus, "--out", tmp_path / "run", *words)
    assert status == 2 and says in stderr and len(stderr.splitlines()) == 1 and not (tmp_path / "run").exists()


@pytest.mark.parametrize("line", ["seed: [1, 2]", "corpus: [a, b]", "config: small"])
def test_a_recipes_lists_and_keys_are_those_of_its_settings(line, run_babyssa, tmp_path, corpus):
    (tmp_path / "a.yaml").write_text(f"variant: ssa\n{line}\n")
    given = () if line.startswith("corpus") else ("--corpus", corpus)
    status, _, stderr = run_babyssa(
        "train", "encoder", "--config", tmp_path / "a.yaml", "--out", tmp_path / "run", *given
    )
    assert status == 2 and f"{tmp_path}/a.yaml:2: " in stderr and len(stderr.splitlines()) == 1


def test_null_stands_for_the_default_whatever_lies_below(settings_of, tmp_path):
    recipe = tmp_path / "a.yaml"
    recipe.write_text("seed: null\nscoring: null\noptimisation: {log_every: null, report_to: null, steps: ~}\n")
    plain = babyssa.EncoderTraining("c", "o")
    assert babyssa.EncoderTraining.from_recipe(recipe, corpus="c", out="o").optimisation == plain.optimisation
    recipe.write_text("seed: 3\ntokenizer: t\n")
    found = babyssa.EncoderTraining.from_recipe(recipe, corpus="c", out="o", tokenizer=None, seed=None)
    assert found.tokenizer is None and found.seed == 0
    above = tmp_path / "b.yaml"
    above.write_text("seed: null\n")
    assert settings_of(*GIVEN, "--config", recipe, "--config", above).seed == 0


def test_a_text_in_yaml_may_be_a_number(tmp_path):
    recipe = tmp_path / "a.yaml"
    recipe.write_text("optimisation: {learning_rate: 1e-3, epochs: 3}\nevaluation: {suite: packaged}\n")
    found = babyssa.EncoderTraining.from_recipe(recipe, corpus="c", out="o").optimisation
    assert (found.learning_rate, found.epochs) == (0.001, 3.0) and isinstance(found.epochs, float)


def test_an_empty_list_replaces_the_recipes(tmp_path):
    (tmp_path / "a.yaml").write_text("optimisation:\n  report_to: [wandb]\n")
    settings = babyssa.EncoderTraining.from_recipe(
        tmp_path / "a.yaml", corpus="c", out="o", optimisation={"report_to": []}
    )
    assert settings.optimisation.report_to == []


def test_help_is_no_wider_than_a_page_on_a_wide_terminal(run_babyssa, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    assert max(map(len, run_babyssa("train", "encoder", "--help")[1].splitlines())) == 100


@pytest.mark.parametrize(
    "redirection, status, says",
    [
        ("score m <&-", 1, "standard input: is closed; pass sentences as arguments"),
        ("--help >&-", 1, "standard output is closed"),
        ("prepare /nowhere --out o 2>&-", 1, ""),
    ],
)
def test_a_closed_stream_is_one_line(redirection, status, says):
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m babyssa {redirection}"], capture_output=True, text=True
    )
    assert done.returncode == status and says in done.stderr and not done.stdout
    assert len(done.stderr.splitlines()) == bool(says)


def test_letters_that_a_terminal_lacks_are_no_traceback(tmp_path):
    (tmp_path / "caf\u00e9.txt").write_text("")
    command = [sys.executable, "-m", "babyssa", "prepare", tmp_path / "caf\u00e9.txt", "--out", tmp_path / "out"]
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 1 and "caf\\xe9.txt" in done.stderr and "Traceback" not in done.stderr
