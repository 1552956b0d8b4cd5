"""Trains one decoder: documents -> tokenizer -> packed sequences -> Trainer -> run folder."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from babyssa.attention import scoring_config
from babyssa.console import progress, say
from babyssa.corpus import load_tokenizer, read_documents, tokenizer_sha256, train_tokenizer
from babyssa.corpus.documents import is_text, shuffled
from babyssa.corpus.preparation import corpus_file, held_out_places
from babyssa.decoder.config import DecoderEvaluation, DecoderTraining
from babyssa.decoder.model import build_decoder, causal_lm_loss
from babyssa.decoder.packing import (
    Documents,
    PackedSequences,
    ShuffledBatches,
    StreamedSequences,
    causal_tokenizer,
    refuse_tiny,
)
from babyssa.errors import DataError
from babyssa.files import sha256
from babyssa.models.encoding import encode_documents
from babyssa.probing.learning_curve import suite_accuracy
from babyssa.processes import joined
from babyssa.training.batches import ConsecutiveBatches
from babyssa.training.devices import check_devices
from babyssa.training.loop import Objective
from babyssa.training.run import TrainingRun, run_training
from babyssa.training.run_folder import check_earlier_run


@joined()
def train_decoder(settings: DecoderTraining, *, overwrite: bool = False) -> TrainingRun:
    """Train one decoder and write its run folder.

    Parameters
    ----------
    settings : DecoderTraining
        Everything that decides the run.
    overwrite : bool
        Whether an earlier run in ``settings.out`` may be replaced.

    Returns
    -------
    TrainingRun

    Raises
    ------
    OutputExistsError
        If ``settings.out`` holds a run already.
    DataError, ModelError, ConfigError
        If corpus, tokenizer or settings cannot be used; the message says which and what to do.
    """
    check_devices()
    check_earlier_run(settings.out, overwrite)
    # Before the corpus is read: an unknown variant is the quickest thing to refuse.
    scoring_config(settings.variant, **settings.scoring)
    tokenizer = _tokenizer(settings)
    model = build_decoder(
        settings.size, tokenizer, variant=settings.variant, scoring=settings.scoring, seed=settings.seed
    )
    prepare = _stream if settings.streaming else _corpus
    dataset, batches, held_out, facts, about = prepare(settings, tokenizer)
    measure = _measurement(settings.evaluation, model, tokenizer, held_out)
    objective = Objective(
        dataset,
        batches,
        loss=causal_lm_loss,
        predictions=lambda batch: batch["input_ids"][:, 1:].numel(),
        measure=measure,
        measure_every=settings.evaluation.every,
    )
    return run_training(
        "decoder",
        settings,
        model,
        objective,
        tokenizer=tokenizer,
        facts={**facts, "tokenizer_sha256": tokenizer_sha256(tokenizer), "vocabulary": len(tokenizer)},
        overwrite=overwrite,
        about=about,
    )


def _read(settings: DecoderTraining) -> Iterator[str]:
    return read_documents(
        settings.corpus,
        layout=settings.documents,
        text_column=settings.text_column,
        split=settings.split,
        streaming=settings.streaming,
    )


def _tokenizer(settings: DecoderTraining):
    """Load the tokenizer, or train one on the corpus, and let eos stand between documents."""
    if settings.tokenizer is not None:
        tokenizer = load_tokenizer(settings.tokenizer)
    else:
        say(f"no tokenizer given: training one of {settings.vocab_size} tokens on the corpus")
        with tempfile.TemporaryDirectory() as scratch:
            text = corpus_file(settings.corpus)
            if not is_text(settings.corpus):
                text = Path(scratch) / "corpus.txt"
                with open(text, "w", encoding="utf-8", newline="\n") as file:
                    file.writelines(f"{document}\n" for document in _read(settings))
            tokenizer = train_tokenizer(text, scratch, vocab_size=settings.vocab_size, overwrite=True)
    tokenizer.model_max_length = settings.size.max_length
    return causal_tokenizer(tokenizer)


def _corpus(settings: DecoderTraining, tokenizer):
    """A corpus in memory, as token ids: its sequences, their order, the held-out tokens, and what it came to."""
    length = settings.size.max_length
    read = progress(_read(settings), "tokenizing")
    documents = Documents.of(encode_documents(tokenizer, read))
    if not len(documents):
        raise DataError("the corpus is empty", path=settings.corpus, remedy="it needs documents of text")
    places = np.zeros(len(documents), dtype=bool)
    places[held_out_places(len(documents), settings.evaluation.held_out, "documents")] = True
    held_out, training = documents.select(places).ids, documents.select(~places)
    refuse_tiny(len(training.ids), length, settings.corpus)
    dataset = PackedSequences(training.ids, length)
    facts = {
        **_corpus_facts(settings),
        "training_documents": len(training),
        "training_tokens": len(training.ids),
        "training_sequences": len(dataset),
        "remainder_tokens": dataset.remainder,
        "held_out_documents": int(places.sum()),
        "held_out_tokens": len(held_out),
    }
    if len(held_out):
        facts["held_out_unigram_perplexity"] = unigram_perplexity(training.ids, held_out, len(tokenizer))
    about = f"{len(dataset):,} sequences of {length} tokens ({dataset.remainder} left over at the end)"
    batches = ShuffledBatches(len(dataset), settings.optimisation.batch_size, settings.seed)
    return dataset, batches, held_out, facts, about


def _stream(settings: DecoderTraining, tokenizer):
    """A corpus read as training goes on; as :func:`_corpus`."""
    first = settings.evaluation.held_out
    held_out = Documents.of(encode_documents(tokenizer, islice(_read(settings), first)))
    if len(held_out) < first:
        raise DataError(
            f"{first} documents are to be held out of a stream of {len(held_out)}",
            path=settings.corpus,
            remedy="lower evaluation.held_out, or use a larger corpus",
        )

    def documents(number: int) -> Iterator[str]:
        rest = islice(_read(settings), first, None)
        return shuffled(rest, settings.shuffle_buffer, [settings.seed, number, 4])

    dataset = StreamedSequences(documents, tokenizer, settings.size.max_length, settings.corpus)
    # What the stream cannot give is refused now, before an earlier run is replaced.
    dataset[0]
    size = settings.optimisation
    batches = ConsecutiveBatches(size.steps * size.gradient_accumulation, size.batch_size)
    facts = {
        **_corpus_facts(settings),
        "held_out_documents": len(held_out),
        "held_out_tokens": len(held_out.ids),
    }
    about = f"a stream in sequences of {settings.size.max_length} tokens"
    return dataset, batches, held_out.ids, facts, about


def _corpus_facts(settings: DecoderTraining) -> dict[str, Any]:
    """What tells one corpus from another: the hash of a file, or the name of a dataset that is no file."""
    file = corpus_file(settings.corpus)
    if not file.is_file():
        return {"dataset": str(settings.corpus)}
    # A stream may be too long to be read once more.
    return {"corpus_bytes": file.stat().st_size} if settings.streaming else {"corpus_sha256": sha256(file)}


def unigram_perplexity(training: np.ndarray, held_out: np.ndarray, vocabulary: int) -> float:
    """Perplexity per token of `held_out` under the token frequencies of `training`, plus one for each type."""
    counts = np.bincount(training, minlength=vocabulary) + 1
    return float(np.exp(-np.log(counts[held_out] / counts.sum()).mean()))


def _measurement(
    evaluation: DecoderEvaluation, model, tokenizer, held_out: np.ndarray
) -> Callable[[Any], dict[str, float]]:
    """What is measured at each point of the learning curve.

    Raises what would be raised at the first measurement, before any training.
    """
    from babyssa.models import as_loaded
    from babyssa.models.text_perplexity import token_nats

    suite = evaluation.suite
    accuracy = suite_accuracy(
        as_loaded((model, tokenizer)), suite, evaluation.suite_order, "loglik", evaluation.limit
    )

    def measure(model) -> dict[str, float]:
        measured = {}
        if len(held_out):
            measured["perplexity"] = float(np.exp(token_nats(as_loaded((model, tokenizer)), held_out).mean()))
        return {**measured, **accuracy(model)}

    return measure
