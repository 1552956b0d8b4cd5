"""Train masked language models on child-directed speech with swappable attention scoring, and probe them.

Everything is imported on first use, so that ``import babyssa`` is fast.
"""

from __future__ import annotations

from babyssa.lazy import lazy_exports

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "babyssa.attention": ["scoring_config", "set_scoring"],
        "babyssa.attention.saturation": ["saturation"],
        "babyssa.data": ["generate_sample", "load_tokenizer", "prepare", "train_tokenizer"],
        "babyssa.decoder": ["DecoderTraining", "generate", "perplexity", "train_decoder"],
        "babyssa.encoder": ["EncoderTraining", "train_encoder"],
        "babyssa.experiments": ["run_demo", "sweep"],
        "babyssa.probing": [
            "attention_maps",
            "compare",
            "diagnose",
            "generate_suite",
            "load_model",
            "load_suite",
            "probe",
            "score",
        ],
    },
)
