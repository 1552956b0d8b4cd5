"""The front door: help, start-up, errors."""

import subprocess
import sys

import pytest

import babyssa
from babyssa.cli import COMMANDS, main
from babyssa.errors import BabySSAError, ConfigError, describe, nearest


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_examples(name, run_babyssa):
    status, stdout, _ = run_babyssa(*name.split(), "--help")
    assert status == 0
    assert f"usage: babyssa {name}" in stdout and "examples:" in stdout and f"babyssa {name} " in stdout


def test_the_overview_lists_every_command(run_babyssa):
    status, stdout, _ = run_babyssa("--help")
    assert status == 0 and all(f"  {name} " in stdout for name in COMMANDS)
    status, stdout, _ = run_babyssa("train", "--help")
    assert status == 0 and "train encoder" in stdout
    status, stdout, _ = run_babyssa("--version")
    assert (status, stdout) == (0, f"babyssa {babyssa.__version__}\n")


HEAVY = {"torch", "transformers", "datasets", "pandas", "scipy", "sklearn", "matplotlib", "pylangacq"}
STARTS = ["import babyssa", *(f"import babyssa.cli; babyssa.cli.main({n.split()} + ['--help'])" for n in COMMANDS)]
STARTS.append("import babyssa.cli; babyssa.cli.main(['--help'])")


@pytest.mark.slow
@pytest.mark.parametrize("code", STARTS)
def test_help_imports_nothing_heavy(code):
    code += f"\nimport sys; found = {HEAVY} & set(sys.modules); assert not found, found"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "argv, says",
    [
        (["prepar"], "unknown command 'prepar'; did you mean 'prepare'?"),
        (["train", "encodr"], "unknown command 'train encodr'; did you mean 'train encoder'?"),
        (["train"], "unknown command 'train'"),
        (["probe", "m", "--out", "o", "--methd", "pll"], "unknown option 'methd'; did you mean 'method'?"),
        (["probe", "m"], "out"),
        (["probe", "m", "--out", "o", "--limit", "few"], "limit is 'few', expected int"),
        (["sample", "--out", "x.csv", "--utterances"], "expected one argument"),
    ],
)
def test_wrong_usage_gets_one_line_and_status_2(argv, says, run_babyssa):
    status, stdout, stderr = run_babyssa(*argv)
    assert status == 2 and not stdout
    assert len(stderr.splitlines()) == 1 and stderr.startswith("babyssa: error: ") and says in stderr


def test_no_command_prints_the_overview_as_wrong_usage(run_babyssa):
    status, stdout, _ = run_babyssa()
    assert status == 2 and "commands:" in stdout


def test_hyphens_and_underscores_name_the_same_option(run_babyssa, tmp_path):
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
    error = BabySSAError("bad\nrow", path="a.csv", line=3, remedy="mend it")
    assert str(error) == "a.csv:3: bad row; mend it"
    assert str(ConfigError("bad")) == "bad" and ConfigError.exit_code == 2
    assert "--debug" in describe(ValueError("x")) and describe(OSError(28, "No space", "f")) == "f: No space"


def test_the_nearest_name_is_suggested():
    assert nearest("sofmax", ["softmax", "ssa"]) == "did you mean 'softmax'? known: softmax, ssa"
    assert nearest("zzz", ["softmax", "ssa"]) == "known: softmax, ssa"


def test_every_exported_name_exists():
    for package in (
        babyssa,
        *(getattr(__import__(f"babyssa.{n}"), n) for n in ("data", "decoder", "encoder", "probing")),
    ):
        for name in package.__all__:
            assert callable(getattr(package, name)) or name.isupper(), name
