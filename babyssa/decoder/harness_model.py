"""A masked model as a model of lm-evaluation-harness: ``babyssa-mlm``.

The harness asks for the log-probability of a continuation after a context. A masked model answers with the
pseudo-log-likelihood of the continuation (:mod:`babyssa.models.scores`), of which the context is a part of every
row. Importing this module registers the model; versions of the harness with plugins find it by its entry point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lm_eval.api.model import LM
from lm_eval.api.registry import register_model

from babyssa.errors import ConfigError
from babyssa.models.loading import LoadedModel, ModelSource, as_loaded
from babyssa.models.sentences import score

NAME = "babyssa-mlm"


@register_model(NAME)
class MaskedModel(LM):
    """Scores continuations with a masked model.

    Parameters
    ----------
    pretrained : str, LoadedModel or (model, tokenizer)
        A model folder or hub id.
    method : {"pll", "pll-word-l2r"}
        How to score.
    batch_size : int or str, optional
        Rows in one forward pass; does not change scores.
    device : str, optional
        Where to put the model.
    revision : str, optional
        Branch, tag or commit of a hub id.
    trust_remote_code : bool
        Run the code that comes with the model.

    Raises
    ------
    ConfigError
        If the model is not masked.
    """

    def __init__(
        self,
        pretrained: Any,
        method: str = "pll",
        batch_size: int | str | None = None,
        device: str | None = None,
        max_batch_size: int | None = None,
        revision: str | None = None,
        trust_remote_code: bool = False,
    ):
        super().__init__()
        if isinstance(pretrained, str):
            pretrained = ModelSource(pretrained, revision, trust_remote_code)
        self.loaded: LoadedModel = as_loaded(pretrained, device=device)
        if self.loaded.kind != "masked":
            raise ConfigError(f"{NAME} takes a masked model, not a {self.loaded.kind} one", remedy="use model hf")
        self.method = method
        self.rows = int(batch_size) if str(batch_size).isdigit() else None

    def loglikelihood(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """The score of each continuation, and whether each of its tokens is the most probable one."""
        contexts, continuations = zip(*(request.args for request in requests), strict=True)
        scores = score(
            self.loaded,
            continuations,
            given=list(map(self._fitting, contexts, continuations)),
            separator="none",
            method=self.method,
            ranks=True,
            batch_size=self.rows,
        )
        return [(scored.score, set(scored.ranks) == {1}) for scored in scores]

    def _fitting(self, context: str, continuation: str) -> str:
        """The end of a context for which the model has room, as the harness cuts it for its own models."""
        tokenizer, room = self.loaded.tokenizer, self.loaded.max_tokens
        while room is not None and context:
            excess = len(tokenizer(context + continuation, verbose=False)["input_ids"]) - room
            if excess <= 0:
                break
            offsets = tokenizer(context, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
            ends = [end for _, end in offsets["offset_mapping"]]
            context = context[max(ends[min(excess, len(ends)) - 1], 1) if ends else len(context) :]
        return context

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
        """The score of each text, which must fit into the model."""
        texts = [request.args[0] for request in requests]
        scores = score(self.loaded, texts, method=self.method, batch_size=self.rows)
        return [scored.score for scored in scores]

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        """A masked model generates nothing: ConfigError."""
        raise ConfigError("a masked model cannot generate", remedy="choose tasks of multiple choice")
