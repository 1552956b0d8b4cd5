"""Scores by token, word, region and sentence, alone and in a context, are what their definitions say."""

import json
import math

import pandas as pd
import pytest
import torch

import babyssa
from babyssa.errors import ConfigError, DataError
from babyssa.models import score
from babyssa.models.units import assign, words_of

TOLERANCE = 2e-5
SENTENCE = "The smartest dogs don't bark, do they?"


def by_spaces(tokenizer, sentence, values):
    """Scores of words, told apart by the sign that byte-level BPE puts before them."""
    tokens = tokenizer.convert_ids_to_tokens(tokenizer.encode(sentence, add_special_tokens=False))
    words = []
    for token, value in zip(tokens, values, strict=True):
        if token.startswith("Ġ"):
            words.append(0.0)
        words[-1] += value
    return words


@pytest.fixture(params=["pll", "pll-word-l2r", "loglik"])
def model_and_method(request, masked, causal):
    return (causal if request.param == "loglik" else masked), request.param


def test_words_are_the_sums_of_their_tokens(model_and_method, brute_force):
    model, method = model_and_method
    scores = score(model, [SENTENCE], method=method, per="word", measure="surprisal", base="bits")
    frame = scores.to_frame()
    expected = by_spaces(model[1], SENTENCE, brute_force.token_scores(*model, SENTENCE, method))
    assert frame.word.tolist() == SENTENCE.split()
    assert frame.score.tolist() == pytest.approx([-nats / math.log(2) for nats in expected], abs=TOLERANCE)
    assert frame.tokens.sum() == len(scores[0].tokens) > len(frame)


def test_punctuation_stands_apart_if_asked(masked):
    frame = score(masked, [SENTENCE], per="word", punctuation="apart").to_frame()
    assert frame.word.tolist() == ["The", "smartest", "dogs", "don't", "bark", ",", "do", "they", "?"]
    attached = score(masked, [SENTENCE], per="word").to_frame()
    assert frame.score[4:6].sum() == pytest.approx(attached.score[4])


@pytest.mark.parametrize(
    ("text", "apart"),
    [
        ('"well-known"... 3.5', ['"', "well-known", '"', ".", ".", ".", "3.5"]),
        ("e\u0301t\u00e9 !", ["e\u0301t\u00e9", "!"]),
        ("?", ["?"]),
    ],
)
def test_what_a_word_is(text, apart):
    assert [text[a:b] for a, b in words_of(text)] == text.split()
    assert [text[a:b] for a, b in words_of(text, "apart")] == apart


def test_words_that_share_a_token_are_one():
    text = "New York is"
    merged, places = assign(text, [(0, 8), (8, 11)], words_of(text))
    assert [text[a:b] for a, b in merged] == ["New York", "is"] and places == [0, 1]


def test_special_tokens_belong_to_no_word(masked):
    scores = score(masked, ["the dog"], method="holistic")
    assert scores.to_frame().word.isna().sum() == 2
    assert score(masked, ["the dog"], method="holistic", per="word").to_frame().word.tolist() == ["the", "dog"]


def test_the_measure_changes_what_is_shown_and_not_what_is_scored(causal):
    nats, surprisal, share = (
        score(causal, [SENTENCE], measure=measure) for measure in ("log-probability", "surprisal", "probability")
    )
    assert surprisal[0].score == -nats[0].score
    assert share[0].token_scores == pytest.approx([math.exp(value) for value in nats[0].token_scores])
    words, shares = nats.to_frame("word").score, share.to_frame("word").score
    assert shares.tolist() == pytest.approx([math.exp(value) for value in words])


def test_reductions_divide_by_tokens_words_or_characters(masked):
    found = {
        name: score(masked, [SENTENCE], reduction=name)[0] for name in ("sum", "mean", "per-word", "per-character")
    }
    total = found["sum"].score
    assert found["mean"].score == total / len(found["sum"].tokens)
    assert found["per-word"].score == total / 7
    assert found["per-character"].score == total / len(SENTENCE)


def test_a_context_is_read_and_not_scored(model_and_method, brute_force):
    model, method = model_and_method
    given, text = "look at this", "purple thing ."
    (found,) = score(model, [text], given=given, method=method)
    whole = brute_force.token_scores(*model, f"{given} {text}", method)
    assert found.token_scores == pytest.approx(whole[-len(found.tokens) :], abs=TOLERANCE)
    assert "".join(found.tokens).replace("Ġ", " ") == f" {text}"
    assert found.score == math.fsum(found.token_scores)
    assert score(model, [text], given=given, method=method, reduction="per-word")[0].score == found.score / 3


def test_separators_join_context_and_text(causal):
    options = [" the mat", " the dog"]
    joined = score(causal, options, given="look at", separator="none")
    spaced = score(causal, ["the mat", "the dog"], given=["look at", "look at"])
    assert [one.score for one in joined] == pytest.approx([one.score for one in spaced], abs=TOLERANCE)
    assert [one.text for one in joined] == options
    assert score(causal, ["a"], given="", separator="newline")[0].score == score(causal, ["a"])[0].score


def test_holistic_takes_no_context(masked):
    with pytest.raises(ConfigError, match="whole sentences only"):
        score(masked, ["dog"], given="the", method="holistic")


def test_ranks_count_the_more_probable_tokens(masked, causal):
    (found,) = score(causal, ["the dog is big ."], ranks=True)
    model, tokenizer = causal
    ids = [tokenizer.bos_token_id, *tokenizer.encode("the dog is big .", add_special_tokens=False)]
    with torch.no_grad():
        order = model(torch.tensor([ids])).logits[0].argsort(descending=True)
    expected = [(order[place] == token).nonzero().item() + 1 for place, token in enumerate(ids[1:])]
    assert list(found.ranks) == expected
    assert "rank" not in score(masked, ["the dog"]).to_frame() and max(expected) > 1


def test_alternatives_fill_the_blank_and_only_they_are_scored(masked):
    model, tokenizer = masked
    scores = score(masked, ["the dog ___ big ."], alternatives=["is", "on"], measure="probability")
    ids = tokenizer.encode("the dog is big .")
    place = ids.index(tokenizer.convert_tokens_to_ids("Ġis"))
    ids[place] = tokenizer.mask_token_id
    with torch.no_grad():
        shares = model(torch.tensor([ids])).logits[0, place].softmax(0)
    words = [tokenizer.convert_tokens_to_ids(token) for token in ("Ġis", "Ġon")]
    assert tokenizer.unk_token_id not in words
    assert scores.to_frame("sentence").score.tolist() == pytest.approx(shares[words].tolist(), rel=1e-4)
    assert scores.to_frame().alternative.tolist() == ["is", "on"]
    with pytest.raises(DataError, match="no single blank"):
        score(masked, ["the dog is big ."], alternatives=["is"])


TABLE = pd.DataFrame(
    {
        "item": [1, 1, 1, 1],
        "condition": ["one", "one", "many", "many"],
        "region": ["subject", "verb", "subject", "verb"],
        "text": ["the dog", "is", "the dogs", "is"],
        "time": [300, 400, 310, 500],
    }
)


def test_rows_may_be_regions_of_sentences(causal):
    scores = score(causal, TABLE, per="region", measure="surprisal")
    frame = scores.to_frame()
    assert frame[["item", "condition", "region"]].to_dict() == TABLE[["item", "condition", "region"]].to_dict()
    assert [one.text for one in scores] == ["the dog is", "the dogs is"]
    plain = score(causal, ["the dog is"], per="word", measure="surprisal").to_frame().score
    assert frame.score[:2].tolist() == pytest.approx([plain[:2].sum(), plain[2]])
    assert frame.merge(TABLE, on=["item", "condition", "region"]).time.tolist() == [300, 400, 310, 500]


def test_regions_may_be_characters(causal):
    text = "look at the dog ."
    given = {"a": (8, 15), "b": (16, 17)}
    found = score(causal, [{"text": text, "regions": given}], per="region").to_frame()
    words = score(causal, [text], per="word").to_frame().score
    assert found.region.tolist() == ["a", "b"]
    assert found.score.tolist() == pytest.approx([words[2] + words[3], words[4]])
    with pytest.raises(DataError, match="share a token"):
        score(causal, [{"text": "the dog", "regions": {"a": (0, 1), "b": (1, 2)}}], per="region").to_frame()
    with pytest.raises(DataError, match="has 7 characters"):
        score(causal, [{"text": "the dog", "regions": {"a": (0, 9)}}])
    with pytest.raises(ConfigError, match="no text has regions"):
        score(causal, ["the dog"], per="region")


def test_tables_in_memory_and_on_disk_score_alike(causal, tmp_path, run_babyssa, causal_folder):
    datasets = pytest.importorskip("datasets")
    frame = pd.DataFrame({"item": ["x", "y"], "context": ["look at", None], "word": ["the dog", "the mat"]})
    columns = {"text": "word", "given": "context"}
    expected = score(causal, ["the dog", "the mat"], given=["look at", ""], measure="surprisal").to_frame()
    same = [
        score(causal, source, columns=columns, measure="surprisal").to_frame()
        for source in (frame, datasets.Dataset.from_pandas(frame), frame.to_dict("records"))
    ]
    same.append(babyssa.score(causal, frame.to_dict("records"), columns=columns, measure="surprisal").to_frame())
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    for end, read in ((".csv", pd.read_csv), (".parquet", pd.read_parquet)):
        out = tmp_path / f"out{end}"
        arguments = ("score", causal_folder, "--table", path, "--columns", "text=word", "given=context")
        status, _, err = run_babyssa(*arguments, "--measure", "surprisal", "--out", out)
        assert status == 0, err
        same.append(read(out))
        assert run_babyssa(*arguments, "--out", out)[0] == 1
    for found in same:
        assert found.score.tolist() == pytest.approx(expected.score.tolist(), abs=TOLERANCE)
        assert found.token.tolist() == expected.token.tolist() and set(found.item) == {"x", "y"}


def test_json_has_the_words_if_asked_for(run_babyssa, causal_folder, tmp_path):
    out = tmp_path / "scores.json"
    assert run_babyssa("score", causal_folder, "the dog barks", "--per", "word", "--out", out)[0] == 0
    (sentence,) = json.loads(out.read_text())["sentences"]
    assert [word["word"] for word in sentence["words"]] == ["the", "dog", "barks"]
    assert sum(word["score"] for word in sentence["words"]) == pytest.approx(sentence["score"])
    assert run_babyssa("score", causal_folder, "a", "--out", tmp_path / "a.xlsx")[0] == 2


@pytest.mark.parametrize("per", ["token", "word", "sentence"])
def test_tables_show_what_is_asked_for(run_babyssa, causal_folder, per):
    status, shown, _ = run_babyssa("score", causal_folder, "the dog .", "--per", per, "--measure", "surprisal")
    assert status == 0 and "surprisal, nats" in shown
    assert ("▁dog" in shown) == (per == "token") and ("the dog ." in shown)


def test_unknown_tokens_are_flagged_and_counted(make, capsys):
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {"<unk>": 0, "<s>": 1, "the": 2, "dog": 3}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>", bos_token="<s>")
    scores = score((make.causal(tokenizer), tokenizer), ["the wug", "the dog"])
    assert scores.unknown == 1 and scores.summary()["unknown"] == 1
    assert scores.to_frame().unknown.tolist() == [False, True, False, False]
    assert scores.to_frame("word").unknown.tolist() == [0, 1, 0, 0]
    assert "1 tokens of 1 texts are unknown" in capsys.readouterr().err
    assert "unknown to the tokenizer" in str(scores)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([{"sentence": 3}], "row 1: 'sentence' is not a string"),
        ([{"texts": "a"}], "no column 'text'"),
        ([{"text": "a", "score": 1}], "'score' has the name of a result"),
        ([{"text": "a", "region": "x"}], "needs a column 'item'"),
        ([{"text": "a", "regions": "{"}], "broken JSON"),
        ([{"text": "a"}, "b"], "row 2 is a str"),
    ],
)
def test_a_table_that_cannot_be_scored_is_one_line(causal, table, message):
    with pytest.raises(DataError, match=message):
        score(causal, table)


def test_as_many_contexts_as_texts(causal):
    with pytest.raises(ConfigError, match="given has 1 entries for 2 texts"):
        score(causal, ["a", "b"], given=["c"])
    with pytest.raises(ConfigError, match="per is 'words'"):
        score(causal, ["a"], per="words")
