"""The decoder: a NemotronForCausalLM, with Softmax or any scoring of babyssa.attention."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from transformers import NemotronConfig, NemotronForCausalLM, PreTrainedModel

from babyssa.attention import new_model
from babyssa.decoder.config import DecoderSize


def build_decoder(
    size: DecoderSize,
    tokenizer,
    *,
    variant: str = "softmax",
    scoring: dict[str, Any] | None = None,
    seed: int = 0,
) -> PreTrainedModel:
    """A new decoder; variant, scoring and seed are those of :func:`babyssa.attention.new_model`.

    With the default size and a tokenizer of 50,256 tokens it has the published 114,132,480 parameters, plus the
    learned values of the scoring (12 for an n in each layer, as released; 288 for one in each head).

    Parameters
    ----------
    size : DecoderSize
        Size of the model.
    tokenizer : PreTrainedTokenizerBase
        Its vocabulary and special ids.
    """
    pad = tokenizer.pad_token_id
    config = NemotronConfig(
        vocab_size=len(tokenizer),
        hidden_size=size.hidden_size,
        intermediate_size=size.feed_forward_size,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.key_value_heads,
        hidden_act="relu2",
        max_position_embeddings=size.max_length,
        initializer_range=size.initializer_range,
        norm_eps=size.norm_eps,
        attention_dropout=size.attention_dropout,
        tie_word_embeddings=True,
        # The embedding of the padding token gets no gradient, so no token with a meaning may be it.
        pad_token_id=None if pad == tokenizer.eos_token_id else pad,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    return new_model(NemotronForCausalLM, config, variant, scoring, seed=seed)


def causal_lm_loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """Mean cross-entropy (nats per token) of a batch of packed sequences: every token but the first of each.

    Parameters
    ----------
    model : Module
        The decoder, or its wrapper for distributed training.
    batch : dict
        input_ids, (batch, length).
    """
    ids = batch["input_ids"]
    logits = model(input_ids=ids[:, :-1], use_cache=False).logits
    return nn.functional.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())
