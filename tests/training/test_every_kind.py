"""Decoders and in-context models go on after a kill as encoders do."""

import os
import shutil
import signal

import pytest

from babyssa.decoder import DecoderEvaluation, DecoderSize, DecoderTraining, train_decoder
from babyssa.synthetic import InContextSize, SyntheticTraining, train_synthetic
from babyssa.training.config import Optimisation
from babyssa.training.trainer import BatchTrainer

OPTIMISATION = Optimisation(batch_size=4, steps=12, log_every=5, learning_rate=0.01, resume_every=4)


@pytest.fixture(params=["decoder", "synthetic"])
def training(request, corpus, tokenizer_folder, tmp_path):
    """The function that trains one kind of model, its settings bound; returns the run folder."""
    out = tmp_path / "run"
    if request.param == "synthetic":
        settings = SyntheticTraining(
            task="linear",
            out=out,
            variant="ssa",
            length=5,
            size=InContextSize(layers=1, heads=2, width=8, max_numbers=9),
            optimisation=OPTIMISATION,
            evaluate_every=5,
        )
        return lambda: train_synthetic(settings).folder
    settings = DecoderTraining(
        corpus=str(corpus),
        out=out,
        tokenizer=tokenizer_folder,
        variant="ssa",
        size=DecoderSize(
            layers=1, heads=2, key_value_heads=1, hidden_size=16, feed_forward_size=24, max_length=64
        ),
        optimisation=OPTIMISATION,
        evaluation=DecoderEvaluation(held_out=5, every=5),
    )
    return lambda: train_decoder(settings).folder


@pytest.fixture
def nothing_left():
    """These runs have folders of their own."""


@pytest.mark.slow
def test_a_killed_run_ends_with_the_same_files(training, contents, in_a_process):
    whole = contents(folder := training())
    shutil.rmtree(folder)
    for step in (3, 10):

        def die_at_step(step=step):
            compute, computed = BatchTrainer.compute_loss, []

            def compute_or_die(self, *arguments, **options):
                computed.append(1)
                if len(computed) == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return compute(self, *arguments, **options)

            BatchTrainer.compute_loss = compute_or_die
            training()

        assert in_a_process(die_at_step) == -signal.SIGKILL
        assert not (folder / "model.safetensors").exists()
    assert contents(training()) == whole
