"""Running text: lines, and the labels that say who speaks."""

import pytest

from babyssa.corpus import read_utterances
from babyssa.corpus.cleaning import is_heading
from babyssa.corpus.text import running_text


@pytest.mark.parametrize(
    ("line", "text", "role"),
    [
        ("*CHI:\tmore juice", "more juice", "Target_Child"),
        ("*CHI: more juice", "more juice", "Target_Child"),
        ("*chi:\tmore juice", "more juice", "Target_Child"),
        ("*CH2:\tmore juice", "more juice", "Target_Child"),
        ("CHI: more juice", "more juice", "Target_Child"),
        ("*MOT:\tmore juice ?\n", "more juice ?\n", "MOT"),
        ("  *PAR0:\tyes", "yes", "PAR0"),
        ("MOT:\tyes", "yes", "MOT"),
        ("A:\tyes", "yes", "A"),
        ("*CHI:", "", "Target_Child"),
        ("*CHINA: a country", "a country", "CHINA"),
    ],
)
def test_a_label_comes_off_and_says_who_speaks(line, text, role):
    utterance = running_text(line, "a.txt", 1)
    assert (utterance.text, utterance.role, utterance.type) == (text, role, None)


@pytest.mark.parametrize(
    "line",
    [
        "Note: this",
        "* an item",
        "I: me",
        "U.S.: a country",
        "FBI: open up",
        "he said *MOT: no",
        "*Note: well",
        "12:30",
    ],
)
def test_other_lines_with_colons_are_left_as_they_are(line):
    assert running_text(line, "a.txt", 1).text == line
    assert running_text(line, "a.txt", 1).role is None


@pytest.mark.parametrize(
    "line",
    [
        "= = = NAME = = =",
        " = = = PG123 = = = \n",
        "= = = = Antelmi = = = =",
        "== See also ==",
        "= Title =",
        "= = =",
        "@Begin",
        "@Participants:\tCHI Target_Child",
        "%mor:\tn|dog",
    ],
)
def test_headings_and_tiers_are_no_sentences(line):
    assert is_heading(line)


@pytest.mark.parametrize("line", ["a = b", "= b", "=) hi =", "@john hello", "100 % sure", "", "=" * 100_000 + "x"])
def test_sentences_are_no_headings(line):
    assert not is_heading(line)


def test_rows_of_a_dataset_have_lines_and_labels_too(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "*MOT:\\tone two\\rthree\\r\\nfour"}\n')
    utterances = list(read_utterances(tmp_path / "a.jsonl"))
    assert [(u.text, u.role) for u in utterances] == [("one two", "MOT"), ("three", None), ("four", None)]


def test_an_export_read_as_a_dataset_is_said_to_be_one(tmp_path, capsys):
    header = "gloss,type,speaker_role,transcript_id,utterance_order,target_child_age"
    (tmp_path / "a.csv").write_text(f"{header}\nmore juice,declarative,Target_Child,1,1,400\n")
    assert len(list(read_utterances(tmp_path / "a.csv", kind="datasets", text_column="gloss"))) == 1
    assert "looks like a childes-db export; --kind childes-db" in capsys.readouterr().err
