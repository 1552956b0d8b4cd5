"""Several processes that train one model: which one this is, and what they agree on.

``torchrun`` and ``accelerate launch`` start one command several times, and the environment says which of them a
process is. Only the main one, number 0, writes files and speaks. Within :func:`joined` they add up numbers and
share what they know; elsewhere, and where nothing was launched, these functions do what they do for one process.

Imports nothing heavy.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from babyssa.errors import BabySSAError, ConfigError

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")

# The main process measures and saves while the others wait for it.
_LONGEST_WAIT = timedelta(hours=24)
# Each joining has keys of its own in the store through which processes find each other.
_joinings = itertools.count()


# What a launcher tells each of its processes.
_TOLD = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


def launched() -> bool:
    """Whether a launcher started this process, perhaps with others."""
    return all(name in os.environ for name in _TOLD)


def number_of_processes() -> int:
    """How many processes were started together."""
    return int(os.environ["WORLD_SIZE"]) if launched() else 1


def rank() -> int:
    """The number of this process, from 0."""
    return int(os.environ["RANK"]) if launched() else 0


def is_main() -> bool:
    """Whether this process is the one that writes and speaks."""
    return rank() == 0


def refuse_several(what: str) -> None:
    """Raise ConfigError where a launcher started several processes of `what`, which is done by one."""
    if number_of_processes() > 1:
        raise ConfigError(
            f"{what} runs in one process, not {number_of_processes()}",
            remedy="start it without torchrun or accelerate launch",
        )


def forget_launcher() -> None:
    """Let this process be one that no launcher started."""
    for name in _TOLD:
        os.environ.pop(name, None)


@contextmanager
def joined() -> Iterator[None]:
    """Connect the processes that were started together for the time of the block.

    After an error they stay connected: the others may be waiting for what never comes, and notice when this
    process ends.
    """
    if not launched():
        if os.environ.get("WORLD_SIZE", "1") != "1":
            missing = ", ".join(name for name in _TOLD if name not in os.environ)
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
        # What is agreed on is in the memory of the CPU, also where gradients are on a GPU.
        "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo",
        store=dist.PrefixStore(f"joining {next(_joinings)}", _store()),
        rank=rank(),
        world_size=number_of_processes(),
        timeout=_LONGEST_WAIT,
    )
    yield
    dist.destroy_process_group()


def first_to_fail() -> bool:
    """Whether none of the others has failed before: the first says why, and the others end without a word.

    What is wrong with a command all processes find out, and where one fails alone, the others lose it.
    """
    if number_of_processes() == 1:
        return True
    try:
        return _store().add("failures", 1) == 1
    except RuntimeError:  # the process that keeps the store has ended
        return is_main()


def sums(*values: int) -> list[int]:
    """Each of `values` added up over the processes."""
    return _reduced(values, "SUM")


def largest(*values: int) -> list[int]:
    """The largest of each of `values` over the processes."""
    return _reduced(values, "MAX")


def mean(value: Tensor) -> Tensor:
    """The mean of a tensor over the processes."""
    if not _are_joined():
        return value
    import torch.distributed as dist

    total = value.clone()
    dist.all_reduce(total)
    return total / dist.get_world_size()


def gathered(value: Any) -> list[Any]:
    """What each process gives, in the order of their numbers."""
    if not _are_joined():
        return [value]
    import torch.distributed as dist

    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def of_main(function: Callable[[], T]) -> T:
    """Call `function` in the main process only; every process returns, or raises, what comes of it there."""
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


def _reduced(values: tuple[int, ...], operation: str) -> list[int]:
    if not _are_joined():
        return list(values)
    import torch
    import torch.distributed as dist

    reduced = torch.tensor(values, dtype=torch.int64)
    dist.all_reduce(reduced, op=getattr(dist.ReduceOp, operation))
    return reduced.tolist()


@functools.cache
def _store():
    """The store that the launcher keeps, or the main process if the launcher has none."""
    from torch.distributed.rendezvous import rendezvous

    store, _, _ = next(rendezvous("env://", timeout=timedelta(minutes=1)))
    return store
