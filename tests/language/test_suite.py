"""The minimal-pair suite: counterbalanced, confined to its contrasts, reproducible, and grammatical by rule."""

import math
import random
import re
from collections import Counter

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from babyssa.errors import ConfigError, DataError, ModelError
from babyssa.files import resource
from babyssa.language.lexicon import load_lexicon
from babyssa.language.suite import fill, generate_paradigm, generate_suite, load_templates, whole_word_test

LEXICON = load_lexicon()
DESIGNS = load_templates(LEXICON).paradigms
NAMES = list(DESIGNS)

PHENOMENA = {
    "agreement_determiner_noun",
    "agreement_subject_verb",
    "anaphor_agreement",
    "argument_structure",
    "binding",
    "case",
    "ellipsis",
    "filler-gap",
    "irregular",
    "island-effects",
    "local_attractor",
    "npi_licensing",
    "quantifiers",
}
HEADLINE = {
    "agreement_subject_verb-across_prepositional_phrase",
    "argument_structure-swapped_arguments",
    "binding-principle_a",
    "quantifiers-superlative",
}

# What may differ within a pair: the words that stand for one another, or the order of the words.
ORDER = "order"
DEMONSTRATIVES = [("this", "these"), ("that", "those")]
BE = [("is", "are"), ("was", "were")]
REFLEXIVES = [("himself", "herself")]
VERBS = "forms of verbs"
CONTRASTS = {
    "agreement_determiner_noun-across_1_adjective": DEMONSTRATIVES,
    "agreement_determiner_noun-between_neighbors": DEMONSTRATIVES,
    "agreement_subject_verb-across_prepositional_phrase": [*BE, ("has", "have"), ("does", "do")],
    "agreement_subject_verb-across_relative_clause": BE,
    "agreement_subject_verb-in_question_with_aux": [("does", "do"), ("has", "have")],
    "agreement_subject_verb-in_simple_question": BE,
    "anaphor_agreement-pronoun_gender": REFLEXIVES,
    "argument_structure-dropped_argument": ORDER,
    "argument_structure-swapped_arguments": ORDER,
    "argument_structure-transitive": VERBS,
    "binding-principle_a": REFLEXIVES,
    "case-subjective_pronoun": [("i", "me"), ("he", "him"), ("she", "her"), ("we", "us"), ("they", "them")],
    "ellipsis-n_bar": ORDER,
    "filler-gap-wh_question_object": [("what", "that"), ("who", "that")],
    "filler-gap-wh_question_subject": [("who", "if")],
    "irregular-verb": VERBS,
    "island-effects-adjunct_island": ORDER,
    "island-effects-coordinate_structure_constraint": ORDER,
    "local_attractor-in_question_with_aux": VERBS,
    "npi_licensing-matrix_question": ORDER,
    "npi_licensing-only_npi_licensor": [("only", "even"), ORDER],
    "quantifiers-existential_there": [
        *((weak, strong) for weak in ("some", "many", "several") for strong in ("all",)),
        ("two", "both"),
        ("a", "every"),
        ("a", "each"),
    ],
    "quantifiers-superlative": [("more than", "at least"), ("fewer than", "at most")],
}


def read_pairs(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    return [(good, bad) for bad, good in zip(lines[::2], lines[1::2], strict=True)]


def words_of(sentences):
    return Counter(word for sentence in sentences for word in sentence.split())


def differing(good, bad):
    """The words of each side between the common beginning and the common end."""
    good, bad = good.split(), bad.split()
    while good and bad and good[0] == bad[0]:
        good, bad = good[1:], bad[1:]
    while good and bad and good[-1] == bad[-1]:
        good, bad = good[:-1], bad[:-1]
    return " ".join(good), " ".join(bad)


@pytest.fixture(scope="module")
def packaged():
    """Name of paradigm to pairs (good, bad), read from the packaged files without the package's reader."""
    folder = resource("probes", "suite")
    manifest = yaml.safe_load((folder / "manifest.yaml").read_text(encoding="utf-8"))
    return {entry["name"]: read_pairs(folder / entry["file"]) for entry in manifest["paradigms"]}


def test_the_packaged_suite_covers_all_phenomena_with_a_thousand_pairs_each(packaged):
    assert packaged.keys() == CONTRASTS.keys() == DESIGNS.keys()
    assert {DESIGNS[name].phenomenon for name in packaged} == PHENOMENA
    assert packaged.keys() >= HEADLINE
    assert {len(pairs) for pairs in packaged.values()} == {1000}


def test_the_paradigms_are_named_like_zorros(shared):
    assert {path.stem for path in (shared / "data" / "zorro").glob("*.txt")} == set(NAMES)


def test_no_sentence_is_taken_from_zorro(shared, packaged):
    zorro = set()
    for path in (shared / "data" / "zorro").glob("*.txt"):
        zorro.update(path.read_text(encoding="utf-8").splitlines())
    assert not zorro & {sentence for pairs in packaged.values() for pair in pairs for sentence in pair}


@pytest.mark.slow
def test_the_packaged_files_are_what_the_default_seed_makes(tmp_path):
    made = generate_suite(tmp_path / "suite")
    folder = resource("probes", "suite")
    assert [summary.pairs for summary in made] == [1000] * len(NAMES)
    assert sorted(path.name for path in folder.iterdir()) == sorted(p.name for p in (tmp_path / "suite").iterdir())
    for path in folder.iterdir():
        assert path.read_bytes() == (tmp_path / "suite" / path.name).read_bytes(), path.name


@pytest.mark.parametrize("name", NAMES)
def test_good_and_bad_sentences_have_the_same_words_equally_often(packaged, name):
    assert words_of(good for good, _ in packaged[name]) == words_of(bad for _, bad in packaged[name])


@pytest.mark.parametrize("name", NAMES)
def test_each_replacement_occurs_in_both_directions_equally_often(packaged, name):
    directions = Counter(differing(*pair) for pair in packaged[name])
    for (right, wrong), count in directions.items():
        if sorted(right.split()) != sorted(wrong.split()):
            assert directions[wrong, right] == count


def test_scores_of_single_words_and_of_length_decide_exactly_half_of_each_paradigm(packaged):
    rng = random.Random(0)
    weight = {
        word: rng.random() for word in sorted({w for p in packaged.values() for g, _ in p for w in g.split()})
    }
    for score in (len, lambda words: math.fsum(weight[word] for word in words)):
        for name, pairs in packaged.items():
            margins = [score(good.split()) - score(bad.split()) for good, bad in pairs]
            assert sum(1.0 if m > 0 else 0.5 if m == 0 else 0.0 for m in margins) == 500, name


@pytest.mark.parametrize("name", NAMES)
def test_a_pair_differs_only_in_the_contrast_of_its_paradigm(packaged, name):
    contrast = CONTRASTS[name]
    verb_forms = {form for verb in LEXICON.verbs for form in (verb.base, verb.third, verb.past, verb.participle)}
    verb_forms |= {verb.progressive for verb in LEXICON.verbs}
    for good, bad in packaged[name]:
        right, wrong = differing(good, bad)
        reordered = sorted(right.split()) == sorted(wrong.split())
        if contrast == VERBS:
            assert {right, wrong} <= verb_forms, (good, bad)
        elif contrast == ORDER or (ORDER in contrast and reordered):
            assert reordered, (good, bad)
        else:
            assert (right, wrong) in contrast or (wrong, right) in contrast, (good, bad)
        assert len(good.split()) == len(bad.split())


def test_no_pair_is_repeated_or_identical_and_no_sentence_is_both_good_and_bad(packaged):
    good = [good for pairs in packaged.values() for good, _ in pairs]
    for name, pairs in packaged.items():
        assert len(set(pairs)) == len({good for good, _ in pairs}) == len(pairs), name
    assert not set(good) & {bad for pairs in packaged.values() for _, bad in pairs}


def test_sentences_are_written_like_child_directed_text(packaged):
    names = {name.name for name in LEXICON.names}
    for pairs in packaged.values():
        for sentence in (sentence for pair in pairs for sentence in pair):
            words = sentence.split(" ")
            assert words[-1] in (".", "?")
            assert all(word.islower() or word in names for word in words[:-1]), sentence
            assert not re.search(r"\ba [aeiou]|\ban [^aeiou]", sentence), sentence


# Grammaticality, by rules that read the sentences and know nothing of the templates.

NUMBER = {noun.singular: "singular" for noun in LEXICON.nouns}
NUMBER |= {noun.plural: "plural" for noun in LEXICON.nouns if noun.distinct_plural}
GENDER = {name.name: name.gender for name in LEXICON.names}
GENDER |= {noun.singular: noun.gender for noun in LEXICON.nouns if noun.gender}


def number_of_first_noun(words):
    first = next(i for i, word in enumerate(words) if word in NUMBER)
    if words[first] == "orange" and words[first + 1] in NUMBER:
        first += 1  # the color
    return NUMBER[words[first]]


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("agreement_determiner_noun")])
def test_the_right_demonstrative_has_the_number_of_the_next_noun(packaged, name):
    for good, bad in packaged[name]:
        demonstrative, _ = differing(good, bad)
        after = good.split()[good.split().index(demonstrative) + 1 :]
        noun = after[1 if name.endswith("1_adjective") else 0]
        assert (NUMBER[noun] == "plural") == (demonstrative in ("these", "those"))


@pytest.mark.parametrize("name", [name for name in NAMES if "subject_verb-across" in name])
def test_the_right_verb_has_the_number_of_the_first_noun_whatever_stands_between(packaged, name):
    between = Counter()
    for good, bad in packaged[name]:
        verb, _ = differing(good, bad)
        words = good.split()
        assert (NUMBER[words[1]] == "plural") == (verb in ("are", "were", "have", "do"))
        between[NUMBER[words[1]], next(NUMBER[word] for word in words[2:] if word in NUMBER)] += 1
    assert set(between.values()) == {250}


@pytest.mark.parametrize("name", [name for name in NAMES if "subject_verb-in" in name])
def test_the_right_auxiliary_of_a_question_has_the_number_of_the_next_noun(packaged, name):
    for good, bad in packaged[name]:
        verb, _ = differing(good, bad)
        after = good.split()[good.split().index(verb) + 1 :]
        number = number_of_first_noun(after)
        assert (number == "plural") == (verb in ("are", "were", "have", "do"))


def test_the_right_reflexive_has_the_gender_of_its_antecedent(packaged):
    for good, _ in packaged["anaphor_agreement-pronoun_gender"]:
        (gender,) = {GENDER[word] for word in good.split() if word in GENDER}
        assert ("himself" in good.split()) == (gender == "male")


def test_in_binding_the_wrong_reflexive_has_the_gender_of_the_other_name(packaged):
    for good, bad in packaged["binding-principle_a"]:
        assert len({GENDER[word] for word in good.split() if word in GENDER}) == 2
        local = good.split()[1] if good.startswith("the ") else [w for w in good.split() if w in GENDER][-1]
        assert ("himself" in good.split()) == (GENDER[local] == "male") == ("herself" in bad.split())


def test_there_is_followed_by_weak_quantifiers_only(packaged):
    for good, bad in packaged["quantifiers-existential_there"]:
        if "there" in good.split():
            assert not {"all", "both", "each", "every"} & set(good.split())
            assert {"all", "both", "each", "every"} & set(bad.split())


def test_a_superlative_modifier_is_wrong_in_the_scope_of_no(packaged):
    for good, bad in packaged["quantifiers-superlative"]:
        superlative = bad if good.startswith("no ") else good
        assert " at least" in superlative or " at most" in superlative


# Generation as a function of its arguments.


@settings(max_examples=20, deadline=None)
@given(name=st.sampled_from(NAMES), seed=st.integers(0, 10**6), pairs=st.integers(1, 15).map(lambda n: 4 * n))
def test_counterbalance_holds_for_every_seed_and_size(name, seed, pairs):
    made = generate_paradigm(name, LEXICON, pairs, seed)
    assert len(made) == pairs
    assert words_of(pair.good for pair in made) == words_of(pair.bad for pair in made)


@pytest.mark.parametrize("name", sorted(HEADLINE))
def test_a_smaller_suite_is_the_beginning_of_a_larger_one_and_another_seed_gives_another(packaged, name):
    made = [(pair.good, pair.bad) for pair in generate_paradigm(name, LEXICON, 40, 0)]
    assert made == packaged[name][:40]
    assert made != [(pair.good, pair.bad) for pair in generate_paradigm(name, LEXICON, 40, 1)]


def test_a_paradigm_does_not_depend_on_which_others_are_generated(tmp_path):
    generate_suite(tmp_path / "one", pairs=8, paradigms=["binding-principle_a"])
    generate_suite(tmp_path / "two", pairs=8, paradigms=["irregular-verb", "binding-principle_a"])
    for name in ("one", "two"):
        manifest = yaml.safe_load((tmp_path / name / "manifest.yaml").read_text(encoding="utf-8"))
        assert manifest["order"] == "bad-first"
        assert manifest["generator"] == {"seed": 0, "pairs": 8}
    one, two = (tmp_path / name / "binding-principle_a.txt" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()


def save_tokenizer(folder, words):
    vocabulary = {word: i for i, word in enumerate(["<unk>", ".", "?", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def test_with_a_tokenizer_only_its_whole_words_are_used(tmp_path):
    names = [name.name.lower() for name in LEXICON.names][:40]
    known = [
        *names,
        "thinks",
        "that",
        "saw",
        "heard",
        "liked",
        "himself",
        "herself",
        "does",
        "think",
        "said",
        "see",
    ]
    folder = save_tokenizer(tmp_path / "tokenizer", known)
    (made,) = generate_suite(tmp_path / "suite", pairs=100, tokenizer=folder, paradigms=["binding-principle_a"])
    used = {word.lower() for pair in read_pairs(made.path) for sentence in pair for word in sentence.split()}
    assert used - {".", "?"} <= set(known)
    assert {"himself", "herself", "thinks", "saw"} <= used


def test_byte_level_pieces_are_not_whole_words(tmp_path):
    tokenizer = Tokenizer(
        models.BPE({"Ġ": 0, "d": 1, "o": 2, "Ġd": 3, "Ġdo": 4, "<unk>": 5}, [("Ġ", "d"), ("Ġd", "o")])
    )
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    is_whole = whole_word_test(tmp_path)
    assert is_whole("do") and is_whole("Do") and is_whole("?")
    assert not is_whole("dodo") and not is_whole("x")


def test_a_tokenizer_with_too_few_whole_words_is_an_error_that_lists_what_is_left(tmp_path, run_babyssa):
    folder = save_tokenizer(tmp_path / "tokenizer", ["the", "dog"])
    status, out, err = run_babyssa("suite", "--out", tmp_path / "suite", "--tokenizer", folder)
    assert status == 1 and out == ""
    assert "agreement_determiner_noun" in err and "words left" in err and "not whole words" in err
    assert not (tmp_path / "suite").exists()


def test_a_folder_without_a_tokenizer_is_an_error(tmp_path):
    with pytest.raises(ModelError, match="tokenizer"):
        whole_word_test(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ModelError, match="not a tokenizer"):
        whole_word_test(tmp_path)


def test_more_pairs_than_the_words_can_make_is_an_error():
    with pytest.raises(DataError, match=r"only \d+ of 4000000 pairs"):
        fill(_few_names_design(), LEXICON, 4_000_000, 0)


def _few_names_design():
    design = DESIGNS["anaphor_agreement-pronoun_gender"]
    return type(design)(
        **{
            **{field: getattr(design, field) for field in design.__dataclass_fields__},
            "templates": design.templates[4:5],
        }
    )


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (["--pairs", "7"], 2, "multiple of 4"),
        (["--pairs", "0"], 2, "multiple of"),
        (["--paradigms", "binding-principle_b"], 2, "did you mean 'binding-principle_a'?"),
        (["--tokenizer", "nowhere"], 1, "nowhere"),
    ],
)
def test_wrong_arguments_are_one_line_and_write_nothing(tmp_path, run_babyssa, options, status, said):
    found, out, err = run_babyssa("suite", "--out", tmp_path / "suite", *options)
    assert (found, out) == (status, "")
    assert said in err.splitlines()[-1]
    assert not (tmp_path / "suite").exists()


def test_a_suite_is_overwritten_only_on_request(tmp_path, run_babyssa):
    command = ["suite", "--out", tmp_path, "--pairs", "4", "--paradigms", "case-subjective_pronoun"]
    status, out, _ = run_babyssa(*command)
    assert status == 0 and out.splitlines()[-1].split() == ["case-subjective_pronoun", "4"]
    before = (tmp_path / "case-subjective_pronoun.txt").read_bytes()
    status, _, err = run_babyssa(*command, "--seed", "1")
    assert status == 1 and "--overwrite" in err
    assert (tmp_path / "case-subjective_pronoun.txt").read_bytes() == before
    assert run_babyssa(*command, "--seed", "1", "--overwrite")[0] == 0
    assert (tmp_path / "case-subjective_pronoun.txt").read_bytes() != before


# Templates that break the rules.

PARADIGM = {"name": "p-q", "description": "d", "contrast": "c", "counterbalance": "b"}


def design_of(tmp_path, slots, templates, **more):
    path = tmp_path / "templates.yaml"
    paradigm = {**PARADIGM, "slots": slots, "templates": templates, **more}
    path.write_text(yaml.safe_dump({"name": "s", "version": 1, "paradigms": [paradigm]}), encoding="utf-8")
    return load_templates(LEXICON, path).paradigms["p-q"]


def test_a_template_that_is_not_counterbalanced_is_refused(tmp_path):
    design = design_of(tmp_path, {"n": {"noun": ["toy"]}}, ["the {n} [is|are] here ."])
    with pytest.raises(DataError, match="not counterbalanced"):
        fill(design, LEXICON, 1, 0)


SLOT_FAULTS = {
    "no field 'nouns'; did you mean 'noun'": {"nouns": ["toy"]},
    "no noun 'toi'; did you mean 'toy'": {"noun": ["toi"]},
    "no verb 'runn'; did you mean 'run'": {"verb": ["runn"]},
    "no slot 'v'": {"noun": ["toy"], "object_of": "v"},
    "exactly one": {"noun": ["toy"], "word": ["a"]},
    "male, female or any": {"name": "neither"},
    "slots of a suite are words": {"phrase": ["toy"]},
    "field 'mass' is 'yes', expected true or false": {"noun": ["toy"], "mass": "yes"},
}
TEMPLATE_FAULTS = {
    "no slot 'm'; known: n": ["the {m} [is here|here is] ."],
    "no form 'past'; known: plural": ["the {n.past} [is here|here is] ."],
    "no contrast": ["the {n} is here ."],
    "no cell 'x'": ["the <x> [is here|here is] ."],
    "is not closed": ["the {n} [is here|here is ."],
    "has 3 sides": ["the {n} [is here|here is|is] ."],
    "make it a slot of words": ["the {n} (now|then) [is here|here is] ."],
    "ends in a digit": ["the {n2} [is here|here is] ."],
    "has 2 cells, the first has 1": ["the {n} [is here|here is] .", ["a [b|c]", "a [c|b]"]],
}


@pytest.mark.parametrize(
    ("slot", "templates", "said"),
    [
        *((slot, ["the {n} [is here|here is] ."], said) for said, slot in SLOT_FAULTS.items()),
        *(({"noun": ["toy"]}, templates, said) for said, templates in TEMPLATE_FAULTS.items()),
    ],
)
def test_a_broken_template_is_named_with_its_line(tmp_path, slot, templates, said):
    with pytest.raises(DataError, match=re.escape(said)) as caught:
        design_of(tmp_path, {"n": slot}, templates)
    # The dump sorts its keys: what is broken stands below the key "slots" or "templates".
    lines = caught.value.path.read_text(encoding="utf-8").splitlines()[: caught.value.line]
    section = next(line.strip() for line in reversed(lines) if re.fullmatch(r"  \w+:", line))
    assert section == ("slots:" if said in SLOT_FAULTS else "templates:")


def test_an_unknown_paradigm_is_named_with_the_nearest_known():
    with pytest.raises(ConfigError, match="irregular-verbs"):
        generate_paradigm("irregular-verbs", LEXICON, 4, 0)
