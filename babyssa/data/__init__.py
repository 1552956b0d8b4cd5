"""Corpora: readers, cleaning, age order, and the tokenizer trained on them."""

from __future__ import annotations

from babyssa.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "babyssa.data.lexicon": ["Lexicon", "load_lexicon"],
        "babyssa.data.sample": ["SampleStats", "generate_sample"],
        "babyssa.data.utterances": ["Utterance"],
        "babyssa.data.cleaning": ["CleaningRules", "clean"],
        "babyssa.data.corpus": ["CorpusStats", "SourceStats", "prepare", "read_corpus", "read_utterances"],
        "babyssa.data.documents": ["read_documents"],
        "babyssa.data.tokenizer": [
            "encode_sentences",
            "load_tokenizer",
            "save_tokenizer",
            "tokenizer_sha256",
            "train_tokenizer",
        ],
    },
)
