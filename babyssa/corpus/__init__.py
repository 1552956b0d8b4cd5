"""Corpora: readers, cleaning, age order, documents, the tokenizer trained on them, and encoded sentences."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "utterances": ["Utterance"],
        "cleaning": ["CleaningRules", "clean"],
        "preparation": ["CorpusStats", "SourceStats", "prepare", "read_corpus", "read_utterances"],
        "documents": ["read_documents"],
        "tokenizer": [
            "encode_sentences",
            "load_tokenizer",
            "masked_tokenizer",
            "save_tokenizer",
            "tokenizer_sha256",
            "train_tokenizer",
        ],
        "encoded": ["Sentences", "encode_corpus"],
    },
)
