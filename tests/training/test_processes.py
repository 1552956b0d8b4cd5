"""Two processes that torchrun starts train what one does: the same batches, losses, log and files.

Numbers are equal to float32's rounding, since sums are taken in another order; with dropout they differ, since
each process draws its own.
"""

import dataclasses
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

import babyssa
from babyssa import processes
from babyssa.decoder import DecoderSize, DecoderTraining, train_decoder
from babyssa.encoder import EncoderTraining, train_encoder
from babyssa.encoder.config import EncoderSize, Masking
from babyssa.errors import ConfigError
from babyssa.experiments.demo import run_demo
from babyssa.experiments.experiment import Experiment
from babyssa.experiments.grid import sweep
from babyssa.models.run_config import read_settings
from babyssa.synthetic import InContextSize, SyntheticTraining, train_synthetic
from babyssa.training.config import Evaluation, Optimisation

pytestmark = pytest.mark.slow

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
OPTIMISATION = Optimisation(steps=12, log_every=1, learning_rate=0.01)
# Relative, and absolute; seen are 2.3e-7 and 2.4e-6.
LOSS_TOLERANCE = 1e-6
WEIGHT_TOLERANCE = 1e-5
# What torchrun tells the second of two processes.
LAUNCHED = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}


@pytest.fixture(autouse=True)
def nothing_left():
    """These runs have folders of their own."""


def encoder(out, corpus, tokenizer, dropout=0.0, **optimisation):
    """116 sentences in batches of 5: the last of an epoch has one, and so one process has none."""
    return EncoderTraining(
        corpus=corpus,
        tokenizer=tokenizer,
        out=out,
        variant="ssa",
        size=EncoderSize(layers=1, heads=2, hidden_size=16, feed_forward_size=24, dropout=dropout),
        masking=Masking(patterns=0),
        optimisation=dataclasses.replace(OPTIMISATION, batch_size=5, **optimisation),
        evaluation=Evaluation(held_out=4, every=10),
    )


def decoder(out, corpus, tokenizer, **changes):
    return DecoderTraining(
        corpus=str(corpus),
        tokenizer=tokenizer,
        out=out,
        size=DecoderSize(
            layers=1, heads=2, key_value_heads=1, hidden_size=16, feed_forward_size=24, max_length=32
        ),
        optimisation=dataclasses.replace(OPTIMISATION, batch_size=3),
        evaluation=Evaluation(held_out=4),
        **changes,
    )


def synthetic(out, task, batch_size):
    return SyntheticTraining(
        task=task,
        out=out,
        variant="ssa",
        length=5,
        size=InContextSize(layers=1, heads=2, width=8, max_numbers=9),
        optimisation=dataclasses.replace(OPTIMISATION, batch_size=batch_size),
    )


@pytest.fixture(scope="module")
def settings(corpus, tokenizer_folder):
    """Every run in a folder of runs, by name."""

    def within(folder: Path):
        inputs = (corpus, tokenizer_folder)
        dropout = {"dropout": 0.1, "steps": 150, "resume_every": 40, "checkpoint_every": 100}
        return {
            "odd batches": encoder(folder / "odd", *inputs, steps=30),
            "accumulated": encoder(folder / "accumulated", *inputs, steps=30, gradient_accumulation=2),
            "decoder": decoder(folder / "decoder", *inputs),
            "stream": decoder(folder / "stream", *inputs, streaming=True),
            "linear": synthetic(folder / "linear", "linear", batch_size=3),
            "single rows": synthetic(folder / "every", "every", batch_size=1),
            "wild": encoder(folder / "wild", *inputs, learning_rate=1e30, max_grad_norm=0.0, warmup_steps=0),
            "dropout": encoder(folder / "dropout", *inputs, **dropout),
            "stopped": encoder(folder / "stopped", *inputs, **dropout),
        }

    return within


@pytest.fixture(scope="module")
def together(settings, tmp_path_factory):
    """The folder of what two processes trained, what each of them returned or raised, and what they said."""
    folder = tmp_path_factory.mktemp("together")
    (folder / "settings.pickle").write_bytes(pickle.dumps(settings(folder)))
    ended = launch(Path(__file__).parent / "launched.py", folder)
    assert ended.returncode == 0, ended.stderr
    returned = [json.loads((folder / f"process-{rank}.json").read_text()) for rank in (0, 1)]
    return folder, returned, ended.stderr


def launch(*words):
    command = [*TORCHRUN, *map(str, words)]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300)


def environment():
    return {**os.environ, "PYTHONPATH": str(Path(babyssa.__file__).parent.parent), "OMP_NUM_THREADS": "1"}


def read_log(folder):
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def weights(folder):
    return load_file(folder / "model.safetensors")


def command(settings):
    """A run's command line, from the config.yaml of another run with its settings."""
    return [
        "-m",
        "babyssa",
        "train",
        "encoder",
        "--config",
        settings.out.parent / "recipe.yaml",
        "--out",
        settings.out,
    ]


@pytest.mark.parametrize(
    "name, train",
    [
        ("odd batches", train_encoder),
        ("accumulated", train_encoder),
        ("decoder", train_decoder),
        ("stream", train_decoder),
        ("linear", train_synthetic),
        ("single rows", train_synthetic),
    ],
)
def test_two_processes_train_what_one_does(name, train, settings, together, tmp_path):
    alone = train(settings(tmp_path)[name])
    folder = settings(together[0])[name].out
    assert [returned[name] for returned in together[1]] == [alone.tokens, alone.tokens]
    one, two = read_log(alone.folder), read_log(folder)
    assert [line["step"] for line in one] == [line["step"] for line in two]
    assert [line.get("tokens") for line in one] == [line.get("tokens") for line in two]
    for ours, theirs in zip(one, two, strict=True):
        for key in ours.keys() & {"loss", "grad_norm", "pseudo_perplexity", "perplexity"}:
            assert theirs[key] == pytest.approx(ours[key], rel=LOSS_TOLERANCE), (key, ours["step"])
    for key, value in weights(alone.folder).items():
        np.testing.assert_allclose(weights(folder)[key], value, atol=WEIGHT_TOLERANCE, err_msg=key)
    assert read_settings(folder)["facts"]["device"].endswith(", 2 processes")
    assert sorted(p.name for p in alone.folder.iterdir()) == sorted(p.name for p in folder.iterdir())


def test_only_one_process_speaks(together):
    *_, said = together
    assert len(re.findall(r"^ssa, seed 0: .*2 processes, products by \w+, float32$", said, re.MULTILINE)) == 8, (
        said
    )
    assert "warning" not in said.lower(), said


def test_a_loss_that_is_not_finite_ends_every_process_with_the_same_words(together):
    said = [returned["wild"] for returned in together[1]]
    assert said[0] == said[1] and "the loss is nan at step" in said[0]


def test_a_signal_to_one_process_stops_all_and_the_run_resumes_exactly(settings, together):
    folder, returned, _ = together
    assert all("stopped after step" in each["stopped"] for each in returned)
    assert returned[0]["stopped"] == returned[1]["stopped"]
    whole, resumed = (settings(folder)[name].out for name in ("dropout", "stopped"))
    assert (whole / "model.safetensors").read_bytes() == (resumed / "model.safetensors").read_bytes()
    assert [line.get("loss") for line in read_log(whole)] == [line.get("loss") for line in read_log(resumed)]


def test_the_command_stops_with_its_launcher_and_resumes_when_given_again(settings, together, tmp_path):
    whole = settings(together[0])["dropout"].out
    run = settings(tmp_path)["dropout"]
    (tmp_path / "recipe.yaml").write_bytes((whole / "config.yaml").read_bytes())
    words = [*TORCHRUN, *map(str, command(run))]
    launcher = subprocess.Popen(words, env=environment(), stderr=subprocess.PIPE, text=True)
    wait_until(lambda: (run.out / "log.jsonl").exists() and len(read_log(run.out)) > 10, launcher)
    launcher.send_signal(signal.SIGTERM)
    said = launcher.communicate(timeout=120)[1]
    assert launcher.returncode != 0
    assert re.findall(r"^babyssa: .*: (stopped after step) \d+ of 150", said, re.MULTILINE) == [
        "stopped after step"
    ]
    assert not (run.out / "model.safetensors").exists()
    assert sorted(path.name for path in run.out.iterdir()) == ["config.yaml", "log.jsonl", "resume"]
    ended = launch(*command(run))
    assert ended.returncode == 0 and ended.stderr.count("resuming after step") == 1, ended.stderr
    assert ended.stdout.count("model: ") == 1
    assert (whole / "model.safetensors").read_bytes() == (run.out / "model.safetensors").read_bytes()
    assert sorted(path.name for path in run.out.iterdir()) == sorted(path.name for path in whole.iterdir())


def wait_until(true, launcher):
    for _ in range(1200):
        if true():
            return
        assert launcher.poll() is None, launcher.communicate()[1]
        time.sleep(0.05)
    raise AssertionError("it takes too long")


def test_what_trains_many_models_runs_in_one_process(settings, tmp_path, monkeypatch):
    for name, value in LAUNCHED.items():
        monkeypatch.setenv(name, value)
    run = settings(tmp_path)["odd batches"]
    with pytest.raises(ConfigError, match="a sweep runs in one process, not 2"):
        sweep(Experiment("many", run, {"softmax": {}}, (0,), {}))
    with pytest.raises(ConfigError, match="the demo runs in one process, not 2"):
        run_demo(tmp_path / "demo", run)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("missing", ["RANK", "MASTER_ADDR"])
def test_a_launch_that_is_not_complete_is_refused_with_what_is_missing(settings, tmp_path, monkeypatch, missing):
    for name, value in LAUNCHED.items():
        if name != missing:
            monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=f"WORLD_SIZE is 2, but these are not set: {missing};"):
        train_encoder(settings(tmp_path)["odd batches"])
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert processes.number_of_processes() == 1 and processes.is_main()


def test_what_is_refused_is_refused_once(together):
    _, returned, said = together
    assert [each["refused"] for each in returned] == [1, 1]
    ours = [line for line in said.splitlines() if line.startswith("babyssa:")]
    assert len(ours) == 1 and re.search("odd/config.yaml: already exists; choose another --out", ours[0]), said
