"""What a step does to the weights: AdamW, its learning rate, and clipping."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_, get_total_norm
from torch.optim import AdamW
from torch.optim.lr_scheduler import LRScheduler
from transformers import get_scheduler

from babyssa.attention import Scoring
from babyssa.console import say
from babyssa.training.config import Optimisation

# transformers' names; each starts with a linear warm-up.
_SCHEDULES = {"linear": "linear", "constant": "constant_with_warmup", "cosine": "cosine"}


def build_optimizer(model: nn.Module, optimisation: Optimisation) -> AdamW:
    """AdamW; only weight matrices decay, and of those not the scoring's."""
    scoring = {id(p) for module in model.modules() if isinstance(module, Scoring) for p in module.parameters()}
    decayed: list[Tensor] = []
    others: list[Tensor] = []
    for parameter in model.parameters():
        (decayed if parameter.ndim > 1 and id(parameter) not in scoring else others).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": optimisation.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return AdamW(groups, lr=optimisation.learning_rate, betas=(optimisation.beta1, optimisation.beta2), fused=True)


def build_schedule(optimizer: AdamW, optimisation: Optimisation, steps: int) -> LRScheduler:
    """The learning rate over `steps` steps, by the name in ``optimisation.schedule``."""
    warmup = optimisation.warmup_steps
    if warmup is None:
        warmup = round(steps * optimisation.warmup_fraction)
    if warmup >= steps:
        say(f"warning: {warmup} warm-up steps of {steps} in all: the learning rate never reaches its peak")
    return get_scheduler(_SCHEDULES[optimisation.schedule], optimizer, warmup, steps)


def clip_gradients(optimizer: AdamW, max_norm: float) -> Tensor:
    """Scale the gradients down to `max_norm`, unless that is 0; returns the norm that they had.

    As torch.nn.utils.clip_grad_norm_, but on a CPU and on CUDA the fused optimiser divides by ``grad_scale`` as it
    reads the gradients, which saves a pass over them.
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if parameters[0].device.type not in ("cpu", "cuda"):
        return clip_grad_norm_(parameters, max_norm or torch.inf)
    norm = get_total_norm([p.grad for p in parameters if p.grad is not None], foreach=True)
    if max_norm:
        optimizer.grad_scale = ((norm + 1e-6) / max_norm).clamp(min=1.0)
    return norm
