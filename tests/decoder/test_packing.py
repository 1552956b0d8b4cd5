"""Packing: nothing is lost, nothing is padding, and the order follows from seed and epoch."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from babyssa.corpus import load_tokenizer
from babyssa.decoder.packing import (
    Documents,
    PackedSequences,
    ShuffledBatches,
    StreamedSequences,
    causal_tokenizer,
    encode_documents,
)
from babyssa.errors import DataError, ModelError
from babyssa.training.batches import ConsecutiveBatches

TEXTS = st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=30).filter(str.strip), max_size=12)


@settings(max_examples=30, deadline=None)
@given(texts=TEXTS, length=st.integers(2, 20))
def test_packing_and_cutting_at_the_end_token_gives_the_documents_again(decoder_tokenizer, texts, length):
    encoded = list(encode_documents(decoder_tokenizer, texts))
    documents = Documents.of(encoded)
    packed = PackedSequences(documents.ids, length)
    ids = documents.ids.tolist()
    assert packed.sequences.size + packed.remainder == len(ids) and packed.remainder < length
    again = packed.sequences.ravel().tolist() + ids[len(ids) - packed.remainder :]
    assert again == [token for document in encoded for token in document]
    pieces = np.split(np.array(again), np.flatnonzero(np.array(again) == decoder_tokenizer.eos_token_id) + 1)[:-1]
    assert [piece.tolist() for piece in pieces] == encoded
    # A written-out end token is text, so an end token always ends a document.
    assert all(document.count(decoder_tokenizer.eos_token_id) == 1 for document in encoded)


def test_written_special_tokens_do_not_end_a_document(decoder_tokenizer):
    (ids,) = encode_documents(decoder_tokenizer, ["a </s> b <s>"])
    assert (
        ids.count(decoder_tokenizer.eos_token_id) == 1
        and decoder_tokenizer.decode(ids[:-1]).strip() == "a </s> b <s>"
    )


def test_some_documents_can_be_kept_out():
    documents = Documents.of([[1, 9], [2, 3, 9], [4, 9]])
    places = np.array([False, True, False])
    assert documents.select(places).ids.tolist() == [2, 3, 9]
    kept = documents.select(~places)
    assert kept.ids.tolist() == [1, 9, 4, 9] and kept.starts.tolist() == [0, 2, 4]


@settings(max_examples=30, deadline=None)
@given(count=st.integers(1, 40), size=st.integers(1, 9), seed=st.integers(0, 9), epoch=st.integers(0, 3))
def test_an_epoch_has_every_sequence_once_in_an_order_of_its_own(count, size, seed, epoch):
    def order(seed, epoch):
        batches = ShuffledBatches(count, size, seed)
        batches.set_epoch(epoch)
        return batches, list(batches)

    batches, drawn = order(seed, epoch)
    assert len(batches) == len(drawn) and all(len(batch) == size for batch in drawn[:-1])
    assert sorted(item for batch in drawn for item in batch) == list(range(count))
    assert order(seed, epoch)[1] == drawn
    if count > 12:
        assert order(seed, epoch + 1)[1] != drawn and order(seed + 1, epoch)[1] != drawn


TEXT = [f"the dog number {i} sees a cat ." for i in range(30)]


def stream(decoder_tokenizer, texts=TEXT, length=16):
    return StreamedSequences(lambda number: iter(texts), decoder_tokenizer, length, "a stream")


def test_a_stream_is_packed_as_a_corpus_is(decoder_tokenizer):
    ids = Documents.of(encode_documents(decoder_tokenizer, TEXT)).ids
    packed, streamed = PackedSequences(ids, 16), stream(decoder_tokenizer)
    for batch in ConsecutiveBatches(len(packed) // 4, 4):
        assert streamed.__getitems__(batch)["input_ids"].tolist() == packed.sequences[batch].tolist()


def test_a_stream_finds_any_place_again(decoder_tokenizer):
    whole = [stream(decoder_tokenizer).__getitems__([i])["input_ids"].tolist() for i in (20, 3)]
    once = stream(decoder_tokenizer)
    assert [once.__getitems__([i])["input_ids"].tolist() for i in (20, 3)] == whole


def test_a_stream_starts_again_and_loses_nothing(decoder_tokenizer, capsys):
    ids = Documents.of(encode_documents(decoder_tokenizer, TEXT)).ids
    count = 2 * len(ids) // 16
    streamed = stream(decoder_tokenizer)
    seen = np.concatenate([streamed.__getitems__([i])["input_ids"][0] for i in range(count)])
    assert seen.tolist() == np.concatenate([ids, ids])[: len(seen)].tolist()
    assert "pass 2 starts" in capsys.readouterr().err


@pytest.mark.parametrize("texts", [[], ["hi"]])
def test_a_stream_without_one_sequence_is_refused(decoder_tokenizer, texts):
    with pytest.raises(DataError, match="fewer than one sequence of 16"):
        stream(decoder_tokenizer, texts).__getitems__([0])


def test_batches_of_a_stream_are_consecutive():
    assert list(ConsecutiveBatches(3, 2)) == [[0, 1], [2, 3], [4, 5]] and len(ConsecutiveBatches(3, 2)) == 3
    assert list(islice(ConsecutiveBatches(10**9, 1), 2)) == [[0], [1]]


def test_one_token_ends_documents_and_begins_texts(decoder_tokenizer, tokenizer, tmp_path):
    from transformers import AutoTokenizer

    from babyssa.corpus import save_tokenizer

    end = tokenizer.eos_token_id
    assert decoder_tokenizer.bos_token_id == decoder_tokenizer.eos_token_id == end != tokenizer.bos_token_id
    text = "the dog sees a cat ."
    save_tokenizer(decoder_tokenizer, tmp_path)
    for loaded in (decoder_tokenizer, AutoTokenizer.from_pretrained(tmp_path)):
        assert loaded(text)["input_ids"] == [end, *tokenizer(text, add_special_tokens=False)["input_ids"]]
        assert loaded.bos_token == loaded.eos_token == "</s>"


def test_a_tokenizer_without_an_end_token_is_refused(tokenizer_folder):
    tokenizer = load_tokenizer(tokenizer_folder)
    tokenizer.eos_token = None
    with pytest.raises(ModelError, match="no eos token"):
        causal_tokenizer(tokenizer)
