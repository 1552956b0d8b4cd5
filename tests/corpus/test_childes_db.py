"""The reader of childes-db CSV."""

import gzip

import pytest

from babyssa.corpus import read_utterances
from babyssa.corpus.lines import LINE_LIMIT
from babyssa.errors import ConfigError, DataError

HEADER = "gloss,type,speaker_role,num_tokens,transcript_id,utterance_order,target_child_age,collection_name\n"


def write(tmp_path, *rows, name="x.csv", header=HEADER):
    path = tmp_path / name
    path.write_text(header + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def test_every_column_is_read(tmp_path):
    path = write(tmp_path, "what's that,question,Mother,2,17,3,913.125,Eng-NA")
    (utterance,) = read_utterances(path)
    assert utterance.text == "what's that"
    assert (utterance.type, utterance.role, utterance.collection) == ("question", "Mother", "Eng-NA")
    assert (utterance.transcript, utterance.order, utterance.age) == ("17", 3, 913.125)
    assert utterance.source == str(path)


@pytest.mark.parametrize("word", ["null", "nan", "NA", "None", "N/A", "-", "TRUE", "1e5"])
def test_a_gloss_that_looks_like_a_missing_value_is_speech(tmp_path, word):
    (utterance,) = read_utterances(write(tmp_path, f"{word},declarative,Mother,1,1,1,400,Eng-NA"))
    assert utterance.text == word


def test_missing_ages_and_collections_are_none(tmp_path):
    path = write(tmp_path, "a,declarative,Mother,1,1,1,NA,NA", "b,declarative,Mother,1,1,2,,")
    assert [(u.age, u.collection) for u in read_utterances(path)] == [(None, None)] * 2


@pytest.mark.parametrize("age", ["0", "0.0"])
def test_age_zero_is_an_unknown_age(tmp_path, age):
    assert [u.age for u in read_utterances(write(tmp_path, f"a,declarative,Mother,1,1,1,{age},NA"))] == [None]


def ages(path, **options):
    return [utterance.age for utterance in read_utterances(path, **options)]


@pytest.mark.parametrize("given", [["144.0"], ["24", "36.5"], ["2.5", "NA", "5"], ["100"], ["216"]])
def test_ages_that_need_not_be_days_stop_with_the_option_to_pass(tmp_path, given):
    path = write(tmp_path, *(f"a,declarative,Mother,1,1,{i},{age},NA" for i, age in enumerate(given)))
    with pytest.raises(
        DataError, match=r"x\.csv: target_child_age is .*days, months or years\?; pass --age-unit to"
    ):
        list(read_utterances(path))


def test_the_unit_of_ages_may_be_given(tmp_path):
    path = write(tmp_path, "a,declarative,Mother,1,1,1,NA,NA", "a,declarative,Mother,1,1,1,12,NA")
    assert ages(path, age_unit="months") == [None, 365.25]
    assert ages(path, age_unit="years") == [None, 12 * 365.25]
    assert ages(path, age_unit="days") == [None, 12]
    with pytest.raises(ConfigError, match="did you mean 'months'"):
        ages(path, age_unit="month")


def test_one_age_that_can_only_be_days_settles_the_unit(tmp_path):
    path = write(tmp_path, *(f"a,declarative,Mother,1,1,{age},{age},NA" for age in (91, 120, 300, 90)))
    assert ages(path) == [91, 120, 300, 90]


def test_days_are_not_read_as_months(tmp_path):
    path = write(tmp_path, "a,declarative,Mother,1,1,1,2131,NA")
    with pytest.raises(DataError, match=r"x\.csv:2: .*'2131', not a child's age in months; check --age-unit"):
        ages(path, age_unit="months")


def test_numbers_may_be_written_as_pandas_writes_them(tmp_path):
    (utterance,) = read_utterances(write(tmp_path, "a,declarative,Mother,1,17.0,3.0,400.0,"))
    assert (utterance.transcript, utterance.order, utterance.age) == ("17", 3, 400)


@pytest.fixture
def parquet(tmp_path):
    """An export as parquet, and the same as CSV."""
    import pandas

    rows = {
        "gloss": ["null", "more juice", None, "NA"],
        "type": ["declarative", "question", "declarative", "declarative"],
        "speaker_role": ["Mother", "Target_Child", "Mother", "Father"],
        "transcript_id": [17, 17, 18, 18],
        "utterance_order": [1, 2, 1, 2],
        "target_child_age": [400.5, 400.5, None, float("nan")],
        "collection_name": ["Eng-NA", "Eng-NA", None, "Eng-UK"],
        "num_tokens": [1, 2, 0, 1],
    }
    path = tmp_path / "utterance.parquet"
    pandas.DataFrame(rows).to_parquet(path)
    pandas.DataFrame(rows).to_csv(tmp_path / "same.csv", na_rep="")
    return path


def test_parquet_is_read_as_childes_db_by_its_columns(parquet, tmp_path):
    def content(path):
        return [
            (u.text, u.type, u.role, u.age, u.transcript, u.order, u.collection) for u in read_utterances(path)
        ]

    assert content(parquet) == content(tmp_path / "same.csv")
    assert [row[0] for row in content(parquet)] == ["null", "more juice", "", "NA"]
    assert [row[3] for row in content(parquet)] == [400.5, 400.5, None, None]
    (tmp_path / "folder").mkdir()
    parquet.rename(tmp_path / "folder" / parquet.name)
    assert len(content(tmp_path / "folder")) == 4


def test_parquet_ages_have_a_unit_too(tmp_path):
    import pandas

    row = {"gloss": "a", "type": "t", "speaker_role": "Mother", "transcript_id": 1, "utterance_order": 1}
    pandas.DataFrame([row | {"target_child_age": 144.0}]).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="--age-unit"):
        list(read_utterances(tmp_path / "a.parquet"))
    assert ages(tmp_path / "a.parquet", age_unit="months") == [144 * 30.4375]


def test_other_parquet_is_a_dataset_and_broken_parquet_one_line(tmp_path):
    import pandas

    pandas.DataFrame({"text": ["one line here"]}).to_parquet(tmp_path / "a.parquet")
    assert [u.text for u in read_utterances(tmp_path / "a.parquet")] == ["one line here"]
    with pytest.raises(DataError, match="lacks the columns gloss"):
        list(read_utterances(tmp_path / "a.parquet", kind="childes-db"))
    (tmp_path / "b.parquet").write_bytes(b"PAR1" + bytes(20) + b"PAR1")
    with pytest.raises(DataError, match=r"b\.parquet: cannot be read as parquet"):
        list(read_utterances(tmp_path / "b.parquet", kind="childes-db"))


def test_columns_may_come_in_any_order_and_the_collection_be_absent(tmp_path):
    header = "target_child_age,utterance_order,extra,gloss,speaker_role,transcript_id,type\n"
    (utterance,) = read_utterances(write(tmp_path, '300,1,,"yes, dear",Aunt,9,declarative', header=header))
    assert (utterance.text, utterance.age, utterance.role, utterance.collection) == (
        "yes, dear",
        300,
        "Aunt",
        None,
    )


def test_gzip_byte_order_mark_blank_lines_and_windows_line_ends_do_not_matter(tmp_path):
    plain = write(tmp_path, "a,declarative,Mother,1,1,1,400,Eng-NA", "b,question,Mother,1,1,2,400,Eng-NA")
    other = tmp_path / "y.csv.gz"
    text = "\ufeff" + plain.read_text(encoding="utf-8").replace("\n", "\r\n") + "\r\n"
    other.write_bytes(gzip.compress(text.encode()))
    assert [u.text for u in read_utterances(other)] == [u.text for u in read_utterances(plain)] == ["a", "b"]


GOOD = "a b,declarative,Mother,2,1,1,400,Eng-NA"


@pytest.mark.parametrize(
    ("row", "line", "what"),
    [
        ("a b,declarative,Mother", 3, "3 fields where the header has 8"),
        (f"{GOOD},9", 3, "9 fields where the header has 8"),
        ('"a b,declarative,Mother,2,1,1,400,Eng-NA', 3, "broken CSV row"),
        ('"a" b,declarative,Mother,2,1,1,400,Eng-NA', 3, "broken CSV row"),
        ("a b,declarative,Mother,2,1,1,young,Eng-NA", 3, "target_child_age is 'young'"),
        ("a b,declarative,Mother,2,1,1,nan,Eng-NA", 3, "target_child_age is 'nan'"),
        ("a b,declarative,Mother,2,1,1,-5,Eng-NA", 3, "target_child_age is '-5'"),
        ("a b,declarative,Mother,2,1,first,400,Eng-NA", 3, "utterance_order is 'first'"),
    ],
)
def test_a_broken_row_is_an_error_with_its_line(tmp_path, row, line, what):
    path = write(tmp_path, GOOD, row)
    with pytest.raises(DataError, match=what) as caught:
        list(read_utterances(path))
    assert (caught.value.path, caught.value.line) == (path, line)


def test_the_line_is_right_after_a_gloss_of_two_lines(tmp_path):
    path = write(tmp_path, '"a\nb",declarative,Mother,2,1,1,400,Eng-NA', "short,row")
    with pytest.raises(DataError, match="2 fields") as caught:
        list(read_utterances(path))
    assert caught.value.line == 4


def test_missing_columns_are_named_with_those_found(tmp_path):
    path = write(tmp_path, header="gloss,type,who\n")
    with pytest.raises(DataError, match=r"speaker_role, transcript_id.*\(found: gloss, type, who\)"):
        list(read_utterances(path))


def test_lines_may_end_in_carriage_returns_alone(tmp_path):
    path = write(tmp_path, "a,declarative,Mother,1,1,1,400,NA", '"b\nb",declarative,Mother,1,1,2,400,NA')
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r"))
    assert [u.text for u in read_utterances(path)] == ["a", "b\rb"]


def test_an_empty_file_is_an_error(tmp_path):
    with pytest.raises(DataError, match="is empty"):
        list(read_utterances(write(tmp_path, header="")))


def test_bytes_that_are_not_utf8_are_an_error_with_their_line(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(HEADER.encode() + GOOD.encode() + b"\ncaf\xe9,declarative,Mother,1,1,2,400,Eng-NA\n")
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
