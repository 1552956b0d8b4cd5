"""Reading, writing and locking, and where packaged files are."""

import errno
import json
import os
import signal

import pytest

from babyssa.errors import BabySSAError, BusyError, DataError, OutputExistsError
from babyssa.files import (
    LOCK,
    atomic_path,
    atomic_write,
    check_overwrite,
    locked,
    read_json,
    read_yaml,
    remove_partials,
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


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path):
    folder = tmp_path / "deep" / "folder"
    for content in ("first", "second"):
        with atomic_path(folder) as partial:
            partial.mkdir()
            (partial / content).write_text(content)
    with pytest.raises(RuntimeError), atomic_path(folder) as partial:
        partial.mkdir()
        (partial / "third").write_text("half")
        raise RuntimeError
    assert [path.name for path in folder.iterdir()] == ["second"] and list(folder.parent.iterdir()) == [folder]


def test_files_join_those_of_a_folder_and_the_last_one_says_that_all_are_there(tmp_path, monkeypatch):
    (tmp_path / "kept").write_text("kept")
    moved = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda old, new: (moved.append(new.name), replace(old, new)))
    with atomic_path(tmp_path, last="b") as partial:
        partial.mkdir()
        for name in ("b", "a", "c"):
            (partial / name).write_text(name)
    assert moved == ["a", "c", "b"] and {path.name for path in tmp_path.iterdir()} == {"kept", "a", "b", "c"}


def kill_within(context, act=lambda value: None) -> None:
    """Enter a context in another process, act on its value, and be killed there."""
    child = os.fork()
    if child == 0:
        with context as value:
            act(value)
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def test_what_a_killed_process_leaves_half_written_can_be_removed(tmp_path):
    kill_within(atomic_path(tmp_path / "a"), lambda partial: partial.mkdir())
    kill_within(atomic_path(tmp_path / "b"), lambda partial: partial.write_text("half"))
    assert len(list(tmp_path.iterdir())) == 2
    remove_partials(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_lock_names_its_holder_and_leaves_nothing(tmp_path):
    folder = tmp_path / "new"
    with locked(folder, "a sweep"):
        says = rf"new: is in use by a sweep, process {os.getpid()} on \S+; wait"
        with pytest.raises(BusyError, match=says), locked(folder, "training"):
            pass
        assert (folder / LOCK).is_file()
    assert list(folder.iterdir()) == []


def test_a_killed_process_leaves_no_lock(tmp_path):
    kill_within(locked(tmp_path, "a sweep"))
    assert (tmp_path / LOCK).is_file()
    with locked(tmp_path, "training"):
        assert (tmp_path / LOCK).read_text().startswith(f"training, process {os.getpid()}")


def test_where_there_are_no_locks_the_work_is_done_with_a_warning(tmp_path, monkeypatch, capsys):
    def flock(descriptor, operation):
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr("fcntl.flock", flock)
    with locked(tmp_path, "a sweep"):
        pass
    assert "cannot be locked (Operation not supported): start nothing else in it" in capsys.readouterr().err


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
