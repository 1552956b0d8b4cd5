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
        "commands.corpus": ["generate_sample", "generate_suite", "prepare", "train_tokenizer"],
        "commands.experiments": ["compare", "demo", "shift", "sweep"],
        "commands.models": ["evaluate", "generate", "perplexity", "score"],
        "commands.reporting": ["report"],
        "commands.probing": ["attention_maps", "diagnose", "probe", "saturation"],
        "commands.sharing": ["export", "push"],
        "commands.training": ["train_decoder", "train_encoder", "train_synthetic"],
        "corpus": ["load_tokenizer"],
        "decoder.config": ["DecoderTraining"],
        "encoder.config": ["EncoderTraining"],
        "models": ["load_model"],
        "probing": ["load_suite"],
        "synthetic.config": ["SyntheticTraining"],
    },
)
