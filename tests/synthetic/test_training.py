"""Training: the same run twice, batches by number, and that the tasks are learned at all."""

import dataclasses
import json

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file

from babyssa.errors import ConfigError, OutputExistsError
from babyssa.synthetic import Curriculum, InContextSize, Shift, SyntheticTraining, predict, train_synthetic
from babyssa.synthetic.training import SampledBatches
from babyssa.training.config import Optimisation


def fetch(settings, number):
    size = settings.optimisation.batch_size
    return SampledBatches(settings).__getitems__(range(number * size, number * size + size))["values"]


def test_a_batch_is_a_function_of_seed_and_number(settings):
    def batch(seed, number):
        return fetch(settings(seed=seed), number)

    assert torch.equal(batch(0, 5), batch(0, 5))
    assert not torch.equal(batch(0, 5), batch(0, 6)) and not torch.equal(batch(0, 5), batch(1, 5))


def test_the_sequences_grow_as_those_of_garg_et_al(settings):
    def of_their_loop(start, end, step, every, steps):
        """curriculum.py of Garg et al.: called after each step."""
        length, lengths = start, []
        for done in range(1, steps + 1):
            lengths.append(length)
            if done % every == 0:
                length += step
            length = min(length, end)
        return lengths

    growing = Curriculum(start=11, step=2, every=5)
    assert [growing.length(41, step) for step in range(100)] == of_their_loop(11, 41, 2, 5, 100)
    assert {Curriculum().length(41, step) for step in (0, 7)} == {41}
    optimisation = Optimisation(batch_size=8, steps=4, gradient_accumulation=2)
    grown = settings(curriculum=Curriculum(start=3, step=2, every=2), optimisation=optimisation)
    assert [fetch(grown, number).shape for number in range(8)] == [(8, 3)] * 4 + [(8, 5)] * 4
    assert fetch(settings(task="linear", curriculum=Curriculum(start=3)), 0).shape == (8, 5)
    assert torch.equal(fetch(settings(curriculum=Curriculum(start=6)), 2), fetch(settings(), 2))


def test_training_reads_the_data_it_is_told_to(settings):
    def numbers(**changes):
        return torch.cat([fetch(settings(length=12, **changes), number) for number in range(200)])

    assert (numbers() > 0).float().mean() > 0.7
    assert (numbers(data="iid") > 0).float().mean() == pytest.approx(0.5, abs=0.02)
    assert set(numbers(data="iid", answers=True)[:, 1::2].unique().tolist()) == {-1.0, 1.0}


def test_a_run_resumes_in_the_middle_of_its_curriculum(settings, tmp_path, monkeypatch):
    made = settings(
        out=tmp_path / "whole",
        data="iid",
        answers=True,
        curriculum=Curriculum(start=2, step=1, every=2),
        optimisation=Optimisation(batch_size=4, steps=8, resume_every=1, log_every=1, schedule="constant"),
    )
    whole = train_synthetic(made)
    stopped = dataclasses.replace(made, out=tmp_path / "stopped")
    fetched = SampledBatches.__getitems__
    drawn = []

    def fail_at_the_fifth(self, items):
        drawn.append(items[0] // 4)
        if len(drawn) == 5:
            raise KeyboardInterrupt
        return fetched(self, items)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(SampledBatches, "__getitems__", fail_at_the_fifth)
        train_synthetic(stopped)
    resumed = train_synthetic(stopped)
    assert drawn == [0, 1, 2, 3, 4]
    weights = [load_file(run.folder / "model.safetensors") for run in (whole, resumed)]
    assert all(torch.equal(value, weights[1][key]) for key, value in weights[0].items())
    assert whole.tokens == resumed.tokens == 4 * sum(2 * length - 1 for length in (2, 2, 3, 3, 4, 4, 5, 5))


@pytest.mark.parametrize("task", ["every", "some", "linear"])
def test_a_run_folder_has_what_every_run_has(task, settings):
    run = train_synthetic(settings(task=task, variant="ssa", evaluate_every=2))
    stored = yaml.safe_load((run.folder / "config.yaml").read_text())
    assert stored["kind"] == "synthetic" and stored["task"] == task and stored["scoring"]["n"] == 1.5
    lines = [json.loads(line) for line in (run.folder / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "loss" in line] == [2, 4]
    metric = "relative_squared_error" if task == "linear" else "accuracy"
    assert [line["step"] for line in lines if metric in line] == [2, 4]
    assert run.measured[metric] == lines[-1][metric]


def test_one_seed_gives_the_same_weights(settings, tmp_path):
    weights = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        run = train_synthetic(settings(out=tmp_path / name, variant="ssa", seed=seed))
        weights.append(load_file(run.folder / "model.safetensors"))
    assert all(torch.equal(value, weights[1][key]) for key, value in weights[0].items())
    assert not all(torch.equal(value, weights[2][key]) for key, value in weights[0].items())


def test_predictions_do_not_depend_on_what_is_predicted_with_them(settings, runs):
    from babyssa.synthetic import load_run

    run = load_run(runs[4])
    sample = run.task.sample(np.random.default_rng(0), 100, 6, Shift())
    together = predict(run.model, run.task, sample)
    alone = run.task.at_predictions(run.model(values=torch.from_numpy(sample.values[70:71])).predictions)
    assert together.shape == (100, 6) and np.allclose(together[70], alone.detach().numpy(), atol=1e-6)


@pytest.mark.slow
def test_attention_learns_what_feed_forward_layers_alone_do_not(tmp_path):
    accuracy = {}
    for blocks in ("full", "attention", "feed-forward"):
        run = train_synthetic(
            SyntheticTraining(
                task="every",
                out=tmp_path / blocks,
                length=10,
                size=InContextSize(layers=2, heads=2, width=32, max_numbers=10, blocks=blocks),
                optimisation=Optimisation(batch_size=32, steps=150, learning_rate=3e-3),
            )
        )
        accuracy[blocks] = run.measured["accuracy"]
    assert accuracy["full"] > 0.9 and accuracy["attention"] > 0.85
    # A number that is not positive tells by itself; one that is says nothing about those before it.
    assert accuracy["feed-forward"] < 0.8


@pytest.mark.parametrize(
    "changes, says",
    [
        ({"optimisation": Optimisation(batch_size=8)}, "optimisation.steps is missing"),
        ({"length": 1}, "length is 1"),
        ({"length": 30}, "length 30 takes 30 numbers, more than size.max_numbers 24"),
        ({"length": 13, "task": "linear"}, "takes 25 numbers"),
        ({"length": 13, "answers": True}, "takes 25 numbers"),
        ({"data": "idd"}, "data is 'idd', expected designed or iid; did you mean 'iid'"),
        ({"curriculum": Curriculum(start=7)}, "curriculum.start is 7; it is at most length, 6"),
        ({"seed": -1}, "seed is -1"),
        (
            {"size": InContextSize(layers=1, heads=1, width=8, blocks="feed-forward"), "variant": "ssa"},
            "there is no attention for 'ssa' to score",
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes, says, settings):
    with pytest.raises(ConfigError, match=says):
        settings(**changes)


@pytest.mark.parametrize("wrong", [{"start": 1}, {"step": 0}, {"every": 0}])
def test_a_curriculum_that_does_not_grow_is_refused(wrong):
    with pytest.raises(ConfigError, match=f"curriculum.{next(iter(wrong))} is"):
        Curriculum(**wrong)


def test_an_unknown_variant_costs_nothing_and_a_finished_run_is_kept(settings, tmp_path):
    with pytest.raises(ConfigError, match="unknown variant 'sa'"):
        train_synthetic(settings(variant="sa"))
    assert not (tmp_path / "run").exists()
    run = train_synthetic(settings())
    before = (run.folder / "model.safetensors").read_bytes()
    with pytest.raises(OutputExistsError):
        train_synthetic(settings(seed=1))
    assert (run.folder / "model.safetensors").read_bytes() == before


def test_every_batch_of_an_accumulated_step_is_fresh(settings, monkeypatch):
    drawn = []
    fetch = SampledBatches.__getitems__
    monkeypatch.setattr(SampledBatches, "__getitems__", lambda self, n: drawn.extend(n) or fetch(self, n))
    train_synthetic(settings(optimisation=Optimisation(batch_size=2, steps=3, gradient_accumulation=2)))
    assert drawn == list(range(12))


def test_config_says_how_far_cosformer_reaches(settings):
    run = train_synthetic(settings(variant="cosformer"))
    assert yaml.safe_load((run.folder / "config.yaml").read_text())["scoring"] == {"max_length": 24}


@pytest.mark.parametrize("recipe", ["mini", "mini-linear", "paper"])
def test_the_recipes_train(recipe, run_babyssa, tmp_path):
    task = "linear" if recipe == "mini-linear" else "every"
    status, stdout, stderr = run_babyssa(
        *("train", "synthetic", "--config", recipe, "--task", task, "--out", tmp_path / "run"),
        *("--optimisation.steps", 1, "--optimisation.batch_size", 1, "--size.layers", 1, "--length", 12),
    )
    assert status == 0, stderr
    assert f"model: {tmp_path / 'run'}" in stdout and "\nsteps " in stdout


def test_a_task_that_is_not_there_gets_one_line(run_babyssa, tmp_path):
    status, stdout, stderr = run_babyssa(
        "train", "synthetic", "--config", "mini", "--task", "most", "--out", tmp_path
    )
    assert status == 2 and not stdout and len(stderr.splitlines()) == 1 and "task" in stderr
