"""A sweep: every cell once, nothing twice, and a comparison at the end."""

import dataclasses
import json
import shutil
import signal

import pandas as pd
import pytest

import babyssa
from babyssa import compare, probe
from babyssa.comparison.cells import read_cell
from babyssa.corpus import train_tokenizer
from babyssa.encoder import train_encoder
from babyssa.encoder.config import Evaluation
from babyssa.errors import BabySSAError, BusyError, ConfigError, OutputExistsError, Stopped
from babyssa.experiments.grid import sweep
from babyssa.files import locked
from babyssa.training.config import Optimisation


def modified(folder):
    return {
        path: path.stat().st_mtime_ns
        for path in folder.rglob("*")
        if path.is_file() and "comparison" not in path.parts
    }


def test_a_sweep_trains_measures_and_compares_every_cell_and_skips_what_is_done(settings, run):
    swept = run(["softmax", "ssa"], [0, 1])
    cells, comparison = swept.cells, swept.comparison
    assert [(cell.variant, cell.seed) for cell in cells] == [
        ("softmax", 0),
        ("ssa", 0),
        ("softmax", 1),
        ("ssa", 1),
    ]
    (pairs,) = comparison.parts.values()
    assert pairs.variants == ("softmax", "ssa") and set(pairs.runs.training_precision) == {"float32"}
    for cell in cells:
        stored = read_cell(cell.results)
        summary = stored.measures["pairs"]["suite"]
        assert (summary["variant"], summary["seed"], summary["n_pairs"]) == (cell.variant, cell.seed, 6)
        assert stored.values["measured_on"]["cpu"] and "out" not in stored.values["settings"]
    assert (settings.out / "comparison" / "comparison.md").is_file()

    assert "Cells, trained in float32" in str(swept)
    assert swept.to_frame().state.tolist() == ["trained"] * 4

    before = modified(settings.out)
    again = run(["softmax", "ssa"], [0, 1]).cells
    assert modified(settings.out) == before and all(cell.run is None for cell in again)

    # What a stopped sweep leaves: one cell without weights, one that is not measured.
    (settings.out / "ssa-1" / "model.safetensors").unlink()
    shutil.rmtree(settings.out / "results" / "ssa-1")
    shutil.rmtree(settings.out / "results" / "softmax-1")
    resumed = run(["softmax", "ssa"], [0, 1]).cells
    assert [cell.run is not None for cell in resumed] == [False, False, False, True]
    after = modified(settings.out)
    assert {path.name for path in after if after[path] != before.get(path) and "softmax-1" in path.parts} == {
        "cell.json",
        "margins.npz",
    }


def test_what_was_measured_outlives_the_model(settings, run, run_babyssa):
    found = run(["softmax", "ssa"], [0, 1]).comparison.table
    for cell in ("softmax-0", "ssa-0", "softmax-1", "ssa-1"):
        shutil.rmtree(settings.out / cell)
    assert all(cell.run is None for cell in run(["softmax", "ssa"], [0, 1]).cells)
    pd.testing.assert_frame_equal(compare([settings.out / "results"]).table, found)
    status, stdout, _ = run_babyssa("compare", settings.out / "results", "--out", settings.out / "tables")
    assert status == 0 and "tiny: pairs" in stdout
    assert (settings.out / "tables" / "comparison.png").is_file()


def test_a_comparison_of_results_is_that_of_the_pairs_themselves(settings, suite, run):
    cells = run(["softmax", "ssa"], [0, 1], method="holistic").cells
    for cell in cells:
        probe(cell.folder, suite, method="holistic", out=settings.out / "probed" / cell.name)
    (found,) = compare([settings.out / "results"]).parts.values()
    pd.testing.assert_frame_equal(found.table, compare([settings.out / "probed"]).table)


def test_run_folders_of_train_are_taken_as_they_are(settings, tokenizer_folder, run):
    settings = dataclasses.replace(settings, tokenizer=tokenizer_folder)
    folder = settings.out / "ssa-3"
    train_encoder(dataclasses.replace(settings, variant="ssa", seed=3, out=folder))
    before = modified(folder)
    (cell,) = run(["ssa"], [3], settings=settings).cells
    assert cell.run is None and cell.failure is None and modified(folder) == before


def test_what_is_not_trained_is_left_out_where_only_measuring_is_wanted(experiment, run):
    run(["ssa"], [1], baseline="softmax")
    measured = sweep(experiment(["ssa", "softmax"], [0, 1]), measure_only=True)
    assert [cell.name for cell in measured.cells] == ["ssa-1"]
    assert any("no result of the baseline softmax yet" in note for note in measured.comparison.notes)


def test_a_cell_trained_or_measured_in_another_way_is_refused(settings, run):
    run(["ssa"])
    other = dataclasses.replace(settings, optimisation=Optimisation(batch_size=8, steps=4, learning_rate=0.01))
    before = modified(settings.out)
    with pytest.raises(OutputExistsError, match=r"trained with optimisation\.steps 3, not 4"):
        run(["ssa"], settings=other)
    with pytest.raises(OutputExistsError, match=r"'method': 'pll'.*not.*'method': 'holistic'"):
        run(["ssa"], method="holistic")
    held_out = dataclasses.replace(settings, evaluation=Evaluation(held_out=9))
    with pytest.raises(OutputExistsError, match=r"trained with evaluation\.held_out 5, not 9"):
        run(["ssa"], settings=held_out)
    assert modified(settings.out) == before
    shutil.rmtree(settings.out / "ssa-0")
    with pytest.raises(OutputExistsError, match=r"results/ssa-0: is of a model with optimisation\.steps 3, not 4"):
        run(["ssa"], settings=other)


def test_a_cell_of_another_corpus_or_tokenizer_is_refused(settings, run, tmp_path):
    run()
    other = tmp_path / "other.txt"
    other.write_text(settings.corpus.read_text().replace("dog", "cow"))
    before = modified(settings.out)
    with pytest.raises(OutputExistsError, match="corpus_sha256"):
        run(["softmax", "ssa"], settings=dataclasses.replace(settings, corpus=other))
    tokenizer = tmp_path / "tokenizer"
    train_tokenizer(other, tokenizer, vocab_size=340)
    with pytest.raises(OutputExistsError, match="tokenizer_sha256"):
        run(["softmax", "ssa"], settings=dataclasses.replace(settings, tokenizer=tokenizer))
    assert modified(settings.out) == before
    copy = tmp_path / "the same elsewhere.txt"
    copy.write_bytes(settings.corpus.read_bytes())
    assert run(settings=dataclasses.replace(settings, corpus=copy)).cells[0].run is None


def test_results_of_an_earlier_model_do_not_count(settings, run):
    (cell,) = run().cells
    path = cell.results / "cell.json"
    written = json.loads(path.read_text())
    path.write_text(json.dumps({**written, "weights_sha256": "0" * 64}))
    with pytest.raises(OutputExistsError, match="is of another model than"):
        run()
    path.write_text(json.dumps({**written, "measures": "none"}))
    with pytest.raises(BabySSAError, match="'measures' is"):
        run()


@pytest.mark.parametrize(
    "variants, seeds, says",
    [([], [0], "nothing"), (["ssa"], [], "nothing"), (["sa"], [0], "ssa"), (["ssa"], [-1], "seed is -1")],
)
def test_a_grid_that_cannot_be_swept_is_refused_before_anything_is_done(settings, run, variants, seeds, says):
    with pytest.raises(ConfigError, match=says):
        run(variants, seeds)
    with pytest.raises(ConfigError, match="jobs is 0; it is at least 1"):
        run(jobs=0)
    for change in ({"variant": "ssa"}, {"seed": 3}, {"scoring": {"n": 2.0}}):
        with pytest.raises(ConfigError, match="a sweep does not take"):
            babyssa.sweep(dataclasses.replace(settings, **change), variants=["ssa"], seeds=[0])
    assert not settings.out.exists()
    with pytest.raises(ConfigError, match="pl"):
        run(["ssa"], method="pl")


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_a_failing_cell_does_not_stop_the_others_and_the_table_says_why(settings, suite, corpus, run, run_babyssa):
    # A file where the cell's folder should be; a damaged result; damaged weights.
    run(["softmax", "ssa", "ssa-2"])
    (settings.out / "ssa-1").write_text("in the way")
    flip_a_bit(settings.out / "results" / "ssa-0" / "margins.npz")
    flip_a_bit(settings.out / "ssa-2-0" / "model.safetensors")
    swept = run(["softmax", "ssa", "ssa-2"], [0, 1])
    cells, comparison = swept.cells, swept.comparison
    failed = {(cell.variant, cell.seed): cell.failure for cell in cells if cell.failure}
    assert failed.keys() == {("ssa", 0), ("ssa-2", 0), ("ssa", 1)}
    assert "margins.npz: cannot be read" in failed["ssa", 0]
    assert "model.safetensors: is damaged" in failed["ssa-2", 0]
    assert comparison.parts["tiny: pairs"].variants == ("softmax", "ssa-2")
    written = (settings.out / "comparison" / "comparison.md").read_text()
    assert "Note: ssa, seed 1, failed and is left out" in written and "margins.npz: cannot be read" in written
    status, stdout, stderr = run_babyssa(
        *("sweep", "--corpus", corpus, "--out", settings.out, "--variants", "softmax", "ssa", "--seeds", 0, 1),
        *("--suite", suite, "--vocab-size", 350, "--size.layers", 1, "--size.heads", 2, "--size.hidden-size", 16),
        *("--size.feed_forward_size", 24, "--optimisation.steps", 3, "--evaluation.held_out", 5),
        *("--optimisation.batch_size", 8, "--optimisation.learning_rate", 0.01),
    )
    assert status == 1 and "failed and is left out" in stdout
    assert "2 of 4 cells failed" in stderr.splitlines()[-1]
    flip_a_bit(settings.out / "softmax-0" / "config.yaml")
    flip_a_bit(settings.out / "softmax-1" / "tokenizer.json")
    with pytest.raises(BabySSAError, match=r"the baseline softmax among them.*config\.yaml: is damaged"):
        run(["softmax", "ssa-2"], [0, 1])


def test_two_sweeps_cannot_be_in_one_folder(settings, run):
    with locked(settings.out, "a sweep"), pytest.raises(BusyError, match="in use by a sweep, process"):
        run()


def test_a_stopped_cell_resumes_unless_its_settings_changed(settings, run, monkeypatch):
    settings = dataclasses.replace(
        settings, optimisation=dataclasses.replace(settings.optimisation, resume_every=1)
    )

    def interrupt(self, *arguments):
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("babyssa.training.run.finish_run", interrupt)
    with pytest.raises(
        Stopped, match=r"the sweep was stopped \(SIGTERM\); the same command resumes it"
    ) as stopped:
        run(settings=settings)
    assert stopped.value.exit_code == 143
    monkeypatch.undo()
    assert (settings.out / "softmax-0" / "resume" / "step-3").is_dir()
    other = dataclasses.replace(
        settings, optimisation=dataclasses.replace(settings.optimisation, learning_rate=0.02)
    )
    with pytest.raises(BabySSAError, match=r"unfinished run with optimisation\.learning_rate 0\.01, not 0\.02"):
        run(settings=other)
    cells = run(settings=settings).cells
    assert cells[0].run.steps == 3


@pytest.mark.slow
def test_the_command_prints_the_comparison(settings, suite, corpus, run_babyssa):
    status, stdout, stderr = run_babyssa(
        *("sweep", "--corpus", corpus, "--out", settings.out, "--variants", "softmax", "ssa-1.5", "--seeds", 0),
        *("--suite", suite, "--vocab-size", 350, "--size.layers", 1, "--size.heads", 2, "--size.hidden-size", 16),
        *("--size.feed_forward_size", 24, "--optimisation.steps", 3, "--evaluation.held_out", 5),
    )
    assert status == 0, stderr
    assert "ssa-1.5" in stdout and "seed variance" in stdout.lower()
