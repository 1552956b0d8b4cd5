"""Variants over seeds: statistics, reading results, comparing them, tables and figures.

Read :mod:`babyssa.comparison.comparison` first.
"""

from __future__ import annotations

from babyssa.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "babyssa.comparison.comparison": ["Comparison", "compare"],
        "babyssa.comparison.statistics": ["crossed_t", "hierarchical_bootstrap", "holm"],
    },
)
