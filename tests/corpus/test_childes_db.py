"""The reader of childes-db CSV."""

import gzip

import pytest

from babyssa.corpus import read_utterances
from babyssa.corpus.lines import LINE_LIMIT
from babyssa.errors import DataError

HEADER = "gloss,type,speaker_role,num_tokens,transcript_id,utterance_order,target_child_age,collection_name\n"


def write(tmp_path, *rows, name="x.csv", header=HEADER):
    path = tmp_path / name
    path.write_text(header + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def test_every_column_is_read(tmp_path):
    path = write(tmp_path, "what's that,question,Mother,2,17,3,91.3125,Eng-NA")
    (utterance,) = read_utterances(path)
    assert utterance.text == "what's that"
    assert (utterance.type, utterance.role, utterance.collection) == ("question", "Mother", "Eng-NA")
    assert (utterance.transcript, utterance.order, utterance.age) == ("17", 3, 91.3125)
    assert utterance.source == str(path)


@pytest.mark.parametrize("word", ["null", "nan", "NA", "None", "N/A", "-", "TRUE", "1e5"])
def test_a_gloss_that_looks_like_a_missing_value_is_speech(tmp_path, word):
    (utterance,) = read_utterances(write(tmp_path, f"{word},declarative,Mother,1,1,1,100,Eng-NA"))
    assert utterance.text == word


def test_missing_ages_and_collections_are_none(tmp_path):
    path = write(tmp_path, "a,declarative,Mother,1,1,1,NA,NA", "b,declarative,Mother,1,1,2,,")
    assert [(u.age, u.collection) for u in read_utterances(path)] == [(None, None)] * 2


def test_columns_may_come_in_any_order_and_the_collection_be_absent(tmp_path):
    header = "target_child_age,utterance_order,extra,gloss,speaker_role,transcript_id,type\n"
    (utterance,) = read_utterances(write(tmp_path, '200,1,,"yes, dear",Aunt,9,declarative', header=header))
    assert (utterance.text, utterance.age, utterance.role, utterance.collection) == (
        "yes, dear",
        200,
        "Aunt",
        None,
    )


def test_gzip_byte_order_mark_blank_lines_and_windows_line_ends_do_not_matter(tmp_path):
    plain = write(tmp_path, "a,declarative,Mother,1,1,1,100,Eng-NA", "b,question,Mother,1,1,2,100,Eng-NA")
    other = tmp_path / "y.csv.gz"
    text = "\ufeff" + plain.read_text(encoding="utf-8").replace("\n", "\r\n") + "\r\n"
    other.write_bytes(gzip.compress(text.encode()))
    assert [u.text for u in read_utterances(other)] == [u.text for u in read_utterances(plain)] == ["a", "b"]


GOOD = "a b,declarative,Mother,2,1,1,100,Eng-NA"


@pytest.mark.parametrize(
    ("row", "line", "what"),
    [
        ("a b,declarative,Mother", 3, "3 fields where the header has 8"),
        (f"{GOOD},9", 3, "9 fields where the header has 8"),
        ('"a b,declarative,Mother,2,1,1,100,Eng-NA', 3, "broken CSV row"),
        ('"a" b,declarative,Mother,2,1,1,100,Eng-NA', 3, "broken CSV row"),
        ("a b,declarative,Mother,2,1,1,young,Eng-NA", 3, "target_child_age is 'young'"),
        ("a b,declarative,Mother,2,1,1,nan,Eng-NA", 3, "target_child_age is 'nan'"),
        ("a b,declarative,Mother,2,1,1,-5,Eng-NA", 3, "target_child_age is '-5'"),
        ("a b,declarative,Mother,2,1,first,100,Eng-NA", 3, "utterance_order is 'first'"),
    ],
)
def test_a_broken_row_is_an_error_with_its_line(tmp_path, row, line, what):
    path = write(tmp_path, GOOD, row)
    with pytest.raises(DataError, match=what) as caught:
        list(read_utterances(path))
    assert (caught.value.path, caught.value.line) == (path, line)


def test_the_line_is_right_after_a_gloss_of_two_lines(tmp_path):
    path = write(tmp_path, '"a\nb",declarative,Mother,2,1,1,100,Eng-NA', "short,row")
    with pytest.raises(DataError, match="2 fields") as caught:
        list(read_utterances(path))
    assert caught.value.line == 4


def test_missing_columns_are_named_with_those_found(tmp_path):
    path = write(tmp_path, header="gloss,type,who\n")
    with pytest.raises(DataError, match=r"speaker_role, transcript_id.*\(found: gloss, type, who\)"):
        list(read_utterances(path))


def test_an_empty_file_is_an_error(tmp_path):
    with pytest.raises(DataError, match="is empty"):
        list(read_utterances(write(tmp_path, header="")))


def test_bytes_that_are_not_utf8_are_an_error_with_their_line(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(HEADER.encode() + GOOD.encode() + b"\ncaf\xe9,declarative,Mother,1,1,2,100,Eng-NA\n")
    with pytest.raises(DataError, match="byte 0xe9 is not UTF-8") as caught:
        list(read_utterances(path))
    assert caught.value.line == 3


def test_a_line_without_end_does_not_fill_the_memory(tmp_path):
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(HEADER.encode() + b"a" * (3 * LINE_LIMIT)))
    with pytest.raises(DataError, match="longer than") as caught:
        list(read_utterances(path))
    assert caught.value.line == 2


def test_a_truncated_gzip_is_an_error(tmp_path):
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress((HEADER + f"{GOOD}\n" * 50).encode())[:-12])
    with pytest.raises(DataError, match="broken gzip"):
        list(read_utterances(path))
