"""Decoders and in-context models resume after a kill as encoders do."""

import dataclasses
import os
import shutil
import signal

import pytest

from babyssa.decoder import DecoderSize, DecoderTraining, Evaluation, train_decoder
from babyssa.errors import OutputExistsError
from babyssa.synthetic import InContextSize, SyntheticTraining, train_synthetic
from babyssa.training.config import Optimisation
from babyssa.training.loop import Loop

OPTIMISATION = Optimisation(batch_size=4, steps=12, log_every=5, learning_rate=0.01, resume_every=4)


@pytest.fixture(params=["decoder", "stream", "synthetic"])
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
    settings = decoder_settings(corpus, out, tokenizer_folder, streaming=request.param == "stream")
    return lambda: train_decoder(settings).folder


def decoder_settings(corpus, out, tokenizer_folder, streaming=False):
    return DecoderTraining(
        corpus=str(corpus),
        out=out,
        streaming=streaming,
        tokenizer=tokenizer_folder,
        variant="ssa",
        size=DecoderSize(
            layers=1, heads=2, key_value_heads=1, hidden_size=16, feed_forward_size=24, max_length=64
        ),
        optimisation=dataclasses.replace(OPTIMISATION, batch_size=2, gradient_accumulation=2),
        evaluation=Evaluation(held_out=5, every=5),
    )


@pytest.fixture
def nothing_left():
    """These runs have folders of their own."""


@pytest.mark.slow
def test_a_killed_run_ends_with_the_same_files(training, contents, in_a_process):
    whole = contents(folder := training())
    shutil.rmtree(folder)
    for step in (3, 10):

        def die_at_step(step=step):
            compute, computed = Loop._backward, []

            def compute_or_die(self, *arguments, **options):
                computed.append(1)
                if len(computed) == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return compute(self, *arguments, **options)

            Loop._backward = compute_or_die
            training()

        assert in_a_process(die_at_step) == -signal.SIGKILL
        assert not (folder / "model.safetensors").exists()
    assert contents(training()) == whole


@pytest.mark.parametrize("streaming", [False, True])
def test_a_decoder_is_not_resumed_with_another_corpus(streaming, corpus, tokenizer_folder, tmp_path, in_a_process):
    def die_at_the_tenth():
        compute, computed = Loop._backward, []

        def compute_or_die(self, *arguments, **options):
            computed.append(1)
            if len(computed) == 10:
                os.kill(os.getpid(), signal.SIGKILL)
            return compute(self, *arguments, **options)

        Loop._backward = compute_or_die
        train_decoder(settings)

    settings = decoder_settings(corpus, tmp_path / "run", tokenizer_folder, streaming)
    assert in_a_process(die_at_the_tenth) == -signal.SIGKILL
    other = tmp_path / "other.txt"
    other.write_text(corpus.read_text() + "one more sentence here .\n")
    with pytest.raises(OutputExistsError, match="corpus_"):
        train_decoder(dataclasses.replace(settings, corpus=str(other)))
    assert train_decoder(settings).steps == 12
