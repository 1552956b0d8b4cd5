"""Memory that a training no longer uses goes back to the system."""

import re
from pathlib import Path

import pytest
import torch

from babyssa.training import heap
from babyssa.training.heap import HeapTrimmer


def resident() -> float:
    """MB of memory that this process holds."""
    return int(re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) / 2**10


def test_the_holes_of_the_heap_are_returned_once_a_minute(monkeypatch):
    trimmer = HeapTrimmer()
    if trimmer._trim is None or not Path("/proc/self/status").exists():
        pytest.skip("needs glibc and Linux")
    blocks = [torch.ones(16_000) for _ in range(4000)]
    kept = blocks[::50] + blocks[-1:]
    del blocks
    before = resident()
    trimmer.trim_if_due()
    assert resident() > before - 20, "not a minute has passed"
    monkeypatch.setattr(heap, "_SECONDS_BETWEEN_TRIMS", 0)
    trimmer.trim_if_due()
    assert resident() < before - 150 and all(block.sum() == 16_000 for block in kept)
