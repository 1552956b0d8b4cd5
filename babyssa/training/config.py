"""How a model is optimised and for how long; imports nothing heavy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from babyssa.errors import ConfigError


def check_seed(seed: int) -> None:
    """Raise ConfigError unless every random number generator takes `seed`."""
    if not 0 <= seed < 2**32:
        raise ConfigError(f"seed is {seed}", remedy="it is from 0 to 4294967295")


@dataclass(frozen=True)
class Optimisation:
    """AdamW with linear warm-up and linear decay.

    Parameters
    ----------
    batch_size : int
        Sequences in one forward and backward pass.
    gradient_accumulation : int
        Batches per optimiser step, whose mean losses are averaged: the step's (global) batch is
        batch_size x gradient_accumulation sequences, at the memory of one batch.
    epochs : float
        Passes over the training data, all mask patterns included; ignored where `steps` is given.
    steps : int, optional
        Optimiser steps.
    learning_rate : float
        Peak learning rate.
    warmup_fraction : float
        Share of the steps with a rising learning rate; ignored where `warmup_steps` is given.
    warmup_steps : int, optional
        Steps with a rising learning rate.
    weight_decay : float
        Decoupled weight decay; never applied to biases, normalisations and scoring parameters.
    beta1, beta2 : float
        AdamW's decay rates.
    max_grad_norm : float
        Gradients are scaled down to this norm; 0 leaves them.
    log_every : int
        Steps between two lines of log.jsonl.
    checkpoint_every : int
        Steps between two copies of the model, each a folder that can be probed; 0 writes none.
    precision : {"float32", "bfloat16", "auto"}
        What matrix products are computed in; "auto" is bfloat16 where the machine has units for it, and float32
        elsewhere. Weights, their updates and the loss are float32.
    resume_every : int, optional
        Steps between two saves of what the run goes on from if it is stopped; five minutes if not given.
    report_to : list of str
        Where Trainer reports besides log.jsonl: tensorboard, wandb.
    """

    batch_size: int = 16
    gradient_accumulation: int = 1
    epochs: float = 1.0
    steps: int | None = None
    learning_rate: float = 1e-4
    warmup_fraction: float = 0.1
    warmup_steps: int | None = None
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    max_grad_norm: float = 1.0
    log_every: int = 100
    checkpoint_every: int = 0
    precision: Literal["float32", "bfloat16", "auto"] = "float32"
    resume_every: int | None = None
    report_to: list[str] = field(default_factory=list)

    def __post_init__(self):
        if self.batch_size < 1:
            raise ConfigError(f"optimisation.batch_size is {self.batch_size}", remedy="it is at least 1")
        if self.gradient_accumulation < 1:
            raise ConfigError(
                f"optimisation.gradient_accumulation is {self.gradient_accumulation}", remedy="it is at least 1"
            )
        if self.epochs <= 0 or (self.steps is not None and self.steps < 1):
            raise ConfigError(
                f"optimisation.epochs is {self.epochs} and optimisation.steps {self.steps}",
                remedy="both are above 0",
            )
        if not 0 < self.learning_rate < math.inf:
            raise ConfigError(f"optimisation.learning_rate is {self.learning_rate}", remedy="it is above 0")
        for key in ("weight_decay", "max_grad_norm"):
            if not 0 <= getattr(self, key) < math.inf:
                raise ConfigError(f"optimisation.{key} is {getattr(self, key)}", remedy="it is at least 0")
        for key in ("beta1", "beta2"):
            if not 0 <= getattr(self, key) < 1:
                raise ConfigError(
                    f"optimisation.{key} is {getattr(self, key)}", remedy="it is at least 0 and below 1"
                )
        if not 0 <= self.warmup_fraction <= 1 or (self.warmup_steps is not None and self.warmup_steps < 0):
            raise ConfigError(
                f"optimisation.warmup_fraction is {self.warmup_fraction} and warmup_steps {self.warmup_steps}",
                remedy="a fraction between 0 and 1, and at least 0 steps",
            )
        if self.resume_every is not None and self.resume_every < 1:
            raise ConfigError(f"optimisation.resume_every is {self.resume_every}", remedy="it is at least 1")
        if self.log_every < 1 or self.checkpoint_every < 0:
            raise ConfigError(
                f"optimisation.log_every is {self.log_every} and checkpoint_every {self.checkpoint_every}",
                remedy="at least 1, and at least 0",
            )
