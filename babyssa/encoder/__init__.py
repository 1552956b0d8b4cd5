"""BabyBERTa-style encoders: config, model, masking, batches and training.

Read :mod:`babyssa.encoder.training` first.
"""

from __future__ import annotations

from babyssa.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "babyssa.encoder.config": ["EncoderSize", "EncoderTraining", "Evaluation", "Masking"],
        "babyssa.encoder.masking": ["Vocabulary", "mask_sentences"],
        "babyssa.encoder.batches": ["LengthBatches", "MaskedSentences"],
        "babyssa.encoder.model": ["build_encoder"],
        "babyssa.encoder.training": ["train_encoder"],
    },
)
