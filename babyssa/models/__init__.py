"""Any masked or causal model: loading, encoding text, forward passes, sentence scores and perplexity.

Read :mod:`babyssa.models.scores` first: it says how a sentence gets its score.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "text_perplexity": ["Perplexity", "perplexity"],
        "loading": ["LoadedModel", "as_loaded", "load_model", "weights_sha256"],
        "scores": ["choose_method"],
        "sentences": ["SentenceScore", "SentenceScores", "score"],
    },
)
