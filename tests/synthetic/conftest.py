"""Tiny runs of every task, trained for a moment."""

import dataclasses

import pytest

from babyssa.synthetic import InContextSize, SyntheticTraining, train_synthetic
from babyssa.training.config import Optimisation

TINY = InContextSize(layers=2, heads=2, width=16, max_numbers=24)


@pytest.fixture
def settings(tmp_path):
    """Settings of a run of four steps, with changes."""

    def make(**changes) -> SyntheticTraining:
        made = SyntheticTraining(
            task="every",
            out=tmp_path / "run",
            length=6,
            size=TINY,
            optimisation=Optimisation(batch_size=8, steps=4, learning_rate=1e-3, log_every=2),
        )
        return dataclasses.replace(made, **changes)

    return make


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Folders of two seeds of Softmax and SSA on `every` and one of each on `linear`, all hardly trained."""
    folder = tmp_path_factory.mktemp("runs")
    made = []
    for task, variant, seed in [
        ("every", "softmax", 0),
        ("every", "softmax", 1),
        ("every", "ssa", 0),
        ("every", "ssa", 1),
        ("linear", "softmax", 0),
        ("linear", "linear", 0),
    ]:
        out = folder / f"{task}-{variant}-{seed}"
        train_synthetic(
            SyntheticTraining(
                task=task,
                out=out,
                variant=variant,
                seed=seed,
                length=6,
                size=TINY,
                optimisation=Optimisation(batch_size=8, steps=2, learning_rate=1e-3),
            )
        )
        made.append(out)
    return made
