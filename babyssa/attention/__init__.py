"""The shared attention core: scoring functions, their registry, and the adapter to transformers models.

Read :mod:`babyssa.attention.ssa` for the mathematics and :mod:`babyssa.attention.adapter` for how a scoring
enters a model. Importing this package registers checkpoints of the model types listed below with
transformers' Auto classes; :func:`register` and :func:`register_checkpoint` do so for any other.
"""

from transformers import BertConfig, GPT2Config, LlamaConfig, ModernBertConfig, NemotronConfig, RobertaConfig

from babyssa.attention.adapter import (
    register,
    register_checkpoint,
    scoring_parameters,
    scorings,
    set_scoring,
)
from babyssa.attention.cosformer import CosFormer, CosFormerConfig
from babyssa.attention.linear import Linear, LinearConfig
from babyssa.attention.mixed import Mixed, MixedConfig
from babyssa.attention.registry import (
    SCORINGS,
    VARIANTS,
    build_scoring,
    scoring_changes,
    scoring_config,
    scoring_settings,
    scoring_to_dict,
)
from babyssa.attention.scoring import LogitScoring, Scoring, Softmax, SoftmaxConfig
from babyssa.attention.self_adjust import SelfAdjustSoftmax, SelfAdjustSoftmaxConfig
from babyssa.attention.sparse import Entmax, EntmaxConfig, Sparsemax, SparsemaxConfig
from babyssa.attention.ssa import SSA, SSAConfig, ssa_map
from babyssa.attention.temperature import Temperature, TemperatureConfig

for _config in (RobertaConfig, BertConfig, GPT2Config, LlamaConfig, ModernBertConfig, NemotronConfig):
    register(_config)

__all__ = [
    "CosFormer",
    "CosFormerConfig",
    "Entmax",
    "EntmaxConfig",
    "Linear",
    "LinearConfig",
    "LogitScoring",
    "Mixed",
    "MixedConfig",
    "SCORINGS",
    "SSA",
    "SSAConfig",
    "Scoring",
    "SelfAdjustSoftmax",
    "SelfAdjustSoftmaxConfig",
    "Softmax",
    "SoftmaxConfig",
    "Sparsemax",
    "SparsemaxConfig",
    "Temperature",
    "TemperatureConfig",
    "VARIANTS",
    "build_scoring",
    "register",
    "register_checkpoint",
    "scoring_changes",
    "scoring_config",
    "scoring_parameters",
    "scoring_settings",
    "scoring_to_dict",
    "scorings",
    "set_scoring",
    "ssa_map",
]
