"""The sample corpus: reproducible, in childes-db form, and grammatical.

The grammar is checked here by rules of its own, which know nothing of how the generator agrees its words.
"""

import csv
import gzip
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from babyssa.errors import ConfigError, OutputExistsError
from babyssa.files import resource, resource_folder
from babyssa.language.lexicon import load_lexicon
from babyssa.language.sample import generate_sample

LEXICON = load_lexicon()
SINGULAR = {n.singular for n in LEXICON.nouns if n.distinct_plural}
PLURAL = {n.plural for n in LEXICON.nouns if n.distinct_plural}
ADJECTIVES = {a.word for a in LEXICON.adjectives}
DETERMINERS = {"the", "my", "your", "his", "her", "our", "their", "this", "that", "these", "those"}
# What may come before a sentence without being part of it.
INTRODUCTION = {"oh", "well", "okay", "now", "and", "so", "look", "alright", "but", "then", "see", "hey", "yeah"}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    with gzip.open(resource("data", "sample.csv.gz"), "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def adults(rows) -> list[list[str]]:
    """The words of every adult utterance that is understood, what introduces it left out."""
    spoken = [row["gloss"].split() for row in rows if row["speaker_role"] != "Target_Child"]
    spoken = [words for words in spoken if not {"xxx", "yyy"} & set(words)]
    return [words[1:] if words[0] in INTRODUCTION and len(words) > 1 else words for words in spoken]


def number_of_phrase(words: list[str], start: int) -> tuple[str | None, int]:
    """The number of the noun phrase at `start` (determiner, adjectives, noun) and where it ends."""
    at = start + 1
    while at < len(words) and words[at] in ADJECTIVES:
        at += 1
    if words[at - 1] == "orange" and (at == len(words) or words[at] not in SINGULAR | PLURAL):
        return None, at  # the fruit, or the colour of a noun that the lexicon does not have
    if at < len(words) and words[at] in SINGULAR:
        return "singular", at + 1
    if at < len(words) and words[at] in PLURAL:
        return "plural", at + 1
    return None, at


def generate(path: Path, **settings) -> list[str]:
    generate_sample(path, **settings)
    with open(path, encoding="utf-8", newline="") as file:
        return file.read().splitlines()


@pytest.mark.slow
def test_the_packaged_sample_is_what_the_default_seed_makes(tmp_path):
    generate_sample(tmp_path / "sample.csv")
    packaged = resource("data", "sample.csv.gz").read_bytes()
    assert gzip.decompress(packaged) == (tmp_path / "sample.csv").read_bytes()
    assert len(packaged) < 1_000_000


def test_the_compressed_file_has_no_time_in_it(tmp_path):
    for name in ("a.csv.gz", "b.csv.gz"):
        generate_sample(tmp_path / name, utterances=300)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    assert (tmp_path / "a.csv.gz").read_bytes()[4:8] == bytes(4)


def test_another_seed_makes_another_sample(tmp_path):
    first, second = (generate(tmp_path / f"{seed}.csv", utterances=600, seed=seed) for seed in (0, 1))
    assert first[0] == second[0]
    assert len(set(first) & set(second)) < 0.05 * len(first)


def test_statistics_count_what_was_written(tmp_path):
    stats = generate_sample(tmp_path / "sample.csv", utterances=900, seed=3)
    with open(tmp_path / "sample.csv", encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    adults = [row for row in table if row["speaker_role"] != "Target_Child"]
    words = [word for row in adults for word in row["gloss"].split()]
    assert (stats.utterances, stats.child_utterances) == (900, len(table) - 900) == (len(adults), len(table) - 900)
    assert (stats.tokens, stats.types) == (len(words), len({word.lower() for word in words}))
    assert stats.transcripts == len({row["transcript_id"] for row in table})
    ages = [float(row["target_child_age"]) for row in table]
    assert (stats.youngest, stats.oldest) == (min(ages), max(ages)) == (180, 1800)


def test_the_columns_are_those_of_childes_db(rows, shared):
    with open(shared / "data" / "childes_db_csv" / "Snow.csv", encoding="utf-8", newline="") as file:
        assert list(rows[0]) == next(csv.reader(file))


def test_rows_are_in_order_and_ages_increase(rows):
    assert [int(row["id"]) for row in rows] == list(range(1, len(rows) + 1))
    age_of = {}
    for row in rows:
        age_of.setdefault(int(row["transcript_id"]), set()).add(int(row["target_child_age"]))
    assert all(len(ages) == 1 for ages in age_of.values())
    ages = [age_of[transcript].pop() for transcript in sorted(age_of)]
    assert all(earlier < later for earlier, later in pairwise(ages))
    assert all(int(row["num_tokens"]) == len(row["gloss"].split()) for row in rows)
    assert "" not in {value for row in rows for value in row.values()}


def test_enough_of_it_survives_preparation(tmp_path):
    from babyssa.corpus import prepare

    prepare([str(resource("data", "sample.csv.gz"))], tmp_path / "corpus")
    sentences = (tmp_path / "corpus" / "corpus.txt").read_text(encoding="utf-8").splitlines()
    assert len(sentences) >= 20_000
    assert {sentence[-1] for sentence in sentences} == {".", "?", "!"}


def test_cleaning_has_work_to_do(rows):
    unintelligible = Counter(
        row["speaker_role"] == "Target_Child" for row in rows if {"xxx", "yyy"} & set(row["gloss"].split())
    )
    assert unintelligible[True] > 100
    assert unintelligible[False] > 100
    assert len({row["speaker_role"] for row in rows}) > 3


def test_utterances_grow_longer_with_age(rows):
    def mean_length(youngest: int, oldest: int) -> float:
        lengths = [
            int(row["num_tokens"])
            for row in rows
            if row["speaker_role"] != "Target_Child" and youngest <= int(row["target_child_age"]) < oldest
        ]
        return sum(lengths) / len(lengths)

    assert mean_length(0, 600) + 0.1 < mean_length(600, 1200) < mean_length(1200, 2000) - 0.1


def test_no_slot_or_choice_is_left_unfilled(rows):
    assert not [row["gloss"] for row in rows if re.search(r"[^A-Za-z' ]", row["gloss"])]


def test_subjects_agree_with_their_verbs(adults):
    """A sentence that begins with a noun phrase right before its verb."""
    third = {"is", "was", "has", "does", "wants", "likes", "isn't", "wasn't", "hasn't", "doesn't"}
    other = {"are", "were", "have", "do", "want", "like", "aren't", "weren't", "haven't", "don't"}
    third |= {v.third for v in LEXICON.verbs}
    other |= {v.base for v in LEXICON.verbs if v.base != v.past and v.base not in SINGULAR | ADJECTIVES}
    seen = Counter()
    for words in adults:
        if words[0] not in DETERMINERS:
            continue
        number, end = number_of_phrase(words, 0)
        if number and end < len(words) and words[end] in third | other:
            assert (words[end] in third) == (number == "singular"), " ".join(words)
            seen[number] += 1
    assert min(seen["singular"], seen["plural"]) > 200


def test_subjects_agree_with_the_auxiliaries_before_them(adults):
    third = {"is", "was", "has", "does"}
    other = {"are", "were", "have", "do"}
    questions = {"what", "where", "how", "why", "who", "when", "color"}
    seen = Counter()
    for words in adults:
        for at in range(min(3, len(words) - 1)):
            starts = at == 0 or (words[at - 1] in questions and words[0] in questions - {"who"})
            if starts and words[at] in third | other and words[at + 1] in DETERMINERS:
                number, end = number_of_phrase(words, at + 1)
                if number and "and" not in words[end:] and (end == len(words) or words[end] not in PLURAL):
                    assert (words[at] in third) == (number == "singular"), " ".join(words)
                    seen[number] += 1
    assert min(seen["singular"], seen["plural"]) > 200


def test_subjects_agree_across_a_preposition_phrase(adults):
    prepositions = {p.word for p in LEXICON.prepositions}
    crossing = Counter()
    for words in adults:
        if words[0] not in DETERMINERS:
            continue
        number, end = number_of_phrase(words, 0)
        if number and end + 1 < len(words) and words[end] in prepositions and words[end + 1] in DETERMINERS:
            other, end = number_of_phrase(words, end + 1)
            if other and end < len(words) and words[end] in {"is", "are", "was", "were", "has", "have"}:
                assert (words[end] in {"is", "was", "has"}) == (number == "singular"), " ".join(words)
                crossing[number, other] += 1
    assert min(crossing["singular", "plural"], crossing["plural", "singular"]) >= 10


def test_pronouns_agree_with_their_verbs(adults):
    wrong = {
        *((p, v) for p in ("he", "she", "it") for v in ("are", "were", "have", "do", "don't", "'re")),
        *((p, v) for p in ("you", "we", "they") for v in ("is", "was", "has", "does", "am")),
        *(("I", v) for v in ("is", "are", "were", "has", "does")),
    }
    pronouns = {pronoun for pronoun, _ in wrong}
    seen = 0
    for words in adults:
        if words[0] in pronouns and len(words) > 1:
            assert tuple(words[:2]) not in wrong, " ".join(words)
            seen += 1
    assert seen > 1000


def test_determiners_agree_with_their_nouns(adults):
    singular = {"a", "an", "this", "every", "each", "another"}
    plural = {"these", "those", "many", "several", "both", "two", "three", "four", "five", "six", "seven", "eight"}
    seen = Counter()
    for words in adults:
        for at, word in enumerate(words[:-1]):
            if word in singular | plural:
                number, _ = number_of_phrase(words, at)
                if number:
                    assert (word in singular) == (number == "singular"), " ".join(words)
                    seen[word] += 1
    assert all(seen[word] >= 10 for word in ("a", "this", "these", "those", "every", "each", "many"))


def test_the_article_fits_the_sound_that_follows(adults):
    for words in adults:
        for article, word in pairwise(words):
            if article in ("a", "an"):
                assert (article == "an") == (word[0].lower() in "aeiou"), " ".join(words)


def test_auxiliaries_are_followed_by_the_base_form(adults):
    modals = {"can", "could", "will", "would", "should", "did", "must", "might", "may", "does", "do"}
    subjects = {p.subject for p in LEXICON.pronouns} | {"I"} | {n.name for n in LEXICON.names}
    bases = {v.base for v in LEXICON.verbs}
    inflected = {form for v in LEXICON.verbs for form in (v.third, v.past, v.progressive)} - bases
    seen = 0
    for words in adults:
        if words[0] in modals and len(words) > 2 and words[1] in subjects:
            assert words[2] not in inflected, " ".join(words)
            seen += words[2] in bases
    assert seen > 500


def test_have_is_followed_by_the_participle(adults):
    participles = {v.participle for v in LEXICON.verbs} | {v.base for v in LEXICON.verbs if v.base == v.participle}
    wrong = {form for v in LEXICON.verbs for form in (v.past, v.base, v.progressive)} - participles
    seen = 0
    for words in adults:
        for have, word in pairwise(words):
            if have in ("has", "hasn't", "haven't"):
                assert word not in wrong or word in SINGULAR | PLURAL, " ".join(words)
                seen += word in participles
    assert seen > 100


def test_a_reflexive_has_the_gender_of_its_subject(adults):
    gender = {n.name: n.gender for n in LEXICON.names}
    verbs = {form for v in LEXICON.verbs for form in (v.past, v.third)} | {"hurt", "dressed", "fed"}
    seen = Counter()
    for words in adults:
        for at, (subject, verb, reflexive) in enumerate(zip(words, words[1:], words[2:], strict=False)):
            starts_clause = at == 0 or words[at - 1] in ("thinks", "thought", "says", "said", "knows", "knew")
            if starts_clause and subject in gender and verb in verbs and reflexive in ("himself", "herself"):
                assert reflexive == {"male": "himself", "female": "herself"}[gender[subject]], " ".join(words)
                seen[reflexive] += 1
    assert min(seen["himself"], seen["herself"]) >= 10


def test_subjects_are_nominative_and_objects_accusative(adults):
    seeing = {"saw", "found", "chased", "hugged", "kissed", "tickled", "gave", "showed", "helped", "scared"}
    nominative, accusative = {"I", "he", "she", "we", "they"}, {"me", "him", "us", "them"}
    seen = 0
    for words in adults:
        for verb, pronoun in pairwise(words):
            assert not (verb in seeing and pronoun in nominative), " ".join(words)
            assert not (pronoun in seeing and verb in accusative), " ".join(words)
            seen += verb in seeing and pronoun in accusative
    assert seen > 100


def test_the_words_of_the_packaged_suite_are_taught(adults):
    heard = Counter(word.lower() for words in adults for word in words)
    tested = {
        word
        for path in (resource_folder("probes") / "suite").glob("*.txt")
        for word in path.read_text(encoding="utf-8").lower().split()
    }
    assert len(tested) > 500
    assert not {word: heard[word] for word in tested - set(".?!") if heard[word] < 5}


def test_existing_files_are_kept(tmp_path, run_babyssa):
    out = tmp_path / "sample.csv"
    out.write_text("mine")
    with pytest.raises(OutputExistsError):
        generate_sample(out)
    status, stdout, stderr = run_babyssa("sample", "--out", out)
    assert (status, stdout) == (1, "")
    assert "already exists" in stderr
    assert stderr.count("\n") == 1
    assert out.read_text() == "mine"


def test_too_few_utterances_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="at least"):
        generate_sample(tmp_path / "sample.csv", utterances=3)
    assert not list(tmp_path.iterdir())


def test_the_command_writes_what_the_function_writes(tmp_path, run_babyssa):
    expected = generate(tmp_path / "function.csv", utterances=200, seed=5)
    status, stdout, _ = run_babyssa("sample", "--out", tmp_path / "command.csv", "--utterances", 200, "--seed", 5)
    assert status == 0
    assert "200" in stdout
    assert (tmp_path / "command.csv").read_text(encoding="utf-8").splitlines() == expected
