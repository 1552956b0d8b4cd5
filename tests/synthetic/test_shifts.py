"""Shift results: computed from the same sequences for every model, and what their tables say."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
import torch

from babyssa.attention import scoring_config, scoring_settings
from babyssa.errors import DataError, ModelError, OutputExistsError
from babyssa.synthetic import (
    TASKS,
    Curriculum,
    Shift,
    Shifts,
    load_run,
    measure_shifts,
    task_named,
    train_synthetic,
    write_shifts,
)
from babyssa.synthetic.magnitudes import deviant_weights, weights_of
from babyssa.synthetic.shift_figures import draw_scales
from babyssa.synthetic.shifts import _estimate
from babyssa.synthetic.tasks import CONTROL, UNSHIFTED, WHOLE
from babyssa.training.config import Optimisation

SMALL = Shifts(scales=(3.0, 30.0), lengths=(12,), sequences=60)


@pytest.fixture(scope="module")
def results(runs):
    return measure_shifts(runs, SMALL)


def test_every_model_meets_every_shift(results):
    counts = results.runs[results.runs.settings == ""].groupby(["task", "model", "seed"])["shift"].nunique()
    assert counts.loc["every"].eq(6).all() and counts.loc["linear"].eq(10).all()
    assert {"least squares", "mean of y", "logistic regression"} <= set(results.runs.model)


def test_the_value_is_the_mean_over_k_of_balanced_accuracy(results, runs):
    run = load_run(runs[0])
    sample = run.task.sample(np.random.default_rng([0, 1, 1]), 60, 6, Shift(input_scale=3.0))
    right = (run.model(values=torch.from_numpy(sample.values)).predictions.detach().numpy() > 0) == (
        sample.targets == 1
    )
    by_hand = [np.mean([right[sample.targets[:, k] == c, k].mean() for c in (0, 1)]) for k in range(6)]
    rows = results.runs.query("task == 'every' and model == 'softmax' and seed == 0 and shift == 'inputs x 3'")
    row = rows[rows.measure == "accuracy"]
    assert row.value.item() == pytest.approx(np.mean(by_hand)) and row["last"].item() == pytest.approx(by_hand[-1])
    assert (rows.low <= rows.value).all() and (rows.value <= rows.high).all()
    assert rows[rows.measure == WHOLE].value.item() == pytest.approx(right[:, 3:].all(axis=1).mean())


@pytest.mark.filterwarnings("error")
def test_a_resample_without_a_class_has_no_value_and_does_not_count():
    task = task_named("every")
    sample = task.sample(np.random.default_rng(1), 3, 6, Shift())
    (accuracy, whole), by_k = _estimate(task, sample, np.ones(sample.targets.shape))
    assert accuracy["value"] == accuracy["low"] == accuracy["high"] == whole["low"] == 1
    assert 0 < len(by_k) < 6, "some k have one class alone"


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
    first = positions[(positions["shift"] == "deviant 70") & (positions.settings == "")].groupby("task").k.min()
    assert (first > 1).all()
    controls = results.runs[results.runs["shift"] == CONTROL]
    assert len(controls) == len(results.runs[results.runs["shift"] == "deviant 70"])
    assert positions[positions["shift"] == UNSHIFTED].k.min() == 1


def test_intervals_over_seeds_are_those_of_student(results):
    from scipy.stats import t

    of_every = "task == 'every' and measure == 'accuracy' and shift == 'inputs x 30'"
    models = results.models.query(f"{of_every} and model == 'ssa'").iloc[0]
    rows = results.runs.query(of_every).set_index(["model", "seed"]).value
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
    for stale in ("every-map-older.png", "linear-scale.pdf", "shifts.md"):
        (tmp_path / stale).write_text("of other results")
    with pytest.raises(OutputExistsError):
        write_shifts(results, tmp_path)
    assert (tmp_path / "every-map-older.png").exists()
    of_linear = dataclasses.replace(
        results,
        **{
            table: getattr(results, table).query("task == 'linear'")
            for table in ("runs", "positions", "models", "deviant_weights", "magnitudes")
        },
    )
    written = {path.name for path in write_shifts(of_linear, tmp_path, figures="svg", overwrite=True)}
    assert written == {path.name for path in tmp_path.iterdir()}
    figures = ("scale", "length", "positions", "deviant", "magnitudes", "deviant-weights", "map-softmax")
    assert {f"linear-{figure}.svg" for figure in figures} <= written
    scale = (tmp_path / "linear-scale.svg").read_text()
    assert "<svg" in scale and "one seed each, so no intervals" in scale
    for table in ("runs", "positions", "models", "magnitudes", "deviant_weights"):
        assert len(pd.read_csv(tmp_path / f"{table}.csv")) == len(getattr(of_linear, table))
    maps = pd.read_csv(tmp_path / "maps.csv")
    softmax = maps.query("task == 'linear' and model == 'softmax' and layer == 2 and head == 1 and query == 9")
    shown = results.maps["linear", "iid", "softmax"]
    assert np.allclose(softmax.weight, shown.layers[1][0, 8, :9], rtol=1e-4)
    assert np.allclose(softmax.number, shown.values[:9], rtol=1e-4)
    provenance = json.loads((tmp_path / "provenance.json").read_text())
    assert len(provenance["runs"]) == 6 and len(provenance["runs"][0]["model_sha256"]) == 64
    assert provenance["shifts"]["sequences"] == 60 and "torch" in provenance["versions"]
    text = results.to_markdown()
    assert "linear: one pair of seeds, so their variance is unknown" in text
    assert "ssa against softmax, paired by seed" in text


def test_a_figure_says_over_how_many_seeds_its_intervals_are(results):
    def caption(models):
        return draw_scales(models, TASKS["every"])._supxlabel.get_text()

    models = results.models[results.models.task == "every"]
    assert caption(models) == "every, designed data; means and 95% t-intervals over 2 seeds"
    alone = models.copy()
    alone.loc[alone.model == "ssa", "seeds"] = 1
    assert caption(alone).endswith("over 2 seeds (ssa: one, no interval)")
    (axes, _) = draw_scales(models, TASKS["every"]).axes
    bars = dict(zip(axes.get_legend_handles_labels()[1], axes.containers, strict=True))
    drawn = {model: [len(s) for s in bar.lines[2][0].get_segments()] for model, bar in bars.items()}
    assert drawn == {"softmax": [2, 2, 2], "ssa": [2, 2, 2], "logistic regression": [0, 0, 0]}


@pytest.mark.parametrize("width", [80, 200])
def test_results_show_themselves_within_the_terminal(results, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = str(results).splitlines()
    assert max(map(len, lines)) <= width
    of_every = results.models.query("task == 'every' and measure == 'accuracy' and shift == 'inputs x 30'")
    softmax = of_every.query("model == 'softmax'").iloc[0]
    shown = f"{100 * softmax.value:.1f} [{100 * softmax.low:.1f}, {100 * softmax.high:.1f}]"
    assert any(line.startswith("inputs x 30") and shown in line for line in lines)
    assert results.to_frame() is results.models
    assert shown in results._repr_html_() and shown in results.to_markdown()


def test_a_pair_of_seeds_is_no_interval(runs):
    results = measure_shifts([runs[0], runs[2], runs[3]], dataclasses.replace(SMALL, scales=(3.0,), lengths=()))
    ssa = results.models.query("model == 'ssa' and measure == 'accuracy' and shift == 'inputs x 3'").iloc[0]
    assert (ssa.seeds, ssa.pairs) == (2, 1) and ssa.low < ssa.high and np.isnan(ssa.difference_low)
    assert "ssa: one pair of seeds" in results.to_markdown()


def test_models_are_named_by_what_they_are(runs, settings, tmp_path):
    common = {"optimisation": Optimisation(batch_size=8, steps=2, learning_rate=1e-3)}
    groups = [["softmax", 1], [{"name": "ssa", "n": 1.7}, 1]]
    mixed = f"mixed, groups {scoring_settings(scoring_config('mixed', groups=groups))['groups']}"
    others = {
        "ssa, n 3.0": {"variant": "ssa", "scoring": {"n": 3.0}},
        mixed: {"variant": "mixed", "scoring": {"groups": groups}},
        "softmax, data iid, answers True": {"data": "iid", "answers": True},
        "ssa, data iid, answers True": {"data": "iid", "answers": True, "variant": "ssa"},
        "softmax, curriculum start 2, blocks attention": {
            "curriculum": Curriculum(start=2),
            "size": dataclasses.replace(settings().size, blocks="attention"),
        },
    }
    folders = [
        train_synthetic(settings(**common, **changes, out=tmp_path / str(number))).folder
        for number, changes in enumerate(others.values())
    ]
    results = measure_shifts([*runs[:3], *folders], Shifts(scales=(3.0,), lengths=(), deviant=0, sequences=40))
    models = results.models[results.models.settings != "baseline"]
    assert set(models.model) == {"softmax", "ssa", *others}
    assert set(models.data) == {"designed", "iid"}, "each way that a run was trained on"
    pairs = models.query("data == 'iid' and measure == 'accuracy' and shift == 'inputs x 3'").set_index("model")
    assert pairs.pairs.to_dict() == dict.fromkeys(pairs.index, 0) | {
        "ssa": 1,
        "ssa, n 3.0": 1,
        mixed: 1,
        "ssa, data iid, answers True": 1,
    }
    values = results.runs.query("data == 'iid' and measure == 'accuracy' and shift == 'inputs x 3' and seed == 0")
    values = values.set_index("model").value
    assert pairs.difference["ssa, data iid, answers True"] == pytest.approx(
        values["ssa, data iid, answers True"] - values["softmax, data iid, answers True"]
    )


def test_a_model_that_reads_answers_is_tested_on_the_same_numbers(settings):
    run = load_run(train_synthetic(settings(data="iid", answers=True)).folder)
    results = measure_shifts([run.folder], Shifts(scales=(), lengths=(), deviant=0, sequences=50))
    numbers = task_named("every").sample(np.random.default_rng([0, 1, 1]), 50, 6, Shift(data="iid"))
    read = np.zeros((50, 11), dtype=np.float32)
    read[:, ::2], read[:, 1::2] = numbers.values, 2 * numbers.targets[:, :-1] - 1
    right = (run.model(values=torch.from_numpy(read)).predictions[:, ::2].detach().numpy() > 0) == numbers.targets
    row = results.runs.query("model == 'softmax' and measure == 'accuracy'")
    assert row.value.item() == pytest.approx(right.mean())
    frequent = results.runs.query("model == 'most frequent answer' and measure == 'accuracy'")
    assert frequent.value.item() == pytest.approx(1 - numbers.targets.mean())


def test_a_difference_is_established_only_where_the_interval_says_so(results):
    models = results.models.query("task == 'every' and measure == 'accuracy'").copy()
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
