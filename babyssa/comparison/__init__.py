"""Variants over seeds: statistics, reading results, comparing them, tables and figures.

Read :mod:`babyssa.comparison.comparison` first.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "comparison": ["compare"],
        "power": ["detectable_difference", "power_of_t", "seeds_needed"],
        "report": ["Comparison"],
        "statistics": ["crossed_bootstrap", "crossed_t", "holm"],
    },
)
