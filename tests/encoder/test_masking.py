"""Masking: what is selected, what stands in its place, and what decides it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from babyssa.encoder import Masking, Vocabulary, mask_sentences
from babyssa.encoder.masking import split_mix
from babyssa.errors import ConfigError

MASK, PAD, UNK, BOS, EOS = range(5)
VOCABULARY = Vocabulary(mask=MASK, ordinary=np.arange(5, 200), special=np.arange(5))


def masked(sentences, masking, seed=0, pattern=0, rows=None):
    """Ids, corrupted ids and what is selected of some sentences, padded."""
    rows = np.arange(len(sentences)) if rows is None else np.array(rows)
    columns = np.arange(sentences.lengths[rows].max())
    inside = columns < sentences.lengths[rows][:, None]
    places = np.where(inside, sentences.starts[rows][:, None] + columns, 0)
    ids = np.where(inside, sentences.ids[places], PAD)
    patterns = np.broadcast_to(pattern, len(rows))
    return ids, *mask_sentences(ids, places, VOCABULARY, masking, seed=seed, patterns=patterns)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=40), st.integers(0, 5), st.floats(0.01, 1.0))
@settings(deadline=None, max_examples=50)
def test_every_sentence_has_a_selected_token_and_no_special_one(some_sentences, lengths, pattern, probability):
    masking = Masking(probability=probability)
    ids, corrupted, selected = masked(some_sentences(lengths), masking, seed=1, pattern=pattern)
    assert selected.any(axis=1).all()
    assert not selected[np.isin(ids, VOCABULARY.special)].any()
    assert (corrupted[~selected] == ids[~selected]).all()


def test_shares_of_mask_random_and_unchanged_are_those_asked_for(some_sentences):
    sentences = some_sentences([50] * 4000)
    for masking in (Masking(), Masking(random=0.1, unchanged=0.1)):
        ids, corrupted, selected = masked(sentences, masking)
        rate = selected.sum() / (50 * 4000)
        assert rate == pytest.approx(0.15, abs=0.005)
        became_mask = (corrupted[selected] == MASK).mean()
        same = (corrupted[selected] == ids[selected]).mean()
        assert became_mask == pytest.approx(1 - masking.random - masking.unchanged, abs=0.01)
        # A random replacement is the token itself once in 195 times.
        assert same == pytest.approx(masking.unchanged + masking.random / 195, abs=0.01)
        assert not np.isin(corrupted[selected], [PAD, UNK, BOS, EOS]).any()


def test_random_replacements_are_spread_over_the_vocabulary(some_sentences):
    _, corrupted, selected = masked(some_sentences([50] * 4000), Masking(probability=0.5, random=1.0))
    counts = np.bincount(corrupted[selected], minlength=200)[5:]
    expected = counts.sum() / 195
    # Chi-squared with 194 degrees of freedom: mean 194, standard deviation 20.
    assert ((counts - expected) ** 2 / expected).sum() < 194 + 5 * 20


def test_babyberta_masking_leaves_nothing_unmasked_but_by_chance(some_sentences):
    _, corrupted, selected = masked(some_sentences([50] * 500), Masking(random=0.0))
    assert (corrupted[selected] == MASK).all()


def test_patterns_and_seeds_are_independent(some_sentences):
    sentences = some_sentences([50] * 400)
    patterns = [
        masked(sentences, Masking(probability=0.5), seed=seed, pattern=pattern)[2][:, 1:-1].ravel().astype(float)
        for seed in (0, 1, 2**32 - 1)
        for pattern in (0, 1, 9, 500)
    ]
    correlations = np.corrcoef(patterns) - np.eye(len(patterns))
    assert abs(correlations).max() < 5 / len(patterns[0]) ** 0.5


def test_a_sentence_is_masked_by_seed_pattern_and_place_alone(some_sentences):
    sentences = some_sentences([10, 4, 9] * 20)
    first = masked(sentences, Masking(), seed=3, pattern=2)
    np.random.seed(99)
    again = masked(sentences, Masking(), seed=3, pattern=2)
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    _, corrupted, selected = masked(sentences, Masking(), seed=3, pattern=2, rows=[7, 0, 3])
    assert (corrupted[0, :6] == first[1][7, :6]).all() and (selected[2] == first[2][3]).all()


def test_of_special_tokens_alone_nothing_is_selected():
    ids = np.array([[BOS, UNK, UNK, EOS], [BOS, 9, UNK, EOS]])
    _, selected = mask_sentences(
        ids, np.arange(8).reshape(2, 4), VOCABULARY, Masking(), seed=0, patterns=np.zeros(2, dtype=int)
    )
    assert selected.tolist() == [[False] * 4, [False, True, False, False]]


def test_masks_are_those_of_earlier_runs(some_sentences):
    # Where this changes on purpose, DRAWS in babyssa/training/run_folder.py goes up.
    _, corrupted, selected = masked(some_sentences([6] * 3), Masking(random=0.3), seed=7, pattern=4)
    assert [np.flatnonzero(row).tolist() for row in selected] == [[6], [3], [2]]
    assert corrupted[selected].tolist() == [142, 78, 145]


def test_the_random_numbers_are_those_of_split_mix():
    # The first outputs of the published generator, started from 0.
    outputs = split_mix(np.arange(1, 4, dtype=np.uint64))
    assert [hex(output) for output in outputs] == ["0xe220a8397b1dcdaf", "0x6e789e6aa1b965f4", "0x6c45d188009454f"]


@pytest.mark.parametrize(
    "values", [{"probability": 0.0}, {"probability": 1.5}, {"random": 0.9, "unchanged": 0.2}, {"patterns": -1}]
)
def test_shares_out_of_domain_are_refused(values):
    with pytest.raises(ConfigError, match="masking"):
        Masking(**values)
