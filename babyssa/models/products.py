"""Which library multiplies float32 matrices on a CPU: the BLAS that torch was built with, or oneDNN.

torch's BLAS on x86 is MKL, which on AMD's AVX-512 units reaches half the speed of oneDNN's float32 kernels. torch
calls these only where it may also round to bfloat16, as oneDNN does with AMX; without AVX-512 it calls them never.
So what oneDNN computes is compared with float64, and its time with MKL's. The faster one is remembered in the
cache folder: on one machine, with one number of threads, a seed gives the same numbers each time.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache

import torch
from torch import Tensor

from babyssa.errors import ConfigError
from babyssa.files import atomic_write, cache_folder

# Overrides what is measured.
PRODUCTS = "BABYSSA_CPU_PRODUCTS"
BLAS, ONEDNN = "mkl" if torch.backends.mkl.is_available() else "blas", "onednn"

# Rows, inputs and outputs of a layer: a batch of short sentences, and what is predicted of them.
_SIZES = ((192, 256, 256), (32, 256, 1024))
_REPETITIONS = 5
# Of products of 32 to 1,024 pairs of standard normal numbers: float32 errs by 1e-4, rounded to bfloat16 by 1e-1.
_FLOAT32_ERROR = 1e-3
# What oneDNN must take less than, in times of the BLAS: numbers of two runs should not differ for a few percent.
_WORTH = 0.8

_chosen: ContextVar[str | None] = ContextVar("products", default=None)


@contextmanager
def multiplying(library: str | None = None) -> Iterator[None]:
    """Within the block, multiply float32 matrices on the CPU with `library`.

    Parameters
    ----------
    library : str, optional
        A name that :func:`choose_products` returned; if not given, that of an enclosing block, and without one,
        what it returns now.
    """
    library = library or _chosen.get() or choose_products()
    outer = _chosen.set(library)
    try:
        with _onednn() if library == ONEDNN else nullcontext():
            yield
    finally:
        _chosen.reset(outer)


def choose_products(recorded: str | None = None) -> str:
    """The library that the environment names, else `recorded`, else the faster one on this machine.

    Parameters
    ----------
    recorded : str, optional
        What an earlier part of a run was computed with; not used where it would not compute in float32.

    Raises
    ------
    ConfigError
        If the environment variable BABYSSA_CPU_PRODUCTS names no library that computes in float32 here.
    """
    forced = os.environ.get(PRODUCTS, "")
    if forced not in ("", BLAS, ONEDNN):
        raise ConfigError(f"{PRODUCTS} is '{forced}'", remedy=f"set it to {BLAS} or {ONEDNN}, or unset it")
    if forced == ONEDNN and not _computes_in_float32():
        raise ConfigError(
            f"{PRODUCTS} is '{forced}', which computes in bfloat16 on this CPU",
            remedy=f"set it to {BLAS}, or unset it",
        )
    found = forced or recorded or _remembered(torch.get_num_threads())
    return ONEDNN if found == ONEDNN and _computes_in_float32() else BLAS


@contextmanager
def _onednn() -> Iterator[None]:
    """Within the block, let torch call oneDNN for float32 products; where it cannot, nothing changes."""
    matmul = torch.backends.mkldnn.matmul
    before = matmul.fp32_precision
    matmul.fp32_precision = "bf16"
    try:
        yield
    finally:
        matmul.fp32_precision = before


@cache
def _remembered(threads: int) -> str:
    """The faster library by the cache folder; measured, and kept there, if it does not say."""
    capabilities = getattr(torch.cpu, "get_capabilities", dict)()
    machine = repr((torch.__version__, threads, sorted(capabilities.items())))
    try:
        file = cache_folder() / "products" / hashlib.sha256(machine.encode()).hexdigest()[:32]
        known = file.read_text(encoding="utf-8").strip() if file.is_file() else ""
        if known not in (BLAS, ONEDNN):
            known = _faster()
            with atomic_write(file) as kept:
                kept.write(f"{known}\n")
        return known
    except (OSError, ConfigError):
        return _faster()


@cache
def _faster() -> str:
    """The library that takes less time for the products of a small layer, forward and backward."""
    work = _products()
    by_blas = [product() for product in work]
    with _onednn():
        if all(map(torch.equal, by_blas, (product() for product in work))):
            # torch does not call oneDNN here.
            return BLAS
    if not _computes_in_float32():
        return BLAS
    blas, onednn = [], []
    for _ in range(_REPETITIONS):
        blas.append(_seconds(work))
        with _onednn():
            onednn.append(_seconds(work))
    return ONEDNN if min(onednn) < _WORTH * min(blas) else BLAS


@cache
def _computes_in_float32() -> bool:
    """Whether what torch computes when it may call oneDNN is as exact as float32."""
    exact = _products(torch.float64)
    with _onednn():
        return all(
            (product() - truth()).abs().max().item() < _FLOAT32_ERROR
            for product, truth in zip(_products(), exact, strict=True)
        )


def _products(dtype: torch.dtype = torch.float32) -> list[Callable[[], Tensor]]:
    """The products of linear layers: their outputs, and the gradients of their inputs and weights."""
    generator = torch.Generator().manual_seed(0)
    found: list[Callable[[], Tensor]] = []
    for rows, inputs, outputs in _SIZES:
        shapes = ((rows, inputs), (outputs, inputs), (rows, outputs))
        x, weight, gradient = (torch.randn(shape, generator=generator).to(dtype) for shape in shapes)
        found += [
            lambda x=x, weight=weight: x @ weight.t(),
            lambda gradient=gradient, weight=weight: gradient @ weight,
            lambda gradient=gradient, x=x: gradient.t() @ x,
        ]
    return found


def _seconds(work: list[Callable[[], Tensor]]) -> float:
    started = time.perf_counter()
    for product in work:
        product()
    return time.perf_counter() - started
