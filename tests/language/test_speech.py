"""The data files of the sample: a broken entry is named with its file, its line and the nearest known name."""

import random
import re

import pytest

from babyssa.errors import DataError
from babyssa.files import resource
from babyssa.language.lexicon import load_lexicon
from babyssa.language.speech import Usage, load_habits, load_registers

LEXICON = load_lexicon()
LOADERS = {"registers.yaml": load_registers, "usage.yaml": load_habits}


def test_there_are_36_registers_with_weights():
    registers = load_registers(LEXICON).registers
    assert len(registers) == 36
    spoken = [register for name, register in registers.items() if not name.startswith("page_of")]
    assert all(register.young > 0 < register.old for register in spoken)
    assert {name for name, register in registers.items() if register.plain} == {
        "backchannel",
        "two_words",
        "routines",
    }


def test_rare_nouns_are_not_in_the_lexicon_and_have_plurals():
    habits = load_habits(LEXICON)
    known = {noun.singular for noun in LEXICON.nouns}
    rare = {noun.singular: noun.plural for noun in habits.rare_nouns}
    assert len(rare) > 200 and not known & rare.keys()
    plurals = {"fireman": "firemen", "peach": "peaches", "cherry": "cherries", "owl": "owls"}
    assert plurals.items() <= rare.items()


def test_frequent_words_weigh_more():
    usage = Usage(LEXICON, load_habits(LEXICON), random.Random(0))
    assert usage.weight[LEXICON.verb("go")] > usage.weight[LEXICON.verb("sneeze")]
    assert all(usage.weight[word] > 0 for word in (*usage.lexicon.nouns, *LEXICON.verbs, *LEXICON.adjectives))


REGISTER_ERRORS = [
    ("  - 6 (yeah|", "  - 6 yeah|", "is not inside (a|b)"),
    ("  - 6 (yeah|", "  - 6 ((yeah|", "is not closed"),
    ("why {S.is} {S} {A", "why {S.ist} {S} {A", "slot 'S' has no form 'ist'; did you mean 'is'?"),
    ("- 2 <honey> !", "- 2 <hony> !", "no piece 'hony'; did you mean 'honey'?"),
    ("- 2 <honey> !", "- 2 <honey>", "'2 <honey>' is not a weight and a template with an end mark"),
    ("- 2 <honey> !", "- <honey> !", "'<honey> !' is not a weight and a template"),
    ("- 2 <honey> !", "- 2 {animl} !", "no slot 'animl'; did you mean 'animal'?"),
    ("{phrase: body}", "{phrase: boddy}", "no noun or 'any' 'boddy'; did you mean 'body'?"),
    ("{phrase: body}", "{phras: body}", "no field 'phras'; did you mean 'phrase'?"),
    (
        "name: any, subject: true",
        "name: any, subject: maybe",
        "field 'subject' is 'maybe', expected true or false",
    ),
    ("not_asked: [lose,", "not_asked: [loose,", "no verb 'loose'; did you mean 'lose'?"),
    ("third: 34,", "thrid: 34,", "no slot 'thrid'; did you mean 'third'?"),
    ("third: 34,", "third: often,", "a weight is a number, or two: [young, old]"),
    ("determiner: quantified}", "determiner: quantfied}", "no determiner 'quantfied'"),
    ("    young: 62", "    young: many", "field 'young' is 'many', expected a number"),
    ("  is: [is, are, am]", "  is: [is]", "'is' needs two or three forms"),
    ("  some: [a, some, some]", "  some: [a, some]", "'some' needs one determiner or three"),
]
USAGE_ERRORS = [
    ("frequent_verbs: [go,", "frequent_verbs: [goo,", "no verb 'goo'; did you mean 'go'?"),
    ("posture_verbs: [sit,", "posture_verbs: [sitt,", "no verb 'sitt'; did you mean 'sit'?"),
    ("owned: [dog,", "owned: [dgo,", "no noun 'dgo'; did you mean 'dog'?"),
    ("  clothing: [", "  clothes: [", "no kind 'clothes'; did you mean 'clothing'?"),
    (
        "  - ['\\bwill not\\b', 'won''t', 0.97]",
        "  - ['\\bwill not\\b', 'won''t']",
        "is not [pattern, short form, share]",
    ),
    ("openings: {oh: 9,", "openings: {oh: nine,", "a weight is a number, or two: [young, old]"),
]


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        *(("registers.yaml", *error) for error in REGISTER_ERRORS),
        *(("usage.yaml", *error) for error in USAGE_ERRORS),
    ],
)
def test_a_broken_entry_is_named_with_its_line(tmp_path, name, old, new, said):
    text = resource("data", name).read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / name
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    line = text.partition(old)[0].count("\n") + 1
    with pytest.raises(DataError, match=re.escape(said)) as caught:
        LOADERS[name](LEXICON, path)
    assert str(caught.value).startswith(f"{path}:{line}: ")


@pytest.mark.parametrize(
    ("removed", "said"),
    [
        ("    young: 62\n", "field 'young' is missing"),
        ("  mood: (happy|sad|hungry|tired|sleepy|angry|silly|sick|scared)\n", "no piece 'mood'"),
    ],
)
def test_what_is_missing_is_named(tmp_path, removed, said):
    text = resource("data", "registers.yaml").read_text(encoding="utf-8")
    path = tmp_path / "registers.yaml"
    path.write_text(text.replace(removed, "", 1), encoding="utf-8")
    with pytest.raises(DataError, match=said):
        load_registers(LEXICON, path)
