"""Minimal-pair suites, sentence scores, probing, diagnostic classifiers and comparison statistics.

Read :mod:`babyssa.probing.scorers` first: it says how a sentence gets its score.
"""

from __future__ import annotations

from babyssa.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "babyssa.probing.suites": ["MinimalPair", "Paradigm", "Suite", "load_suite"],
        "babyssa.probing.models": ["LoadedModel", "as_loaded", "load_model", "weights_sha256"],
        "babyssa.probing.scorers": ["SentenceScore", "choose_method", "score"],
        "babyssa.probing.accuracy": ["ParadigmResult", "ProbeResult", "check_suite", "probe"],
        "babyssa.probing.diagnostic": ["DiagnosticResult", "diagnose"],
        "babyssa.probing.attention": ["AttentionMaps", "HeadAttention", "attention_maps"],
        "babyssa.probing.generation": ["ParadigmSummary", "generate_paradigm", "generate_suite"],
        "babyssa.probing.comparison": ["Comparison", "compare"],
        "babyssa.probing.statistics": ["crossed_t", "hierarchical_bootstrap", "holm"],
    },
)
