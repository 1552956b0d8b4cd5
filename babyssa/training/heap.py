"""The C library's heap: keep large blocks from step to step, return what a training no longer uses."""

from __future__ import annotations

import ctypes
import sys
import time

_SECONDS_BETWEEN_TRIMS = 60.0
# Numbers of mallopt's parameters in glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT_BYTES = 2**30


class Heap:
    """Keeps freed blocks for the next step, and returns unused memory to the system once a minute.

    By default glibc returns large blocks as soon as they are freed and takes them anew, and each step faults their
    pages in again: 2,000 faults and a tenth of the CPU time of a step of BabyBERTa's size at batch 16. Raising its
    thresholds keeps them. Batches differ in length and their tensors in size, so the heap becomes fragmented: a
    `small` training came to hold 1.8 GB, of which 0.6 GB were in use between two steps. Other C libraries
    than glibc are left as they are.
    """

    def __init__(self):
        library = ctypes.CDLL(None) if sys.platform == "linux" else None
        self._trim = getattr(library, "malloc_trim", None)
        self._last_trim = time.monotonic()
        # musl has neither function.
        if self._trim is not None and hasattr(library, "mallopt"):
            library.mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)
            library.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)

    def trim_if_due(self) -> None:
        """Return unused memory if the last time was a minute ago."""
        if self._trim is not None and time.monotonic() - self._last_trim >= _SECONDS_BETWEEN_TRIMS:
            self._trim(ctypes.c_size_t(0))
            self._last_trim = time.monotonic()
