"""The generators: right answers, balanced classes, and shifts that change what they say and nothing else."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st
from scipy.stats import kstest

from babyssa.errors import ConfigError
from babyssa.synthetic import Shift, task_named

QUANTIFIERS = ("every", "some")


def draw(task, *, sequences=2000, length=12, seed=0, **shift):
    return task_named(task).sample(np.random.default_rng(seed), sequences, length, Shift(**shift))


def answers(task, values):
    """The definition, number by number."""
    holds = {"every": all, "some": any}[task]
    return [[holds(x > 0 for x in row[: k + 1]) for k in range(len(row))] for row in values]


@pytest.mark.parametrize("task", QUANTIFIERS)
@limits(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    length=st.integers(2, 60),
    scale=st.sampled_from([0.1, 1.0, 30.0]),
    deviant=st.sampled_from([None, 70.0]),
    data=st.sampled_from(["designed", "iid"]),
)
def test_the_answers_are_those_of_the_definition(task, seed, length, scale, deviant, data):
    sample = draw(task, sequences=16, length=length, seed=seed, input_scale=scale, deviant=deviant, data=data)
    assert sample.values.shape == sample.targets.shape == (16, length)
    assert (sample.targets == answers(task, sample.values)).all()


@pytest.mark.parametrize("task", QUANTIFIERS)
@pytest.mark.parametrize("length", [2, 40])
def test_the_classes_weigh_the_same_at_every_k(task, length):
    sample = draw(task, sequences=100_000, length=length)
    for_yes = (sample.weights * sample.targets).mean(axis=0)
    for_no = (sample.weights * (1 - sample.targets)).mean(axis=0)
    assert for_yes == pytest.approx(0.5, abs=0.02) and for_no == pytest.approx(0.5, abs=0.02)
    rarer = np.minimum(sample.targets.mean(axis=0), 1 - sample.targets.mean(axis=0))
    assert (rarer > 0.08).all(), "each class is there to be learned at every k"


def test_input_sizes_are_those_of_a_standard_normal_number():
    values = np.abs(draw("every", sequences=20_000).values)
    assert (values**2).mean() == pytest.approx(1, abs=0.02)
    scaled = np.abs(draw("every", sequences=20_000, input_scale=3.0).values)
    assert np.allclose(scaled, 3 * values, rtol=1e-5)


@pytest.mark.parametrize("task", QUANTIFIERS)
@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_iid_numbers_are_independent_normal_draws(task, scale):
    sample = draw(task, sequences=20_000, data="iid", input_scale=scale)
    values = sample.values.astype(np.float64) / scale
    moments = [(values**power).mean(axis=0) for power in (1, 2, 3, 4)]
    for moment, expected in zip(moments, (0, 1, 0, 3), strict=True):
        assert np.allclose(moment, expected, atol=0.3 if expected == 3 else 0.12)
    assert np.allclose(np.corrcoef(values.T), np.eye(12), atol=0.04)
    assert kstest(values[:, 5], "norm").pvalue > 1e-3


@pytest.mark.parametrize("task", QUANTIFIERS)
def test_iid_answers_are_as_rare_as_chance_makes_them(task):
    sample = draw(task, sequences=100_000, data="iid")
    yes = sample.targets.mean(axis=0)
    intact = yes if task == "every" else 1 - yes
    assert np.allclose(intact, 0.5 ** np.arange(1, 13), atol=0.006)
    assert (sample.weights == 1).all() and not sample.first(5).balanced
    (all_predictions,) = task_named(task).groups(sample)
    assert all_predictions.all()


@pytest.mark.parametrize("data", ["designed", "iid"])
@pytest.mark.parametrize("task", QUANTIFIERS)
def test_answers_can_stand_between_the_numbers(task, data):
    plain = draw(task, data=data)
    asked = task_named(task, answers=True)
    sample = asked.sample(np.random.default_rng(0), 2000, 12, Shift(data=data))
    assert (sample.values[:, ::2] == plain.values).all() and (sample.targets == plain.targets).all()
    assert (sample.values[:, 1::2] == np.where(plain.targets[:, :-1] == 1, 1, -1)).all()
    assert (asked.at_predictions(torch.from_numpy(sample.values)).numpy() == plain.values).all()
    assert task_named(task, answers=True) is asked and task_named("linear", answers=True) is task_named("linear")


def test_in_half_of_the_false_sequences_one_number_alone_decides():
    values = draw("every", sequences=20_000, length=40).values
    negative = (values <= 0).sum(axis=1)
    assert (negative == 0).mean() == pytest.approx(0.5, abs=0.02)
    assert (negative == 1).mean() == pytest.approx(0.25, abs=0.06)
    assert (negative > 1).mean() > 0.15


def test_some_is_every_in_the_mirror():
    every, some = draw("every"), draw("some")
    assert (every.values == -some.values).all() and (every.targets == 1 - some.targets).all()


@pytest.mark.parametrize("data", ["designed", "iid"])
@pytest.mark.parametrize("task", QUANTIFIERS)
def test_a_deviant_number_changes_no_answer(task, data):
    sample = draw(task, deviant=70.0, data=data)
    rows = np.arange(len(sample.values))
    assert (np.abs(sample.values) == 70).sum(axis=1).max() == 1
    deviants = sample.values[rows, sample.deviant]
    before = np.where(sample.deviant > 0, sample.targets[rows, sample.deviant - 1], task == "every")
    decided = sample.targets[rows, sample.deviant] != before
    assert not decided.any() and (deviants == (70 if task == "every" else -70)).all()


@pytest.mark.parametrize("task", ["every", "some", "linear"])
def test_the_control_of_a_deviant_is_the_same_but_for_that_number(task):
    deviant, control = draw(task, deviant=70.0), draw(task, deviant=70.0, control=True)
    assert (deviant.deviant == control.deviant).all()
    step = 2 if task == "linear" else 1
    numbers = np.arange(deviant.values.shape[1])
    other = numbers != deviant.deviant[:, None] * step
    if task == "linear":
        other &= numbers != deviant.deviant[:, None] * step + 1  # its f(x) changes with it
    else:
        assert (deviant.targets == control.targets).all()
    assert (deviant.values == control.values)[other].all()
    assert np.abs(control.values[~other]).max() < 30


def test_linear_functions_are_linear():
    sample = draw("linear", length=10, coefficient_scale=2.0, input_scale=3.0)
    x, y = sample.values[:, ::2].astype(float), sample.targets.astype(float)
    assert sample.values.shape == (2000, 19) and (sample.values[:, 1::2] == sample.targets[:, :-1]).all()
    slope = (y[:, 1] - y[:, 0]) / (x[:, 1] - x[:, 0])
    steady = np.abs(x[:, 1] - x[:, 0]) > 1
    assert y[steady, 5] == pytest.approx((y[:, 0] + slope * (x[:, 5] - x[:, 0]))[steady], abs=1e-3)
    assert y.var() == pytest.approx(task_named("linear").unit(Shift(3.0, 2.0)), rel=0.1)


def test_the_deviant_of_a_linear_function_is_an_input_with_its_value():
    sample = draw("linear", length=10, deviant=70.0)
    rows = np.arange(len(sample.values))
    assert (sample.values[rows, 2 * sample.deviant] == 70).all()
    assert sample.deviant.max() < 9, "a prediction follows it"


def test_the_loss_is_cross_entropy_with_the_weights_of_the_sample():
    predictions, weights = torch.tensor([[0.3, -2.0]]), torch.tensor([[0.7, 1.2]])
    loss = task_named("every").loss(predictions, torch.tensor([[1.0, 0.0]]), weights)
    by_hand = (0.7 * np.log(1 + np.exp(-0.3)) + 1.2 * np.log(1 + np.exp(-2.0))) / 2
    assert float(loss) == pytest.approx(by_hand, rel=1e-6)


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ConfigError, match="unknown task 'evry'; did you mean 'every'"):
        task_named("evry")
    for wrong in ({"input_scale": 0.0}, {"coefficient_scale": -1.0}, {"length": 1}, {"deviant": -70.0}):
        with pytest.raises(ConfigError):
            Shift(**wrong)
    with pytest.raises(ConfigError, match="data is 'idd', expected designed or iid; did you mean 'iid'"):
        Shift(data="idd")
