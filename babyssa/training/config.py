"""How a model is optimised and for how long; imports nothing heavy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from babyssa.checks import AboveZero, BelowOne, NonNegative, Positive, Settings, Share, at_least

Precision = Literal["float32", "bfloat16", "auto"]


@dataclass(frozen=True)
class Optimisation(Settings):
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
    checkpoint_words : int
        Words seen between two such copies, up to ten times as many; from there on ten times as many, and so on. So
        1000000 writes them at 1, 2, ... 10, 20, ... 100 million words, as BabyLM asks; 0 writes none.
    precision : {"float32", "bfloat16", "auto"}
        What matrix products are computed in; "auto" is bfloat16 where the machine has units for it, and float32
        elsewhere. Weights, their updates and the loss are float32.
    resume_every : int, optional
        Steps between two resume points; every five minutes if not given.
    report_to : list of str
        Trackers that get what log.jsonl gets: tensorboard, wandb, or another that `accelerate` knows.
    """

    group: ClassVar[str] = "optimisation"
    batch_size: Positive = 16
    gradient_accumulation: Positive = 1
    epochs: AboveZero = 1.0
    steps: Positive | None = None
    learning_rate: AboveZero = 1e-4
    warmup_fraction: Share = 0.1
    warmup_steps: NonNegative | None = None
    schedule: Literal["linear", "constant", "cosine"] = "linear"
    weight_decay: Annotated[float, at_least(0)] = 0.0
    beta1: BelowOne = 0.9
    beta2: BelowOne = 0.999
    max_grad_norm: Annotated[float, at_least(0)] = 1.0
    log_every: Positive = 100
    checkpoint_every: NonNegative = 0
    checkpoint_words: NonNegative = 0
    precision: Precision = "float32"
    resume_every: Positive | None = None
    report_to: list[str] = field(default_factory=list)

    def total_steps(self, batches_per_epoch: int) -> int:
        """Optimiser steps of a run; a step at the end of an epoch may have fewer batches than the others."""
        return self.steps or math.ceil(self.steps_per_epoch(batches_per_epoch) * self.epochs)

    def steps_per_epoch(self, batches_per_epoch: int) -> int:
        """Optimiser steps of an epoch."""
        return math.ceil(batches_per_epoch / self.gradient_accumulation)


@dataclass(frozen=True)
class Evaluation(Settings):
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

    group: ClassVar[str] = "evaluation"
    held_out: NonNegative = 500
    every: NonNegative = 0
    suite: str | None = None
    suite_order: Literal["bad-first", "good-first"] | None = None
    method: str | None = None
    limit: Positive | None = None
