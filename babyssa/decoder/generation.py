"""Text from a causal model."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch

from babyssa.checks import Seed, check
from babyssa.console import quiet_transformers
from babyssa.errors import ConfigError, DataError
from babyssa.models.encoding import start_id
from babyssa.models.loading import as_loaded, evaluating


def generate(
    model: Any,
    prompts: Iterable[str] = ("",),
    *,
    max_new_tokens: int = 40,
    temperature: float = 1.0,
    seed: int = 0,
) -> list[str]:
    """Continue prompts with a causal model; :func:`babyssa.generate` explains the parameters."""
    loaded = as_loaded(model)
    if loaded.kind != "causal":
        raise ConfigError(
            f"generation needs a causal model, not a {loaded.kind} one ({loaded.name})", remedy="use a decoder"
        )
    check("seed", seed, Seed)
    for name, value, least in (("max_new_tokens", max_new_tokens, 1), ("temperature", temperature, 0)):
        if not least <= value < math.inf:
            raise ConfigError(f"{name} is {value}", remedy=f"it is at least {least}")
    if isinstance(prompts, str):
        raise ConfigError("prompts must be a list of strings, not one string", remedy="put it in a list")
    tokenizer, start = loaded.tokenizer, start_id(loaded)
    rows = []
    for prompt in prompts:
        ids = tokenizer(prompt, add_special_tokens=False, split_special_tokens=True)["input_ids"] if prompt else []
        if loaded.max_tokens is not None and 1 + len(ids) + max_new_tokens > loaded.max_tokens:
            raise DataError(
                f"a start token, a prompt of {len(ids)} tokens and {max_new_tokens} new ones are more than the "
                f"{loaded.max_tokens} tokens that the model takes",
                remedy="shorten the prompt, or lower max_new_tokens",
            )
        rows.append([start, *ids])
    choice = {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature else {"do_sample": False}
    pad = tokenizer.pad_token_id
    texts = []
    with evaluating(loaded.model), quiet_transformers():
        for row in rows:
            ids = torch.tensor([row], device=loaded.device)
            with torch.random.fork_rng():
                torch.manual_seed(seed)
                written = loaded.model.generate(
                    ids,
                    attention_mask=torch.ones_like(ids),
                    max_new_tokens=max_new_tokens,
                    pad_token_id=tokenizer.eos_token_id if pad is None else pad,
                    **choice,
                )
            texts.append(tokenizer.decode(written[0], skip_special_tokens=True).strip())
    return texts
