"""A sweep: every cell once, nothing twice, and a comparison at the end."""

import json

import pytest

from babyssa.encoder import EncoderTraining
from babyssa.encoder.config import EncoderSize, Evaluation
from babyssa.encoder.grid import Probing, sweep
from babyssa.errors import ConfigError, OutputExistsError
from babyssa.training.config import Optimisation


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "pairs.csv"
    rows = [f"the {n}s are big .,the {n}s is big .,agreement" for n in ("dog", "cat", "ball", "truck")]
    rows += ["he sees him .,him sees he .,case", "do you see him ?,do you see he ?,case"]
    path.write_text("\n".join(["good,bad,paradigm", *rows]) + "\n")
    return str(path)


@pytest.fixture
def settings(corpus, tmp_path):
    return EncoderTraining(
        corpus=corpus,
        out=tmp_path / "sweep",
        vocab_size=350,
        size=EncoderSize(layers=1, heads=2, hidden_size=16, feed_forward_size=24),
        optimisation=Optimisation(batch_size=8, steps=3, learning_rate=0.01),
        evaluation=Evaluation(held_out=5),
    )


def modified(folder):
    return {
        path: path.stat().st_mtime_ns
        for path in folder.rglob("*")
        if path.is_file() and "comparison" not in path.parts
    }


def test_a_sweep_trains_probes_and_compares_every_cell_and_skips_what_is_done(settings, suite):
    cells, comparison = sweep(settings, ["softmax", "ssa"], [0, 1], Probing(suite))
    assert [(cell.variant, cell.seed) for cell in cells] == [
        ("softmax", 0),
        ("ssa", 0),
        ("softmax", 1),
        ("ssa", 1),
    ]
    assert comparison.variants == ("softmax", "ssa")
    for cell in cells:
        summary = json.loads((cell.folder / "probe" / "summary.json").read_text())
        assert (summary["variant"], summary["seed"], summary["n_pairs"]) == (cell.variant, cell.seed, 6)
    assert (settings.out / "comparison" / "comparison.md").is_file()

    before = modified(settings.out)
    again, _ = sweep(settings, ["softmax", "ssa"], [0, 1], Probing(suite))
    assert modified(settings.out) == before and all(cell.run is None for cell in again)

    # What a stopped sweep leaves: one cell without weights, one without its probe.
    (settings.out / "ssa-1" / "model.safetensors").unlink()
    (settings.out / "softmax-1" / "probe" / "summary.json").unlink()
    resumed, _ = sweep(settings, ["softmax", "ssa"], [0, 1], Probing(suite))
    assert [cell.run is not None for cell in resumed] == [False, False, False, True]
    after = modified(settings.out)
    assert {path.name for path in after if after[path] != before[path] and "softmax-1" in path.parts} == {
        "summary.json",
        "pairs.csv",
    }


def test_a_cell_trained_with_other_settings_is_refused(settings, suite):
    import dataclasses

    sweep(settings, ["ssa"], [0], Probing(suite))
    other = dataclasses.replace(settings, optimisation=Optimisation(batch_size=8, steps=4, learning_rate=0.01))
    before = modified(settings.out)
    with pytest.raises(OutputExistsError, match=r"trained with optimisation\.steps 3, not 4"):
        sweep(other, ["ssa"], [0], Probing(suite))
    with pytest.raises(OutputExistsError, match="probed with method 'pll', not 'holistic'"):
        sweep(settings, ["ssa"], [0], Probing(suite, method="holistic"))
    assert modified(settings.out) == before


@pytest.mark.parametrize(
    "variants, seeds, says", [([], [0], "nothing"), (["ssa"], [], "nothing"), (["sa"], [0], "ssa")]
)
def test_a_grid_that_cannot_be_swept_is_refused_before_anything_is_done(settings, suite, variants, seeds, says):
    with pytest.raises(ConfigError, match=says):
        sweep(settings, variants, seeds, Probing(suite))
    assert not settings.out.exists()


@pytest.mark.slow
def test_the_command_prints_the_comparison(settings, suite, corpus, run_babyssa):
    status, stdout, stderr = run_babyssa(
        *("sweep", "--corpus", corpus, "--out", settings.out, "--variants", "softmax", "ssa-1.5", "--seeds", 0),
        *("--suite", suite, "--vocab-size", 350, "--size.layers", 1, "--size.heads", 2, "--size.hidden-size", 16),
        *("--size.feed_forward_size", 24, "--optimisation.steps", 3, "--evaluation.held_out", 5),
    )
    assert status == 0, stderr
    assert "ssa-1.5" in stdout and "seed variance" in stdout.lower()
