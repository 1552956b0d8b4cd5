"""Shift results: computed from the same sequences for every model, and what their tables say."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from babyssa.errors import DataError, ModelError
from babyssa.synthetic import Shift, Shifts, load_run, measure_shifts, write_shifts
from babyssa.synthetic.shift_report import summary
from babyssa.synthetic.shifts import IN_DISTRIBUTION, attention_maps, deviant_weights

SMALL = Shifts(scales=(3.0, 30.0), lengths=(12,), sequences=60)


@pytest.fixture(scope="module")
def results(runs):
    return measure_shifts(runs, SMALL)


def test_every_model_meets_every_shift(results):
    counts = results.runs[results.runs.blocks == "full"].groupby(["task", "model", "seed"])["shift"].nunique()
    assert counts.loc["every"].eq(5).all() and counts.loc["linear"].eq(9).all()
    assert {"least squares", "mean of y", "logistic regression"} <= set(results.runs.model)


def test_the_value_is_the_mean_over_k_of_balanced_accuracy(results, runs):
    run = load_run(runs[0])
    sample = run.task.sample(np.random.default_rng([0, 1, 1]), 60, 6, Shift(input_scale=3.0))
    right = (run.model(values=torch.from_numpy(sample.values)).predictions.detach().numpy() > 0) == (
        sample.targets == 1
    )
    by_hand = [np.mean([right[sample.targets[:, k] == c, k].mean() for c in (0, 1)]) for k in range(6)]
    row = results.runs.query("task == 'every' and model == 'softmax' and seed == 0 and shift == 'inputs x 3'")
    assert row.value.item() == pytest.approx(np.mean(by_hand)) and row["last"].item() == pytest.approx(by_hand[-1])
    assert row.low.item() <= row.value.item() <= row.high.item()


def test_squared_errors_are_in_units_of_the_variance_of_y(results, runs):
    run = load_run(runs[4])
    sample = run.task.sample(np.random.default_rng([0, 1, 1]), 60, 6, Shift(30.0, 30.0))
    error = (
        run.model(values=torch.from_numpy(sample.values)).predictions[:, ::2].detach()
        - torch.from_numpy(sample.targets)
    ) ** 2
    error = error[:, 2:]  # two examples determine the function
    row = results.runs.query("task == 'linear' and model == 'softmax' and shift == 'both x 30'")
    assert row.value.item() == pytest.approx(float(error.mean()) / (900 * 901), rel=1e-4)


def test_with_a_deviant_only_predictions_after_it_count(results):
    positions = results.positions
    first = positions[(positions["shift"] == "deviant 70") & (positions.blocks == "full")].groupby("task").k.min()
    assert (first > 1).all()
    assert positions[positions["shift"] == IN_DISTRIBUTION].k.min() == 1


def test_intervals_over_seeds_are_those_of_student(results):
    from scipy.stats import t

    models = results.models.query("task == 'every' and model == 'ssa' and shift == 'inputs x 30'").iloc[0]
    rows = results.runs.query("task == 'every' and shift == 'inputs x 30'").set_index(["model", "seed"]).value
    values, base = rows["ssa"].to_numpy(), rows["softmax"].to_numpy()
    half = t.ppf(0.975, 1) * values.std(ddof=1) / np.sqrt(2)
    assert (models.low, models.high) == pytest.approx((values.mean() - half, values.mean() + half))
    assert models.difference == pytest.approx((values - base).mean())
    half = t.ppf(0.975, 1) * (values - base).std(ddof=1) / np.sqrt(2)
    assert models.difference_low == pytest.approx((values - base).mean() - half)
    one = results.models.query("task == 'linear' and model == 'linear'")
    assert one.low.isna().all() and one.difference.notna().all() and one.difference_low.isna().all()


def test_the_deviant_weight_is_what_attention_gives_it(runs):
    run = load_run(runs[2])
    sample = run.task.sample(np.random.default_rng(0), 8, 6, Shift(deviant=70.0))
    maps = attention_maps(run.model, torch.from_numpy(sample.values))
    weights = [
        maps[1][row, 0, query, place] for row, place in enumerate(sample.deviant) for query in range(place + 1, 6)
    ]
    found = pd.DataFrame(deviant_weights(run.model, run.task, sample)).set_index(["layer", "head"])
    assert found.weight.loc[(2, 1)] == pytest.approx(np.mean(weights), rel=1e-5)
    assert np.allclose(maps[0].sum(axis=-1), 1, atol=1e-5) and np.allclose(np.triu(maps[0], 1), 0)


def test_a_model_that_forms_no_weights_has_no_deviant_weight(results):
    linear = results.deviant_weights[results.deviant_weights.task == "linear"]
    assert set(linear.model) == {"softmax"}


def test_the_files_and_the_verdict(results, tmp_path):
    written = write_shifts(results, tmp_path)
    assert {path.name for path in written} >= {"runs.csv", "models.csv", "shifts.md", "every-scale.png"}
    assert (tmp_path / "linear-length.png").read_bytes().startswith(b"\x89PNG")
    text = summary(results)
    assert "linear: one seed, so the variance between seeds is unknown" in text
    assert "ssa against softmax, paired by seed" in text
    assert len(pd.read_csv(tmp_path / "runs.csv")) == len(results.runs)


def test_a_difference_is_established_only_where_the_interval_says_so(results):
    models = results.models[results.models.task == "every"].copy()
    shifted = (models.model == "ssa") & (models["shift"] == "inputs x 3")
    models.loc[shifted, ["difference", "difference_low", "difference_high"]] = [0.2, 0.1, 0.3]
    others = (models.model == "ssa") & ~shifted
    models.loc[others, ["difference", "difference_low", "difference_high"]] = [0.2, -0.1, 0.5]
    text = summary(dataclasses.replace(results, models=models))
    assert "better under inputs x 3, worse under none, no difference established under the other 3" in text


def test_the_command_refuses_what_it_cannot_measure(runs, run_babyssa, tmp_path):
    def refused(*argv):
        status, stdout, stderr = run_babyssa("shift", *argv)
        assert status and not stdout
        (line,) = [line for line in stderr.splitlines() if line.startswith("babyssa: error")]
        return line

    assert "the same model and seed" in refused(runs[0], runs[0], "--out", tmp_path / "a")
    assert "24 positions" in refused(runs[4], "--lengths", 100, "--out", tmp_path / "a")
    assert "scales are 0.0" in refused(runs[0], "--scales", 0, "--lengths", 12, "--out", tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "shifts.md").write_text("earlier")
    assert "--overwrite" in refused(runs[0], "--lengths", 12, "--out", tmp_path / "b")
    assert (tmp_path / "b" / "shifts.md").read_text() == "earlier"


def test_only_finished_synthetic_runs_are_taken(runs, tmp_path):
    import shutil

    unfinished = tmp_path / "unfinished"
    shutil.copytree(runs[0], unfinished)
    (unfinished / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="not finished"):
        load_run(unfinished)
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.yaml").write_text("kind: encoder\n")
    with pytest.raises(ModelError, match="not a run on a synthetic task"):
        load_run(other)
    with pytest.raises(DataError):
        load_run(tmp_path / "nowhere")
