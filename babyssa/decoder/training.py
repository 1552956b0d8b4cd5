"""Trains one decoder: documents -> tokenizer -> packed sequences -> training loop -> run folder."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
from torch.utils.data import Dataset, Sampler
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from babyssa.console import progress
from babyssa.corpus import read_documents
from babyssa.corpus.documents import is_text, shuffled
from babyssa.corpus.preparation import corpus_file, held_out_places
from babyssa.decoder.config import DecoderTraining
from babyssa.decoder.model import build_decoder, causal_lm_loss
from babyssa.decoder.packing import (
    Documents,
    PackedSequences,
    ShuffledBatches,
    StreamedSequences,
    causal_tokenizer,
    check_enough_tokens,
)
from babyssa.errors import DataError
from babyssa.files import sha256
from babyssa.models.encoding import encode_documents
from babyssa.probing.learning_curve import suite_accuracy
from babyssa.processes import joined
from babyssa.training.batches import ConsecutiveBatches, word_counter
from babyssa.training.config import Evaluation
from babyssa.training.loop import Objective
from babyssa.training.run import TrainingRun, check_run, run_tokenizer, run_training


@joined()
def train_decoder(settings: DecoderTraining, *, overwrite: bool = False) -> TrainingRun:
    """Train one model and write its run folder; :func:`babyssa.train_decoder` explains the parameters."""
    check_run(settings, overwrite)
    text = corpus_file(settings.corpus) if is_text(settings.corpus) else read(settings)
    tokenizer = causal_tokenizer(
        run_tokenizer(settings.tokenizer, text, settings.vocab_size, settings.size.max_length)
    )
    model = build_decoder(
        settings.size, tokenizer, variant=settings.variant, scoring=settings.scoring, seed=settings.seed
    )
    data = stream(settings, tokenizer) if settings.streaming else pack(settings, tokenizer)
    objective = Objective(
        data.dataset,
        data.batches,
        loss=causal_lm_loss,
        predictions=lambda batch: batch["input_ids"][:, 1:].numel(),
        measure=learning_curve(settings.evaluation, model, tokenizer, data.held_out),
        measure_every=settings.evaluation.every,
        words=word_counter(tokenizer),
    )
    return run_training(
        "decoder",
        settings,
        model,
        objective,
        tokenizer=tokenizer,
        facts=data.facts,
        about=data.about,
        overwrite=overwrite,
    )


@dataclasses.dataclass(frozen=True)
class TrainingData:
    """A corpus as a decoder reads it.

    Parameters
    ----------
    dataset : Dataset
        Its sequences.
    batches : Sampler
        Their order.
    held_out : array of int, (tokens,)
        Documents that are not trained on, end to end.
    facts : dict
        What it is made from, for config.yaml.
    about : str
        The same in a few words.
    """

    dataset: Dataset
    batches: Sampler
    held_out: np.ndarray
    facts: dict[str, Any]
    about: str


def read(settings: DecoderTraining) -> Iterator[str]:
    """The documents of the run's corpus."""
    return read_documents(
        settings.corpus,
        layout=settings.documents,
        text_column=settings.text_column,
        split=settings.split,
        streaming=settings.streaming,
    )


def pack(settings: DecoderTraining, tokenizer: PreTrainedTokenizerBase) -> TrainingData:
    """A corpus in memory, as token ids, in shuffled sequences."""
    length = settings.size.max_length
    documents = Documents.of(encode_documents(tokenizer, progress(read(settings), "tokenizing", unit="documents")))
    if not len(documents):
        raise DataError("the corpus is empty", path=settings.corpus, remedy="it needs documents of text")
    places = np.zeros(len(documents), dtype=bool)
    places[held_out_places(len(documents), settings.evaluation.held_out, "documents")] = True
    held_out, training = documents.select(places).ids, documents.select(~places)
    check_enough_tokens(len(training.ids), length, settings.corpus)
    dataset = PackedSequences(training.ids, length)
    facts = {
        **identity(settings),
        "training_documents": len(training),
        "training_tokens": len(training.ids),
        "training_sequences": len(dataset),
        "remainder_tokens": dataset.remainder,
        "held_out_documents": int(places.sum()),
        "held_out_tokens": len(held_out),
    }
    if len(held_out):
        facts["held_out_unigram_perplexity"] = unigram_perplexity(training.ids, held_out, len(tokenizer))
    batches = ShuffledBatches(len(dataset), settings.optimisation.batch_size, settings.seed)
    about = f"{len(dataset):,} sequences of {length} tokens ({dataset.remainder} left over at the end)"
    return TrainingData(dataset, batches, held_out, facts, about)


def stream(settings: DecoderTraining, tokenizer: PreTrainedTokenizerBase) -> TrainingData:
    """A corpus that is read during training; its first documents are held out."""
    first = settings.evaluation.held_out
    held_out = Documents.of(encode_documents(tokenizer, islice(read(settings), first)))
    if len(held_out) < first:
        raise DataError(
            f"cannot hold out {first} documents from a stream of {len(held_out)}",
            path=settings.corpus,
            remedy="lower evaluation.held-out, or use a larger corpus",
        )

    def documents(number: int) -> Iterator[str]:
        rest = islice(read(settings), first, None)
        return shuffled(rest, settings.shuffle_buffer, [settings.seed, number, 4])

    dataset = StreamedSequences(documents, tokenizer, settings.size.max_length, settings.corpus)
    # A stream that gives no sequence raises here, before an earlier run is replaced.
    dataset.__getitems__([0])
    size = settings.optimisation
    batches = ConsecutiveBatches(size.steps * size.gradient_accumulation, size.batch_size)
    facts = {
        **identity(settings),
        "held_out_documents": len(held_out),
        "held_out_tokens": len(held_out.ids),
    }
    about = f"a stream in sequences of {settings.size.max_length} tokens"
    return TrainingData(dataset, batches, held_out.ids, facts, about)


def identity(settings: DecoderTraining) -> dict[str, Any]:
    """What tells one corpus from another: the hash of a file, or the name of a dataset that is no file."""
    file = corpus_file(settings.corpus)
    if not file.is_file():
        return {"dataset": str(settings.corpus)}
    # A stream may be too long to read once more.
    return {"corpus_bytes": file.stat().st_size} if settings.streaming else {"corpus_sha256": sha256(file)}


def unigram_perplexity(training: np.ndarray, held_out: np.ndarray, vocabulary: int) -> float:
    """Perplexity per token of `held_out` under the token frequencies of `training`, plus one for each type."""
    counts = np.bincount(training, minlength=vocabulary) + 1
    return float(np.exp(-np.log(counts[held_out] / counts.sum()).mean()))


def learning_curve(
    evaluation: Evaluation, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, held_out: np.ndarray
) -> Callable[[PreTrainedModel], dict[str, float]]:
    """A function that measures perplexity on the held-out tokens, and accuracy on a suite.

    Raises
    ------
    ConfigError, DataError, ModelError
        What the first measurement would raise: now, before any training.
    """
    from babyssa.models import as_loaded
    from babyssa.models.text_perplexity import token_nats

    suite, order, method, limit = evaluation.suite, evaluation.suite_order, evaluation.method, evaluation.limit
    accuracy = suite_accuracy(as_loaded((model, tokenizer)), suite, order, method, limit)

    def measure(model: PreTrainedModel) -> dict[str, float]:
        measured = {}
        if len(held_out):
            measured["perplexity"] = float(np.exp(token_nats(as_loaded((model, tokenizer)), held_out).mean()))
        return {**measured, **accuracy(model)}

    return measure
