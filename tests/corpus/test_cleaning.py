"""Cleaning: one sentence or one reason per utterance."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from babyssa.corpus import CleaningRules, Utterance, clean
from babyssa.corpus import cleaning as rules


def spoken(text, type="declarative", role="Mother", age=800.0, collection=None):
    return Utterance(text, source="here.csv", order=1, type=type, role=role, age=age, collection=collection)


def written(text):
    return Utterance(text, source="here.txt", order=1)


@pytest.mark.parametrize(
    ("text", "type", "mark"),
    [
        ("the dog barks", "declarative", "."),
        ("the dog barks", "question", "?"),
        ("the dog barks", "interruption question", "?"),
        ("the dog barks", "self interruption question", "?"),
        ("the dog barks", "trail off question", "?"),
        ("give it here", "imperative_emphatic", "!"),
        ("give it here", "imperatives", "!"),
        ("he did", "question exclamation", "!"),
        ("and then", "trail off", "."),
        ("and then", "interruption", "."),
        ("and she said", "quotation next line", "."),
        ("and she said", "a type of next year", "."),
        ("what is that", "declarative", "?"),
        ("What's that", "imperative_emphatic", "?"),
        ("what a mess", "imperative_emphatic", "!"),
        ("what a", "declarative", "?"),
        ("where did it go", "declarative", "?"),
        ("how nice", "declarative", "?"),
        ("who'll come", "declarative", "?"),
        ("when we go", "declarative", "?"),
        ("you wanna play", "declarative", "?"),
        ("do you see", "declarative", "?"),
        ("can you see", "declarative", "?"),
        ("you want it", "declarative", "."),
        ("can she see", "declarative", "."),
        ("whoops you fell", "declarative", "."),
        ("whatever you like", "declarative", "."),
        ("however he came", "declarative", "."),
    ],
)
def test_the_end_mark_follows_from_type_and_first_words(text, type, mark):
    assert clean(spoken(text, type), CleaningRules()) == (f"{text} {mark}", None)


@pytest.mark.parametrize(
    ("utterance", "reason"),
    [
        (spoken("I want that", role="Target_Child"), rules.CHILD),
        (spoken("I want that", role="Child"), rules.CHILD),
        (spoken("I want that", collection="Clinical-MOR"), rules.COLLECTION),
        (spoken("I want that", age=None), rules.AGE_UNKNOWN),
        (spoken("I want that", age=2192.0), rules.TOO_OLD),
        (spoken(""), rules.EMPTY),
        (spoken(" + "), rules.EMPTY),
        (spoken("you xxx that"), rules.INTELLIGIBILITY),
        (spoken("you yyy that"), rules.INTELLIGIBILITY),
        (spoken("you www that"), rules.INTELLIGIBILITY),
        (spoken("Mr_xxx came by"), rules.INTELLIGIBILITY),
        (spoken("it's gar\ufffdmmi again"), rules.INTELLIGIBILITY),
        (spoken("yeah"), rules.TOO_SHORT),
        (written("\n"), rules.EMPTY),
        (written("a xxx ."), rules.INTELLIGIBILITY),
        (written("yes ."), rules.TOO_SHORT),
    ],
)
def test_every_dropped_utterance_has_its_reason(utterance, reason):
    assert clean(utterance, CleaningRules()) == (None, reason)


@pytest.mark.parametrize(
    ("utterance", "sentence"),
    [
        (spoken("yes yes"), "yes yes ."),
        (spoken("a choo+choo for New_York"), "a choo choo for New York ."),
        (spoken("give  it\tto\u00a0me"), "give it to me ."),
        (spoken("the brother speaks", role="Brother"), "the brother speaks ."),
        (spoken("he is six", age=6 * 365.25), "he is six ."),
        (spoken("null nan NA"), "null nan NA ."),
        (written("Look at the doggy .\n"), "Look at the doggy ."),
        (written("see www.example.org or 1+1 ."), "see www.example.org or 1+1 ."),
    ],
)
def test_what_is_kept_keeps_its_case_and_words(utterance, sentence):
    assert clean(utterance, CleaningRules()) == (sentence, None)


def test_each_rule_can_be_relaxed():
    relaxed = CleaningRules(min_words=2, max_age=9, keep_unknown_age=True, collection="any")
    for utterance in (
        spoken("hi"),
        spoken("hi", age=3000.0),
        spoken("hi", age=None),
        spoken("hi", collection="X"),
    ):
        assert clean(utterance, relaxed) == ("hi .", None)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60), st.sampled_from(["declarative", "question", "imperative_emphatic", "x"]))
def test_a_sentence_is_one_line_of_single_spaced_words_and_one_mark(text, type):
    sentence, reason = clean(spoken(text, type), CleaningRules(min_words=2))
    if sentence is None:
        assert reason in rules.REASONS
        return
    *words, mark = sentence.split(" ")
    assert words
    assert all(words)
    assert mark in {".", "?", "!"}
    assert len(sentence.splitlines()) == 1
    assert not set("+_") & set(sentence)
    assert clean(written(sentence), CleaningRules(min_words=2)) == (sentence, None)
