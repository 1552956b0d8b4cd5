"""Large blocks are kept from step to step; memory that a training no longer uses goes back to the system."""

import re
import resource
from pathlib import Path

import pytest
import torch

import babyssa.training.heap
from babyssa.training.heap import Heap


@pytest.fixture
def heap():
    made = Heap()
    if made._trim is None or not Path("/proc/self/status").exists():
        pytest.skip("needs glibc and Linux")
    return made


def resident() -> float:
    """MB of memory that this process holds."""
    return int(re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) / 2**10


def faults_of(blocks: int) -> int:
    """Page faults while blocks of 48 MB are filled and freed, one after the other."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(blocks):
        torch.ones(12 * 2**20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_a_large_block_is_kept_for_the_next_step(heap):
    faults_of(20)
    assert faults_of(20) < 20 * 48 * 2**20 / resource.getpagesize() / 100


def test_the_holes_of_the_heap_are_returned_once_a_minute(heap, monkeypatch):
    blocks = [torch.ones(16_000) for _ in range(4000)]
    kept = blocks[::50] + blocks[-1:]
    del blocks
    before = resident()
    heap.trim_if_due()
    assert resident() > before - 20, "not a minute has passed"
    monkeypatch.setattr(babyssa.training.heap, "_SECONDS_BETWEEN_TRIMS", 0)
    heap.trim_if_due()
    assert resident() < before - 150 and all(block.sum() == 16_000 for block in kept)
