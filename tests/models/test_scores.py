"""Scores are what their definitions say, for any sentence, in any company."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from babyssa.errors import ConfigError, DataError, ModelError
from babyssa.models import load_model, score
from babyssa.models.encoding import encode, encode_all
from babyssa.models.loading import as_loaded
from babyssa.models.scores import Engine, number_of_scored_tokens, token_scores

SENTENCES = [
    "the dog is big .",
    "The Smartest horses don't sleep, do they?",
    "this purple thing",
    "a",
    "🙂🙂 e\u0301 é שלום عليكم",
    "dog's\x00 tail\u2028and\u200bmore",
    "  two  spaces  ",
]
TOLERANCE = 2e-5


def close(found, expected):
    return found == pytest.approx(expected, abs=TOLERANCE)


@pytest.mark.parametrize("method", ["pll", "pll-word-l2r", "holistic"])
def test_masked_scores_equal_brute_force(masked, brute_force, method):
    for sentence, found in zip(SENTENCES, score(masked, SENTENCES, method=method), strict=True):
        assert close(list(found.token_scores), brute_force.token_scores(*masked, sentence, method))
        assert close(found.score, brute_force.score(*masked, sentence, method))


def test_causal_scores_equal_brute_force_and_the_models_own_loss(causal, brute_force):
    model, tokenizer = causal
    for sentence, found in zip(SENTENCES, score(causal, SENTENCES), strict=True):
        assert close(list(found.token_scores), brute_force.token_scores(model, tokenizer, sentence, "loglik"))
        ids = torch.tensor([[tokenizer.bos_token_id, *tokenizer.encode(sentence, add_special_tokens=False)]])
        with torch.no_grad():
            loss = model(ids, labels=ids).loss.item()
        assert found.score / len(found.tokens) == pytest.approx(-loss, abs=1e-5)


def test_pll_scores_every_token_but_the_specials(masked):
    (found,) = score(masked, ["the dog's big ."])
    assert "".join(found.tokens).replace("Ġ", " ") == " the dog's big ."
    assert found.score == math.fsum(found.token_scores)


def test_holistic_scores_bos_and_eos_too_and_is_a_mean(masked):
    (found,) = score(masked, ["the dog"], method="holistic")
    assert (found.tokens[0], found.tokens[-1]) == ("<s>", "</s>")
    assert found.score == pytest.approx(sum(found.token_scores) / len(found.tokens))


def test_word_l2r_differs_from_pll_only_where_a_later_token_of_the_word_is_hidden(masked):
    (pll,) = score(masked, ["the smartest dog"])
    (l2r,) = score(masked, ["the smartest dog"], method="pll-word-l2r")
    words = encode(as_loaded(masked), "the smartest dog").words
    last = [words[i] != words[i + 1] if i + 1 < len(words) else True for i in range(len(words))]
    assert not all(last)
    for is_last, a, b in zip(last, pll.token_scores, l2r.token_scores, strict=True):
        assert (abs(a - b) < TOLERANCE) == is_last


def test_a_word_is_a_run_of_letters_so_that_punctuation_is_a_word_of_its_own(masked):
    model = as_loaded(masked)
    encoding = encode(model, "smartest.")
    tokens = model.tokenizer.convert_ids_to_tokens([encoding.ids[i] for i in encoding.inside])
    assert tokens[-1] == "."
    assert encoding.words[-1] == encoding.words[0] + 1
    assert len(set(encoding.words[:-1])) == 1 < len(encoding.words[:-1])


def test_mean_divides_by_the_number_of_tokens(masked):
    (total,), (mean,) = (score(masked, ["the dogs bark ."], reduction=r) for r in ("sum", "mean"))
    assert mean.score == total.score / len(total.tokens)


words = st.lists(
    st.sampled_from(["the", "dog", "dogs", "smartest", "is", ".", "?", "don't", "🙂", "x"]), min_size=1, max_size=8
)


@settings(deadline=None, max_examples=25)
@given(
    sentences=st.lists(words.map(" ".join), min_size=1, max_size=7),
    batch_size=st.integers(1, 9),
    method=st.sampled_from(["pll", "pll-word-l2r", "holistic", "loglik"]),
)
def test_a_score_depends_neither_on_batch_size_nor_on_neighbours(masked, causal, sentences, batch_size, method):
    model = causal if method == "loglik" else masked
    together = score(model, sentences, method=method, batch_size=batch_size)
    for sentence, found in zip(sentences, together, strict=True):
        (alone,) = score(model, [sentence], method=method)
        assert found.text == sentence
        assert found.token_scores == pytest.approx(alone.token_scores, abs=1e-5)


@pytest.fixture
def watch():
    """A function that returns the ids of a model's later forward passes as they come."""
    hooks = []

    def watch(model):
        passes = []
        embeddings = model.get_input_embeddings()
        hooks.append(embeddings.register_forward_hook(lambda module, inputs, output: passes.append(inputs[0])))
        return passes

    yield watch
    for hook in hooks:
        hook.remove()


# Two share all but a token, two everything, one nothing.
OVERLAPPING = ["the dog is big .", "a", "the dogs is big .", "the dog is big .", "the dog is big ?"]


@pytest.mark.parametrize("method", ["pll", "pll-word-l2r", "holistic", "loglik"])
def test_each_distinct_row_passes_the_model_once(masked, causal, method, watch):
    model, tokenizer = causal if method == "loglik" else masked
    passes = watch(model)
    found = score((model, tokenizer), OVERLAPPING, method=method)
    # The first two passes try out, on a few rows, which forward pass serves the model.
    rows = [tuple(row) for ids in passes[2:] for row in ids.tolist()]
    assert len(rows) == len(set(rows)) < sum(len(s.tokens) for s in found)
    if method == "pll":
        mask, sentences = tokenizer.mask_token_id, map(tokenizer.encode, OVERLAPPING)
        assert set(rows) == {(*ids[:i], mask, *ids[i + 1 :]) for ids in sentences for i in range(1, len(ids) - 1)}


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_only_masked_positions_are_projected_to_the_vocabulary(masked, watch, precision):
    model, _ = masked
    passes, projected = watch(model), []
    hook = model.lm_head.decoder.register_forward_hook(lambda module, inputs, output: projected.append(output))
    score(masked, OVERLAPPING, precision=precision)
    hook.remove()
    assert [len(logits) for logits in projected[2:]] == [len(ids) for ids in passes[2:]]
    assert all(logits.ndim == 2 for logits in projected[2:])


def test_sentences_of_one_length_share_batches_wherever_they_stand(masked, watch):
    passes = watch(masked[0])
    score(masked, OVERLAPPING)
    lengths = [ids.shape[1] for ids in passes[2:]]
    assert len(lengths) == len(set(lengths))


@pytest.mark.parametrize("method", ["pll", "pll-word-l2r", "holistic"])
def test_the_rows_held_at_once_are_bounded_however_many_sentences(masked, method, monkeypatch):
    held = []
    answer = Engine.answer

    def watched(self, questions, *rest):
        held.append(questions.rows.size)
        return answer(self, questions, *rest)

    monkeypatch.setattr("babyssa.models.scores._TOKENS_PER_CHUNK", 500)
    monkeypatch.setattr(Engine, "answer", watched)
    score(masked, [f"the dog {word} {other} ." for word in "abcdefghij" for other in "abcdefghij"], method=method)
    assert len(held) > 1 and max(held) <= 500


def test_the_order_of_sentences_does_not_change_scores(masked):
    forwards, backwards = score(masked, OVERLAPPING), score(masked, OVERLAPPING[::-1])
    assert [s.score for s in forwards] == pytest.approx([s.score for s in backwards[::-1]], abs=1e-5)


def test_progress_counts_every_scored_token_once(masked):
    loaded = as_loaded(masked)
    encodings = encode_all(loaded, SENTENCES)
    for method in ("pll", "holistic"):
        counted = []
        scores = list(token_scores(loaded, SENTENCES, encodings, method, batch_size=2, answered=counted.append))
        expected = sum(len(found.values) for found in scores)
        assert sum(counted) == number_of_scored_tokens(encodings, method) == expected


def test_sentences_with_the_same_tokens_tie_exactly(masked):
    scores = score(masked, ["The Dog is big .", "a", "the dog is big ."], batch_size=1)
    assert scores[0].score == scores[2].score


def test_special_tokens_written_out_are_read_as_their_characters(masked):
    (found,) = score(masked, ["the <mask> dog </s>"])
    assert "".join(found.tokens).replace("Ġ", " ") == " the <mask> dog </s>"
    assert not {"<mask>", "</s>"} & set(found.tokens)


def test_many_chunks_give_what_one_gives(masked, monkeypatch):
    sentences = SENTENCES[:4]
    whole = score(masked, sentences)
    monkeypatch.setattr("babyssa.models.scores._TOKENS_PER_CHUNK", 1)
    monkeypatch.setattr("babyssa.models.scores._LOGITS_PER_BATCH", 1)
    for a, b in zip(whole, score(masked, sentences), strict=True):
        assert a.token_scores == pytest.approx(b.token_scores, abs=1e-5)


def test_a_head_that_needs_all_positions_is_given_them(masked, brute_force, monkeypatch):
    model, tokenizer = masked
    forward = model.lm_head.forward

    def insist(features, **kwargs):
        output = forward(features, **kwargs)
        if output.ndim != 3:
            raise RuntimeError("this head needs (batch, tokens, vocabulary)")
        return output

    monkeypatch.setattr(model.lm_head, "forward", insist)
    (found,) = score(masked, ["the dog is big ."])
    assert close(list(found.token_scores), brute_force.token_scores(model, tokenizer, "the dog is big .", "pll"))


def test_a_model_in_training_is_scored_in_eval_mode_and_put_back(make, masked):
    _, tokenizer = masked
    model = make.masked(tokenizer)
    expected = score((model, tokenizer), ["the dog"])
    model.train()
    model.lm_head.eval()
    assert score((model, tokenizer), ["the dog"]) == expected
    assert model.training and model.roberta.training and not model.lm_head.training


def test_half_precision_models_are_normalised_in_float32(make, masked):
    _, tokenizer = masked
    model = make.masked(tokenizer).to(torch.bfloat16)
    (found,) = score((model, tokenizer), ["the dog is big ."], method="holistic")
    ids = torch.tensor([tokenizer.encode("the dog is big .")])
    with torch.no_grad():
        logits = model(ids).logits.float()
    expected = logits.log_softmax(-1).gather(-1, ids[..., None]).flatten()
    assert found.token_scores == pytest.approx(expected.tolist(), abs=1e-5)


def test_a_saved_model_in_half_precision_is_scored_in_float32(make, masked, tmp_path):
    _, tokenizer = masked
    folder = make.save(make.masked(tokenizer).to(torch.bfloat16), tokenizer, tmp_path / "model")
    assert next(load_model(folder).model.parameters()).dtype == torch.float32


def test_bfloat16_is_near_float32_and_leaves_nothing_behind(masked, causal):
    for model in (masked, causal):
        before = score(model, SENTENCES)
        for exact, found in zip(before, score(model, SENTENCES, precision="bfloat16"), strict=True):
            assert found.token_scores != exact.token_scores
            assert found.token_scores == pytest.approx(exact.token_scores, abs=0.2)
        assert score(model, SENTENCES) == before


def test_in_bfloat16_the_map_to_the_vocabulary_and_the_softmax_are_in_float32(masked):
    model, tokenizer = masked
    features = []
    hook = model.lm_head.decoder.register_forward_pre_hook(lambda module, inputs: features.append(inputs[0]))
    ids = torch.tensor([tokenizer.encode("the dog is big .")])
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        model(ids, attention_mask=torch.ones_like(ids))
    hook.remove()
    logits = features[0].double() @ model.lm_head.decoder.weight.double().T + model.lm_head.decoder.bias.double()
    expected = logits.log_softmax(-1).gather(-1, ids[..., None]).flatten()
    (found,) = score(masked, ["the dog is big ."], method="holistic", precision="bfloat16")
    assert found.token_scores == pytest.approx(expected.tolist(), abs=1e-5)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_nan_and_infinity_are_errors_that_name_the_sentence(make, masked, bad):
    _, tokenizer = masked
    model = make.masked(tokenizer)
    with torch.no_grad():
        model.lm_head.bias[10] = bad
    with pytest.raises(ModelError, match="the dog"):
        score((model, tokenizer), ["the dog"])


def test_a_sentence_at_the_models_limit_is_scored_and_a_longer_one_refused(masked, causal):
    for model, special in ((masked, 2), (causal, 1)):
        limit = 40 - special
        assert len(score(model, [" ".join("x" * (limit // 2))])[0].tokens) <= limit
        with pytest.raises(DataError, match=r"'x x .* tokens long, but the model takes 40"):
            score(model, ["the dog", " ".join("x" * 50)])


def test_roberta_positions_begin_after_the_padding_id(make):
    tokenizer = make.tokenizer()
    model = make.masked(tokenizer)
    loaded = as_loaded((model, tokenizer))
    assert loaded.max_tokens == 40
    with torch.no_grad():
        model(torch.full((1, 40), 9))
        with pytest.raises((IndexError, RuntimeError)):
            model(torch.full((1, 41), 9))


def test_the_tokenizers_own_limit_counts_too(make):
    tokenizer = make.tokenizer(model_max_length=6)
    with pytest.raises(DataError, match="takes 6"):
        score((make.masked(tokenizer), tokenizer), ["the dog is very very big ."])


@pytest.mark.parametrize("sentence", ["", "   ", "\ud800 dog"])
def test_what_cannot_be_scored_is_an_error(masked, sentence):
    with pytest.raises(DataError) as caught:
        score(masked, ["the dog", sentence])
    if not sentence.strip():
        assert "is empty" in str(caught.value)


def test_signs_that_the_tokenizer_would_drop_in_silence_are_an_error(make):
    tokenizer = make.tokenizer(alphabet=False)
    model = make.masked(tokenizer)
    score((model, tokenizer), ["the dog"])
    with pytest.raises(DataError, match="drops '%'"):
        score((model, tokenizer), ["the % dog"])


def test_one_string_is_not_a_list_of_sentences(masked):
    with pytest.raises(ConfigError, match="list"):
        score(masked, "the dog")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "ppl"}, "did you mean 'pll'"),
        ({"method": "loglik"}, "does not fit a masked model"),
        ({"reduction": "average"}, "unknown reduction"),
        ({"method": "holistic", "reduction": "sum"}, "a mean by definition"),
        ({"batch_size": 0}, "at least 1"),
        ({"precision": "float16"}, "unknown precision 'float16'"),
    ],
)
def test_settings_out_of_their_domain_are_usage_errors(masked, options, message):
    with pytest.raises(ConfigError, match=message):
        score(masked, ["the dog"], **options)


def test_masked_methods_do_not_fit_causal_models(causal):
    with pytest.raises(ConfigError, match="use loglik"):
        score(causal, ["the dog"], method="pll")


def test_a_causal_model_without_bos_starts_from_eos_and_without_either_is_an_error(make, brute_force):
    tokenizer = make.tokenizer(frame=False, bos_token=None)
    model = make.causal(tokenizer)
    (found,) = score((model, tokenizer), ["the dog"])
    assert close(list(found.token_scores), brute_force.token_scores(model, tokenizer, "the dog", "loglik"))
    tokenizer = make.tokenizer(frame=False, bos_token=None, eos_token=None)
    with pytest.raises(ModelError, match="neither a bos nor an eos"):
        score((model, tokenizer), ["the dog"])


def test_no_sentences_give_no_scores(masked):
    assert list(score(masked, [])) == []
