"""An experiment's file: what it says is what is run, and every mistake in it is named with its line."""

import json

import pytest

from babyssa.experiments.experiment import SETTINGS, make_experiment, read_experiment
from babyssa.experiments.grid import make_cells
from babyssa.files import read_yaml, resource_folder
from babyssa.recipes import build_settings, find_recipe

ENCODER = """
setting: encoder
settings:
  vocab_size: 350
  size: {layers: 1, heads: 2, hidden_size: 16, feed_forward_size: 24}
  optimisation: {batch_size: 8, steps: 2}
  evaluation: {held_out: 5}
variants:
  softmax: {variant: softmax}
  n17: {variant: ssa, scoring: {n: 1.7, granularity: layer}}
seeds: [1]
data:
  mine: pairs of your own
measures:
  pairs: {kind: pairs, suite: mine, method: holistic}
  held-out: {kind: held-out}
  text: {kind: perplexity, texts: [corpus]}
  learned: {kind: scoring}
  saturation: {kind: saturation, at: 5}
""".replace("texts: [corpus]", "texts: [CORPUS]")

SYNTHETIC = """
setting: synthetic
settings:
  length: 5
  size: {layers: 1, heads: 2, width: 8, max_numbers: 20}
  optimisation: {batch_size: 4, steps: 2}
conditions:
  every: {task: every}
  linear: {task: linear, length: 4}
variants:
  attention: {variant: ssa, size: {blocks: attention}}
seeds: [0]
measures:
  shifts: {kind: shift, scales: [3], lengths: [9], deviant: 0, sequences: 8}
"""


@pytest.fixture
def write(tmp_path, corpus):
    def write(text):
        path = tmp_path / "mine.yaml"
        path.write_text(text.replace("CORPUS", str(corpus)))
        return path

    return write


def test_an_experiment_trains_measures_and_compares_what_its_file_says(
    write, suite, corpus, tmp_path, run_babyssa
):
    words = ("sweep", write(ENCODER), "--corpus", corpus, "--data.mine", suite, "--out", tmp_path / "out")
    status, stdout, stderr = run_babyssa(*words, "--optimisation.steps", 3)
    assert status == 0, stderr
    assert "mine: pairs" in stdout and "mine: held-out" in stdout and "left" in stderr
    stored = json.loads((tmp_path / "out" / "results" / "n17-1" / "cell.json").read_text())
    assert (stored["variant"], stored["settings"]["variant"], stored["seed"]) == ("n17", "ssa", 1)
    assert stored["settings"]["scoring"]["n"] == 1.7 and stored["settings"]["optimisation"]["steps"] == 3
    assert stored["measures"]["pairs"]["options"]["suite"] == "mine"
    learned = stored["measures"]["learned"]
    assert learned["values"]["n, mean"] == pytest.approx(1.7, abs=0.1) and len(learned["details"]["heads"]) == 2
    left = stored["measures"]["saturation"]["values"]["lead 5"]
    # Of 16 keys: 15 / (15 + (1 + 5 b)^n), with b and n near their initial values.
    assert left == pytest.approx(15 / (15 + 5**1.7), rel=0.05)
    assert stored["measures"]["text"]["unit"] == "pseudo-perplexity per token"
    status, stdout, stderr = run_babyssa(*words, "--optimisation.steps", 3, "--variants", "n17")
    assert status == 0 and "1 of 1 cells need no work" in stderr


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(write, suite, corpus, tmp_path, run_babyssa):
    path = write(ENCODER.replace("batch_size: 8, steps: 2", "batch_size: 8, epochs: 0.5"))
    given = ("--corpus", corpus, "--data.mine", suite, "--out", tmp_path / "out")
    status, stdout, stderr = run_babyssa("sweep", path, *given, "--variants", "softmax", "--dry-run")
    assert status == 0, stderr
    (row,) = [line.split() for line in stdout.splitlines() if line.startswith("softmax")]
    assert row[:-2] == ["softmax", "1", "to", "be", "trained", "10,358"]
    # 115 sentences in ten patterns and batches of eight, for half an epoch; a batch has sentences of one length.
    assert int(row[-2]) == pytest.approx(72, abs=4)
    assert not (tmp_path / "out").exists()


def test_conditions_are_compared_each_by_itself(write, tmp_path, run_babyssa):
    status, stdout, stderr = run_babyssa("sweep", write(SYNTHETIC), "--task", "some", "--out", tmp_path / "out")
    assert status == 0, stderr
    assert "mine: every: shifts" in stdout and "mine: linear: shifts" in stdout
    stored = json.loads((tmp_path / "out/results/linear/attention-0/cell.json").read_text())
    assert stored["settings"]["task"] == "linear" and stored["settings"]["size"]["blocks"] == "attention"
    (measure,) = stored["measures"].values()
    assert {name.partition(": ")[2] for name in measure["values"]} >= {"inputs x 3", "both x 3", "length 9"}
    assert "least squares" in measure["details"]["simple predictors"]


@pytest.mark.parametrize(
    "old, new, says",
    [
        ("variants:", "varants:", r"mine.yaml:8: unknown key 'varants'; did you mean 'variants'"),
        ("seeds: [1]", "seeds: 3", r"mine.yaml:11: seeds is 3, expected a list"),
        ("setting: encoder", "setting: coder", r"mine.yaml:2: unknown setting 'coder'; did you mean"),
        ("n: 1.7", "m: 1.7", r"variant 'ssa' has no parameter 'm'"),
        ("{variant: softmax}", "{vary: softmax}", r"mine.yaml:9: unknown key 'vary'; did you mean 'variant'"),
        ("kind: held-out", "kind: heldout", r"mine.yaml:16: measures.held-out.kind is 'heldout'; did you mean"),
        ("method: holistic", "metod: holistic", r"mine.yaml:15: unknown key 'metod'; did you mean 'method'"),
        ("kind: held-out", "kind: shift", r"'held-out' is of kind shift, which does not measure"),
        ("vocab_size: 350", "vocab_sise: 350", r"mine.yaml:4: unknown key 'vocab-sise'"),
        ("  mine: pairs", "  yours: pairs", r"needs no data 'mine'"),
        ("seeds: [1]", "baseline: ssa\nseeds: [0]", r"mine.yaml:11: no variant 'ssa'"),
    ],
)
def test_a_mistake_is_named_with_its_line(old, new, says, write, suite, corpus, tmp_path, run_babyssa):
    assert ENCODER.count(old)
    path = write(ENCODER.replace(old, new, 1))
    status, _, stderr = run_babyssa(
        "sweep", path, "--corpus", corpus, "--data.mine", suite, "--out", tmp_path / "out"
    )
    assert status != 0 and stderr.count("\n") == 1 and says in stderr
    assert not (tmp_path / "out").exists()


def test_what_the_reader_must_give_is_asked_for(write, corpus, tmp_path, run_babyssa):
    _, _, stderr = run_babyssa("sweep", write(ENCODER), "--corpus", corpus, "--out", tmp_path / "out")
    assert "--data.mine is missing; give pairs of your own" in stderr
    _, _, stderr = run_babyssa("sweep", "encoder-gramar", "--out", tmp_path)
    assert "no file and no packaged experiment 'encoder-gramar'; did you mean 'encoder-grammar'" in stderr


@pytest.mark.parametrize("path", sorted((resource_folder("configs") / "experiments").glob("*.yaml")), ids=str)
def test_every_packaged_experiment_can_be_made(path, tmp_path):
    file = read_experiment(path.stem)
    training = SETTINGS[file.yaml.values["setting"]]
    given = {"corpus": "c", "out": str(tmp_path), "task": "every"}
    given = {key: value for key, value in given.items() if key in training.__dataclass_fields__}
    recipe = read_yaml(find_recipe(file.yaml.values["recipe"], training)).values
    settings = build_settings(training, {**recipe, **given})
    experiment = make_experiment(file, settings, dict.fromkeys(file.yaml.values.get("data") or {}, "somewhere"))
    cells = make_cells(experiment)
    assert len({cell.folder for cell in cells}) == len(cells) >= 10


def test_a_sweep_that_is_no_experiment_says_so(run_babyssa, tmp_path, corpus):
    status, _, stderr = run_babyssa("sweep", "--corpus", corpus, "--out", tmp_path / "o", "--variants", "ssa")
    assert status != 0 and "nothing to sweep over" in stderr
