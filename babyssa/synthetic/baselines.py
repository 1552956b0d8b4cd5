"""Predictions without a transformer: scikit-learn on the same context."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression

from babyssa.synthetic.config import Data
from babyssa.synthetic.tasks import Quantifier, Sample, Shift, Task

Baseline = Callable[[Sample], np.ndarray]


def baselines(task: Task, length: int, data: Data, seed: int = 0) -> dict[str, Baseline]:
    """The baselines of a task by name: each takes a sample to predictions (sequences, predictions).

    - linear: least squares on the examples so far, and the mean of their y;
    - every, some: logistic regression on the mean so far and k, fitted once on `length` numbers of the
      training distribution: a model that summarises its context without looking for one number; and with iid
      numbers the answer that is the more frequent one at every k, whatever the numbers.

    Parameters
    ----------
    task : Task
        The task.
    length : int
        Of the training sequences.
    data : {"designed", "iid"}
        How the signs of a quantifier's numbers are drawn.
    seed : int
        Of the sequences that logistic regression is fitted on.
    """
    if isinstance(task, Quantifier):
        found: dict[str, Baseline] = {"logistic regression": _logistic_regression(task, length, data, seed)}
        if data == "iid":
            found["most frequent answer"] = lambda sample: np.full(sample.targets.shape, -task.sign)
        return found
    return {"least squares": least_squares, "mean of y": mean_of_y}


def least_squares(sample: Sample) -> np.ndarray:
    """Fit the examples before each x_k (LinearRegression), 0 before the first."""
    x, y = sample.values[:, ::2].astype(np.float64), sample.targets.astype(np.float64)
    predictions = np.zeros(x.shape)
    for row, k in np.ndindex(x.shape):
        if k:
            fitted = LinearRegression().fit(x[row, :k, None], y[row, :k])
            predictions[row, k] = fitted.predict(x[row, k, None, None])[0]
    return predictions


def mean_of_y(sample: Sample) -> np.ndarray:
    """The mean of the y before each x_k, 0 before the first."""
    y = sample.targets.astype(np.float64)
    before = np.arange(y.shape[1])
    return (np.cumsum(y, axis=1) - y) / np.maximum(before, 1)


def _logistic_regression(task: Task, length: int, data: Data, seed: int) -> Baseline:
    training = task.sample(np.random.default_rng([seed, 2]), 1000, length, Shift(data=data))
    model = LogisticRegression(max_iter=1000).fit(
        _running_means(training),
        training.targets.ravel(),
        sample_weight=training.weights.ravel(),
    )

    def predict(sample: Sample) -> np.ndarray:
        return model.decision_function(_running_means(sample)).reshape(sample.values.shape)

    return predict


def _running_means(sample: Sample) -> np.ndarray:
    """Mean so far and k, (sequences * numbers, 2)."""
    counts = np.arange(1, sample.values.shape[1] + 1)
    means = np.cumsum(sample.values, axis=1, dtype=np.float64) / counts
    return np.stack([means.ravel(), np.broadcast_to(counts, means.shape).ravel()], axis=1)
