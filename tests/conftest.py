"""Fixtures shared by all tests."""

import os
from pathlib import Path

import numpy as np
import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("MPLBACKEND", "Agg")
# Tests run beside each other (pytest -n); threads of one would wait for those of another.
os.environ.setdefault("OMP_NUM_THREADS", "1")

REPOSITORY = Path(__file__).resolve().parent.parent


# A tiny corpus; its tokenizer is made as users make theirs.
SENTENCES = [
    "the dog sees a cat .",
    "where is the ball ?",
    "you want the red ball , don't you ?",
    "look !",
    "the dogs in the garden are big .",
    "mommy gave the baby a cookie .",
    "do you see him ?",
    "he washed himself .",
    "that's a nice big truck that you have there , isn't it ?",
    "give me the book .",
] * 12


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real corpora and suites, which are not part of the repository."""
    folder = Path(os.environ.get("BABYSSA_SHARED", REPOSITORY.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no real data at {folder}; set BABYSSA_SHARED to the folder that has it")
    return folder


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory):
    """The user's own cache is left alone."""
    folder = tmp_path_factory.mktemp("cache")
    os.environ["BABYSSA_CACHE"] = str(folder)
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


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def tokenizer_folder(corpus, tmp_path_factory):
    from babyssa.data import train_tokenizer

    folder = tmp_path_factory.mktemp("tokenizer")
    train_tokenizer(corpus, folder, vocab_size=350)
    return folder


@pytest.fixture(scope="session")
def tokenizer(tokenizer_folder):
    from babyssa.data import load_tokenizer

    return load_tokenizer(tokenizer_folder)


@pytest.fixture(scope="session")
def some_sentences():
    """Makes random sentences of given lengths, between bos 3 and eos 4, of the ids 5 to 199."""
    from babyssa.encoder import Sentences

    def make(lengths, seed=0):
        generator = np.random.default_rng(seed)
        return Sentences.of([[3, *generator.integers(5, 200, length).tolist(), 4] for length in lengths])

    return make
