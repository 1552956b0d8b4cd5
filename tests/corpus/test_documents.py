"""Documents of a text, a prepared corpus or a dataset."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from babyssa.corpus import read_documents
from babyssa.corpus.documents import shuffled
from babyssa.errors import DataError

TEXT = "\na b\nc\n\n \nd\n\n"


@pytest.mark.parametrize(
    "layout, documents", [("lines", ["a b", "c", "d"]), ("blocks", ["a b\nc", "d"]), ("file", [TEXT])]
)
def test_documents_of_a_text(layout, documents, tmp_path):
    (tmp_path / "a.txt").write_text(TEXT)
    assert list(read_documents(tmp_path / "a.txt", layout=layout)) == documents


@pytest.mark.parametrize("layout", ["lines", "blocks", "file"])
def test_a_text_of_white_space_has_no_documents(layout, tmp_path):
    (tmp_path / "a.txt").write_text(" \n\n \n")
    assert list(read_documents(tmp_path / "a.txt", layout=layout)) == []


@pytest.mark.parametrize("end", ["\r", "\r\n"])
@pytest.mark.parametrize("layout", ["lines", "blocks", "file"])
def test_lines_may_end_as_on_any_system(layout, end, tmp_path):
    for name, text in (("a.txt", TEXT), ("b.txt", TEXT.replace("\n", end))):
        (tmp_path / name).write_bytes(text.encode())
    first, second = (list(read_documents(tmp_path / name, layout=layout)) for name in ("a.txt", "b.txt"))
    assert first == second


def test_empty_lines_are_counted(tmp_path, capsys):
    (tmp_path / "a.txt").write_text(TEXT)
    list(read_documents(tmp_path / "a.txt"))
    assert capsys.readouterr().err == f"{tmp_path}/a.txt: skipped 4 empty lines (the first is line 1)\n"


HEADER = "gloss,type,speaker_role,transcript_id,utterance_order,target_child_age,collection_name"
EXPORT = "\n".join(
    [HEADER, "more juice,declarative,Target_Child,1,1,400,Eng-NA", "what is it,question,Mother,1,2,400,Eng-NA", ""]
)
CHAT = (
    "@UTF8\n@Begin\n@Participants:\tCHI Target_Child, MOT Mother\n@ID:\teng|X|CHI|1;00.|||||Target_Child|||\n"
    "*CHI:\tno no no .\n*MOT:\twhat is it ?\n@End\n"
)


@pytest.mark.parametrize(("name", "content"), [("a.csv", EXPORT), ("a.cha", CHAT)])
@pytest.mark.parametrize("layout", ["lines", "file"])
def test_a_transcript_is_read_as_prepare_reads_it(tmp_path, name, content, layout, capsys):
    (tmp_path / name).write_text(content)
    assert list(read_documents(tmp_path / name, layout=layout)) == ["what is it ?"]
    assert "kept 1 of 2 utterances" in capsys.readouterr().err


def test_a_prepared_folder_is_its_text(tmp_path):
    (tmp_path / "corpus.txt").write_text("one .\ntwo .\n")
    assert list(read_documents(tmp_path)) == ["one .", "two ."]


@pytest.fixture(params=["jsonl", "parquet", "csv", "saved"])
def dataset(request, tmp_path):
    """The same three rows as a dataset of each kind; one is empty."""
    import datasets

    rows = datasets.Dataset.from_dict({"story": ["a\n\nb", "", "c"], "number": [1, 2, 3]})
    path = tmp_path / f"rows.{request.param}"
    if request.param == "jsonl":
        rows.to_json(path)
    elif request.param == "saved":
        rows.save_to_disk(path)
    else:
        getattr(rows, f"to_{request.param}")(path)
    return path


@pytest.mark.parametrize("streaming", [False, True])
def test_each_row_of_a_dataset_is_a_document(dataset, streaming):
    assert list(read_documents(dataset, text_column="story", streaming=streaming)) == ["a\n\nb", "c"]
    with pytest.raises(DataError, match=r"no column 'text' .*story"):
        list(read_documents(dataset, streaming=streaming))
    with pytest.raises(DataError, match="not text"):
        list(read_documents(dataset, text_column="number", streaming=streaming))
    with pytest.raises(DataError, match="no split"):
        list(read_documents(dataset, text_column="story", split="test", streaming=streaming))


@pytest.mark.parametrize("streaming", [False, True])
def test_a_broken_dataset_is_one_line(streaming, tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "a"}) + "\n{broken\n")
    with pytest.raises(DataError, match=r"a\.jsonl: cannot be (read|loaded) as a dataset") as caught:
        list(read_documents(tmp_path / "a.jsonl", streaming=streaming))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["nowhere.txt", "no/such/corpus", "./nowhere"])
def test_a_missing_text_is_one_line(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="no such file"):
        list(read_documents(name))


@given(count=st.integers(0, 30), size=st.integers(1, 12), seed=st.integers(0, 5))
def test_a_buffer_shuffles_without_losing_anything(count, size, seed):
    documents = [str(i) for i in range(count)]
    drawn = list(shuffled(documents, size, [seed]))
    assert sorted(drawn, key=int) == documents and drawn == list(shuffled(documents, size, [seed]))
    if size == 1:
        assert drawn == documents
    # Nothing comes before it has been read.
    assert all(int(document) < place + size for place, document in enumerate(drawn))
