"""Mask patterns: what is selected, what stands in its place, and what decides it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from babyssa.encoder import Masking, Vocabulary, mask_pattern
from babyssa.errors import ConfigError

MASK, PAD, UNK, BOS, EOS = range(5)
VOCABULARY = Vocabulary(mask=MASK, ordinary=np.arange(5, 200), special=np.arange(5))


@given(st.lists(st.integers(1, 30), min_size=1, max_size=40), st.integers(0, 5), st.floats(0.01, 1.0))
@settings(deadline=None, max_examples=50)
def test_every_sentence_has_a_selected_token_and_no_special_one(some_sentences, lengths, pattern, probability):
    sentences = some_sentences(lengths)
    corrupted, selected = mask_pattern(
        sentences, VOCABULARY, Masking(probability=probability), seed=1, pattern=pattern
    )
    assert (np.add.reduceat(selected, sentences.starts[:-1]) >= 1).all()
    assert not selected[np.isin(sentences.ids, VOCABULARY.special)].any()
    assert (corrupted[~selected] == sentences.ids[~selected]).all()


def test_shares_of_mask_random_and_unchanged_are_those_asked_for(some_sentences):
    sentences = some_sentences([50] * 4000)
    for masking in (Masking(), Masking(random=0.1, unchanged=0.1)):
        corrupted, selected = mask_pattern(sentences, VOCABULARY, masking, seed=0, pattern=0)
        rate = selected.sum() / (50 * 4000)
        assert rate == pytest.approx(0.15, abs=0.005)
        masked = (corrupted[selected] == MASK).mean()
        same = (corrupted[selected] == sentences.ids[selected]).mean()
        assert masked == pytest.approx(1 - masking.random - masking.unchanged, abs=0.01)
        # A random replacement is the token itself once in 195 times.
        assert same == pytest.approx(masking.unchanged + masking.random / 195, abs=0.01)
        assert not np.isin(corrupted[selected], [PAD, UNK, BOS, EOS]).any()


def test_babyberta_masking_leaves_nothing_unmasked_but_by_chance(some_sentences):
    sentences = some_sentences([50] * 500)
    corrupted, selected = mask_pattern(sentences, VOCABULARY, Masking(random=0.0), seed=0, pattern=0)
    assert (corrupted[selected] == MASK).all()


def test_a_pattern_depends_on_its_seed_and_number_only(some_sentences):
    sentences = some_sentences([10] * 50)
    first = mask_pattern(sentences, VOCABULARY, Masking(), seed=3, pattern=2)
    np.random.seed(99)
    again = mask_pattern(sentences, VOCABULARY, Masking(), seed=3, pattern=2)
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    for other in ({"seed": 4, "pattern": 2}, {"seed": 3, "pattern": 1}):
        assert (mask_pattern(sentences, VOCABULARY, Masking(), **other)[1] != first[1]).any()


@pytest.mark.parametrize(
    "values", [{"probability": 0.0}, {"probability": 1.5}, {"random": 0.9, "unchanged": 0.2}, {"patterns": -1}]
)
def test_shares_out_of_domain_are_refused(values):
    with pytest.raises(ConfigError, match="masking"):
        Masking(**values)
