"""Numbers that are not finite: at which step, in what, and what most likely made them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from babyssa.attention import scoring_parameters
from babyssa.errors import BabySSAError

if TYPE_CHECKING:
    from babyssa.training.trainer import BatchTrainer


def not_finite(trainer: BatchTrainer, what: str, value: float, step: int) -> BabySSAError:
    """The error for a loss, gradient norm or measurement that is NaN or infinite.

    Parameters
    ----------
    trainer : BatchTrainer
        In the state in which it happened.
    what : str
        What is not finite.
    value : float
        What it is instead.
    step : int
        The step, counted from 1.
    """
    rate = 0.0 if trainer.lr_scheduler is None else trainer.lr_scheduler.get_last_lr()[0]
    parameters = list(trainer.model.named_parameters())
    weights = _first_not_finite((name, p.detach()) for name, p in parameters)
    gradients = _first_not_finite((name, p.grad) for name, p in parameters if p.grad is not None)
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
        for learned in scoring_parameters(trainer.model).values()
        for key, values in learned.items()
        if values and all(map(math.isfinite, values))
    ]
    extremes = f", scoring's {', '.join(dict.fromkeys(scoring[:2]))}" if scoring else ""
    return BabySSAError(
        f"the {what} is {value} at step {step} (learning rate {rate:.3g}{extremes}): {cause}",
        path=trainer.args.output_dir,
        remedy="lower optimisation.learning_rate or optimisation.max_grad_norm, or warm up longer, "
        "and start again with --overwrite",
    )


def check_finite(trainer: BatchTrainer) -> None:
    """Raise before a state is saved whose loss or weights are not finite; on a GPU no step before has looked."""
    loss = trainer._tr_loss.item()
    if not math.isfinite(loss):
        raise not_finite(trainer, "loss", loss, trainer.state.global_step)
    name = _first_not_finite((name, p.detach()) for name, p in trainer.model.named_parameters())
    if name is not None:
        raise not_finite(trainer, f"weight {name}", math.nan, trainer.state.global_step)


def _first_not_finite(tensors) -> str | None:
    return next((name for name, tensor in tensors if not torch.isfinite(tensor).all()), None)
