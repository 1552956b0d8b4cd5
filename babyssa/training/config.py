"""How a model is optimised and for how long; imports nothing heavy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from babyssa.errors import ConfigError

Schedule = Literal["linear", "constant", "cosine"]
Precision = Literal["float32", "bfloat16", "auto"]


def check_seed(seed: int) -> None:
    """Raise ConfigError unless every random number generator takes `seed`."""
    if not 0 <= seed < 2**32:
        raise ConfigError(f"seed is {seed}", remedy="it is from 0 to 4294967295")


def check_domains(group: str, settings: Any, **domains: tuple[bool, str]) -> None:
    """Raise ConfigError for the first setting out of its domain.

    Parameters
    ----------
    group : str
        What the settings are called, such as "optimisation".
    settings : dataclass
        Their values.
    **domains : tuple of bool and str
        By setting: whether its value is in its domain, and the domain.
    """
    for key, (fits, domain) in domains.items():
        if not fits:
            name = f"{group}.{key}".replace("_", "-")
            raise ConfigError(f"{name} is {getattr(settings, key)}", remedy=f"it is {domain}")


@dataclass(frozen=True)
class Optimisation:
    """AdamW with a linear warm-up and a schedule after it.

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
    schedule : {"linear", "constant", "cosine"}
        The learning rate after the warm-up: it falls linearly to 0, stays, or falls to 0 along a cosine.
    weight_decay : float
        Decoupled weight decay; never applied to biases, normalisations and scoring parameters.
    beta1 : float
        AdamW's decay rate of the mean gradient.
    beta2 : float
        AdamW's decay rate of the mean squared gradient.
    max_grad_norm : float
        Gradients are scaled down to this norm; 0 turns clipping off.
    log_every : int
        Steps between two lines of log.jsonl.
    checkpoint_every : int
        Steps between two copies of the model, each a folder that can be probed; 0 writes none.
    precision : {"float32", "bfloat16", "auto"}
        What matrix products are computed in; "auto" is bfloat16 where the machine has units for it, and float32
        elsewhere. Weights, their updates and the loss are float32.
    resume_every : int, optional
        Steps between two resume points; every five minutes if not given.
    report_to : list of str
        Trackers that get what log.jsonl gets: tensorboard, wandb, or another that `accelerate` knows.
    """

    batch_size: int = 16
    gradient_accumulation: int = 1
    epochs: float = 1.0
    steps: int | None = None
    learning_rate: float = 1e-4
    warmup_fraction: float = 0.1
    warmup_steps: int | None = None
    schedule: Schedule = "linear"
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    max_grad_norm: float = 1.0
    log_every: int = 100
    checkpoint_every: int = 0
    precision: Precision = "float32"
    resume_every: int | None = None
    report_to: list[str] = field(default_factory=list)

    def __post_init__(self):
        finite = math.isfinite
        check_domains(
            "optimisation",
            self,
            batch_size=(self.batch_size >= 1, "at least 1"),
            gradient_accumulation=(self.gradient_accumulation >= 1, "at least 1"),
            epochs=(self.epochs > 0, "above 0"),
            steps=(self.steps is None or self.steps >= 1, "at least 1"),
            learning_rate=(finite(self.learning_rate) and self.learning_rate > 0, "above 0"),
            warmup_fraction=(0 <= self.warmup_fraction <= 1, "from 0 to 1"),
            warmup_steps=(self.warmup_steps is None or self.warmup_steps >= 0, "at least 0"),
            schedule=(self.schedule in get_args(Schedule), f"one of {', '.join(get_args(Schedule))}"),
            weight_decay=(finite(self.weight_decay) and self.weight_decay >= 0, "at least 0"),
            beta1=(0 <= self.beta1 < 1, "at least 0 and below 1"),
            beta2=(0 <= self.beta2 < 1, "at least 0 and below 1"),
            max_grad_norm=(finite(self.max_grad_norm) and self.max_grad_norm >= 0, "at least 0"),
            log_every=(self.log_every >= 1, "at least 1"),
            checkpoint_every=(self.checkpoint_every >= 0, "at least 0"),
            precision=(self.precision in get_args(Precision), f"one of {', '.join(get_args(Precision))}"),
            resume_every=(self.resume_every is None or self.resume_every >= 1, "at least 1"),
        )

    def total_steps(self, batches_per_epoch: int) -> int:
        """Optimiser steps of a run; a step at the end of an epoch may have fewer batches than the others."""
        return self.steps or math.ceil(self.steps_per_epoch(batches_per_epoch) * self.epochs)

    def steps_per_epoch(self, batches_per_epoch: int) -> int:
        """Optimiser steps of an epoch."""
        return math.ceil(batches_per_epoch / self.gradient_accumulation)


@dataclass(frozen=True)
class Evaluation:
    """What is measured during training, and how often.

    Parameters
    ----------
    held_out : int
        Sentences, or a decoder's documents, kept out of training: at even distances through the corpus; of a
        stream, the first ones.
    every : int
        Steps between two measurements of the perplexity, or an encoder's pseudo-perplexity, of what is held out; 0
        measures at the end only.
    suite : str, optional
        A suite of minimal pairs to probe at each measurement, for a learning curve.
    suite_order : {"bad-first", "good-first"}, optional
        The order within the suite's pairs, where the suite does not state it.
    method : str, optional
        Scoring method of those pairs; `pll` for an encoder and `loglik` for a decoder if not given.
    limit : int, optional
        Only so many pairs of each paradigm.
    """

    held_out: int = 500
    every: int = 0
    suite: str | None = None
    suite_order: Literal["bad-first", "good-first"] | None = None
    method: str | None = None
    limit: int | None = None

    def __post_init__(self):
        check_domains(
            "evaluation",
            self,
            held_out=(self.held_out >= 0, "at least 0"),
            every=(self.every >= 0, "at least 0"),
            limit=(self.limit is None or self.limit >= 1, "at least 1"),
        )
