"""Diagnostic classifiers find what is in hidden states, and do not take words, position or the verb for it."""

import csv
import json
from collections import Counter
from dataclasses import asdict

import numpy as np
import pytest
import torch

from babyssa import diagnose
from babyssa.errors import ConfigError, ModelError, OutputExistsError
from babyssa.language.lexicon import load_lexicon
from babyssa.models.loading import as_loaded
from babyssa.probing.diagnostic import (
    _control_labels,
    _folds,
    _input,
    _judge_layer,
    _majority,
    hidden_states,
    subject_number,
)

FOLDS = 3


@pytest.fixture(scope="module")
def examples():
    return subject_number(load_lexicon(), FOLDS, np.random.default_rng(0))


@pytest.fixture(scope="module")
def whole_words(make):
    """Tokenizers that know nearly every noun whole, with and without special tokens around the sentence."""
    lexicon = load_lexicon()
    words = [noun.singular for noun in lexicon.nouns] + [noun.plural for noun in lexicon.nouns if noun.plural]
    words += [word.word for word in (*lexicon.adjectives, *lexicon.prepositions)]
    text = [f"the {word} is" for word in words] * 2
    return {frame: make.tokenizer(text=text, size=4000, frame=frame) for frame in (True, False)}


@pytest.fixture(scope="module")
def masked_model(make, whole_words):
    return make.masked(whole_words[True]), whole_words[True]


@pytest.fixture(scope="module")
def causal_model(make, whole_words):
    return make.causal(whole_words[False]), whole_words[False]


def judge(states, examples):
    labels = np.array([e.label for e in examples])
    rng = np.random.default_rng(1)
    unseen, seen = _folds(examples, FOLDS, rng)
    return _judge_layer(0, states, labels, _control_labels(examples, rng), unseen, seen)


def test_the_two_numbers_are_crossed_in_every_frame(examples):
    lexicon = load_lexicon()
    number_of = {form: number for n in lexicon.nouns for number, form in ((0, n.singular), (1, n.plural))}
    combinations = Counter()
    for example in examples:
        words = example.before.split()
        assert words[1] == example.word
        assert number_of[example.word] == example.label
        combinations[example.item, example.frame, example.label, number_of[words[-1]]] += 1
    assert set(combinations.values()) == {1}
    assert len(combinations) == 4 * FOLDS * len({e.item for e in examples})


def test_the_second_noun_says_nothing_about_the_label(examples):
    labels = {}
    for example in examples:
        labels.setdefault(example.before.split()[-1], Counter())[example.label] += 1
    assert all(counts[0] == counts[1] for counts in labels.values())


def test_no_noun_is_in_train_and_test_where_unseen_nouns_are_tested(examples):
    unseen, seen = _folds(examples, FOLDS, np.random.default_rng(0))
    items = np.array([e.item for e in examples])
    words = np.array([e.word for e in examples])
    for test in unseen:
        assert not set(items[test]) & set(items[~test])
    for test in seen:
        assert set(words[test]) == set(words[~test])
    for tests in (unseen, seen):
        assert (np.sum(tests, axis=0) == 1).all()


def test_control_labels_belong_to_forms_and_are_balanced_over_them(examples):
    labels = _control_labels(examples, np.random.default_rng(0))
    of_form = {}
    for example, label in zip(examples, labels, strict=True):
        assert of_form.setdefault(example.word, label) == label
    assert abs(sum(of_form.values()) - len(of_form) / 2) <= 0.5
    assert not np.array_equal(labels, _control_labels(examples, np.random.default_rng(1)))


def test_the_majority_baseline_of_balanced_labels_is_one_half(examples):
    labels = np.array([e.label for e in examples])
    unseen, _ = _folds(examples, FOLDS, np.random.default_rng(0))
    assert _majority(labels, unseen) == [0.5] * FOLDS
    assert _majority(np.array([1, 1, 1, 0]), [np.array([False, False, True, True])]) == [0.5]


def test_states_that_hold_the_number_give_full_accuracy_and_selectivity(examples):
    rng = np.random.default_rng(0)
    labels = np.array([e.label for e in examples])
    states = rng.normal(size=(len(examples), 8))
    states[:, 3] += 20 * labels
    result = judge(states, examples)
    assert result.accuracy > 0.99
    assert result.selectivity > 0.3
    assert result.control_accuracy < 0.65


def test_states_that_hold_only_the_word_are_found_out(examples):
    forms = {form: i for i, form in enumerate(dict.fromkeys(e.word for e in examples))}
    states = np.eye(len(forms))[[forms[e.word] for e in examples]]
    result = judge(states, examples)
    assert result.accuracy_seen_words == result.control_accuracy == 1
    assert result.selectivity == 0
    assert abs(result.accuracy - 0.5) < 0.1


def test_states_of_noise_are_at_chance(examples):
    result = judge(np.random.default_rng(0).normal(size=(len(examples), 8)), examples)
    for value in (result.accuracy, result.accuracy_seen_words, result.control_accuracy):
        assert abs(value - 0.5) < 0.06
    assert result.accuracy_low < result.accuracy < result.accuracy_high


def test_the_verb_is_never_shown(masked_model, causal_model, examples):
    for model in (masked_model, causal_model):
        loaded = as_loaded(model)
        for example in examples[:40]:
            ids, position = _input(loaded, example)
            text = loaded.tokenizer.decode(ids[: position + 1], skip_special_tokens=True).strip()
            assert text == example.before
            rest = loaded.tokenizer.decode(ids[position + 1 :]).strip()
            assert rest == ("" if loaded.kind == "causal" else f"<mask> {example.after}</s>")


@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_hidden_states_are_those_of_one_sentence_at_a_time(masked_model, causal_model, examples, kind):
    model, tokenizer = masked_model if kind == "masked" else causal_model
    loaded = as_loaded((model, tokenizer))
    some = examples[::97]
    for example, found in zip(some, hidden_states(loaded, some), strict=True):
        ids, position = _input(loaded, example)
        with torch.no_grad():
            layers = model(torch.tensor([ids]), output_hidden_states=True).hidden_states
        expected = np.stack([layer[0, position].numpy() for layer in layers])
        assert found == pytest.approx(expected, abs=1e-5)


def test_a_random_models_embeddings_are_at_chance_and_results_are_reproducible(masked_model):
    result = diagnose(masked_model, folds=2)
    assert [layer.layer for layer in result.layers] == [0, 1, 2]
    assert result.layers[0].accuracy == pytest.approx(0.5, abs=0.03)
    assert result.majority_accuracy == 0.5
    assert diagnose(masked_model, folds=2) == result
    assert diagnose(masked_model, folds=2, seed=1) != result


def test_nouns_whose_plural_is_longer_are_left_out_since_position_would_give_them_away(masked, masked_model):
    loaded = as_loaded(masked_model)
    result = diagnose(masked_model, folds=2)
    expected = [
        noun.singular
        for noun in load_lexicon().nouns
        if noun.distinct_plural
        and len(loaded.tokenizer.tokenize(noun.singular)) == len(loaded.tokenizer.tokenize(noun.plural))
    ]
    assert 20 < result.n_items <= len(expected)
    with pytest.raises(ModelError, match="as many tokens in the singular"):
        diagnose(masked, folds=40)


def test_settings_out_of_their_domain_are_usage_errors(masked):
    for options in ({"task": "subject_number"}, {"folds": 1}, {"seed": -1}):
        with pytest.raises(ConfigError):
            diagnose(masked, **options)


def test_the_command_prints_every_layer_and_writes_json_and_csv(run_babyssa, make, masked_model, tmp_path):
    folder = make.save(*masked_model, tmp_path / "model")
    out = tmp_path / "out"
    status, printed, err = run_babyssa("diagnose", folder, "--folds", 2, "--out", out)
    assert status == 0, err
    result = diagnose(folder, folds=2)
    saved = json.loads((out / "diagnostic.json").read_text())
    assert saved["layers"] == [asdict(layer) for layer in result.layers]
    with open(out / "diagnostic.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["accuracy"]) for row in rows] == [layer.accuracy for layer in result.layers]
    assert printed.splitlines()[3].split()[:2] == ["embeddings", f"{100 * result.layers[0].accuracy:.1f}"]
    assert printed.splitlines()[-1] == "majority baseline 50.0 %"
    with pytest.raises(OutputExistsError):
        diagnose("nosuch", out=out)
