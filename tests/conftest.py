"""Fixtures shared by all tests."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("MPLBACKEND", "Agg")
# Tests run beside each other (pytest -n); threads of one would wait for those of another.
os.environ.setdefault("OMP_NUM_THREADS", "1")

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real corpora and suites, which are not part of the repository."""
    folder = Path(os.environ.get("BABYSSA_SHARED", REPOSITORY.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no real data at {folder}; set BABYSSA_SHARED to the folder that has it")
    return folder


@pytest.fixture
def run_babyssa(capsys):
    """Run one command line in this process; returns (exit status, stdout, stderr)."""
    from babyssa.cli import main

    def run(*argv) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main([str(word) for word in argv])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run
