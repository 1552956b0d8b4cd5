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
        "babyssa.comparison": ["compare"],
        "babyssa.corpus": ["load_tokenizer", "prepare", "train_tokenizer"],
        "babyssa.decoder": ["DecoderTraining", "generate", "train_decoder"],
        "babyssa.encoder": ["EncoderTraining", "train_encoder"],
        "babyssa.experiments": ["run_demo", "sweep"],
        "babyssa.language": ["generate_sample", "generate_suite"],
        "babyssa.models": ["load_model", "perplexity", "score"],
        "babyssa.probing": ["attention_maps", "diagnose", "load_suite", "probe"],
        "babyssa.probing.saturation": ["saturation"],
    },
)
