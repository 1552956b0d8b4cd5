"""Text from a causal model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from babyssa.console import quiet_transformers
from babyssa.errors import ConfigError, DataError
from babyssa.models.encoding import start_id
from babyssa.models.loading import as_loaded, evaluating
from babyssa.training.config import check_seed


def generate(
    model: Any,
    prompts: Sequence[str] = ("",),
    *,
    max_new_tokens: int = 40,
    temperature: float = 1.0,
    seed: int = 0,
    device: str | None = None,
) -> list[str]:
    """Go on from each prompt, until the end token or `max_new_tokens`.

    Parameters
    ----------
    model : str, Path, LoadedModel or (model, tokenizer)
        A causal language model.
    prompts : sequence of str
        What to go on from; an empty one begins a new text.
    max_new_tokens : int
        Most tokens to add.
    temperature : float
        Divides the logits before a token is drawn; 0 always takes the most probable.
    seed : int
        Decides the draws of each prompt, whatever the others are; the global random state is left as it was.
    device : str, optional
        Where to run a model that is loaded here.

    Returns
    -------
    list of str
        Each prompt with what was added, as the tokenizer writes it.

    Raises
    ------
    ConfigError
        If the model is not causal, or a setting is out of its domain.
    DataError
        If prompt and new tokens are more than the model takes.
    """
    loaded = as_loaded(model, device=device)
    if loaded.kind != "causal":
        raise ConfigError(
            f"generation needs a causal model, not a {loaded.kind} one ({loaded.name})", remedy="use a decoder"
        )
    check_seed(seed)
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
                f"a start token, a prompt of {len(ids)} and {max_new_tokens} new ones are more than the "
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
