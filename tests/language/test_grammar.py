"""The grammar fills every template, and its phrases agree."""

import random
import re

import pytest

from babyssa.language.grammar import Scene, Session
from babyssa.language.lexicon import load_lexicon
from babyssa.language.speech import Usage, load_habits, load_registers
from babyssa.language.templates import parse

LEXICON = load_lexicon()
REGISTERS = load_registers(LEXICON)
HABITS = load_habits(LEXICON)


@pytest.fixture
def scene():
    rng = random.Random(0)
    session = Session("Molly", "female", LEXICON.names[:12], frozenset(LEXICON.nouns[:9]), maturity=0.5)
    return Scene(REGISTERS, Usage(LEXICON, HABITS, rng), session, rng)


def said(scene, template, shown=None):
    return [" ".join(spoken.words) for spoken in scene.utter(parse(template), shown)]


@pytest.mark.parametrize("register", REGISTERS.registers.values(), ids=lambda register: register.name)
def test_every_template_of_every_register_can_be_filled(scene, register):
    for template in register.templates.options:
        for _ in range(5):
            for spoken in scene.utter(template):
                assert spoken.words
                assert not re.search(r"[^A-Za-z' ]", " ".join(spoken.words)), spoken


def test_slots_of_one_name_are_one_phrase_and_digits_tell_two_apart(scene):
    for _ in range(50):
        (text,) = said(scene, "{N} {N} {N2} .")
        first, again, other = text.split()
        assert first == again != other


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{I} {I.is} {I.object} .", r"I('m| am) me"),
        ("{we} {we.has} {we.reflexive} .", r"we have ourselves"),
        ("{N.is} {N} {N.possessive} .", r"is (\w+) (his|her)"),
        ("{sg_animal.these} {sg_animal.head} {sg_animal.is} .", r"this \w+ is"),
        ("{pl_animal.these} {pl_animal.head} {pl_animal.is} .", r"these \w+ are"),
        ("{sg_toy.a} .", r"an? [a-z ]+"),
        ("{sg_body.one} {pl_body.one} .", r"one ones"),
        ("{N} {B.present} .", r"\w+ \w+s"),
        ("<most> .", r"(at least|at most|more than|fewer than) \w+"),
        ("to {child} the {boy} .", r"to Molly the girl"),
    ],
)
def test_forms_of_phrases(scene, template, expected):
    for _ in range(30):
        (text,) = said(scene, template)
        assert re.fullmatch(expected, text), text


def test_a_verb_agrees_with_the_first_subject_of_its_digit(scene):
    for _ in range(50):
        one, two = said(scene, "{we} {B.present} . / {N2} {B2.present} .")
        assert one.split()[1] in {verb.base for verb in LEXICON.verbs}
        assert two.split()[1] in {verb.third for verb in LEXICON.verbs}


def test_what_a_picture_book_shows_is_drawn(scene):
    apple = LEXICON.noun("apple")
    assert said(scene, "{sg_shown.head} {pl_shown.head} .", apple) == ["apple apples"]


def test_one_does_not_say_your_before_what_nobody_owns(scene):
    (text,) = said(scene, "{sg_shown.your} .", LEXICON.noun("lion"))
    assert text.startswith("the ")
    (text,) = said(scene, "{sg_shown.your} .", LEXICON.noun("dog"))
    assert text.startswith("your ")


def test_contractions_spare_the_end_of_a_sentence(scene):
    template = "it is not here . / that is what it is ."
    texts = {text for _ in range(200) for text in said(scene, template)}
    assert {"it's not here", "that's what it is"} <= texts
    assert not any(text.endswith("it's") for text in texts)
