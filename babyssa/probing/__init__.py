"""What a model learned: suites of minimal pairs, accuracy, diagnostic classifiers, attention maps, saturation.

Read :mod:`babyssa.probing.accuracy` first.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "suites": ["Item", "MinimalPair", "Paradigm", "Suite", "load_suite"],
        "accuracy": ["ParadigmResult", "ProbeResult", "check_suite", "probe"],
        "diagnostic": ["DiagnosticResult", "diagnose"],
        "attention": ["AttentionMaps", "HeadAttention", "attention_maps"],
    },
)
