"""The settings of a tiny decoder run."""

import pytest

from babyssa.decoder import DecoderSize, DecoderTraining, Evaluation
from babyssa.training.config import Optimisation


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
