"""A tiny sweep: its settings, the pairs that it probes, and what it is made of."""

import pytest

from babyssa.encoder import EncoderTraining
from babyssa.encoder.config import EncoderSize, Evaluation
from babyssa.experiments.experiment import Experiment
from babyssa.experiments.grid import sweep
from babyssa.experiments.measures import Measure, Pairs
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


@pytest.fixture
def experiment(settings, suite):
    """Makes the experiment of some variants and seeds, which measures pairs."""

    def make(variants=("softmax",), seeds=(0,), method="pll", settings=settings, **changes):
        return Experiment(
            name="tiny",
            settings=settings,
            variants={name: {"variant": name} for name in variants},
            seeds=tuple(seeds),
            measures={"pairs": Measure("pairs", Pairs("pairs", method=method), {"pairs": suite})},
            **changes,
        )

    return make


@pytest.fixture
def run(experiment):
    """Sweeps such an experiment."""

    def run(variants=("softmax",), seeds=(0,), method="pll", jobs=1, **changes):
        return sweep(experiment(variants, seeds, method, **changes), jobs=jobs)

    return run
