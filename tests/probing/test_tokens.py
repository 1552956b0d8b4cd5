"""The scores of tokens that a probe keeps are those of a brute-force scorer, at the characters they stand for."""

import json

import numpy as np
import pytest

from babyssa import probe
from babyssa.comparison.results import read_result
from babyssa.errors import DamageError, DataError
from babyssa.probing import MinimalPair, Paradigm, Suite
from babyssa.probing.tokens import mean_scores, read_tokens

PAIRS = (
    MinimalPair("the dog on the mat is big .", "the dogs on the mat is big ."),
    MinimalPair("look  at café 🐶 !", "look at cafés 🐶 !"),
)
SUITE = Suite("small", (Paradigm("agreement", "agreement", PAIRS),))


def pieces(text, starts, lengths):
    """The part of a text that each token stands for."""
    ends = starts + np.cumsum(lengths)
    return [text[end - length : end] for end, length in zip(ends, lengths, strict=True)]


@pytest.mark.parametrize("method", ["pll", "holistic", "loglik"])
def test_every_token_has_its_score_and_its_characters(method, masked, causal, brute_force, tmp_path):
    model, tokenizer = causal if method == "loglik" else masked
    probe((model, tokenizer), SUITE, method=method, out=tmp_path)
    found = read_tokens(tmp_path / "tokens.npz")
    texts = [text for pair in PAIRS for text in (pair.good, pair.bad)]
    assert len(found.counts) == len(texts)
    for number, text in enumerate(texts):
        own = found.of(np.array([number]))
        assert own.scores == pytest.approx(brute_force.token_scores(model, tokenizer, text, method), abs=0.0051)
        parts = pieces(text, own.starts[0], own.lengths)
        assert text[: own.starts[0]] + "".join(parts) == text
        # A letter of several bytes belongs to the first of its tokens, and special tokens to none.
        offsets = tokenizer(text, return_offsets_mapping=True, add_special_tokens=method == "holistic")
        spans = offsets["offset_mapping"]
        assert [part.strip() for part in parts] == [
            text[begin:end].strip() if end > max([0, *(e for _, e in spans[:n])]) else ""
            for n, (begin, end) in enumerate(spans)
        ]


def test_of_several_wrong_options_the_best_has_its_place_among_those_joined(masked, tmp_path):
    path = tmp_path / "items.jsonl"
    options = ["the dog is big .", "dog big the is .", "is is dog the .", "big the . is dog"]
    path.write_text(json.dumps({"options": options, "given": "look ."}) + "\n")
    result = probe(masked, path, out=tmp_path / "out")
    rival = options[result.rivals[next(iter(result.rivals))][0]]
    _, _, joined, _ = next(iter(read_result(tmp_path / "out").margins))
    own = read_tokens(tmp_path / "out" / "tokens.npz").of(np.array([1]))
    begin, length = own.starts[0], own.lengths.sum()
    assert joined[begin : begin + length].strip() == rival
    score = result.scores[next(iter(result.scores))][0, 1]
    assert own.scores.sum() == pytest.approx(score, abs=0.005 * len(own.scores))


def test_the_mean_over_models_is_of_the_same_tokens_only(masked, make, tmp_path):
    probe(masked, SUITE, out=tmp_path / "a")
    probe((make.masked(masked[1], seed=5), masked[1]), SUITE, out=tmp_path / "b")
    other = make.tokenizer(size=300)
    probe((make.masked(other), other), SUITE, out=tmp_path / "c")
    a, b, c = (read_tokens(tmp_path / name / "tokens.npz") for name in "abc")
    assert mean_scores([a, b]).scores == pytest.approx((a.scores + b.scores) / 2)
    assert mean_scores([a, c]) is None and mean_scores([a, None]) is None


def test_a_damaged_file_is_noticed(masked, tmp_path):
    probe(masked, SUITE, out=tmp_path)
    path = tmp_path / "tokens.npz"
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DamageError, match="tokens"):
        read_result(tmp_path)
    with pytest.raises(DataError, match="cannot be read"):
        read_tokens(path)
    assert read_tokens(tmp_path / "nothing.npz") is None
