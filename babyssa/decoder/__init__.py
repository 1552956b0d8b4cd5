"""Nemotron-style causal decoders: config, model, packing, training, perplexity, generation, zero-shot evaluation.

Read :mod:`babyssa.decoder.training` first.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "config": ["Evaluation", "DecoderSize", "DecoderTraining"],
        "packing": ["PackedSequences", "ShuffledBatches", "StreamedSequences", "causal_tokenizer"],
        "model": ["build_decoder"],
        "training": ["train_decoder"],
        "generation": ["generate"],
        "harness": ["HarnessResult", "TaskResult", "evaluate"],
    },
)
