"""Everything that invents speech: word lists, grammar, the sample corpus and the packaged suite."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "lexicon": ["Lexicon", "load_lexicon"],
        "sample": ["SampleStats", "generate_sample"],
        "suite": ["ParadigmSummary", "generate_paradigm", "generate_suite"],
    },
)
