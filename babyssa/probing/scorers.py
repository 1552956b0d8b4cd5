"""Sentence scores from masked and causal language models, in nats; higher is better.

Every method is a list of questions for each sentence: given this row of token ids, what is the
log-probability of that token at that position? ``pll`` masks one token in each row, ``pll-word-l2r`` also
the later tokens of the same word, ``holistic`` and ``loglik`` mask nothing. One engine answers the
questions: each distinct row runs through the model once, in batches of rows of one length, so that nothing is
ever padded and no score depends on its neighbours.

Sources: ``pll`` Salazar et al. 2020 (arXiv 1910.14659); ``pll-word-l2r`` Kauf & Ivanova 2023
(arXiv 2305.10588); ``holistic`` Zaczynska et al. 2020, as used by Huebner et al. 2021 for Zorro.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from babyssa.errors import ConfigError, DataError, ModelError, nearest
from babyssa.probing.encoding import Encoding, encode_all
from babyssa.probing.models import LoadedModel, as_loaded, evaluating
from babyssa.probing.suites import quoted

Reduction = Literal["sum", "mean"]

_TOKENS_PER_BATCH = {"cpu": 2048, "cuda": 65536}
_LOGITS_PER_BATCH = 2**26
_TOKENS_PER_CHUNK = 2**19


@dataclass(frozen=True)
class SentenceScore:
    """One sentence's score.

    Attributes
    ----------
    text : str
        The sentence as given.
    tokens : tuple of str
        The tokens that were scored.
    token_scores : tuple of float
        Log-probability of each, in nats.
    score : float
        Their sum or mean.
    """

    text: str
    tokens: tuple[str, ...]
    token_scores: tuple[float, ...]
    score: float


class Question(NamedTuple):
    """The log-probability of `target` at `position` of the output for the token ids `row`."""

    row: tuple[int, ...]
    position: int
    target: int


@dataclass(frozen=True)
class Method:
    """A scoring method: the kind of model it fits, its usual reduction, its questions, and what they score."""

    kind: str
    reductions: tuple[Reduction, ...]
    questions: Callable[[Encoding, LoadedModel], list[Question]]
    scored: Callable[[Encoding], Sequence[int]]


def _inside(encoding: Encoding) -> Sequence[int]:
    return encoding.inside


def _everything(encoding: Encoding) -> Sequence[int]:
    return range(len(encoding.ids))


def _pll(encoding: Encoding, loaded: LoadedModel) -> list[Question]:
    """Each token given all the others: mask one at a time."""
    ids, mask = encoding.ids, loaded.tokenizer.mask_token_id
    return [Question((*ids[:i], mask, *ids[i + 1 :]), i, ids[i]) for i in encoding.inside]


def _pll_word_l2r(encoding: Encoding, loaded: LoadedModel) -> list[Question]:
    """Each token given the other words and the earlier tokens of its own: mask it and the rest of its word."""
    if encoding.words is None:
        raise ModelError(
            "the tokenizer does not say which tokens make a word",
            path=loaded.name,
            remedy="use a fast tokenizer, or method pll",
        )
    questions = []
    for index, position in enumerate(encoding.inside):
        row = list(encoding.ids)
        for other, word in zip(encoding.inside[index:], encoding.words[index:], strict=True):
            if word == encoding.words[index]:
                row[other] = loaded.tokenizer.mask_token_id
        questions.append(Question(tuple(row), position, encoding.ids[position]))
    return questions


def _holistic(encoding: Encoding, loaded: LoadedModel) -> list[Question]:
    """Each token, specials included, with nothing masked."""
    return [Question(encoding.ids, position, token) for position, token in enumerate(encoding.ids)]


def _loglik(encoding: Encoding, loaded: LoadedModel) -> list[Question]:
    """Each token given those before it; the first given bos."""
    return [Question(encoding.ids, i - 1, encoding.ids[i]) for i in encoding.inside]


METHODS = {
    "pll": Method("masked", ("sum", "mean"), _pll, _inside),
    "pll-word-l2r": Method("masked", ("sum", "mean"), _pll_word_l2r, _inside),
    "holistic": Method("masked", ("mean",), _holistic, _everything),
    "loglik": Method("causal", ("sum", "mean"), _loglik, _inside),
}


def score(
    model: Any,
    sentences: Iterable[str],
    *,
    method: str | None = None,
    reduction: str | None = None,
    batch_size: int | None = None,
    device: str | None = None,
) -> list[SentenceScore]:
    """Score sentences: ``score("folder-or-hub-id", ["the dog barks .", "the dog bark ."])``.

    Parameters
    ----------
    model : str, Path, LoadedModel or (model, tokenizer)
        A masked or causal language model.
    sentences : iterable of str
        What to score; each as it is given.
    method : {"pll", "pll-word-l2r", "holistic", "loglik"}, optional
        How (see the module's docstring); ``pll`` for masked and ``loglik`` for causal models if not given.
    reduction : {"sum", "mean"}, optional
        From token scores to sentence scores: sum if not given, but ``holistic`` is a mean by definition.
    batch_size : int, optional
        Rows in one forward pass; chosen by the device if not given. Does not change scores.
    device : str, optional
        Where to run a model that is loaded here.

    Returns
    -------
    list of SentenceScore
        In the order given; scores in nats.

    Raises
    ------
    ConfigError
        If the method or reduction is unknown or does not fit the model.
    DataError
        If a sentence cannot be scored; nothing is scored then.
    ModelError
        If the model cannot be loaded, or gives NaN or infinity.
    """
    if isinstance(sentences, str):
        raise ConfigError("sentences must be a list of strings, not one string", remedy="put it in a list")
    loaded = as_loaded(model, device=device)
    method, reduction = choose_method(loaded, method, reduction)
    sentences = list(sentences)
    for number, sentence in enumerate(sentences, start=1):
        if not isinstance(sentence, str):
            raise DataError(f"sentence {number} is not a string but {type(sentence).__name__}")
    encodings = encode_all(loaded, sentences)
    scored = METHODS[method].scored
    results = []
    for sentence, encoding, values in zip(
        sentences, encodings, token_scores(loaded, sentences, encodings, method, batch_size), strict=True
    ):
        tokens = loaded.tokenizer.convert_ids_to_tokens([encoding.ids[i] for i in scored(encoding)])
        results.append(SentenceScore(sentence, tuple(tokens), tuple(values), reduce(values, reduction)))
    return results


def choose_method(loaded: LoadedModel, method: str | None, reduction: str | None) -> tuple[str, str]:
    """Method and reduction with their defaults filled in.

    Raises
    ------
    ConfigError
        If one is unknown, or they do not fit each other or the kind of model.
    """
    fitting = [name for name, known in METHODS.items() if known.kind == loaded.kind]
    if method is None:
        method = fitting[0]
    if method not in METHODS:
        raise ConfigError(f"unknown method '{method}'", remedy=nearest(method, METHODS))
    if method not in fitting:
        raise ConfigError(
            f"method '{method}' does not fit a {loaded.kind} model ({loaded.name})",
            remedy=f"use {' or '.join(fitting)}",
        )
    possible = METHODS[method].reductions
    if reduction is None:
        reduction = possible[0]
    if reduction not in ("sum", "mean"):
        raise ConfigError(f"unknown reduction '{reduction}'", remedy=nearest(reduction, ("sum", "mean")))
    if reduction not in possible:
        raise ConfigError(f"method '{method}' is a {possible[0]} by definition", remedy="leave --reduction out")
    return method, reduction


def reduce(values: Sequence[float], reduction: str) -> float:
    """Sum or mean, correctly rounded, so that equal values in another order make equal scores."""
    total = math.fsum(values)
    return total if reduction == "sum" else total / len(values)


def token_scores(
    loaded: LoadedModel,
    sentences: Sequence[str],
    encodings: Sequence[Encoding],
    method: str,
    batch_size: int | None = None,
) -> Iterator[list[float]]:
    """The log-probabilities of each sentence's scored tokens, in order.

    Rows are built and answered in chunks, so memory does not grow with the number of sentences.

    Raises
    ------
    ModelError
        If one is NaN or infinite; names the sentence.
    """
    if batch_size is not None and batch_size < 1:
        raise ConfigError(f"batch size must be at least 1, not {batch_size}")
    engine = Engine(loaded, batch_size)
    start = 0
    while start < len(encodings):
        questions: list[list[Question]] = []
        tokens = 0
        while start + len(questions) < len(encodings) and (not questions or tokens < _TOKENS_PER_CHUNK):
            asked = METHODS[method].questions(encodings[start + len(questions)], loaded)
            questions.append(asked)
            tokens += sum(len(question.row) for question in asked)
        answers = engine.answer([question for asked in questions for question in asked])
        end = 0
        for asked in questions:
            begin, end = end, end + len(asked)
            values = answers[begin:end].tolist()
            if not all(map(math.isfinite, values)):
                raise ModelError(
                    f"a token of sentence {quoted(sentences[start])} has log-probability NaN or infinity",
                    path=loaded.name,
                    remedy="the weights are broken or overflow: load the model in float32",
                )
            yield values
            start += 1


class Engine:
    """Answers questions in batches; keeps whether the model's head can be asked at single positions."""

    def __init__(self, loaded: LoadedModel, batch_size: int | None):
        self.model = loaded.model
        self.device = loaded.device
        self.batch_size = batch_size
        self.vocabulary = loaded.model.get_input_embeddings().num_embeddings
        self.selects: bool | None = None

    def answer(self, questions: Sequence[Question]) -> np.ndarray:
        """Log-probabilities, float32, one for each question."""
        # For each distinct row, the positions asked, and for each of them the questions it answers.
        asked_of: dict[tuple[int, ...], dict[int, list[int]]] = {}
        for index, question in enumerate(questions):
            asked_of.setdefault(question.row, {}).setdefault(question.position, []).append(index)
        answers = np.empty(len(questions), dtype=np.float32)
        with evaluating(self.model):
            for rows in self._batches(asked_of):
                asked = [(r, p) for r, row in enumerate(rows) for p in asked_of[row]]
                logits = self._logits(rows, asked)
                normalisers = logits.logsumexp(dim=-1)
                indices = [(k, i) for k, (r, p) in enumerate(asked) for i in asked_of[rows[r]][p]]
                line = torch.tensor([k for k, _ in indices], device=self.device)
                token = torch.tensor([questions[i].target for _, i in indices], device=self.device)
                values = logits[line, token] - normalisers[line]
                answers[[i for _, i in indices]] = values.cpu().numpy()
        return answers

    def _batches(self, asked_of: dict[tuple[int, ...], dict[int, list[int]]]) -> Iterator[list[tuple[int, ...]]]:
        """Rows of one length and, in all, a bounded number of tokens and of logits."""
        budget = _TOKENS_PER_BATCH.get(self.device.type, 8192)
        batch: list[tuple[int, ...]] = []
        asked = 0
        for row in sorted(asked_of, key=len):
            positions = len(asked_of[row])
            if batch and (
                len(row) != len(batch[0])
                or len(batch) >= (self.batch_size or max(1, budget // len(row)))
                or (asked + positions) * self.vocabulary > _LOGITS_PER_BATCH
            ):
                yield batch
                batch, asked = [], 0
            batch.append(row)
            asked += positions
        if batch:
            yield batch

    def _logits(self, rows: list[tuple[int, ...]], asked: list[tuple[int, int]]) -> Tensor:
        """Float32 logits ``(asked, vocabulary)`` at (row, position) pairs."""
        ids = torch.tensor(rows, device=self.device)
        row, position = torch.tensor(asked, device=self.device).unbind(dim=1)
        if self.selects is None:
            self.selects = self._head_selects(ids[:2])
        if self.selects:
            return self._forward_at(ids, row, position).float()
        return self._forward(ids)[row, position].float()

    def _forward(self, ids: Tensor) -> Tensor:
        return self.model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits

    def _forward_at(self, ids: Tensor, row: Tensor, position: Tensor) -> Tensor:
        """As :meth:`_forward` at some positions, with only those projected to the vocabulary."""
        head = self.model.get_output_embeddings()
        hook = head.register_forward_pre_hook(lambda module, inputs: (inputs[0][row, position],))
        try:
            return self._forward(ids)
        finally:
            hook.remove()

    def _head_selects(self, ids: Tensor) -> bool:
        """Whether the model's last step is one linear map that can be given single positions; tried out."""
        if not isinstance(self.model.get_output_embeddings(), nn.Linear):
            return False
        row = torch.arange(len(ids), device=self.device)
        position = torch.full_like(row, ids.shape[1] - 1)
        expected = self._forward(ids)[row, position]
        try:
            found = self._forward_at(ids, row, position)
        except (RuntimeError, IndexError, ValueError):
            return False
        return found.shape == expected.shape and torch.allclose(
            found, expected, rtol=1e-4, atol=1e-4, equal_nan=True
        )
