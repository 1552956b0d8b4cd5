"""Several processes that train one model: which one this is, and what they exchange.

``torchrun`` and ``accelerate launch`` start one command several times, and the environment says which of them a
process is. Only the main one, number 0, writes files and messages. Within :func:`joined`, the functions named as
in torch.distributed do what those do; elsewhere, and where nothing was launched, they act as for one process.

Imports nothing heavy.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from babyssa.errors import BabySSAError, ConfigError

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")

# The others wait while the main process measures and saves.
_TIMEOUT = timedelta(hours=24)
# Each process group uses keys of its own in the store through which processes find each other.
_groups = itertools.count()

# What a launcher sets for each of its processes.
_ENVIRONMENT = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


def launched() -> bool:
    """Whether a launcher started this process, perhaps with others."""
    return all(name in os.environ for name in _ENVIRONMENT)


def number_of_processes() -> int:
    """How many processes were started together."""
    return int(os.environ["WORLD_SIZE"]) if launched() else 1


def rank() -> int:
    """The number of this process, from 0."""
    return int(os.environ["RANK"]) if launched() else 0


def is_main() -> bool:
    """Whether this is the process that writes files and messages."""
    return rank() == 0


def check_one_process(what: str) -> None:
    """Raise ConfigError where a launcher started several processes of `what`, which runs in one."""
    if number_of_processes() > 1:
        raise ConfigError(
            f"{what} runs in one process, not {number_of_processes()}",
            remedy="start it without torchrun or accelerate launch",
        )


def forget_launcher() -> None:
    """Make this process one that no launcher started."""
    for name in _ENVIRONMENT:
        os.environ.pop(name, None)


@contextmanager
def joined() -> Iterator[None]:
    """Connect the processes that were launched together for the duration of the block.

    After an error they stay connected: the others may be waiting in a collective, and notice when this process
    ends.
    """
    if not launched():
        if os.environ.get("WORLD_SIZE", "1") != "1":
            missing = ", ".join(name for name in _ENVIRONMENT if name not in os.environ)
            raise ConfigError(
                f"WORLD_SIZE is {os.environ['WORLD_SIZE']}, but these are not set: {missing}",
                remedy="start the processes with torchrun or accelerate launch, or unset WORLD_SIZE",
            )
        yield
        return
    import torch
    import torch.distributed as dist

    if dist.is_initialized():
        yield
        return
    dist.init_process_group(
        # Numbers and objects are exchanged from the CPU's memory, gradients where they are.
        "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo",
        store=dist.PrefixStore(f"group {next(_groups)}", _store()),
        rank=rank(),
        world_size=number_of_processes(),
        timeout=_TIMEOUT,
    )
    yield
    dist.destroy_process_group()


def first_to_fail() -> bool:
    """Whether no other process has failed before: the first one reports its error, the others end silently.

    All processes find the same mistake in a command, and where one fails alone, the others lose the connection.
    """
    if number_of_processes() == 1:
        return True
    try:
        return _store().add("failures", 1) == 1
    except RuntimeError:  # the process that keeps the store has ended
        return is_main()


def all_reduce(*values: int, op: Literal["SUM", "MAX"]) -> list[int]:
    """The sum, or the largest, of each of `values` over the processes."""
    if not _are_joined():
        return list(values)
    import torch
    import torch.distributed as dist

    reduced = torch.tensor(values, dtype=torch.int64)
    dist.all_reduce(reduced, op=getattr(dist.ReduceOp, op))
    return reduced.tolist()


def all_reduce_mean(value: Tensor) -> Tensor:
    """The mean of a tensor over the processes."""
    if not _are_joined():
        return value
    import torch.distributed as dist

    total = value.clone()
    dist.all_reduce(total)
    return total / dist.get_world_size()


def all_gather(value: Any) -> list[Any]:
    """The value of each process, in the order of their ranks."""
    if not _are_joined():
        return [value]
    import torch.distributed as dist

    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def broadcast(function: Callable[[], T]) -> T:
    """Call `function` in the main process; return its result, or raise its BabySSAError, in every process."""
    if not _are_joined():
        return function()
    import torch.distributed as dist

    result, error = None, None
    if is_main():
        try:
            result = function()
        except BabySSAError as raised:
            error = raised
    outcome = [result, error]
    dist.broadcast_object_list(outcome, src=0)
    result, error = outcome
    if error is not None:
        raise error
    return result


def _are_joined() -> bool:
    if not launched():
        return False
    import torch.distributed as dist

    return dist.is_initialized()


@functools.cache
def _store():
    """The launcher's store, or the main process's if the launcher has none."""
    from torch.distributed.rendezvous import rendezvous

    store, _, _ = next(rendezvous("env://", timeout=timedelta(minutes=1)))
    return store
