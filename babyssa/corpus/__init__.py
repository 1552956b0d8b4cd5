"""Corpora: readers, cleaning, age order, documents, the tokenizer trained on them, and encoded sentences."""

from __future__ import annotations

from babyssa.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "babyssa.corpus.utterances": ["Utterance"],
        "babyssa.corpus.cleaning": ["CleaningRules", "clean"],
        "babyssa.corpus.preparation": ["CorpusStats", "SourceStats", "prepare", "read_corpus", "read_utterances"],
        "babyssa.corpus.documents": ["read_documents"],
        "babyssa.corpus.tokenizer": [
            "encode_sentences",
            "load_tokenizer",
            "save_tokenizer",
            "tokenizer_sha256",
            "train_tokenizer",
        ],
        "babyssa.corpus.encoded": ["Sentences", "encode_corpus"],
    },
)
