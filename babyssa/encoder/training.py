"""Trains one encoder: corpus -> tokenizer -> token ids -> masked sentences -> training loop -> run folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from babyssa.corpus import encode_sentences, masked_tokenizer, read_corpus, tokenizer_sha256
from babyssa.corpus.encoded import Sentences, encode_corpus
from babyssa.corpus.preparation import corpus_file, held_out_places
from babyssa.encoder.batches import LengthBatches, MaskedSentences
from babyssa.encoder.config import EncoderTraining
from babyssa.encoder.masking import Vocabulary
from babyssa.encoder.model import build_encoder, masked_lm_loss
from babyssa.errors import ConfigError, DataError
from babyssa.files import sha256
from babyssa.models.run_config import read_identity
from babyssa.probing.learning_curve import suite_accuracy
from babyssa.processes import joined
from babyssa.training.batches import word_counter
from babyssa.training.config import Evaluation
from babyssa.training.loop import Objective
from babyssa.training.run import TrainingRun, check_run, run_tokenizer, run_training


@joined()
def train_encoder(settings: EncoderTraining, *, overwrite: bool = False) -> TrainingRun:
    """Train one model and write its run folder; :func:`babyssa.train_encoder` explains the parameters."""
    check_run(settings, overwrite)
    if settings.init is None and settings.init_revision is not None:
        raise ConfigError("--init-revision without --init", remedy="name the model on the hub with --init")
    file = corpus_file(settings.corpus)
    text = read_corpus(settings.corpus)
    rows, held_out = split(text, settings.evaluation.held_out)
    given = (settings.init, settings.init_revision) if settings.tokenizer is None else (settings.tokenizer, None)
    tokenizer = masked_tokenizer(
        run_tokenizer(given[0], file, settings.vocab_size, settings.size.max_length, revision=given[1])
    )
    vocabulary = Vocabulary.of(tokenizer)
    encoded = encode_corpus(text, tokenizer, file)
    sentences = fitting(encoded, rows, vocabulary, settings)
    # The text may be large, and is no longer needed.
    del text
    model = build_encoder(
        settings.size, tokenizer, variant=settings.variant, scoring=settings.scoring, seed=settings.seed
    )
    init = {} if settings.init is None else start_from(settings.init, settings.init_revision, model, tokenizer)
    lengths = map(len, encode_sentences(tokenizer, held_out))
    held_out = [s for s, n in zip(held_out, lengths, strict=True) if 2 < n <= settings.size.max_length]
    objective = Objective(
        MaskedSentences(sentences, vocabulary, settings.masking, tokenizer.pad_token_id, settings.seed),
        LengthBatches(
            sentences.lengths,
            settings.optimisation.batch_size,
            settings.masking.patterns,
            settings.order,
            settings.seed,
        ),
        loss=masked_lm_loss,
        predictions=lambda batch: batch["labels"].numel(),
        measure=learning_curve(settings.evaluation, model, tokenizer, held_out),
        measure_every=settings.evaluation.every,
        words=word_counter(tokenizer),
    )
    dropped = len(rows) - len(sentences)
    facts = {
        "corpus_sha256": sha256(file),
        "training_sentences": len(sentences),
        "too_long_sentences": dropped,
        "held_out_sentences": len(held_out),
        "training_tokens": int(sentences.lengths.sum()),
        **init,
    }
    about = f"{len(sentences):,} sentences ({dropped} longer than {settings.size.max_length} tokens dropped)"
    return run_training(
        "encoder", settings, model, objective, tokenizer=tokenizer, facts=facts, about=about, overwrite=overwrite
    )


def start_from(
    run: Path, revision: str | None, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> dict[str, Any]:
    """Give a new encoder the weights of a trained one.

    Returns
    -------
    dict
        What config.yaml says of it: `init`, its identity, and `init_weights_sha256`.

    Raises
    ------
    ConfigError
        If it has another tokenizer, size or scoring.
    ModelError
        If it cannot be loaded.
    """
    from babyssa.models import load_model, weights_sha256

    loaded = load_model(run, "cpu", revision=revision)
    if tokenizer_sha256(loaded.tokenizer) != tokenizer_sha256(tokenizer):
        raise ConfigError(f"init {run} was trained with another tokenizer", remedy="leave out --tokenizer")
    weights = loaded.model.state_dict()
    shapes = [{name: value.shape for name, value in state.items()} for state in (weights, model.state_dict())]
    scorings = [getattr(each.config, "attention_scoring", None) for each in (loaded.model, model)]
    if shapes[0] != shapes[1] or scorings[0] != scorings[1]:
        what = "size" if scorings[0] == scorings[1] else "scoring"
        raise ConfigError(
            f"init {run} has another {what}", remedy=f"give the variant and size of {run}/config.yaml"
        )
    model.load_state_dict(weights)
    return {"init": read_identity(run), "init_weights_sha256": weights_sha256(model)}


def split(corpus: list[str], held_out: int) -> tuple[np.ndarray, list[str]]:
    """Keep `held_out` sentences, at even distances through the corpus, out of training.

    Every run on a corpus holds out the same sentences, whatever its seed. A sentence that also occurs elsewhere in
    the corpus, as many short ones of child-directed speech do, stays in training there.

    Returns
    -------
    tuple of array of int and list of str
        The numbers of the training sentences, and the held-out sentences, each in corpus order.
    """
    chosen = held_out_places(len(corpus), held_out)
    return np.delete(np.arange(len(corpus)), chosen), [corpus[i] for i in chosen]


def fitting(corpus: Sentences, rows: np.ndarray, vocabulary: Vocabulary, settings: EncoderTraining) -> Sentences:
    """Those of the sentences numbered `rows` that fit the model and have something to predict.

    Raises
    ------
    DataError
        If there are none.
    """
    ordinary = np.add.reduceat(~np.isin(corpus.ids, vocabulary.special), corpus.starts)
    fits = (ordinary[rows] > 0) & (corpus.lengths[rows] <= settings.size.max_length)
    if not fits.any():
        raise DataError(
            f"no sentence has between 1 and {settings.size.max_length - 2} tokens",
            path=settings.corpus,
            remedy="check corpus and size.max-length",
        )
    return corpus.select(rows[fits])


def learning_curve(
    evaluation: Evaluation, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, held_out: list[str]
) -> Callable[[PreTrainedModel], dict[str, float]]:
    """A function that measures pseudo-perplexity on the held-out sentences, and accuracy on a suite.

    Raises
    ------
    ConfigError, DataError, ModelError
        What the first measurement would raise: now, before any training.
    """
    from babyssa.models import as_loaded, score

    suite, order, method, limit = evaluation.suite, evaluation.suite_order, evaluation.method, evaluation.limit
    accuracy = suite_accuracy(as_loaded((model, tokenizer)), suite, order, method, limit)

    def measure(model: PreTrainedModel) -> dict[str, float]:
        measured = {}
        if held_out:
            scores = score((model, tokenizer), held_out, method="pll")
            nats = -sum(s.score for s in scores) / sum(len(s.tokens) for s in scores)
            measured["pseudo_perplexity"] = float(np.exp(nats))
        return {**measured, **accuracy(model)}

    return measure
