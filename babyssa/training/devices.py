"""What a run computes on, and in which precision."""

from __future__ import annotations

import os

import torch

from babyssa import processes
from babyssa.errors import ConfigError
from babyssa.models.products import choose_products
from babyssa.training.config import Optimisation

# Overrides what is detected of the CPU, so that tests can cover both kinds of machine.
CPU_BFLOAT16 = "BABYSSA_CPU_BFLOAT16"


def check_devices() -> None:
    """Raise ConfigError where one process sees several GPUs, or several would share one."""
    gpus = torch.cuda.device_count()
    here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if here > gpus > 0 or (gpus > 1 and processes.number_of_processes() == 1):
        raise ConfigError(
            f"{here} process{'es' if here > 1 else ''} for {gpus} GPU{'s' if gpus > 1 else ''}",
            remedy=f"start one for each, with torchrun --nproc-per-node {gpus} -m babyssa, "
            "or one alone, with CUDA_VISIBLE_DEVICES=0",
        )


def device_name() -> str:
    """What the run computes on, for the log."""
    several = f", {processes.number_of_processes()} processes" if processes.number_of_processes() > 1 else ""
    if torch.cuda.is_available():
        return torch.cuda.get_device_name() + several
    return f"CPU, {torch.get_num_threads()} threads{several}"


def products_library(recorded: str | None = None) -> str | None:
    """What multiplies float32 matrices (:func:`choose_products`); None where a GPU does."""
    return None if torch.cuda.is_available() else choose_products(recorded)


def precision_of(optimisation: Optimisation) -> str:
    """float32 or bfloat16: what `auto` means on this machine, or what was asked for."""
    if optimisation.precision != "auto":
        return optimisation.precision
    return "bfloat16" if computes_in_bfloat16() else "float32"


def computes_in_bfloat16() -> bool:
    """Whether the device has bfloat16 units; emulated, bfloat16 is several times slower than float32.

    Raises
    ------
    ConfigError
        If the environment variable BABYSSA_CPU_BFLOAT16 is neither 1 nor 0.
    """
    if torch.cuda.is_available():
        return torch.cuda.is_bf16_supported(including_emulation=False)
    forced = os.environ.get(CPU_BFLOAT16, "")
    if forced not in ("", "0", "1"):
        raise ConfigError(f"{CPU_BFLOAT16} is '{forced}'", remedy="set it to 1 or 0, or unset it")
    if forced:
        return forced == "1"
    # Older torch does not say; there, auto is float32.
    capabilities = getattr(torch.cpu, "get_capabilities", dict)()
    return any(capabilities.get(unit, False) for unit in ("amx_bf16", "avx512_bf16"))
