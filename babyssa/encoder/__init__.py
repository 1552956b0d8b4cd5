"""BabyBERTa-style encoders: config, model, masking, batches and training.

Read :mod:`babyssa.encoder.training` first.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "config": ["EncoderSize", "EncoderTraining", "Evaluation", "Masking"],
        "masking": ["Vocabulary", "mask_sentences"],
        "batches": ["LengthBatches", "MaskedSentences"],
        "model": ["build_encoder"],
        "training": ["train_encoder"],
    },
)
