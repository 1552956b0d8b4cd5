"""The encoder: a RobertaForMaskedLM of BabyBERTa's size, with Softmax or any scoring of babyssa.attention."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel, RobertaConfig, RobertaForMaskedLM

from babyssa.attention import new_model
from babyssa.encoder.config import EncoderSize
from babyssa.models.roberta import logits_at


def build_encoder(
    size: EncoderSize,
    tokenizer,
    *,
    variant: str = "softmax",
    scoring: dict[str, Any] | None = None,
    seed: int = 0,
) -> PreTrainedModel:
    """A new encoder; variant, scoring and seed are those of :func:`babyssa.attention.new_model`.

    Parameters
    ----------
    size : EncoderSize
        Size of the model.
    tokenizer : PreTrainedTokenizerBase
        Its vocabulary and special ids.
    """
    config = RobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=size.hidden_size,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        intermediate_size=size.feed_forward_size,
        hidden_dropout_prob=size.dropout,
        attention_probs_dropout_prob=size.dropout,
        # RoBERTa numbers positions from pad_token_id + 1.
        max_position_embeddings=size.max_length + tokenizer.pad_token_id + 1,
        initializer_range=size.initializer_range,
        layer_norm_eps=size.layer_norm_eps,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    return new_model(RobertaForMaskedLM, config, variant, scoring, seed=seed)


def masked_lm_loss(model: PreTrainedModel, batch: dict[str, Tensor]) -> Tensor:
    """Mean cross-entropy (nats per predicted token) of a batch of :class:`MaskedSentences`.

    Parameters
    ----------
    model : PreTrainedModel
        What :func:`build_encoder` returns.
    batch : dict
        input_ids, positions, labels and, where there is padding, attention_mask.
    """
    logits = logits_at(model, batch["input_ids"], batch.get("attention_mask"), batch["positions"])
    return nn.functional.cross_entropy(logits.float(), batch["labels"])
