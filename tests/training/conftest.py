"""Trainings that are killed, in processes of their own."""

import hashlib
import json
import os
import shutil
import signal

import pytest

from babyssa.encoder import EncoderTraining, MaskedSentences, train_encoder
from babyssa.encoder.config import EncoderSize, Evaluation, Masking
from babyssa.training.config import Optimisation


@pytest.fixture(scope="module")
def settings(corpus, tokenizer_folder, tmp_path_factory):
    """24 steps in two epochs, with everything that a resumed run has to restore: dropout, n and b, a curve."""
    return EncoderTraining(
        corpus=corpus,
        tokenizer=tokenizer_folder,
        out=tmp_path_factory.mktemp("resume") / "run",
        variant="ssa",
        size=EncoderSize(layers=1, heads=2, hidden_size=16, feed_forward_size=24, dropout=0.1),
        masking=Masking(patterns=0),
        optimisation=Optimisation(
            batch_size=10, steps=24, log_every=5, learning_rate=0.01, resume_every=4, checkpoint_every=10
        ),
        evaluation=Evaluation(held_out=5, every=7),
    )


@pytest.fixture(autouse=True)
def nothing_left(settings):
    """All tests train in one folder, since config.yaml names it."""
    shutil.rmtree(settings.out, ignore_errors=True)


@pytest.fixture(scope="module")
def contents():
    """The hash of every file in a folder; without the lock, the times in the log, and the log's checksum."""

    def read(folder):
        found = {}
        for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"):
            content = path.read_bytes()
            if path.name == "log.jsonl":
                lines = [json.loads(line) for line in content.splitlines()]
                times = ("seconds", "tokens_per_second")
                content = json.dumps(
                    [{k: v for k, v in line.items() if k not in times} for line in lines]
                ).encode()
            elif path.name == "checksums.json":
                sums = json.loads(content)["sha256"]
                content = json.dumps({k: v for k, v in sums.items() if k != "log.jsonl"}).encode()
            found[str(path.relative_to(folder))] = hashlib.sha256(content).hexdigest()
        return found

    return read


@pytest.fixture
def in_a_process():
    """Runs a function in a child process; its exit status, or minus the signal that ended it."""

    def run(function):
        child = os.fork()
        if child == 0:
            try:
                function()
            except BaseException:
                os._exit(1)
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    return run


@pytest.fixture
def killed_at(in_a_process):
    """Trains in a child process that is killed as it fetches the batch of a step."""

    def run(settings, step):
        def die_at_step():
            fetch = MaskedSentences.__getitems__
            fetched = []

            def fetch_or_die(self, items):
                fetched.append(items)
                if len(fetched) == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return fetch(self, items)

            MaskedSentences.__getitems__ = fetch_or_die
            train_encoder(settings)

        assert in_a_process(die_at_step) == -signal.SIGKILL

    return run
