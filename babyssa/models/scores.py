"""Sentence scores from masked and causal language models, in nats; higher is better.

Every method is a set of questions: given a row of token ids, what is the log-probability of this token at this
position? ``pll`` masks one token per row, ``pll-word-l2r`` also masks the later tokens of the same word,
``holistic`` and ``loglik`` mask nothing. One engine answers the questions. It takes all sentences of one length
together, across paradigms, so nothing is padded, batches are large, and each distinct row runs through the model
once: sentences that differ in one token share the row in which that token is masked.

Sources: ``pll`` Salazar et al. 2020 (arXiv 1910.14659); ``pll-word-l2r`` Kauf & Ivanova 2023
(arXiv 2305.10588); ``holistic`` Zaczynska et al. 2020, as used by Huebner et al. 2021 for Zorro.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from babyssa.errors import ConfigError, ModelError, nearest, quoted
from babyssa.models.encoding import Encodings
from babyssa.models.loading import LoadedModel, Precision, evaluating
from babyssa.models.roberta import computes, logits_at

Reduction = Literal["sum", "mean", "per-word", "per-character"]
_REDUCTIONS: tuple[Reduction, ...] = get_args(Reduction)

_TOKENS_PER_BATCH = {"cpu": 2048, "cuda": 65536}
_LOGITS_PER_BATCH = 2**26
# A row is computed once per chunk: sentences of one length whose rows have at most this many tokens (4 bytes
# each). In Zorro (46,000 pairs) no length has more than 1.4 million, so no row is computed twice. Of its 786,087
# rows for pll, 86.4% are distinct (86.7% within paradigms, 96.9% within pairs): caching rows across chunks of a
# larger suite would save next to nothing.
_TOKENS_PER_CHUNK = 2**21


@dataclass(frozen=True)
class Scored:
    """The scored tokens of one text.

    Attributes
    ----------
    index : int
        Its place among all texts.
    ids : list of int
        The tokens.
    values : list of float
        Their log-probabilities, in nats.
    ranks : list of int or None
        How many tokens of the vocabulary are more probable at that place, plus one; None if not asked for.
    spans : list of (int, int) or None
        The characters that they stand for; None if the tokenizer cannot say.
    """

    index: int
    ids: list[int]
    values: list[float]
    ranks: list[int] | None
    spans: list[list[int]] | None


@dataclass(frozen=True)
class Questions:
    """What is the log-probability of `target` at `position` of the output for `rows[row]`? Many at once.

    Attributes
    ----------
    rows : (rows, length) int
        Token ids.
    row, position, target : (questions,) int
        One entry per question.
    """

    rows: np.ndarray
    row: np.ndarray
    position: np.ndarray
    target: np.ndarray


@dataclass(frozen=True)
class Method:
    """A scoring method.

    Attributes
    ----------
    kind : str
        The kind of model it fits.
    reductions : tuple of str
        Those it allows, the default first.
    scored : function of Encodings
        Which tokens have a score, ``(sentences, length)``.
    questions : function of Encodings, LoadedModel
        One question per scored token, in order.
    masks : bool
        Whether there is a row per question, rather than per sentence.
    """

    kind: str
    reductions: tuple[Reduction, ...]
    scored: Callable[[Encodings], np.ndarray]
    questions: Callable[[Encodings, LoadedModel], Questions]
    masks: bool


def _inside(encodings: Encodings) -> np.ndarray:
    return encodings.inside


def _everything(encodings: Encodings) -> np.ndarray:
    return np.ones_like(encodings.inside)


def _pll(encodings: Encodings, loaded: LoadedModel) -> Questions:
    """Each token given all the others: mask one at a time."""
    sentence, position = encodings.inside.nonzero()
    hidden = np.arange(encodings.ids.shape[1]) == position[:, None]
    return _masked(encodings, sentence, position, hidden, loaded)


def _pll_word_l2r(encodings: Encodings, loaded: LoadedModel) -> Questions:
    """Each token given the other words and the earlier tokens of its word: mask it and the rest of its word."""
    if encodings.words is None:
        raise ModelError(
            "the tokenizer does not say which tokens make a word",
            path=loaded.name,
            remedy="use a fast tokenizer, or method pll",
        )
    sentence, position = encodings.inside.nonzero()
    same_word = encodings.words[sentence] == encodings.words[sentence, position][:, None]
    not_before = np.arange(encodings.ids.shape[1]) >= position[:, None]
    return _masked(encodings, sentence, position, encodings.inside[sentence] & same_word & not_before, loaded)


def _masked(
    encodings: Encodings, sentence: np.ndarray, position: np.ndarray, hidden: np.ndarray, loaded: LoadedModel
) -> Questions:
    """The token at `position` of `sentence`, from a row with masks where `hidden` ``(questions, length)``."""
    rows = encodings.ids[sentence]
    rows[hidden] = loaded.tokenizer.mask_token_id
    return Questions(rows, np.arange(len(rows)), position, encodings.ids[sentence, position])


def _holistic(encodings: Encodings, loaded: LoadedModel) -> Questions:
    """Each token, specials included, with nothing masked."""
    sentence, position = _everything(encodings).nonzero()
    return Questions(encodings.ids, sentence, position, encodings.ids[sentence, position])


def _loglik(encodings: Encodings, loaded: LoadedModel) -> Questions:
    """Each token given those before it; the first given bos."""
    sentence, position = encodings.inside.nonzero()
    return Questions(encodings.ids, sentence, position - 1, encodings.ids[sentence, position])


METHODS = {
    "pll": Method("masked", _REDUCTIONS, _inside, _pll, masks=True),
    "pll-word-l2r": Method("masked", _REDUCTIONS, _inside, _pll_word_l2r, masks=True),
    "holistic": Method("masked", ("mean",), _everything, _holistic, masks=False),
    "loglik": Method("causal", _REDUCTIONS, _inside, _loglik, masks=False),
}


def check_precision(precision: str) -> None:
    """Raise ConfigError if there is no such precision."""
    known = get_args(Precision)
    if precision not in known:
        raise ConfigError(f"unknown precision '{precision}'", remedy=nearest(precision, known))


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
    if reduction not in _REDUCTIONS:
        raise ConfigError(f"unknown reduction '{reduction}'", remedy=nearest(reduction, _REDUCTIONS))
    if reduction not in possible:
        raise ConfigError(f"method '{method}' is a {possible[0]} by definition", remedy="leave --reduction out")
    return method, reduction


def reduce(values: Sequence[float], reduction: str, text: str) -> float:
    """From the tokens of `text` to its score: their sum, by itself or per token, word or character.

    The sum is correctly rounded, so that equal values in another order make equal scores. Words are what stands
    between white space; white space around the text counts for no character.
    """
    divisor = {
        "sum": 1,
        "mean": len(values),
        "per-word": len(text.split()),
        "per-character": len(text.strip()),
    }
    return math.fsum(values) / divisor[reduction]


def token_scores(
    loaded: LoadedModel,
    sentences: Sequence[str],
    encodings: Sequence[Encodings],
    method: str,
    batch_size: int | None = None,
    precision: Precision = "float32",
    answered: Callable[[int], None] = lambda n: None,
    ranks: bool = False,
) -> Iterator[Scored]:
    """Yield the scored tokens of each sentence, by sentence length; their ranks too, if asked for.

    Rows are built and answered in chunks, so memory does not grow with the number of sentences. `answered` is
    called after each batch with the number of tokens that it scored.

    Raises
    ------
    ModelError
        If a log-probability is NaN or infinite; names the sentence.
    """
    if batch_size is not None and batch_size < 1:
        raise ConfigError(f"batch size must be at least 1, not {batch_size}")
    engine = Engine(loaded, batch_size, precision)
    of = METHODS[method]
    for same_length in encodings:
        length = same_length.ids.shape[1]
        size = max(1, _TOKENS_PER_CHUNK // (length**2 if of.masks else length))
        for chunk in same_length.parts(size):
            questions = of.questions(chunk, loaded)
            found_ranks = np.empty(len(questions.row), dtype=np.int64) if ranks else None
            answers = engine.answer(questions, answered, found_ranks)
            scored = of.scored(chunk)
            ends = scored.sum(axis=1).cumsum()
            for index, begin, end, ids, spans in zip(
                chunk.index.tolist(),
                (0, *ends[:-1]),
                ends,
                np.split(chunk.ids[scored], ends[:-1]),
                [None] * len(ends) if chunk.spans is None else np.split(chunk.spans[scored], ends[:-1]),
                strict=True,
            ):
                values = answers[begin:end]
                if not np.isfinite(values).all():
                    raise ModelError(
                        f"a token of sentence {quoted(sentences[index])} has log-probability NaN or infinity",
                        path=loaded.name,
                        remedy="the weights are broken or overflow: load the model in float32",
                    )
                yield Scored(
                    index,
                    ids.tolist(),
                    values.tolist(),
                    None if found_ranks is None else found_ranks[begin:end].tolist(),
                    None if spans is None else spans.tolist(),
                )


def number_of_scored_tokens(encodings: Sequence[Encodings], method: str) -> int:
    """How many tokens a method scores."""
    return sum(int(METHODS[method].scored(same_length).sum()) for same_length in encodings)


class Engine:
    """Answers questions in batches, with the fastest forward pass that is exact for the model."""

    def __init__(self, loaded: LoadedModel, batch_size: int | None = None, precision: Precision = "float32"):
        self.model = loaded.model
        self.device = loaded.device
        self.batch_size = batch_size
        self.precision = precision
        self.vocabulary = loaded.model.get_input_embeddings().num_embeddings
        self.forward: Forward | None = None

    def answer(
        self,
        questions: Questions,
        answered: Callable[[int], None] = lambda n: None,
        ranks: np.ndarray | None = None,
    ) -> np.ndarray:
        """One float32 log-probability per question; `answered` is called with the number in each batch.

        `ranks`, if given, is filled with the rank of each target at its position, from 1.
        """
        length = questions.rows.shape[1]
        rows, distinct = _distinct(questions.rows)
        # Each place once, row by row: several questions may ask about one place.
        places, place = np.unique(distinct[questions.row] * length + questions.position, return_inverse=True)
        row, position = np.divmod(places, length)
        order = np.argsort(place, kind="stable")
        place, target = place[order], questions.target[order]
        answers = np.empty(len(order), dtype=np.float32)
        size = self._rows_per_batch(length, int(np.bincount(row).max()))
        with _computing(self.model, self.precision):
            for start in range(0, len(rows), size):
                first, last = np.searchsorted(row, (start, start + size))
                logits = self._logits(rows[start : start + size], row[first:last] - start, position[first:last])
                own = slice(*np.searchsorted(place, (first, last)))
                line = self._tensor(place[own] - first)
                asked = logits[line, self._tensor(target[own])]
                values = asked - logits.logsumexp(dim=-1)[line]
                answers[order[own]] = values.cpu().numpy()
                if ranks is not None:
                    ranks[order[own]] = (logits[line] > asked[:, None]).sum(dim=-1).cpu().numpy() + 1
                answered(len(values))
        return answers

    def _rows_per_batch(self, length: int, asked: int) -> int:
        """Rows such that tokens and logits stay bounded, with at most `asked` positions per row."""
        by_tokens = self.batch_size or _TOKENS_PER_BATCH.get(self.device.type, 8192) // length
        return max(1, min(by_tokens, _LOGITS_PER_BATCH // (asked * self.vocabulary)))

    def _logits(self, rows: np.ndarray, row: np.ndarray, position: np.ndarray) -> Tensor:
        """Float32 logits ``(asked, vocabulary)`` at (row, position) pairs."""
        ids = self._tensor(rows)
        if self.forward is None:
            self.forward = choose_forward(self.model, ids[:2])
        return self.forward(self.model, ids, self._tensor(row), self._tensor(position)).float()

    def _tensor(self, values: np.ndarray) -> Tensor:
        return torch.from_numpy(values).to(self.device).long()


def _distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows, and the index among them of each row."""
    rows = np.ascontiguousarray(rows)
    whole = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize)))[:, 0]
    _, first, distinct = np.unique(whole, return_index=True, return_inverse=True)
    return rows[first], distinct


# Logits (asked, vocabulary) of a model for ids (rows, length) at pairs of row and position, (asked,) each.
Forward = Callable[[Any, Tensor, Tensor, Tensor], Tensor]


def _whole(model: Any, ids: Tensor, row: Tensor, position: Tensor) -> Tensor:
    """The plain forward pass: all logits, of which some are selected."""
    return model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[row, position]


def _projecting_asked(model: Any, ids: Tensor, row: Tensor, position: Tensor) -> Tensor:
    """Project only the positions asked for to the vocabulary."""
    head = model.get_output_embeddings()
    if not isinstance(head, nn.Linear):
        raise NotImplementedError("the head does not end in one linear layer")
    hook = head.register_forward_pre_hook(lambda module, inputs: (inputs[0][row, position],))
    try:
        return model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
    finally:
        hook.remove()


def _computing_asked(model: Any, ids: Tensor, row: Tensor, position: Tensor) -> Tensor:
    """Run only the positions asked for through the last layer too."""
    if not computes(model):
        raise NotImplementedError("only RoBERTa's forward pass is implemented")
    return logits_at(model, ids, None, row * ids.shape[1] + position)


_FASTER: tuple[Forward, ...] = (_computing_asked, _projecting_asked)


def choose_forward(model: Any, ids: Tensor) -> Forward:
    """The first of the faster forward passes whose logits equal the plain one's for `ids`, else the plain one."""
    row, position = torch.ones_like(ids).nonzero(as_tuple=True)
    # Compared in float32: in bfloat16, summing in another order changes the third digit.
    with evaluating(model):
        expected = _whole(model, ids, row, position)
        for forward in _FASTER:
            try:
                found = forward(model, ids, row, position)
            except Exception:  # the plain one always works
                continue
            if found.shape == expected.shape and torch.allclose(
                found, expected, rtol=1e-4, atol=1e-4, equal_nan=True
            ):
                return forward
    return _whole


@contextmanager
def _computing(model: Any, precision: Precision) -> Iterator[None]:
    """Evaluate in `precision`, except the projection to the vocabulary, which keeps the model's own dtype.

    Near 16, bfloat16 numbers are 1/8 apart: more than the scores of many pairs.
    """
    head = model.get_output_embeddings()
    with ExitStack() as stack:
        stack.enter_context(evaluating(model, precision))
        if precision != "float32" and isinstance(head, nn.Linear):
            no_autocast = torch.autocast(head.weight.device.type, enabled=False)

            def enter(module: nn.Linear, inputs: tuple[Tensor]) -> tuple[Tensor]:
                no_autocast.__enter__()
                return (inputs[0].to(module.weight.dtype),)

            def leave(module: nn.Linear, inputs: tuple[Tensor], output: Tensor) -> None:
                no_autocast.__exit__(None, None, None)

            stack.callback(head.register_forward_pre_hook(enter).remove)
            stack.callback(head.register_forward_hook(leave, always_call=True).remove)
        yield
