"""A sweep: every cell once, nothing twice, and a comparison at the end."""

import dataclasses
import json
import signal

import pytest

from babyssa import probe
from babyssa.corpus import train_tokenizer
from babyssa.encoder import train_encoder
from babyssa.encoder.config import Evaluation
from babyssa.errors import BabySSAError, BusyError, ConfigError, OutputExistsError, Stopped
from babyssa.experiments.cells import Probing
from babyssa.experiments.grid import sweep
from babyssa.files import locked
from babyssa.training.config import Optimisation


def modified(folder):
    return {
        path: path.stat().st_mtime_ns
        for path in folder.rglob("*")
        if path.is_file() and "comparison" not in path.parts
    }


def test_a_sweep_trains_probes_and_compares_every_cell_and_skips_what_is_done(settings, suite):
    swept = sweep(settings, ["softmax", "ssa"], [0, 1], Probing(suite))
    cells, comparison = swept.cells, swept.comparison
    assert [(cell.variant, cell.seed) for cell in cells] == [
        ("softmax", 0),
        ("ssa", 0),
        ("softmax", 1),
        ("ssa", 1),
    ]
    assert comparison.variants == ("softmax", "ssa")
    assert set(comparison.runs.training_precision) == {"float32"}
    for cell in cells:
        summary = json.loads((cell.folder / "probe" / "summary.json").read_text())
        assert (summary["variant"], summary["seed"], summary["n_pairs"]) == (cell.variant, cell.seed, 6)
    assert (settings.out / "comparison" / "comparison.md").is_file()

    assert "Cells, trained in float32 and scored in float32" in str(swept)
    assert swept.to_frame().state.tolist() == ["trained"] * 4

    before = modified(settings.out)
    again = sweep(settings, ["softmax", "ssa"], [0, 1], Probing(suite)).cells
    assert modified(settings.out) == before and all(cell.run is None for cell in again)

    # What a stopped sweep leaves: one cell without weights, one without its probe.
    (settings.out / "ssa-1" / "model.safetensors").unlink()
    (settings.out / "softmax-1" / "probe" / "summary.json").unlink()
    resumed = sweep(settings, ["softmax", "ssa"], [0, 1], Probing(suite)).cells
    assert [cell.run is not None for cell in resumed] == [False, False, False, True]
    after = modified(settings.out)
    assert {path.name for path in after if after[path] != before[path] and "softmax-1" in path.parts} == {
        "summary.json",
        "pairs.csv",
        "checksums.json",
    }


def test_a_cell_trained_with_other_settings_is_refused(settings, suite):
    sweep(settings, ["ssa"], [0], Probing(suite))
    other = dataclasses.replace(settings, optimisation=Optimisation(batch_size=8, steps=4, learning_rate=0.01))
    before = modified(settings.out)
    with pytest.raises(OutputExistsError, match=r"trained with optimisation\.steps 3, not 4"):
        sweep(other, ["ssa"], [0], Probing(suite))
    with pytest.raises(OutputExistsError, match="probed with method 'pll', not 'holistic'"):
        sweep(settings, ["ssa"], [0], Probing(suite, method="holistic"))
    held_out = dataclasses.replace(settings, evaluation=Evaluation(held_out=9))
    with pytest.raises(OutputExistsError, match=r"trained with evaluation\.held_out 5, not 9"):
        sweep(held_out, ["ssa"], [0], Probing(suite))
    assert modified(settings.out) == before


def test_a_cell_of_another_corpus_or_tokenizer_is_refused(settings, suite, tmp_path):
    sweep(settings, ["softmax"], [0], Probing(suite))
    other = tmp_path / "other.txt"
    other.write_text(settings.corpus.read_text().replace("dog", "cow"))
    before = modified(settings.out)
    with pytest.raises(OutputExistsError, match="corpus_sha256"):
        sweep(dataclasses.replace(settings, corpus=other), ["softmax", "ssa"], [0], Probing(suite))
    tokenizer = tmp_path / "tokenizer"
    train_tokenizer(other, tokenizer, vocab_size=340)
    with pytest.raises(OutputExistsError, match="tokenizer_sha256"):
        sweep(dataclasses.replace(settings, tokenizer=tokenizer), ["softmax", "ssa"], [0], Probing(suite))
    assert modified(settings.out) == before
    copy = tmp_path / "the same elsewhere.txt"
    copy.write_bytes(settings.corpus.read_bytes())
    swept = sweep(dataclasses.replace(settings, corpus=copy), ["softmax"], [0], Probing(suite))
    assert swept.cells[0].run is None


def test_a_probe_result_in_another_precision_does_not_count(settings, suite):
    cells = sweep(settings, ["softmax"], [0], Probing(suite)).cells
    out = cells[0].folder / "probe"
    written = json.loads((out / "summary.json").read_text())
    assert written["precision"] == "float32"
    probe(cells[0].folder, suite, out=out, overwrite=True, precision="bfloat16")
    with pytest.raises(OutputExistsError, match="probed with precision 'bfloat16', not 'float32'"):
        sweep(settings, ["softmax"], [0], Probing(suite))
    # A result of an early version says nothing of precision, and has float32.
    probe(cells[0].folder, suite, out=out, overwrite=True)
    del written["precision"]
    (out / "summary.json").write_text(json.dumps(written))
    (out / "checksums.json").unlink()
    sweep(settings, ["softmax"], [0], Probing(suite))
    assert json.loads((out / "summary.json").read_text()) == written


def test_a_probe_result_of_an_earlier_model_does_not_count(settings, suite):
    cells = sweep(settings, ["softmax"], [0], Probing(suite)).cells
    folder, summary = cells[0].folder, cells[0].folder / "probe" / "summary.json"
    written = json.loads(summary.read_text())
    summary.write_text(json.dumps({**written, "model_sha256": "0" * 64}))
    (folder / "probe" / "checksums.json").unlink()
    with pytest.raises(OutputExistsError, match="probed with model_sha256"):
        sweep(settings, ["softmax"], [0], Probing(suite))
    again = dataclasses.replace(settings, out=folder, tokenizer=settings.out / "tokenizer")
    train_encoder(again, overwrite=True)
    assert not summary.exists()
    sweep(settings, ["softmax"], [0], Probing(suite))
    assert json.loads(summary.read_text()) == written


@pytest.mark.parametrize(
    "variants, seeds, says",
    [([], [0], "nothing"), (["ssa"], [], "nothing"), (["sa"], [0], "ssa"), (["ssa"], [-1], "seed is -1")],
)
def test_a_grid_that_cannot_be_swept_is_refused_before_anything_is_done(settings, suite, variants, seeds, says):
    with pytest.raises(ConfigError, match=says):
        sweep(settings, variants, seeds, Probing(suite))
    with pytest.raises(ConfigError, match="jobs is 0; it is at least 1"):
        sweep(settings, ["softmax"], [0], Probing(suite), jobs=0)
    for change in ({"variant": "ssa"}, {"seed": 3}, {"scoring": {"n": 2.0}}):
        with pytest.raises(ConfigError, match="a sweep does not take"):
            sweep(dataclasses.replace(settings, **change), ["ssa"], [0], Probing(suite))
    with pytest.raises(ConfigError, match="pl"):
        sweep(settings, ["ssa"], [0], Probing(suite, method="pl"))
    assert not settings.out.exists()


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_a_failing_cell_does_not_stop_the_others_and_the_table_says_why(settings, suite, corpus, run_babyssa):
    # A file where the cell's folder should be; a damaged result; damaged weights.
    sweep(settings, ["softmax", "ssa", "ssa-2"], [0], Probing(suite))
    (settings.out / "ssa-1").write_text("in the way")
    flip_a_bit(settings.out / "ssa-0" / "probe" / "pairs.csv")
    flip_a_bit(settings.out / "ssa-2-0" / "model.safetensors")
    swept = sweep(settings, ["softmax", "ssa", "ssa-2"], [0, 1], Probing(suite))
    cells, comparison = swept.cells, swept.comparison
    failed = {(cell.variant, cell.seed): cell.failure for cell in cells if cell.failure}
    assert failed.keys() == {("ssa", 0), ("ssa-2", 0), ("ssa", 1)}
    assert "pairs.csv: is damaged" in failed["ssa", 0] and "model.safetensors: is damaged" in failed["ssa-2", 0]
    assert comparison.variants == ("softmax", "ssa-2")
    written = (settings.out / "comparison" / "comparison.md").read_text()
    assert "Note: ssa, seed 1, failed and is left out" in written and "pairs.csv: is damaged" in written
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
        sweep(settings, ["softmax", "ssa-2"], [0, 1], Probing(suite))


def test_two_sweeps_cannot_be_in_one_folder(settings, suite):
    with locked(settings.out, "a sweep"), pytest.raises(BusyError, match="in use by a sweep, process"):
        sweep(settings, ["softmax"], [0], Probing(suite))


def test_a_stopped_cell_resumes_unless_its_settings_changed(settings, suite, monkeypatch):
    settings = dataclasses.replace(
        settings, optimisation=dataclasses.replace(settings.optimisation, resume_every=1)
    )

    def interrupt(self, *arguments):
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("babyssa.training.run.finish_run", interrupt)
    with pytest.raises(
        Stopped, match=r"the sweep was stopped \(SIGTERM\); the same command resumes it"
    ) as stopped:
        sweep(settings, ["softmax"], [0], Probing(suite))
    assert stopped.value.exit_code == 143
    monkeypatch.undo()
    assert (settings.out / "softmax-0" / "resume" / "step-3").is_dir()
    other = dataclasses.replace(
        settings, optimisation=dataclasses.replace(settings.optimisation, learning_rate=0.02)
    )
    with pytest.raises(BabySSAError, match=r"unfinished run with optimisation\.learning_rate 0\.01, not 0\.02"):
        sweep(other, ["softmax"], [0], Probing(suite))
    cells = sweep(settings, ["softmax"], [0], Probing(suite)).cells
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
