"""The attention core: scoring functions, their registry, and the adapter to transformers models.

Read :mod:`babyssa.attention.ssa` for the mathematics and :mod:`babyssa.attention.adapter` for how a scoring
enters a model. Importing this package registers checkpoints of the model types listed below with
transformers' Auto classes; :func:`register` and :func:`register_checkpoint` do so for any other.
"""

import lazy_loader
from transformers import BertConfig, GPT2Config, LlamaConfig, ModernBertConfig, NemotronConfig, RobertaConfig

from babyssa.attention.adapter import register

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "adapter": [
            "new_model",
            "register",
            "register_checkpoint",
            "scoring_parameters",
            "scorings",
            "set_scoring",
        ],
        "cosformer": ["CosFormer", "CosFormerConfig"],
        "linear": ["Linear", "LinearConfig"],
        "mixed": ["Mixed", "MixedConfig"],
        "registry": [
            "build_scoring",
            "fit_scoring",
            "scoring_classes",
            "scoring_config",
            "scoring_settings",
            "scoring_to_dict",
            "variant_name",
            "variants",
        ],
        "scalable": ["ScalableSoftmax", "ScalableSoftmaxConfig"],
        "scoring": ["LogitScoring", "Scoring", "Softmax", "SoftmaxConfig"],
        "self_adjust": ["SelfAdjustSoftmax", "SelfAdjustSoftmaxConfig"],
        "sigmoid": ["Sigmoid", "SigmoidConfig"],
        "sink": ["Sink", "SinkConfig"],
        "softpick": ["Softpick", "SoftpickConfig"],
        "sparse": ["AlphaEntmax", "AlphaEntmaxConfig", "Entmax", "EntmaxConfig", "Sparsemax", "SparsemaxConfig"],
        "ssa": ["SSA", "SSAConfig", "ssa_map"],
        "temperature": ["Temperature", "TemperatureConfig"],
    },
)

for _config in (RobertaConfig, BertConfig, GPT2Config, LlamaConfig, ModernBertConfig, NemotronConfig):
    register(_config)
