"""The C library's heap: memory that a long training would otherwise hold without using it."""

from __future__ import annotations

import ctypes
import sys
import time

_SECONDS_BETWEEN_TRIMS = 60.0


class HeapTrimmer:
    """Returns free memory to the system, once a minute.

    Batches differ in length and their tensors in size, so glibc's heap becomes fragmented: a `small` training came
    to hold 1.8 GB, of which 0.6 GB were in use between two steps.
    """

    def __init__(self):
        # Not every C library on Linux has it.
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
        self._last = time.monotonic()

    def trim_if_due(self) -> None:
        """Trim the heap if the last time was a minute ago."""
        if self._trim is not None and time.monotonic() - self._last >= _SECONDS_BETWEEN_TRIMS:
            self._trim(ctypes.c_size_t(0))
            self._last = time.monotonic()
