"""lm-evaluation-harness on a task of our own; its own tasks need the hub."""

import json
import math

import numpy as np
import pytest
from scipy.stats import t

from babyssa import evaluate
from babyssa.errors import BabySSAError, ConfigError, DataError, OutputExistsError
from babyssa.models import score
from babyssa.training.run_folder import save_model

pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed: pip install 'babyssa[harness]'")

ROWS = [
    {"start": "the dog sees", "ends": [" a cat .", " the the ball"], "answer": 0},
    {"start": "where is", "ends": [" a a .", " the ball ?"], "answer": 1},
    {"start": "he washed", "ends": [" him is", " himself ."], "answer": 1},
    {"start": "give me", "ends": [" the book .", " where ?"], "answer": 0},
]

TASK = """
task: {name}
dataset_path: json
dataset_kwargs:
  data_files:
    test: {file}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{start}}}}"
doc_to_choice: "{{{{ends}}}}"
doc_to_target: answer
target_delimiter: ""
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
"""


@pytest.fixture
def tasks(tmp_path):
    """A folder with one task."""
    folder = tmp_path / "tasks"
    folder.mkdir()
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    (folder / "ends.yaml").write_text(TASK.format(name="ends", file=folder / "rows.jsonl"))
    return folder


def test_the_harness_agrees_with_our_own_scores(decoder, decoder_tokenizer, tasks, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    pair = (decoder("ssa"), decoder_tokenizer)
    result = evaluate(pair, ["ends"], include_path=tasks, out=tmp_path / "out")
    right = 0
    for row in ROWS:
        scores = [scored.score for scored in score(pair, [row["start"] + end for end in row["ends"]])]
        right += scores[row["answer"]] == max(scores)
    assert "git" not in capfd.readouterr().err, "the folder need not be a checkout"
    (task,) = result.tasks
    assert (task.name, task.n, task.fewshot, task.metrics["acc"]) == ("ends", 4, 0, right / 4)
    assert task.standard_errors["acc"] >= 0
    written = json.loads((tmp_path / "out" / "harness.json").read_text())
    assert written["tasks"][0]["metrics"] == task.metrics and written["versions"]["lm_eval"]
    with pytest.raises(OutputExistsError):
        evaluate(pair, ["ends"], include_path=tasks, out=tmp_path / "out")
    assert evaluate(pair, ["ends"], include_path=tasks, limit=2).tasks[0].n == 2


def test_the_command_prints_a_table(decoder, decoder_tokenizer, tasks, tmp_path, run_babyssa):
    save_model(tmp_path / "model", decoder("ssa"), decoder_tokenizer)
    arguments = ("evaluate", tmp_path / "model", "--include_path", tasks, "--tasks", "ends")
    status, stdout, stderr = run_babyssa(*arguments, "--out", tmp_path / "out")
    assert status == 0, stderr
    assert "ends" in stdout and "acc" in stdout and (tmp_path / "out" / "harness.json").is_file()
    assert "\r" not in stderr and "scoring ends" in stderr
    status, stdout, stderr = run_babyssa(*arguments, "--limit", 0)
    assert (status, stdout) == (2, "") and "limit is 0" in stderr


@pytest.fixture
def runs(decoder, decoder_tokenizer, tmp_path):
    """Run folders of two variants under three seeds."""
    folders = []
    for variant in ("ssa", "softmax"):
        for seed in range(3):
            folders.append(tmp_path / f"{variant}-{seed}")
            save_model(folders[-1], decoder(variant, seed=seed), decoder_tokenizer)
            (folders[-1] / "config.yaml").write_text(f"variant: {variant}\nseed: {seed}\n")
    return folders


def test_several_models_are_compared_over_seeds(runs, tasks, tmp_path, run_babyssa):
    found = evaluate(runs, ["ends"], include_path=tasks, out=tmp_path / "out")
    alone = [evaluate(run, ["ends"], include_path=tasks).tasks[0].metrics["acc"] for run in runs]
    assert [result.tasks[0].metrics["acc"] for result in found.models] == alone
    table = found.comparison.table.set_index("variant")
    for variant, own in (("ssa", alone[:3]), ("softmax", alone[3:])):
        low, high = t.interval(0.95, 2, np.mean(own), np.std(own, ddof=1) / math.sqrt(3))
        assert table.loc[variant, ["value", "low", "high"]].tolist() == pytest.approx([np.mean(own), low, high])
    differences = np.subtract(alone[:3], alone[3:])
    low, high = t.interval(0.95, 2, differences.mean(), differences.std(ddof=1) / math.sqrt(3))
    columns = ["difference", "difference_low", "difference_high"]
    assert table.loc["ssa", columns].tolist() == pytest.approx([differences.mean(), low, high])
    assert "ssa − softmax" in str(found) and "ends acc" in str(found)
    assert found.to_frame()[["variant", "seed", "value"]].value.tolist() == alone

    written = json.loads((tmp_path / "out" / "softmax-2" / "harness.json").read_text())
    assert (written["variant"], written["seed"]) == ("softmax", 2)
    status, stdout, stderr = run_babyssa("evaluate", *runs[2:4], "--tasks", "ends", "--include-path", tasks)
    assert status == 0 and "± ?" in stdout and f"scoring ends with {runs[3]}" in stderr
    for models, says in ((runs[:2], "harness.json"), ([runs[0], runs[0]], "of variant ssa and seed 0, as")):
        with pytest.raises((OutputExistsError, ConfigError), match=says):
            evaluate(models, ["ends"], include_path=tasks, out=tmp_path / "out")


def test_a_task_without_its_data_or_with_broken_yaml_is_one_line(decoder, decoder_tokenizer, tasks):
    pair = (decoder(), decoder_tokenizer)
    (tasks / "lost.yaml").write_text(TASK.format(name="lost", file=tasks / "none.jsonl"))
    with pytest.raises(DataError, match=r"task 'lost' cannot be loaded: .*none\.jsonl") as caught:
        evaluate(pair, ["ends", "lost"], include_path=tasks)
    assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match="no such folder of tasks"):
        evaluate(pair, ["ends"], include_path=tasks / "none")


@pytest.mark.parametrize(("task", "says"), [("winogrand", "did you mean 'winogrande'? "), ("bogus", "")])
def test_an_unknown_task_is_one_line_before_the_list_of_tasks_or_a_model_is_read(task, says, run_babyssa):
    says = f"unknown task '{task}'; {says}'lm-eval ls tasks' lists all, and --include-path adds your own"
    assert run_babyssa("evaluate", "absent", "--tasks", "cb", task) == (2, "", f"babyssa: error: {says}\n")


def test_an_unknown_task_and_one_that_needs_the_hub_are_one_line(decoder, decoder_tokenizer, tasks, monkeypatch):
    """HF_HUB_OFFLINE is set in tests, as on a machine that knows that it has no network."""
    pair = (decoder(), decoder_tokenizer)
    with pytest.raises(ConfigError, match="unknown task 'arc_eazy'; did you mean 'arc_easy'"):
        evaluate(pair, ["arc_eazy"], include_path=tasks)
    with pytest.raises(DataError, match="task 'arc_easy' cannot be loaded") as caught:
        evaluate(pair, ["arc_easy"])
    assert "network" in str(caught.value) and "\n" not in str(caught.value)


def test_a_masked_model_scores_answers_after_the_context(masked, causal, tasks, decoder, decoder_tokenizer):
    result = evaluate(masked, ["ends"], include_path=tasks, method="pll-word-l2r")
    right = 0
    for row in ROWS:
        scores = score(masked, row["ends"], given=row["start"], separator="none", method="pll-word-l2r")
        right += scores[row["answer"]].score == max(scored.score for scored in scores)
    assert result.tasks[0].metrics["acc"] == right / 4
    (tasks / "said.yaml").write_text(
        TASK.format(name="said", file=tasks / "rows.jsonl").replace("multiple_choice", "generate_until")
    )
    with pytest.raises(ConfigError, match=r"task 'said' asks for generated text, and .* is a masked model"):
        evaluate(masked, ["ends", "said"], include_path=tasks)
    with pytest.raises(ConfigError, match="method 'pll' does not fit a causal model"):
        evaluate(causal, ["ends"], include_path=tasks, method="pll")
    with pytest.raises(ConfigError, match="no task given"):
        evaluate((decoder(), decoder_tokenizer), [])


def test_a_masked_model_reads_the_end_of_a_context_that_is_too_long(masked, brute_force):
    from types import SimpleNamespace

    from babyssa.decoder.harness_model import MaskedModel

    words = " the dog on the mat is big ." * 20
    ((total, _),) = MaskedModel(masked).loglikelihood([SimpleNamespace(args=(words, " look at this ."))])
    fitting = next(
        end
        for start in range(len(words))
        if len(masked[1](end := words[start:] + " look at this .")["input_ids"]) <= 40
    )
    whole = brute_force.token_scores(*masked, fitting, "pll")
    count = len(masked[1](" look at this .", add_special_tokens=False)["input_ids"])
    assert total == pytest.approx(sum(whole[-count:]), abs=1e-4)


def test_without_the_harness_the_extra_is_named(decoder, decoder_tokenizer, monkeypatch):
    from importlib import metadata

    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", missing)
    with pytest.raises(BabySSAError, match=r"babyssa\[harness\]"):
        evaluate((decoder(), decoder_tokenizer), ["ends"])


def test_solved_examples_are_as_many_as_asked_unless_a_task_has_none(decoder, decoder_tokenizer, tasks):
    pair = (decoder("ssa"), decoder_tokenizer)
    text = (tasks / "ends.yaml").read_text() + "fewshot_split: test\n"
    (tasks / "ends.yaml").write_text(text)
    (tasks / "zero.yaml").write_text(text.replace("task: ends", "task: zero") + "num_fewshot: 0\n")
    result = evaluate(pair, ["ends", "zero"], include_path=tasks, fewshot=1)
    assert {task.name: task.fewshot for task in result.tasks} == {"ends": 1, "zero": 0}
    with pytest.raises(ConfigError, match="fewshot is 9, more than the examples"):
        evaluate(pair, ["ends"], include_path=tasks, fewshot=9)
