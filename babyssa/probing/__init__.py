"""What a model learned: suites of minimal pairs, accuracy, diagnostic classifiers, attention maps, saturation.

Read :mod:`babyssa.probing.accuracy` first.
"""

from __future__ import annotations

from babyssa.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "babyssa.probing.suites": ["MinimalPair", "Paradigm", "Suite", "load_suite"],
        "babyssa.probing.accuracy": ["ParadigmResult", "ProbeResult", "check_suite", "probe"],
        "babyssa.probing.diagnostic": ["DiagnosticResult", "diagnose"],
        "babyssa.probing.attention": ["AttentionMaps", "HeadAttention", "attention_maps"],
    },
)
