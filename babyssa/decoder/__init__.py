"""Nemotron-style causal decoders: config, model, packing, training, perplexity, generation, zero-shot evaluation.

Read :mod:`babyssa.decoder.training` first.
"""

from __future__ import annotations

from babyssa.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "babyssa.decoder.config": ["DecoderEvaluation", "DecoderSize", "DecoderTraining"],
        "babyssa.decoder.packing": ["PackedSequences", "ShuffledBatches", "StreamedSequences", "causal_tokenizer"],
        "babyssa.decoder.model": ["build_decoder"],
        "babyssa.decoder.training": ["train_decoder"],
        "babyssa.decoder.generation": ["generate"],
        "babyssa.decoder.harness": ["HarnessResult", "TaskResult", "evaluate"],
    },
)
