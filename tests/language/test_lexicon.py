"""The lexicon: its forms follow English morphology, its entries are consistent, and broken files are named."""

import copy
import re

import pytest
import yaml

from babyssa.errors import DataError
from babyssa.files import resource
from babyssa.language.lexicon import Noun, indefinite_article, load_lexicon

LEXICON = load_lexicon()
RAW = yaml.load(resource("probes", "words.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)

IRREGULAR_PLURALS = {
    "man": "men",
    "woman": "women",
    "child": "children",
    "mouse": "mice",
    "goose": "geese",
    "foot": "feet",
    "tooth": "teeth",
    "fish": "fish",
    "sheep": "sheep",
    "wolf": "wolves",
    "leaf": "leaves",
    "knife": "knives",
    "shelf": "shelves",
    "potato": "potatoes",
    "tomato": "tomatoes",
}


def with_s(word):
    """The regular -s, of plurals and of the third person."""
    if re.search(r"(s|x|z|ch|sh)$", word):
        return word + "es"
    return word[:-1] + "ies" if re.search(r"[^aeiou]y$", word) else word + "s"


def with_ending(word, ending):
    """-ed and -ing, with the spellings that a final e, a final y and a doubled consonant give."""
    stem = word[:-1] if re.search(r"[^e]e$", word) else word
    if ending == "ed" and re.search(r"[^aeiou]y$", word):
        stem = word[:-1] + "i"
    return {stem + ending, stem + word[-1] + ending}


def test_it_has_the_words_that_the_generators_need():
    assert len(LEXICON.nouns) >= 90 and len(LEXICON.verbs) >= 60 and len(LEXICON.adjectives) >= 30
    male, female = LEXICON.names_of("male"), LEXICON.names_of("female")
    assert len(male) == len(female) >= 20
    assert len(LEXICON.names_of(kin=True)) == 4
    assert {verb.frame for verb in LEXICON.verbs} >= {"intransitive", "transitive", "ditransitive", "optional"}


@pytest.mark.parametrize("noun", [n for n in LEXICON.nouns if n.countable], ids=lambda noun: noun.singular)
def test_plurals_are_regular_or_known_exceptions(noun):
    assert noun.plural == IRREGULAR_PLURALS.get(noun.singular, with_s(noun.singular))


@pytest.mark.parametrize("verb", LEXICON.verbs, ids=lambda verb: verb.base)
def test_verb_forms_follow_their_spelling_rules(verb):
    regular = verb.past.endswith("ed")
    assert verb.third == {"go": "goes", "have": "has"}.get(verb.base, with_s(verb.base))
    assert verb.progressive in with_ending(verb.base, "ing")
    if regular:
        assert verb.past in with_ending(verb.base, "ed")
        assert verb.participle == verb.past or verb.base == "show"


def test_properties_tell_apart_what_looks_alike():
    assert not LEXICON.noun("milk").countable
    assert LEXICON.noun("fish").countable and not LEXICON.noun("fish").distinct_plural
    assert LEXICON.noun("mouse").distinct_plural
    assert [indefinite_article(word) for word in ("apple", "big", "Anna")] == ["an", "a", "an"]


def test_queries_select_by_kind_and_by_single_noun():
    assert {noun.singular for noun in LEXICON.select(["vehicle", "horse"])} >= {"truck", "horse"}
    assert {noun.kind for noun in LEXICON.select(["food"], countable=False)} == {"food"}
    assert {noun.singular for noun in LEXICON.select(["person"], gender="female")} >= {"girl", "woman"}
    ride = LEXICON.verb("ride")
    assert LEXICON.noun("bike") in LEXICON.select(ride.objects)
    assert LEXICON.noun("soup") not in LEXICON.select(ride.objects)
    assert {noun.kind for noun in LEXICON.select(ride.subjects)} == {"person"}
    assert "hungry" in {a.word for a in LEXICON.adjectives_of(LEXICON.noun("dog"))}
    assert "hungry" not in {a.word for a in LEXICON.adjectives_of(LEXICON.noun("cup"))}
    assert "on" in {p.word for p in LEXICON.prepositions_of(LEXICON.noun("table"))}
    assert LEXICON.verb("eat") in LEXICON.takers_of(LEXICON.noun("apple"))
    assert LEXICON.verb("give") not in LEXICON.takers_of(LEXICON.noun("apple"))
    assert LEXICON.pronoun("she").reflexive == "herself"


def test_a_kind_that_is_also_a_noun_means_the_kind():
    assert len(LEXICON.select(["toy"])) > 1


def test_the_same_request_gives_the_same_object():
    assert LEXICON.select(["toy"], countable=True) is LEXICON.select(("toy",), countable=True)


def test_what_is_not_there_is_an_error_with_the_nearest_word():
    with pytest.raises(DataError, match="no noun 'dgo'; did you mean 'dog'"):
        LEXICON.noun("dgo")
    with pytest.raises(DataError, match="no verb"):
        LEXICON.verb("defenestrate")
    with pytest.raises(ValueError, match="mass noun"):
        Noun("milk", "drink").form("plural")


def edited(tmp_path, edit):
    raw = copy.deepcopy(RAW)
    edit(raw)
    path = tmp_path / "words.yaml"
    path.write_text(yaml.dump(raw, Dumper=yaml.CSafeDumper), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda raw: raw["nouns"][2].pop("kind"), "nouns[3] (man): field 'kind' is missing"),
        (lambda raw: raw["nouns"][0].update(colour="red"), "nouns[1] (boy): no field 'colour'"),
        (lambda raw: raw["nouns"].append(raw["nouns"][0]), "(boy): is listed twice"),
        (lambda raw: raw["names"][0].update(gender="man"), "names[1] (Adam): field 'gender' is 'man'"),
        (lambda raw: raw["prepositions"][0].update(word=True), "put it in quotes"),
        (lambda raw: raw["nouns"][0].update(relational="yes"), "'relational' is 'yes', expected true or false"),
        (lambda raw: raw["nouns"][0].update(plural=" boys"), "stray white space"),
        (
            lambda raw: raw["verbs"][0].update(subjects=["persn"]),
            "no kind or noun 'persn'; did you mean 'person'?",
        ),
        (lambda raw: raw["verbs"][0].update(subjects="person"), "'subjects' is 'person', expected a list of text"),
        (lambda raw: raw["verbs"][0].update(objects=["food"]), "frame 'intransitive' cannot have objects"),
        (lambda raw: raw["verbs"][0].update(frame="transitive"), "frame 'transitive' needs objects"),
        (lambda raw: raw["adjectives"].append("red"), "'red' is not a mapping"),
        (lambda raw: raw.update(adverbs=[]), "no section 'adverbs'"),
        (lambda raw: raw.update(pronouns=[]), "'pronouns' is not a list or is empty"),
    ],
)
def test_a_broken_entry_is_named(tmp_path, edit, said):
    path = edited(tmp_path, edit)
    with pytest.raises(DataError, match=re.escape(said)) as caught:
        load_lexicon(path)
    assert caught.value.path == path


def test_an_error_names_the_line_and_the_nearest_name(tmp_path):
    text = resource("probes", "words.yaml").read_text(encoding="utf-8")
    path = tmp_path / "words.yaml"
    path.write_text(text.replace("  - base: sing\n", "  - base: sing\n    sujects: [person]\n"), encoding="utf-8")
    line = path.read_text(encoding="utf-8").split("sujects")[0].count("\n") + 1
    with pytest.raises(DataError) as caught:
        load_lexicon(path)
    where, said = f"{path}:{line}: verbs[", " (sing): no field 'sujects'; did you mean 'subjects'?"
    assert str(caught.value).startswith(where) and said in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"nouns: [\n  {a: b}\n", "broken YAML"),
        (b"- just\n- a list\n", "not a mapping"),
        (b"nouns: \xff\n", "not UTF-8"),
    ],
)
def test_an_unreadable_file_is_an_error_with_its_path(tmp_path, content, said):
    path = tmp_path / "words.yaml"
    path.write_bytes(content)
    with pytest.raises(DataError, match=said):
        load_lexicon(path)
    with pytest.raises(DataError, match="no such file"):
        load_lexicon(tmp_path / "absent.yaml")
