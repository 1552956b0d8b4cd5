"""RoBERTa's forward pass for some positions only: the same numbers with less work.

Modules, weights and formulas are those of transformers' RobertaForMaskedLM. Left out is what no answer depends on:
padding is not computed, and in the last layer only the positions asked for have queries and go through the
feed-forward block; the others are still keys and values.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, RobertaForMaskedLM

from babyssa.attention import Softmax, SoftmaxConfig
from babyssa.attention.adapter import IMPLEMENTATION, scoring_of
from babyssa.attention.dropout import add_dropped_out, dropout
from babyssa.models.tied import Tied

# Softmax has no parameters, so it serves any number of heads.
_SOFTMAX = Softmax(SoftmaxConfig(), heads=1)


@dataclass(frozen=True)
class _Grid:
    """Maps stacked vectors to the cells of a (batch, width) grid, the form attention needs, and back.

    Parameters
    ----------
    batch, width : int
        The size of the grid.
    cells : Tensor of int, (vectors,), optional
        The flat index of each vector's cell; if not given, the vectors fill the grid in order.
    """

    batch: int
    width: int
    cells: Tensor | None = None

    def spread(self, x: Tensor) -> Tensor:
        """(vectors, hidden) to (batch, width, hidden); empty cells are 0."""
        if self.cells is not None:
            x = x.new_zeros(self.batch * self.width, x.shape[-1]).index_copy(0, self.cells, x)
        return x.view(self.batch, self.width, -1)

    def collect(self, x: Tensor) -> Tensor:
        """(batch, width, hidden) to (vectors, hidden)."""
        x = x.flatten(0, 1)
        return x if self.cells is None else x.index_select(0, self.cells)


def computes(model: nn.Module) -> bool:
    """Whether :func:`logits_at` supports this model: RoBERTa with Softmax or with a scoring of this package."""
    if not isinstance(model, RobertaForMaskedLM) or model.config.is_decoder:
        return False
    return model.config._attn_implementation in ("eager", "sdpa", IMPLEMENTATION)


def logits_at(
    model: PreTrainedModel, input_ids: Tensor, attention_mask: Tensor | None, positions: Tensor
) -> Tensor:
    """The logits at some positions of a batch.

    Parameters
    ----------
    model : PreTrainedModel
        One that :func:`computes`.
    input_ids : Tensor of int, (batch, length)
        Token ids, padded on the right.
    attention_mask : Tensor, (batch, length), optional
        0 where there is padding.
    positions : Tensor of int, (asked,)
        Flat indices into (batch, length) of real tokens, row after row.

    Returns
    -------
    Tensor
        (asked, vocabulary).
    """
    batch, length = input_ids.shape
    rows = positions // length
    if attention_mask is None:
        mask, tokens, asked = None, _Grid(batch, length), positions
    else:
        real = attention_mask.bool()
        mask, tokens = real[:, None, None, :], _Grid(batch, length, real.flatten().nonzero().squeeze(1))
        asked = real.flatten().cumsum(0).index_select(0, positions) - 1
    words, head = model.roberta.embeddings.word_embeddings, model.lm_head
    one_gradient = torch.is_grad_enabled() and input_ids.device.type == "cpu"
    tied = Tied(words) if one_gradient and head.decoder.weight is words.weight else None
    hidden = _embed(model.roberta.embeddings, input_ids, tokens, tied)
    *layers, last = model.roberta.encoder.layer
    for layer in layers:
        hidden = _layer(layer, hidden, tokens, mask)
    if _positional(last.attention.self):
        hidden = _layer(last, hidden, tokens, mask).index_select(0, asked)
    else:
        hidden = _layer(last, hidden, tokens, mask, asked, _rows_side_by_side(rows, batch))
    if tied is None:
        return head(hidden)
    return tied.project(head.layer_norm(nn.functional.gelu(head.dense(hidden))), head.decoder.bias)


def _positional(attention: nn.Module) -> bool:
    return attention.config._attn_implementation == IMPLEMENTATION and scoring_of(attention).positional


def _rows_side_by_side(rows: Tensor, batch: int) -> _Grid:
    """The narrowest grid that holds the positions asked for in each row; `rows` ascends."""
    counts = torch.bincount(rows, minlength=batch)
    width = int(counts.max())
    within = torch.arange(len(rows), device=rows.device) - (counts.cumsum(0) - counts).index_select(0, rows)
    return _Grid(batch, width, rows * width + within)


def _embed(embeddings: nn.Module, input_ids: Tensor, tokens: _Grid, tied: Tied | None) -> Tensor:
    """The embedding layer, (tokens, hidden)."""
    positions = embeddings.create_position_ids_from_input_ids(input_ids, embeddings.padding_idx)
    ids, positions = (tokens.collect(places[..., None]).squeeze(1) for places in (input_ids, positions))
    hidden = tokens.collect(embeddings.word_embeddings(input_ids)) if tied is None else tied.look_up(ids)
    # Every token has type 0.
    hidden = hidden + embeddings.token_type_embeddings.weight[0] + embeddings.position_embeddings(positions)
    return dropout(embeddings.LayerNorm(hidden), embeddings.dropout.p, embeddings.training)


def _layer(
    layer: nn.Module,
    hidden: Tensor,
    tokens: _Grid,
    mask: Tensor | None,
    asked: Tensor | None = None,
    queries: _Grid | None = None,
) -> Tensor:
    """One layer, (tokens, hidden) to (tokens, hidden), or to (asked, hidden) for the `asked` tokens only.

    `queries` is the grid of those tokens; `mask`, (batch, 1, 1, length), is True for real tokens.
    """
    attention = layer.attention.self
    heads = (attention.num_attention_heads, attention.attention_head_size)

    def by_head(x: Tensor, grid: _Grid) -> Tensor:
        return grid.spread(x).unflatten(-1, heads).transpose(1, 2)

    key, value = by_head(attention.key(hidden), tokens), by_head(attention.value(hidden), tokens)
    if asked is None:
        queries = tokens
    else:
        hidden = hidden.index_select(0, asked)
    query = by_head(attention.query(hidden), queries)
    context = queries.collect(_attend(attention, query, key, value, mask).transpose(1, 2).flatten(2))
    hidden = _add_and_normalise(layer.attention.output, context, hidden)
    return _add_and_normalise(layer.output, layer.intermediate(hidden), hidden)


def _attend(attention: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """The output of attention, (batch, heads, query, head_dim)."""
    p = attention.dropout.p if attention.training else 0.0
    if attention.config._attn_implementation == IMPLEMENTATION:
        scoring = scoring_of(attention)
    elif p > 0 and query.device.type == "cpu":
        # With dropout on a CPU, SDPA takes the same steps, with torch's slower dropout.
        scoring = _SOFTMAX
    else:
        return nn.functional.scaled_dot_product_attention(query, key, value, mask, p, scale=attention.scaling)
    output, _ = scoring(query, key, value, mask, scaling=attention.scaling, dropout=p, need_weights=False)
    return output


def _add_and_normalise(block: nn.Module, x: Tensor, residual: Tensor) -> Tensor:
    """The output block of either half of a layer: RobertaSelfOutput or RobertaOutput."""
    return block.LayerNorm(add_dropped_out(residual, block.dense(x), block.dropout.p, block.training))
