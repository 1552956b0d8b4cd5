"""A disk that fills up: a clear error, and what was written before is as it was."""

import dataclasses
import resource
import shutil
import signal
import subprocess

import pytest

from babyssa import probe
from babyssa.encoder import train_encoder
from babyssa.errors import StorageError
from babyssa.files import atomic_write
from babyssa.training.resume import ResumePoints


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1.2 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1200k", "none", folder], capture_output=True
    ).returncode:
        pytest.skip("no right to mount a file system")
    yield folder
    subprocess.run(["umount", folder], check=True)


def fill(folder, leave):
    """Leave only so many bytes free in `folder`."""
    free = shutil.disk_usage(folder).free
    (folder / "ballast").write_bytes(b"\0" * (free - leave))


def test_training_stops_with_one_line_and_resumes_when_there_is_space(settings, small_disk, contents, monkeypatch):
    settings = dataclasses.replace(settings, out=small_disk / "run")
    write = ResumePoints.save

    def save_and_fill(self, values, *state):
        if values["step"] == 12:
            fill(small_disk, 20_000)
        write(self, values, *state)

    monkeypatch.setattr(ResumePoints, "save", save_and_fill)
    with pytest.raises(StorageError, match=r"step-12: cannot be written: no space left.*free some space"):
        train_encoder(settings)
    assert sorted(path.name for path in (settings.out / "resume").iterdir()) == ["step-4", "step-8"]
    monkeypatch.undo()
    (small_disk / "ballast").unlink()
    train_encoder(settings)
    found = contents(settings.out)
    shutil.rmtree(settings.out)
    train_encoder(settings)
    assert contents(settings.out) == found


def test_probing_stops_with_one_line_and_leaves_the_earlier_result(settings, small_disk, corpus, monkeypatch):
    train_encoder(settings)
    pairs = small_disk / "pairs.csv"
    rows = [f"the dogs are big {i} .,the dogs is big {i} ." for i in range(200)]
    pairs.write_text("\n".join(["good,bad", *rows]) + "\n")
    out = small_disk / "result"
    fill(small_disk, 5_000)
    with pytest.raises(StorageError, match=r"pairs\.csv: cannot be written: no space left"):
        probe(settings.out, str(pairs), out=out)
    assert list(out.iterdir()) == []


def test_a_file_over_the_limit_leaves_the_earlier_one(tmp_path, in_a_process):
    path = tmp_path / "a.txt"
    path.write_text("before")

    def write_too_much():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        with pytest.raises(StorageError, match="larger than a file may be"), atomic_write(path) as file:
            file.write("x" * 100_000)

    assert in_a_process(write_too_much) == 0
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]
