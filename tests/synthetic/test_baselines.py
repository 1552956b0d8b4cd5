"""The baselines against what is known about them."""

import numpy as np
import pytest

from babyssa.synthetic import Shift, task_named
from babyssa.synthetic.baselines import baselines, least_squares, mean_of_y


def test_least_squares_is_exact_after_two_examples():
    task = task_named("linear")
    sample = task.sample(np.random.default_rng(0), 20, 8, Shift(input_scale=10.0))
    predictions = least_squares(sample)
    assert (predictions[:, 0] == 0).all()
    assert predictions[:, 1] == pytest.approx(sample.targets[:, 0]), "one example says no more than its y"
    assert predictions[:, 7] == pytest.approx(sample.targets[:, 7], abs=1e-2)


def test_the_mean_is_that_of_the_examples_before():
    sample = task_named("linear").sample(np.random.default_rng(0), 5, 8, Shift())
    assert mean_of_y(sample)[:, 3] == pytest.approx(sample.targets[:, :3].mean(axis=1))


def test_a_summary_of_the_context_misses_one_number_that_decides():
    task = task_named("every")
    (predict,) = baselines(task, 20, "designed").values()
    sample = task.sample(np.random.default_rng(1), 4000, 20, Shift())
    right = task.measure(predict(sample), sample)
    accuracy = np.mean([np.average(right, axis=0, weights=group) for group in task.groups(sample)], axis=0)
    assert (accuracy > 0.6).all() and (accuracy < 0.95).all()
