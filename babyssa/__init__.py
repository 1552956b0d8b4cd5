"""Train masked language models on child-directed speech with swappable attention scoring, and probe them.

Everything is imported on first use, so that ``import babyssa`` is fast.
"""

from __future__ import annotations

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "attention": ["scoring_config", "set_scoring"],
        "comparison": ["compare"],
        "corpus": ["load_tokenizer", "prepare", "train_tokenizer"],
        "decoder": ["DecoderTraining", "generate", "train_decoder"],
        "encoder": ["EncoderTraining", "train_encoder"],
        "experiments": ["run_demo", "sweep"],
        "language": ["generate_sample", "generate_suite"],
        "models": ["load_model", "perplexity", "score"],
        "probing": ["attention_maps", "diagnose", "load_suite", "probe"],
        "probing.saturation": ["saturation"],
    },
)
