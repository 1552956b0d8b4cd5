"""The notation: what is parsed, what is realised, and what is said of malformed templates."""

import random
from collections import Counter

import pytest

from babyssa.language.templates import (
    Choice,
    Contrast,
    Piece,
    Slot,
    choose,
    insert,
    parse,
    parts_of,
    realise,
    tidy,
)


def said(text, side=0, seed=0, **fillers):
    template = choose(parse(text), random.Random(seed))
    return tidy(realise(template, lambda part: fillers[getattr(part, "key", part.name)], side))


def test_every_mark_is_parsed():
    slot, _, piece, _, choice, _, contrast = parse("{noun2.the} <number> (a|{b}|) [is|are]")
    assert slot == Slot("noun", "2", "the") and slot.key == "noun2"
    assert piece == Piece("number")
    assert choice == Choice((("a",), (Slot("b"),), ()))
    assert contrast == Contrast((("is",), ("are",)))


def test_the_sides_of_a_contrast_are_the_good_and_the_bad_sentence():
    text = "the {n} [is|are] [{n}|here] ."
    assert said(text, side=0, n="dog") == "the dog is dog ."
    assert said(text, side=1, n="dog") == "the dog are here ."


def test_choices_are_drawn_by_weight_and_may_be_nested():
    drawn = Counter(said("(3 a|(b|c)) .", seed=seed) for seed in range(2000))
    assert drawn.keys() == {"a .", "b .", "c ."}
    assert 1400 < drawn["a ."] < 1600 and 200 < drawn["b ."] < 300
    equal = Counter(said("(a|a|b)", seed=seed) for seed in range(2000))
    assert 1200 < equal["a"] < 1460


def test_numbers_that_are_no_weights_are_text():
    assert said("at 3 (3o|3o) .") == "at 3 3o ."


def test_pieces_are_inserted_also_inside_contrasts():
    template = insert(parse("<who> [<is>|{x}] <who>"), {"who": parse("{n} too"), "is": parse("is")})
    assert template == (Slot("n"), " too", " ", Contrast((("is",), (Slot("x"),))), " ", Slot("n"), " too")
    with pytest.raises(KeyError):
        insert(parse("<who>"), {})


def test_parts_are_found_at_any_depth():
    names = [part.name for part in parts_of(parse("{a} ({b}|[{c}|<d>])")) if isinstance(part, Slot | Piece)]
    assert names == ["a", "b", "c", "d"]


def test_text_gets_single_spaces_and_the_fitting_article():
    assert tidy(" a  old dog and a bear ") == "an old dog and a bear"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the {n", r"'\{' in 'the \{n' is not part of a \{slot\}"),
        ("the n} .", "'}' in"),
        ("{a b}", r"'\{' in"),
        ("<a", "'<' in"),
        ("(a|b", r"'\(' in '\(a\|b' is not closed"),
        ("a|b", r"'\|' in 'a\|b' is not inside"),
        ("a) b", r"'\)' in"),
        ("(a|b]", r"'\(' in '\(a\|b\]' is closed by '\]'"),
        ("[a]", "has 1 sides"),
        ("[a|b|c]", "has 3 sides"),
    ],
)
def test_a_malformed_template_says_what_is_wrong(text, message):
    with pytest.raises(ValueError, match=message):
        parse(text)
