"""Numbers that are not finite: at which step, in what, and the most likely cause."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor, nn

from babyssa.attention import scoring_parameters
from babyssa.errors import BabySSAError


def not_finite(
    what: str, value: float, *, step: int, model: nn.Module, learning_rate: float, out: Path
) -> BabySSAError:
    """The error for a loss, gradient norm, weight or measurement that is NaN or infinite.

    Parameters
    ----------
    what : str
        What is not finite.
    value : float
        What it is instead.
    step : int
        The step, counted from 1.
    model : nn.Module
        The model in the state in which it happened, with the gradients of a step in progress.
    learning_rate : float
        The learning rate.
    out : Path
        The run folder.
    """
    weights = first_not_finite((name, p.detach()) for name, p in model.named_parameters())
    gradients = first_not_finite((name, p.grad) for name, p in model.named_parameters() if p.grad is not None)
    if weights is not None:
        cause = f"an earlier step made the weights not finite ({weights}), most likely a learning rate too high"
    elif step == 1:
        cause = "at the first step, with the initial weights: most likely the scoring's parameters or the data"
    elif gradients is not None:
        cause = f"the gradient of {gradients} is not finite, the weights are: most likely a learning rate too high"
    else:
        cause = "the weights are finite but too large: most likely a learning rate too high"
    scoring = [
        f"{key} up to {max(values):.3g}"
        for learned in scoring_parameters(model).values()
        for key, values in learned.items()
        if values and all(map(math.isfinite, values))
    ]
    extremes = f", scoring's {', '.join(dict.fromkeys(scoring[:2]))}" if scoring else ""
    return BabySSAError(
        f"the {what} is {value} at step {step} (learning rate {learning_rate:.3g}{extremes}): {cause}",
        path=out,
        remedy="lower optimisation.learning-rate or optimisation.max-grad-norm, or warm up longer, "
        "and start again with --overwrite",
    )


def first_not_finite(tensors: Iterable[tuple[str, Tensor]]) -> str | None:
    """The name of the first tensor with a NaN or an infinity in it."""
    return next((name for name, tensor in tensors if not torch.isfinite(tensor).all()), None)
