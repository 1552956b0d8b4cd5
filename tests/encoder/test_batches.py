"""Batches: every sentence under every pattern once, in the order asked for, with what the model needs."""

from collections import Counter

import numpy as np
import pytest
import torch

from babyssa.encoder import LengthBatches, MaskedSentences, Masking, Vocabulary

MASK, PAD, UNK, BOS, EOS = range(5)
VOCABULARY = Vocabulary(mask=MASK, ordinary=np.arange(5, 200), special=np.arange(5))
LENGTHS = np.random.default_rng(0).integers(3, 40, 500)


@pytest.mark.parametrize("order", ["shuffled", "age", "reversed"])
def test_an_epoch_has_every_sentence_under_every_pattern_once(order):
    batches = list(LengthBatches(LENGTHS, 16, 10, order, seed=0))
    assert Counter(item for batch in batches for item in batch) == Counter(range(5000))
    assert len(batches) == len(LengthBatches(LENGTHS, 16, 10, order, seed=0)) == 313
    assert sum(len(batch) < 16 for batch in batches) <= 1


def test_dynamic_masking_numbers_its_pattern_by_the_epoch():
    batches = LengthBatches(LENGTHS, 16, 0, "shuffled", seed=0)
    for epoch in (0, 3):
        batches.set_epoch(epoch)
        items = np.array([item for batch in batches for item in batch])
        assert (items // 500 == epoch).all() and set(items % 500) == set(range(500))


def test_age_order_goes_through_the_corpus_once_and_reversed_from_its_end():
    lengths = np.random.default_rng(1).integers(3, 40, 20_000)
    forward = [np.mean(b) for b in np.array_split(rows(LengthBatches(lengths, 16, 10, "age", 0)), 10)]
    backward = [np.mean(b) for b in np.array_split(rows(LengthBatches(lengths, 16, 10, "reversed", 0)), 10)]
    assert forward == sorted(forward) and forward[0] < 1100 and forward[-1] > 18_900
    assert backward == sorted(backward, reverse=True)


def rows(batches):
    return np.array([item for batch in batches for item in batch]) % len(batches.lengths)


def test_batches_have_little_padding():
    real = padded = 0
    for batch in LengthBatches(LENGTHS, 16, 10, "shuffled", 0):
        lengths = LENGTHS[np.array(batch) % 500]
        real, padded = real + lengths.sum(), padded + lengths.max() * len(batch)
    assert real / padded > 0.95


def test_order_depends_on_seed_and_epoch_only():
    def first(seed, epoch):
        batches = LengthBatches(LENGTHS, 16, 10, "shuffled", seed)
        batches.set_epoch(epoch)
        return next(iter(batches))

    assert first(0, 0) == first(0, 0)
    assert first(0, 0) != first(1, 0) and first(0, 0) != first(0, 1)


def test_a_batch_holds_the_corrupted_sentences_and_the_tokens_to_predict(some_sentences):
    sentences = some_sentences([3, 7, 5])
    data = MaskedSentences(sentences, VOCABULARY, Masking(random=0.0, patterns=2), PAD, seed=0)
    batch = data.__getitems__([0, 4, 2])
    ids, mask = batch["input_ids"], batch["attention_mask"]
    assert mask.sum(1).tolist() == [5, 9, 7]
    assert (ids[mask == 0] == PAD).all()
    assert (ids[:, 0] == BOS).all() and [ids[i, n - 1] for i, n in enumerate([5, 9, 7])] == [EOS] * 3
    restored = ids.clone()
    assert (restored.view(-1)[batch["positions"]] == MASK).all()
    restored.view(-1)[batch["positions"]] = batch["labels"]
    for row, (start, length) in enumerate(zip(sentences.starts, sentences.lengths, strict=True)):
        assert restored[row, :length].tolist() == sentences.ids[start : start + length].tolist()


def test_a_batch_without_padding_carries_no_attention_mask(some_sentences):
    data = MaskedSentences(some_sentences([4, 4, 9]), VOCABULARY, Masking(patterns=1), PAD, seed=0)
    assert "attention_mask" not in data.__getitems__([0, 1])
    assert "attention_mask" in data.__getitems__([0, 2])


def test_a_sentence_is_masked_alike_in_any_batch(some_sentences):
    data = MaskedSentences(some_sentences([4, 9, 4, 9]), VOCABULARY, Masking(patterns=3), PAD, seed=0)
    alone = data.__getitems__([6])["input_ids"][0]
    together = data.__getitems__([3, 6, 1])["input_ids"][1]
    assert torch.equal(together[: len(alone)], alone)
