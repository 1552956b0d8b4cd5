"""Everything that invents speech: word lists, grammar, the sample corpus and the packaged suite."""

from __future__ import annotations

from babyssa.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "babyssa.language.lexicon": ["Lexicon", "load_lexicon"],
        "babyssa.language.sample": ["SampleStats", "generate_sample"],
        "babyssa.language.suite": ["ParadigmSummary", "generate_paradigm", "generate_suite"],
    },
)
