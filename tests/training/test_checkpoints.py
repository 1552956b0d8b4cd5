"""Checkpoints know what they are: run, variant, seed, and the steps, words and tokens that they have seen."""

import dataclasses
import json
import shutil

import pandas as pd
import pytest
import torch
import yaml
from safetensors.torch import load_file

from babyssa import probe
from babyssa.encoder import EncoderTraining, train_encoder
from babyssa.encoder.config import EncoderSize, Evaluation, Masking
from babyssa.errors import ConfigError
from babyssa.models.run_config import list_checkpoints, read_identity
from babyssa.training.batches import show_words, word_counter, words_mark
from babyssa.training.config import Optimisation


@pytest.fixture(scope="module")
def run(corpus, tokenizer_folder, tmp_path_factory):
    """One epoch with two patterns of each sentence."""
    out = tmp_path_factory.mktemp("checkpoints") / "ssa-7"
    settings = EncoderTraining(
        corpus=corpus,
        tokenizer=tokenizer_folder,
        out=out,
        variant="ssa-1.5",
        seed=7,
        size=EncoderSize(layers=1, heads=2, hidden_size=16, feed_forward_size=24),
        masking=Masking(patterns=2),
        optimisation=Optimisation(batch_size=24, checkpoint_every=4, checkpoint_words=500, log_every=5),
        evaluation=Evaluation(held_out=0),
    )
    train_encoder(settings)
    return settings


def test_a_finished_run_has_seen_every_word_of_its_corpus_as_often_as_it_was_masked(run, corpus):
    words = 2 * sum(len(line.split()) for line in corpus.read_text().splitlines())
    found = read_identity(run.out)
    assert found["words"] == words > 1000 and found["step"] == 10
    log = [json.loads(line) for line in (run.out / "log.jsonl").read_text().splitlines()]
    assert found["tokens"] == log[-1].get("tokens", log[-2].get("tokens"))
    assert (found["run"], found["kind"], found["variant"], found["seed"]) == ("ssa-7", "encoder", "ssa-1.5", 7)


def test_checkpoints_are_written_by_steps_and_by_words_and_listed_in_order(run):
    folders = list_checkpoints(run.out)
    steps = [read_identity(folder)["step"] for folder in folders]
    assert steps == sorted(steps) and folders[-1] == run.out
    names = {folder.name for folder in folders}
    assert {"step-4", "step-8", "words-500", "words-1k"} <= names and "words-5k" not in names
    for name, mark in (("words-500", 500), ("words-1k", 1000)):
        assert mark <= read_identity(run.out / "checkpoints" / name)["words"] < mark + 500


def test_probing_a_checkpoint_records_what_it_is(run, tmp_path):
    found = probe(run.out / "checkpoints" / "step-4", limit=1, out=tmp_path / "probed")
    summary = json.loads((tmp_path / "probed" / "summary.json").read_text())
    for each in (dataclasses.asdict(found), summary):
        assert (each["run"], each["variant"], each["seed"], each["step"]) == ("ssa-7", "ssa-1.5", 7, 4)
        assert each["words"] > 0 and each["tokens"] > each["words"] and each["training_precision"] == "float32"


def test_a_checkpoint_of_an_early_version_is_known_by_its_run_and_its_name(run, tmp_path):
    shutil.copytree(run.out, tmp_path / "early")
    for path in (tmp_path / "early").rglob("checkpoint.json"):
        path.unlink()
    found = read_identity(tmp_path / "early" / "checkpoints" / "step-4")
    assert (found["run"], found["variant"], found["seed"], found["step"]) == ("early", "ssa-1.5", 7, 4)
    assert "words" not in found and read_identity(tmp_path / "early").get("step") is None
    assert read_identity(tmp_path) == {}


def test_the_run_names_the_commit_of_a_checkout(run):
    commit = yaml.safe_load((run.out / "config.yaml").read_text())["versions"].get("commit", "0" * 12)
    assert len(commit.removesuffix("+")) == 12


@pytest.mark.parametrize(
    "before, now, mark",
    [(0, 9, None), (0, 10, 10), (8, 35, 30), (30, 39, None), (95, 101, 100), (101, 199, None), (199, 200, 200)],
)
def test_marks_lie_at_one_to_ten_units_and_at_ten_times_as_many(before, now, mark):
    assert words_mark(before, now, 10) == mark


def test_masked_words_count(tokenizer):
    ids = torch.tensor([tokenizer("where is the ball ?")["input_ids"]])
    batch = {"input_ids": ids.clone(), "positions": torch.tensor([1, 2]), "labels": ids[0, 1:3]}
    batch["input_ids"][0, 1:3] = tokenizer.mask_token_id
    assert word_counter(tokenizer)(batch) == 5


def test_numbers_of_words_are_short():
    assert [show_words(n) for n in (1_000_000, 20_000_000, 5000, 1234)] == ["1M", "20M", "5k", "1234"]


def test_all_checkpoints_of_a_run_make_a_learning_curve(run, tmp_path, run_babyssa):
    command = ("probe", run.out, "--all-checkpoints", "--limit", 1, "--out", tmp_path / "curve")
    status, stdout, stderr = run_babyssa(*command)
    assert status == 0, stderr
    steps = {read_identity(folder)["step"] for folder in list_checkpoints(run.out)}
    table = pd.read_csv(tmp_path / "curve" / "curves.csv")
    assert set(table["at"]) == steps and set(table.variant) == {"ssa-1.5"}
    final = json.loads((tmp_path / "curve" / "final" / "summary.json").read_text())
    last = table[(table["at"] == max(steps)) & (table.paradigm == "mean over paradigms")]
    assert last.accuracy.item() == pytest.approx(final["accuracy"])
    assert (tmp_path / "curve" / "curves.png").is_file() and "learning curves" in stdout


def test_a_run_continues_on_another_corpus_from_the_weights_of_a_checkpoint(run, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("you see the dog .\nhe gave me the red cookie .\n" * 30)
    init = run.out / "checkpoints" / "step-4"
    # So small a learning rate leaves the weights nearly as they were.
    optimisation = Optimisation(batch_size=24, steps=1, learning_rate=1e-9)
    again = dataclasses.replace(
        run, corpus=other, tokenizer=None, init=init, out=tmp_path / "then", optimisation=optimisation
    )
    train_encoder(again)
    before, after = (load_file(folder / "model.safetensors") for folder in (init, again.out))
    assert before.keys() == after.keys()
    assert all(torch.allclose(before[name], after[name], atol=1e-6) for name in before)
    facts = yaml.safe_load((again.out / "config.yaml").read_text())["facts"]
    assert (facts["init"]["run"], facts["init"]["step"]) == ("ssa-7", 4) and facts["init_weights_sha256"]
    assert read_identity(again.out)["words"] > 0


@pytest.mark.parametrize(
    "changes, what", [({"variant": "ssa-2"}, "scoring"), ({"size": EncoderSize(layers=2)}, "size")]
)
def test_a_run_does_not_start_from_another_kind_of_model(run, tmp_path, changes, what):
    with pytest.raises(ConfigError, match=f"has another {what}; give the variant and size of"):
        train_encoder(dataclasses.replace(run, init=run.out, tokenizer=None, out=tmp_path / "run", **changes))


def test_a_revision_of_nothing_to_start_from_is_refused(run, tmp_path):
    with pytest.raises(ConfigError, match="--init-revision without --init"):
        train_encoder(dataclasses.replace(run, init_revision="main", out=tmp_path / "run"))
