"""The transformer that learns in context: GPT-2 without a vocabulary, numbers in and numbers out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, GPT2Config, GPT2Model, GPT2PreTrainedModel
from transformers.utils import ModelOutput

from babyssa.attention import new_model, register
from babyssa.errors import ConfigError, DataError
from babyssa.synthetic.config import InContextSize


class InContextConfig(GPT2Config):
    """GPT2Config, with what the model leaves out.

    Parameters
    ----------
    blocks : {"full", "attention", "feed-forward"}
        What a layer consists of.
    positions : bool
        Whether position embeddings are added.
    """

    model_type = "in-context-gpt2"
    blocks: str = "full"
    positions: bool = True


@dataclass
class InContextOutput(ModelOutput):
    """What the model returns.

    Parameters
    ----------
    predictions : Tensor
        (batch, length): one number after each number read; for a quantifier, a logit.
    attentions : tuple of Tensor, optional
        Attention weights of each layer, (batch, heads, query, key).
    hidden_states : tuple of Tensor, optional
        What each layer reads, and after the last one what is read out, (batch, length, width).
    """

    predictions: Tensor | None = None
    attentions: tuple[Tensor, ...] | None = None
    hidden_states: tuple[Tensor, ...] | None = None


class _Nothing(nn.Module):
    """Replaces a part of a layer: adds 0 to the residual stream."""

    def forward(self, hidden: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return torch.zeros_like(hidden)


class _NoAttention(_Nothing):
    def forward(self, hidden: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, None]:
        return super().forward(hidden), None


class _NoPositions(nn.Module):
    """Replaces the position embeddings."""

    def forward(self, position_ids: Tensor) -> Tensor:
        return torch.zeros(1, device=position_ids.device)


class InContextTransformer(GPT2PreTrainedModel):
    """A causal transformer over real numbers, each read by one linear layer (Garg et al. 2022, section 3)."""

    config_class = InContextConfig
    main_input_name = "values"

    def __init__(self, config: InContextConfig):
        super().__init__(config)
        self.read_in = nn.Linear(1, config.n_embd)
        self.transformer = GPT2Model(config)
        self.transformer.wte = nn.Identity()
        if not config.positions:
            self.transformer.wpe = _NoPositions()
        for block in self.transformer.h:
            if config.blocks == "attention":
                block.ln_2, block.mlp = nn.Identity(), _Nothing()
            elif config.blocks == "feed-forward":
                block.ln_1, block.attn = nn.Identity(), _NoAttention()
        self.read_out = nn.Linear(config.n_embd, 1)
        self.post_init()

    def forward(self, values: Tensor, output_attentions: bool = False, **kwargs: Any) -> InContextOutput:
        """Predict after each number.

        Parameters
        ----------
        values : Tensor
            (batch, length), the numbers of each sequence; a sequence is never padded.

        Raises
        ------
        DataError
            If the sequences are longer than the model's positions.
        """
        if values.shape[1] > self.config.n_positions:
            raise DataError(
                f"a sequence of {values.shape[1]} numbers is longer than the model's {self.config.n_positions}",
                remedy="shorten it, or train with a larger size.max_numbers",
            )
        states = self.transformer(
            inputs_embeds=self.read_in(values.unsqueeze(-1)),
            output_attentions=output_attentions,
            use_cache=False,
            **kwargs,
        )
        predictions = self.read_out(states.last_hidden_state).squeeze(-1)
        return InContextOutput(predictions, states.attentions, states.hidden_states)


AutoConfig.register(InContextConfig.model_type, InContextConfig)
AutoModel.register(InContextConfig, InContextTransformer)
register(InContextConfig)


def build_transformer(
    size: InContextSize, *, variant: str = "softmax", scoring: dict[str, Any] | None = None, seed: int = 0
) -> InContextTransformer:
    """A new model of a size; variant, scoring and seed are those of :func:`babyssa.attention.new_model`."""
    if size.blocks == "feed-forward" and variant != "softmax":
        raise ConfigError(f"a model without attention has no place for '{variant}'", remedy="use softmax")
    config = InContextConfig(
        vocab_size=1,
        n_positions=size.max_numbers,
        n_embd=size.width,
        n_layer=size.layers,
        n_head=size.heads,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        # GPT-2's own function (gelu_new), computed in one kernel.
        activation_function="gelu_pytorch_tanh",
        blocks=size.blocks,
        positions=size.positions,
        bos_token_id=None,
        eos_token_id=None,
    )
    return new_model(InContextTransformer, config, variant, scoring, seed=seed)
