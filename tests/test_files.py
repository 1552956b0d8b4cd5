"""Reading and writing results, and where packaged files are."""

import json

import pytest

from babyssa.errors import BabySSAError, DataError, OutputExistsError
from babyssa.files import (
    atomic_write,
    check_overwrite,
    read_json,
    read_yaml,
    resource,
    sha256,
    versions,
    write_json,
)


def test_a_failed_write_leaves_the_earlier_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("before")
    with pytest.raises(RuntimeError), atomic_write(path) as file:
        file.write("half")
        raise RuntimeError
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]


def test_json_round_trips_and_refuses_nan(tmp_path):
    path = tmp_path / "deep" / "a.json"
    write_json(path, {"ä": [1, None]})
    assert read_json(path) == {"ä": [1, None]} and path.read_text().endswith("}\n")
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, {"a": float("nan")})
    assert read_json(path) == {"ä": [1, None]}


@pytest.mark.parametrize(
    "content, says", [(b"{\n1", "a.json:2: broken JSON"), (b"\xff", "not UTF-8"), (None, "no such file")]
)
def test_broken_json_is_named(content, says, tmp_path):
    if content is not None:
        (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_json(tmp_path / "a.json")
    assert says in str(caught.value)


def test_results_are_not_overwritten_unless_asked(tmp_path):
    check_overwrite(tmp_path / "new", ["a"], False)
    assert not (tmp_path / "new").exists()
    (tmp_path / "a").write_text("x")
    with pytest.raises(OutputExistsError, match="already exists"):
        check_overwrite(tmp_path, ["a"], False)
    check_overwrite(tmp_path, ["a"], True)
    with pytest.raises(OutputExistsError, match="is a file"):
        check_overwrite(tmp_path / "a", ["b"], True)


def test_a_hash_is_that_of_the_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert sha256(tmp_path / "a") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_versions_are_plain_values():
    assert json.dumps(versions()) and versions()["babyssa"] == "0.1.0"


def test_packaged_files_are_found_and_unknown_ones_suggested():
    for folder, name in (("configs", "encoder/small.yaml"), ("data", "sample.csv.gz"), ("probes", "words.yaml")):
        assert resource(folder, name).is_file()
    with pytest.raises(BabySSAError, match=r"did you mean 'encoder/small\.yaml'"):
        resource("configs", "encoder/smal.yaml")


def test_yaml_knows_the_line_of_keys_and_list_items(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("a: 1\nlist:\n  - {b: 2}\n  - b: 3\n    c: 4\n", encoding="utf-8")
    file = read_yaml(path)
    assert file.lines == {"a": 1, "list": 2}
    assert [file.line("list", 0), file.line("list", 1, "c"), file.line("list", 1, "absent", 7)] == [3, 5, 4]
    assert file.line("absent") is None
