"""A corpus is encoded once for each tokenizer; what is in the cache is the same, or is made again."""

import numpy as np
import pytest

from babyssa.corpus import Sentences, encode_corpus, encode_sentences, encoded, read_corpus, train_tokenizer


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BABYSSA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def calls(monkeypatch):
    """How many sentences have been encoded, call by call."""
    counts = []

    def counting(tokenizer, sentences):
        counts.append(len(sentences))
        return encode_sentences(tokenizer, sentences)

    monkeypatch.setattr(encoded, "encode_sentences", counting)
    return counts


def as_lists(sentences):
    return [
        sentences.ids[start : start + length].tolist()
        for start, length in zip(sentences.starts, sentences.lengths, strict=True)
    ]


def test_the_second_time_the_ids_are_mapped_from_disk(corpus, tokenizer, calls, monkeypatch):
    monkeypatch.setattr(encoded, "_AT_ONCE", 50)
    text = read_corpus(corpus)
    first = encode_corpus(text, tokenizer, corpus)
    assert calls == [50, 50, 20]
    second = encode_corpus(text, tokenizer, corpus)
    assert len(calls) == 3 and isinstance(second.ids, np.memmap)
    assert as_lists(first) == as_lists(second) == encode_sentences(tokenizer, text)


def test_another_tokenizer_or_corpus_is_encoded_anew(corpus, tokenizer, calls, tmp_path):
    text = read_corpus(corpus)
    encode_corpus(text, tokenizer, corpus)
    other = train_tokenizer(corpus, tmp_path / "tokenizer", vocab_size=300)
    assert as_lists(encode_corpus(text, other, corpus)) == encode_sentences(other, text)
    changed = tmp_path / "corpus.txt"
    changed.write_text("\n".join([*text[1:], text[0]]) + "\n")
    assert as_lists(encode_corpus(read_corpus(changed), tokenizer, changed))[-1] == as_lists(
        encode_corpus(text, tokenizer, corpus)
    )[0]  # fmt: skip
    assert calls == [120, 120, 120]


@pytest.mark.parametrize("file", ["ids.npy", "lengths.npy", "checksums.json"])
@pytest.mark.parametrize("damage", ["cut", "gone", "other"])
def test_a_damaged_cache_is_made_again(file, damage, corpus, tokenizer, own_cache, calls, capsys):
    text = read_corpus(corpus)
    encode_corpus(text, tokenizer, corpus)
    (path,) = own_cache.rglob(file)
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(content[:-3] if damage == "cut" else content[:-3] + b"x}\n")
    assert as_lists(encode_corpus(text, tokenizer, corpus)) == encode_sentences(tokenizer, text)
    assert calls == [120, 120]
    # Without its checksums a folder is not known to have been finished.
    assert ("is damaged" in capsys.readouterr().err) == ((file, damage) != ("checksums.json", "gone"))
    encode_corpus(text, tokenizer, corpus)
    assert calls == [120, 120]


def test_a_cache_that_cannot_be_written_costs_a_warning(corpus, tokenizer, own_cache, calls, capsys):
    own_cache.write_text("a file")
    text = read_corpus(corpus)
    assert as_lists(encode_corpus(text, tokenizer, corpus)) == encode_sentences(tokenizer, text)
    assert "will encode it again" in capsys.readouterr().err and own_cache.read_text() == "a file"


def test_nothing_half_written_is_left(corpus, tokenizer, own_cache, monkeypatch):
    def full(path, *_):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(encoded.np, "save", full)
    encode_corpus(read_corpus(corpus), tokenizer, corpus)
    assert [path.name for path in own_cache.rglob("*")] == ["encoded"]


def test_a_user_without_a_home_gets_a_warning(corpus, tokenizer, monkeypatch, capsys):
    def none():
        raise RuntimeError("Could not determine home directory.")

    for name in ("BABYSSA_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pathlib.Path.home", none)
    text = read_corpus(corpus)
    assert as_lists(encode_corpus(text, tokenizer, corpus)) == encode_sentences(tokenizer, text)
    assert "set BABYSSA_CACHE" in capsys.readouterr().err


def test_selected_sentences_share_the_ids():
    sentences = Sentences.of([[3, 7, 4], [3, 8, 9, 4], [3, 5, 4]])
    chosen = sentences.select(np.array([2, 1]))
    assert as_lists(chosen) == [[3, 5, 4], [3, 8, 9, 4]] and chosen.ids is sentences.ids
