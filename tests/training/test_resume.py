"""A stopped run resumes by itself, and ends as if it had never been stopped."""

import dataclasses
import json
import os
import shutil
import signal

import pytest

import babyssa.training.log
import babyssa.training.resume
import babyssa.training.run
import babyssa.training.run_folder
from babyssa.encoder import train_encoder
from babyssa.errors import BusyError, OutputExistsError, Stopped
from babyssa.files import locked


def points(out):
    return sorted(path.name for path in (out / "resume").iterdir())


@pytest.fixture(scope="module")
def uninterrupted(settings, contents):
    train_encoder(settings)
    found = contents(settings.out)
    shutil.rmtree(settings.out)
    return found


def changed(settings, **values):
    return dataclasses.replace(settings, optimisation=dataclasses.replace(settings.optimisation, **values))


@pytest.mark.slow
def test_a_run_killed_at_any_step_ends_with_the_same_files(settings, uninterrupted, contents, killed_at):
    assert {"model.safetensors", "log.jsonl", "checkpoints/step-20/model.safetensors"} <= uninterrupted.keys()
    # Before the first point; in an epoch; at the end of the first epoch (12 steps); twice in one run.
    for steps in ([3], [7], [12], [6, 9], [23]):
        for step in steps:
            killed_at(settings, step)
        assert not (settings.out / "model.safetensors").exists()
        run = train_encoder(settings)
        assert contents(settings.out) == uninterrupted, steps
        assert run.steps == 24
        shutil.rmtree(settings.out)


@pytest.mark.parametrize(
    "module, function, nth",
    [
        (babyssa.training.resume, "write_checksums", 3),
        (babyssa.training.resume, "save_file", 2),
        (babyssa.training.resume, "_points", 3),
        (babyssa.training.run, "finish_run", 1),
        (babyssa.training.run_folder, "write_checksums", 1),
    ],
)
def test_a_run_killed_while_it_saves_ends_with_the_same_files(
    module, function, nth, settings, uninterrupted, contents, in_a_process
):
    def die_at_the_nth_call():
        calls = []
        original = getattr(module, function)

        def call_or_die(*arguments, **options):
            calls.append(1)
            if len(calls) == nth:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*arguments, **options)

        setattr(module, function, call_or_die)
        train_encoder(settings)

    assert in_a_process(die_at_the_nth_call) == -signal.SIGKILL
    train_encoder(settings)
    assert contents(settings.out) == uninterrupted


def test_a_finished_run_leaves_no_resume_points_and_no_lock(uninterrupted):
    assert not [name for name in uninterrupted if "resume" in name or ".lock" in name or "partial" in name]


def test_what_a_kill_in_the_last_moment_leaves_is_removed(settings, uninterrupted, contents, in_a_process):
    def die_before_tidying():
        def die_if_finished(out):
            if (out / "model.safetensors").exists():
                os.kill(os.getpid(), signal.SIGKILL)

        babyssa.training.run_folder.remove_leftovers = die_if_finished
        train_encoder(settings)

    assert in_a_process(die_before_tidying) == -signal.SIGKILL
    with pytest.raises(OutputExistsError, match="already exists"):
        train_encoder(settings)
    assert contents(settings.out) == uninterrupted


def test_the_newest_two_points_are_kept(settings, killed_at):
    killed_at(settings, 15)
    assert points(settings.out) == ["step-12", "step-8"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_finishes_the_step_saves_and_says_how_to_resume(
    number, settings, uninterrupted, contents, monkeypatch
):
    write = babyssa.training.log.RunLog.write
    before = signal.getsignal(signal.SIGINT)

    def write_and_signal(self, step, values):
        write(self, step, values)
        if step == 10:
            signal.raise_signal(number)

    monkeypatch.setattr(babyssa.training.log.RunLog, "write", write_and_signal)
    with pytest.raises(Stopped, match=r"after step 10 of 24 \(SIG.*the same command resumes it") as stopped:
        train_encoder(settings)
    assert stopped.value.exit_code == 128 + number
    assert points(settings.out)[0] == "step-10"
    assert signal.getsignal(signal.SIGINT) is before
    monkeypatch.undo()
    train_encoder(settings)
    assert contents(settings.out) == uninterrupted


def test_the_command_exits_with_one_line_and_the_signals_status(
    settings, corpus, tokenizer_folder, run_babyssa, monkeypatch
):
    write = babyssa.training.log.RunLog.write

    def write_and_signal(self, step, values):
        write(self, step, values)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(babyssa.training.log.RunLog, "write", write_and_signal)
    command = ["train", "encoder", "--corpus", corpus, "--tokenizer", tokenizer_folder, "--out", settings.out]
    command += ["--size.layers", 1, "--size.heads", 2, "--size.hidden_size", 16, "--optimisation.batch_size", 8]
    command += ["--optimisation.steps", 9, "--optimisation.log_every", 2, "--evaluation.held_out", 0]
    status, stdout, stderr = run_babyssa(*command)
    assert status == 143 and not stdout
    assert stderr.splitlines()[-1] == (
        f"babyssa: {settings.out}: stopped after step 2 of 9 (SIGTERM); the same command resumes it"
    )
    monkeypatch.undo()
    status, _, stderr = run_babyssa(*command)
    assert status == 0 and "resuming after step 2" in stderr


@pytest.mark.parametrize("name", ["state.safetensors", "log.jsonl"])
def test_a_damaged_point_is_named_and_the_one_before_it_used(
    name, settings, uninterrupted, contents, killed_at, capsys
):
    killed_at(settings, 14)
    path = settings.out / "resume" / "step-12" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    train_encoder(settings)
    said = capsys.readouterr().err
    assert f"{path}: is damaged" in said and "resuming after step 8" in said
    assert contents(settings.out) == uninterrupted


def test_without_a_whole_point_the_run_starts_again(settings, uninterrupted, contents, killed_at, capsys):
    killed_at(settings, 14)
    (settings.out / "resume" / "step-12" / "state.safetensors").unlink()
    (settings.out / "resume" / "step-8" / "checksums.json").write_text("{")
    train_encoder(settings)
    assert "from the beginning" in capsys.readouterr().err
    assert contents(settings.out) == uninterrupted


def test_other_settings_are_refused_unless_the_run_is_started_anew(settings, contents, killed_at):
    killed_at(settings, 9)
    before = contents(settings.out)
    for other, says in (
        (changed(settings, learning_rate=0.02), r"optimisation\.learning_rate 0\.01, not 0\.02"),
        (dataclasses.replace(settings, variant="softmax"), "variant 'ssa', not 'softmax'"),
        (dataclasses.replace(settings, seed=3), "seed 0, not 3"),
    ):
        with pytest.raises(OutputExistsError, match=f"holds an unfinished run with {says}.*--overwrite"):
            train_encoder(other)
        assert contents(settings.out) == before
    train_encoder(changed(settings, resume_every=5))
    shutil.rmtree(settings.out)
    killed_at(settings, 9)
    assert train_encoder(changed(settings, learning_rate=0.02), overwrite=True).steps == 24


def test_another_corpus_is_refused(settings, killed_at, tmp_path):
    killed_at(settings, 9)
    other = tmp_path / "other.txt"
    other.write_text(settings.corpus.read_text().replace("dog", "cow"))
    with pytest.raises(OutputExistsError, match="corpus_sha256"):
        train_encoder(dataclasses.replace(settings, corpus=other))


def test_a_run_of_a_version_that_drew_other_masks_is_refused(settings, killed_at):
    killed_at(settings, 7)
    config = settings.out / "config.yaml"
    config.write_text("".join(line for line in config.open() if "draws:" not in line))
    with pytest.raises(OutputExistsError, match=r"facts\.draws None, not 2"):
        train_encoder(settings)


def test_the_log_has_every_step_once(settings, killed_at):
    killed_at(settings, 13)
    killed_at(settings, 7)
    train_encoder(settings)
    log = [json.loads(line) for line in (settings.out / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in log if "loss" in line] == [5, 10, 15, 20, 24]
    assert [line["step"] for line in log if "pseudo_perplexity" in line] == [7, 14, 21, 24]
    assert [line["seconds"] for line in log] == sorted(line["seconds"] for line in log)


def test_a_folder_in_use_is_refused_and_a_killed_process_leaves_no_lock(settings, in_a_process):
    with locked(settings.out, "training"), pytest.raises(BusyError, match=rf"training, process {os.getpid()} on"):
        train_encoder(settings)

    def die_with_the_lock():
        with locked(settings.out, "training"):
            os.kill(os.getpid(), signal.SIGKILL)

    assert in_a_process(die_with_the_lock) == -signal.SIGKILL
    assert (settings.out / ".lock").exists()
    train_encoder(settings)
    assert not (settings.out / ".lock").exists()


def test_a_run_that_another_process_finished_meanwhile_is_kept(settings, monkeypatch):
    train_encoder(settings)
    weights = (settings.out / "model.safetensors").read_bytes()
    # As if the first look had been before the other process was done.
    monkeypatch.setattr("babyssa.encoder.training.check_run", lambda settings, overwrite: None)
    with pytest.raises(OutputExistsError):
        train_encoder(dataclasses.replace(settings, seed=1))
    assert (settings.out / "model.safetensors").read_bytes() == weights
