"""Any masked or causal model: loading, encoding text, forward passes, sentence scores and perplexity.

Read :mod:`babyssa.models.scores` first: it says how a sentence gets its score.
"""

from __future__ import annotations

from babyssa.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "babyssa.models.text_perplexity": ["Perplexity", "perplexity"],
        "babyssa.models.loading": ["LoadedModel", "as_loaded", "load_model", "weights_sha256"],
        "babyssa.models.scores": ["SentenceScore", "choose_method", "score"],
    },
)
