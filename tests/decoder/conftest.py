"""A tiny decoder, its settings, and a small model with random weights."""

import pytest
import torch

from babyssa.corpus import load_tokenizer
from babyssa.decoder import DecoderSize, DecoderTraining, Evaluation, build_decoder, causal_tokenizer
from babyssa.training.config import Optimisation

SIZE = DecoderSize(
    layers=2,
    heads=4,
    key_value_heads=2,
    hidden_size=32,
    feed_forward_size=48,
    max_length=24,
    initializer_range=0.3,
)


@pytest.fixture(scope="session")
def causal(tokenizer_folder):
    """The tokenizer as decoders use it."""
    tokenizer = causal_tokenizer(load_tokenizer(tokenizer_folder))
    tokenizer.model_max_length = SIZE.max_length
    return tokenizer


@pytest.fixture
def decoder(causal):
    """Makes an untrained decoder whose logits are far from uniform."""

    def make(variant="softmax", **changes):
        return build_decoder(SIZE, causal, variant=variant, **changes).eval()

    return make


@pytest.fixture
def settings(corpus, tokenizer_folder, tmp_path):
    """Makes the settings of a tiny run."""

    def make(name="run", **changes):
        values = {
            "corpus": str(corpus),
            "tokenizer": tokenizer_folder,
            "out": tmp_path / name,
            "size": DecoderSize(
                layers=1, heads=2, key_value_heads=1, hidden_size=16, feed_forward_size=24, max_length=32
            ),
            "optimisation": Optimisation(batch_size=4, steps=6, log_every=2, learning_rate=0.01),
            "evaluation": Evaluation(held_out=5),
        }
        return DecoderTraining(**{**values, **changes})

    return make


@pytest.fixture
def logits():
    """The logits (length, vocabulary) of one row of token ids, all at once and without a cache."""

    def of(model, ids):
        with torch.no_grad():
            return model(input_ids=torch.tensor([list(ids)]), use_cache=False).logits[0]

    return of
