"""Trains one encoder: corpus -> tokenizer -> masked sentences -> Trainer -> run folder."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from babyssa.attention import scoring_config
from babyssa.console import say
from babyssa.corpus import encode_sentences, load_tokenizer, read_corpus, tokenizer_sha256, train_tokenizer
from babyssa.corpus.encoded import Sentences, encode_corpus
from babyssa.corpus.preparation import corpus_file, held_out_places
from babyssa.encoder.batches import LengthBatches, MaskedSentences
from babyssa.encoder.config import EncoderTraining, Evaluation
from babyssa.encoder.masking import Vocabulary
from babyssa.encoder.model import build_encoder, masked_lm_loss
from babyssa.errors import DataError
from babyssa.files import sha256
from babyssa.probing.learning_curve import suite_accuracy
from babyssa.processes import joined
from babyssa.training.devices import check_devices
from babyssa.training.loop import Objective
from babyssa.training.run import TrainingRun, run_training
from babyssa.training.run_folder import check_earlier_run


@joined()
def train_encoder(settings: EncoderTraining, *, overwrite: bool = False) -> TrainingRun:
    """Train one encoder and write its run folder, or go on with the run that was stopped in it.

    Parameters
    ----------
    settings : EncoderTraining
        Everything that decides the run.
    overwrite : bool
        Whether an earlier run in ``settings.out`` may be replaced.

    Returns
    -------
    TrainingRun

    Raises
    ------
    OutputExistsError
        If ``settings.out`` holds a finished run, or an unfinished one with other settings.
    BusyError
        If another process trains in ``settings.out``.
    Stopped
        If Ctrl-C or SIGTERM came: the run is saved, and the same call goes on with it.
    DataError, ModelError, ConfigError
        If corpus, tokenizer or settings cannot be used; the message says which and what to do.
    """
    check_devices()
    check_earlier_run(settings.out, overwrite)
    # Before the corpus is read: an unknown variant is the quickest thing to refuse.
    scoring_config(settings.variant, **settings.scoring)
    text = read_corpus(settings.corpus)
    rows, held_out = split(text, settings.evaluation.held_out)
    tokenizer = _tokenizer(settings)
    vocabulary = Vocabulary.of(tokenizer)
    sentences, dropped = _fitting(
        encode_corpus(text, tokenizer, corpus_file(settings.corpus)), rows, vocabulary, settings
    )
    # It is not needed any more, and may be large.
    del text
    model = build_encoder(
        settings.size, tokenizer, variant=settings.variant, scoring=settings.scoring, seed=settings.seed
    )
    measure, held_out = _measurement(settings.evaluation, model, tokenizer, held_out)
    facts = {
        "corpus_sha256": sha256(corpus_file(settings.corpus)),
        "tokenizer_sha256": tokenizer_sha256(tokenizer),
        "vocabulary": len(tokenizer),
        "training_sentences": len(sentences),
        "too_long_sentences": dropped,
        "held_out_sentences": held_out,
        "training_tokens": int(sentences.lengths.sum()),
    }
    dataset = MaskedSentences(sentences, vocabulary, settings.masking, tokenizer.pad_token_id, settings.seed)
    batches = LengthBatches(
        sentences.lengths,
        settings.optimisation.batch_size,
        settings.masking.patterns,
        settings.order,
        settings.seed,
    )
    objective = Objective(
        dataset,
        batches,
        loss=masked_lm_loss,
        predictions=lambda batch: batch["labels"].numel(),
        measure=measure,
        measure_every=settings.evaluation.every,
    )
    return run_training(
        "encoder",
        settings,
        model,
        objective,
        tokenizer=tokenizer,
        facts=facts,
        about=f"{len(sentences):,} sentences ({dropped} longer than {settings.size.max_length} tokens dropped)",
        overwrite=overwrite,
    )


def split(corpus: list[str], held_out: int) -> tuple[np.ndarray, list[str]]:
    """Keep `held_out` sentences, at even distances through the corpus, out of training.

    Every run on a corpus holds out the same sentences, whatever its seed. A sentence that occurs elsewhere
    in the corpus too, as many short ones of child-directed speech do, stays in training there.

    Returns
    -------
    tuple of array of int and list of str
        The numbers of the training sentences, and the held-out sentences, each in corpus order.
    """
    chosen = held_out_places(len(corpus), held_out)
    return np.delete(np.arange(len(corpus)), chosen), [corpus[i] for i in chosen]


def _tokenizer(settings: EncoderTraining):
    """Load the tokenizer, or train one on the corpus; it is saved with the model."""
    if settings.tokenizer is not None:
        tokenizer = load_tokenizer(settings.tokenizer)
    else:
        say(f"no tokenizer given: training one of {settings.vocab_size} tokens on the corpus")
        with tempfile.TemporaryDirectory() as scratch:
            tokenizer = train_tokenizer(settings.corpus, scratch, vocab_size=settings.vocab_size, overwrite=True)
    tokenizer.model_max_length = settings.size.max_length
    return tokenizer


def _fitting(
    corpus: Sentences, rows: np.ndarray, vocabulary: Vocabulary, settings: EncoderTraining
) -> tuple[Sentences, int]:
    """Those of the sentences numbered `rows` that fit the model and have something to predict; how many do not."""
    ordinary = np.add.reduceat(~np.isin(corpus.ids, vocabulary.special), corpus.starts)
    fits = (ordinary[rows] > 0) & (corpus.lengths[rows] <= settings.size.max_length)
    if not fits.any():
        raise DataError(
            f"no sentence has between 1 and {settings.size.max_length - 2} tokens",
            path=settings.corpus,
            remedy="check corpus and size.max_length",
        )
    return corpus.select(rows[fits]), int((~fits).sum())


def _measurement(
    evaluation: Evaluation, model, tokenizer, held_out: list[str]
) -> tuple[Callable[[Any], dict[str, float]], int]:
    """What is measured at each point of the learning curve, and on how many held-out sentences.

    Raises what would be raised at the first measurement, before any training.
    """
    from babyssa.models import as_loaded, score

    accuracy = suite_accuracy(
        as_loaded((model, tokenizer)),
        evaluation.suite,
        evaluation.suite_order,
        evaluation.method,
        evaluation.limit,
    )
    lengths = map(len, encode_sentences(tokenizer, held_out))
    fitting = [s for s, length in zip(held_out, lengths, strict=True) if 2 < length <= tokenizer.model_max_length]

    def measure(model) -> dict[str, float]:
        measured = {}
        if fitting:
            scores = score((model, tokenizer), fitting, method="pll")
            nats = -sum(s.score for s in scores) / sum(len(s.tokens) for s in scores)
            measured["pseudo_perplexity"] = float(np.exp(nats))
        return {**measured, **accuracy(model)}

    return measure, len(fitting)
