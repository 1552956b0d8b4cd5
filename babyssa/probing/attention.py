"""Where a model looks while it reads a text: the attention weights of every head, and summaries of them."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from babyssa.attention import scorings
from babyssa.attention.adapter import attention_layers, scoring_of
from babyssa.display import Column, Shown, Table, readable_token
from babyssa.errors import ModelError
from babyssa.figures import save_figure
from babyssa.files import atomic_write, check_overwrite, write_json
from babyssa.models.encoding import encode
from babyssa.models.loading import LoadedModel, as_loaded, evaluating
from babyssa.probing.figures import draw_attention_maps
from babyssa.probing.heads import check_places

SUMMARY, HEADS, WEIGHTS, FIGURE = "attention.json", "heads.csv", "weights.csv", "attention.png"
FILES = (SUMMARY, HEADS, WEIGHTS, FIGURE)


@dataclass(frozen=True)
class HeadAttention:
    """One head, over one text.

    Attributes
    ----------
    layer, head : int
        Counted from 1.
    scoring : str or None
        Name of its scoring function; None for the model's own attention.
    entropy : float
        Of the weights of one query, in nats, averaged over queries. Weights that do not sum to 1
        (Self-Adjust Softmax) are divided by the sum of their sizes; a query without weights counts 0.
    max_weight : float
        The largest weight of a query, averaged over queries.
    numbers : dict of str to float
        The numbers of its scoring, learned or fixed: n and b, or tau.
    """

    layer: int
    head: int
    scoring: str | None
    entropy: float
    max_weight: float
    numbers: dict[str, float]


@dataclass(frozen=True, eq=False)
class AttentionMaps(Shown):
    """The attention of a model over one text.

    Attributes
    ----------
    model, kind, text : str
        What read what, as a masked or as a causal model.
    tokens : tuple of str
        What the model saw, special tokens included.
    heads : tuple of HeadAttention
        Layer by layer.
    weights : tuple of array
        For each layer shown (heads shown, query, key), float32.
    """

    model: str
    kind: str
    text: str
    tokens: tuple[str, ...]
    heads: tuple[HeadAttention, ...]
    weights: tuple[np.ndarray, ...]

    def summary(self) -> dict[str, Any]:
        """All but the weights, as plain values."""
        plain = {"model": self.model, "kind": self.kind, "text": self.text, "tokens": list(self.tokens)}
        return {**plain, "heads": [asdict(head) for head in self.heads]}

    def tables(self) -> Iterator[Table]:
        names = sorted({key for head in self.heads for key in head.numbers}, reverse=True)
        columns = (
            Column("layer"),
            Column("head"),
            Column("scoring"),
            Column("entropy", ".3f"),
            Column("max_weight", ".3f", "largest weight"),
            *(Column(name, ".3f", right=True) for name in names),
        )
        rows = [
            (
                head.layer,
                head.head,
                head.scoring or "model's own",
                head.entropy,
                head.max_weight,
                *(head.numbers.get(name) for name in names),
            )
            for head in self.heads
        ]
        tokens = " ".join(words_of(self.tokens))
        yield Table(columns, rows, f"{self.model} ({self.kind}), {len(self.tokens)} tokens: {tokens}", keys=2)


def attention_maps(
    model: Any,
    text: str,
    *,
    layers: Iterable[int] | None = None,
    heads: Iterable[int] | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    device: str | None = None,
) -> AttentionMaps:
    """Run a model once over a text; :func:`babyssa.attention_maps` explains the parameters."""
    if out is not None:
        check_overwrite(Path(out), FILES, overwrite)
    check_reads_text(model)
    loaded = as_loaded(model, device=device)
    _check_weights_are_formed(loaded)
    ids = list(encode(loaded, text).ids)
    weights = _weights(loaded, ids)
    every = _heads(loaded, weights)
    check_places(layers, heads, ((head.layer, head.head) for head in every))
    layers = [n for n in range(1, len(weights) + 1) if layers is None or n in layers]
    heads = sorted({head.head for head in every} if heads is None else set(heads))
    found = AttentionMaps(
        model=loaded.name,
        kind=loaded.kind,
        text=text,
        tokens=tuple(loaded.tokenizer.convert_ids_to_tokens(ids)),
        heads=tuple(head for head in every if head.layer in layers and head.head in heads),
        weights=tuple(weights[n - 1][[head - 1 for head in heads if head <= len(weights[n - 1])]] for n in layers),
    )
    if out is not None:
        _write(found, Path(out))
    return found


def check_reads_text(model: Any) -> None:
    """Raise ModelError for a folder with an in-context model."""
    config = Path(model) / "config.json" if isinstance(model, (str, Path)) else None
    if config is not None and config.is_file() and "in-context" in config.read_text(encoding="utf-8"):
        raise ModelError(
            "reads numbers, not text",
            path=model,
            remedy="leave the text out to see what its heads learned; 'babyssa shift' draws its attention",
        )


def _check_weights_are_formed(loaded: LoadedModel) -> None:
    for scoring in scorings(loaded.model).values():
        if not scoring.forms_weights:
            raise ModelError(
                f"scoring '{scoring.name}' forms no attention weights here, so there are none to show",
                path=loaded.name,
                remedy="choose a model with a scoring by logits",
            )


def _weights(loaded: LoadedModel, ids: list[int]) -> tuple[np.ndarray, ...]:
    inputs = torch.tensor([ids], device=loaded.device)
    with evaluating(loaded.model), forming_weights(loaded.model):
        output = loaded.model(input_ids=inputs, attention_mask=torch.ones_like(inputs), output_attentions=True)
    layers = [layer for layer in getattr(output, "attentions", None) or () if layer is not None]
    if not layers:
        raise ModelError("returns no attention weights", path=loaded.name, remedy="choose a model with attention")
    weights = tuple(layer[0].float().cpu().numpy() for layer in layers)
    if not all(np.isfinite(layer).all() for layer in weights):
        raise ModelError("attention weights are NaN or infinite", path=loaded.name)
    return weights


@contextmanager
def forming_weights(model: Any) -> Iterator[None]:
    """Run a stock model with eager attention within the block: its fused ones return no weights."""
    before = getattr(model.config, "_attn_implementation", None)
    if scorings(model) or before == "eager" or not attention_layers(model):
        yield
        return
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(before)


def _heads(loaded: LoadedModel, weights: tuple[np.ndarray, ...]) -> tuple[HeadAttention, ...]:
    modules = [scoring_of(layer) for layer in attention_layers(loaded.model)] if scorings(loaded.model) else []
    heads = []
    for layer, maps in enumerate(weights):
        for head, one in enumerate(maps):
            name, numbers = modules[layer].describe_head(head) if modules else (None, {})
            largest = float(one.max(axis=-1).mean())
            heads.append(HeadAttention(layer + 1, head + 1, name, mean_entropy(one), largest, numbers))
    return tuple(heads)


def mean_entropy(weights: np.ndarray) -> float:
    """Mean over queries of the entropy of their weights (query, key), in nats; see :class:`HeadAttention`."""
    weights = np.abs(weights.astype(np.float64))
    total = weights.sum(axis=-1, keepdims=True)
    share = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    logs = np.log(share, out=np.zeros_like(share), where=share > 0)
    return float(-(share * logs).sum(axis=-1).mean()) + 0.0


def words_of(tokens: Sequence[str]) -> list[str]:
    """Tokens as the words that they are; a part of a word that is not its beginning has a hyphen before it.

    >>> words_of(["<s>", "Ġthe", "Ġdo", "gs", "Ġ.", "</s>"])
    ['<s>', 'the', 'do', '-gs', '.', '</s>']
    """
    found = [readable_token(token) for token in tokens]
    # Where no token marks the beginning of a word, there are no parts to tell from words.
    marked = any(word.startswith("▁") for word in found)
    for place, word in enumerate(found):
        if word.startswith("▁"):
            found[place] = word[1:] or word
        elif marked and place and not any(map(_is_special, (word, tokens[place - 1]))):
            found[place] = f"-{word}"
    return found


def _is_special(token: str) -> bool:
    return token[:1] + token[-1:] in ("<>", "[]") and len(token) > 2


def _write(found: AttentionMaps, out: Path) -> None:
    (out / SUMMARY).unlink(missing_ok=True)
    layers = list(dict.fromkeys(head.layer for head in found.heads))
    heads = sorted({head.head for head in found.heads})
    title = f"{found.model}: {found.text}"
    figure = draw_attention_maps(words_of(found.tokens), found.weights, title=title, layers=layers, heads=heads)
    save_figure(figure, out / FIGURE, title)
    with atomic_write(out / WEIGHTS) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["layer", "head", "query", "key", "query_token", "key_token", "weight"])
        for place, maps in zip(found.heads, itertools.chain(*found.weights), strict=True):
            for (query, key), weight in np.ndenumerate(maps):
                tokens = found.tokens[query], found.tokens[key]
                writer.writerow([place.layer, place.head, query + 1, key + 1, *tokens, f"{weight:.9g}"])
    names = sorted({key for head in found.heads for key in head.numbers}, reverse=True)
    with atomic_write(out / HEADS) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["layer", "head", "scoring", "entropy", "max_weight", *names])
        for h in found.heads:
            numbers = [h.numbers.get(name, "") for name in names]
            writer.writerow([h.layer, h.head, h.scoring or "", h.entropy, h.max_weight, *numbers])
    write_json(out / SUMMARY, found.summary())
