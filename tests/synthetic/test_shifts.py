"""Shift results: computed from the same sequences for every model, and what their tables say."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
import torch

from babyssa.errors import DataError, ModelError, OutputExistsError
from babyssa.synthetic import Shift, Shifts, load_run, measure_shifts, train_synthetic, write_shifts
from babyssa.synthetic.shifts import deviant_weights, weights_of
from babyssa.synthetic.tasks import CONTROL, IN_DISTRIBUTION
from babyssa.training.config import Optimisation

SMALL = Shifts(scales=(3.0, 30.0), lengths=(12,), sequences=60)


@pytest.fixture(scope="module")
def results(runs):
    return measure_shifts(runs, SMALL)


def test_every_model_meets_every_shift(results):
    counts = results.runs[results.runs.blocks == "full"].groupby(["task", "model", "seed"])["shift"].nunique()
    assert counts.loc["every"].eq(6).all() and counts.loc["linear"].eq(10).all()
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
    controls = results.runs[results.runs["shift"] == CONTROL]
    assert len(controls) == len(results.runs[results.runs["shift"] == "deviant 70"])
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
    maps = weights_of(run.model, sample)
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
    text = results.to_markdown()
    assert "linear: one pair of seeds, so their variance is unknown" in text
    assert "ssa against softmax, paired by seed" in text
    assert len(pd.read_csv(tmp_path / "runs.csv")) == len(results.runs)
    provenance = json.loads((tmp_path / "provenance.json").read_text())
    assert len(provenance["runs"]) == 6 and len(provenance["runs"][0]["model_sha256"]) == 64
    assert provenance["shifts"]["sequences"] == 60 and "torch" in provenance["versions"]


def test_overwriting_leaves_no_figure_of_other_results(results, tmp_path):
    maps = {key: shown for key, shown in results.maps.items() if key[0] == "every"}
    every = dataclasses.replace(results, runs=results.runs[results.runs.task == "every"], maps=maps)
    write_shifts(every, tmp_path)
    less = dataclasses.replace(every, maps={})
    with pytest.raises(OutputExistsError):
        write_shifts(less, tmp_path)
    assert list(tmp_path.glob("every-map-*.png"))
    write_shifts(less, tmp_path, overwrite=True)
    assert not list(tmp_path.glob("*-map-*.png")) and (tmp_path / "every-scale.png").exists()


@pytest.mark.parametrize("width", [80, 200])
def test_results_show_themselves_within_the_terminal(results, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = str(results).splitlines()
    assert max(map(len, lines)) <= width
    softmax = results.models.query("task == 'every' and model == 'softmax' and shift == 'inputs x 30'").iloc[0]
    shown = f"{100 * softmax.value:.1f} [{100 * softmax.low:.1f}, {100 * softmax.high:.1f}]"
    assert any(line.startswith("inputs x 30") and shown in line for line in lines)
    assert results.to_frame() is results.models
    assert shown in results._repr_html_() and shown in results.to_markdown()


def test_a_pair_of_seeds_is_no_interval(runs):
    results = measure_shifts([runs[0], runs[2], runs[3]], dataclasses.replace(SMALL, scales=(3.0,), lengths=()))
    ssa = results.models.query("model == 'ssa' and shift == 'inputs x 3'").iloc[0]
    assert (ssa.seeds, ssa.pairs) == (2, 1) and ssa.low < ssa.high and np.isnan(ssa.difference_low)
    assert "ssa: one pair of seeds" in results.to_markdown()


@pytest.mark.parametrize(
    "changes, says",
    [
        ({"optimisation": Optimisation(batch_size=8, steps=3, learning_rate=1e-3)}, "steps is 3, and 2 in"),
        ({"length": 5}, "length is 5, and 6 in"),
        ({"scoring": {"n": 3.0}}, r"scoring\.n is 3.0, and 1.5 in"),
    ],
)
def test_runs_of_other_settings_are_not_seeds_of_one_model(changes, says, runs, settings):
    other = train_synthetic(
        settings(
            **{
                "variant": "ssa",
                "seed": 2,
                "optimisation": Optimisation(batch_size=8, steps=2, learning_rate=1e-3),
                **changes,
            }
        )
    )
    with pytest.raises(DataError, match=says):
        measure_shifts([runs[2], other.folder], SMALL)


def test_a_difference_is_established_only_where_the_interval_says_so(results):
    models = results.models[results.models.task == "every"].copy()
    shifted = (models.model == "ssa") & (models["shift"] == "inputs x 3")
    models.loc[shifted, ["difference", "difference_low", "difference_high"]] = [0.2, 0.1, 0.3]
    others = (models.model == "ssa") & ~shifted
    models.loc[others, ["difference", "difference_low", "difference_high"]] = [0.2, -0.1, 0.5]
    text = dataclasses.replace(results, models=models).to_markdown()
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
