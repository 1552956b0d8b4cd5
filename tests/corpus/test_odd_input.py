"""Whatever characters a corpus holds: each is read as it is, or the file is refused with its line."""

import collections
import csv
import gzip
import importlib.util
import io
import random
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from babyssa.corpus import read_corpus
from babyssa.corpus.chat import parse_main_tier, read_chat
from babyssa.corpus.childes_db import read_childes_db
from babyssa.corpus.cleaning import CleaningRules, clean
from babyssa.corpus.lines import LINE_LIMIT, read_lines
from babyssa.corpus.text import read_text
from babyssa.corpus.utterances import Utterance
from babyssa.errors import BabySSAError, DataError

ODD = [
    "<mask>",
    "</s>",
    "👩\u200d👧",
    "e\u0301\u0323",
    "\u202eשלום",
    "\0",
    "\r",
    "\ufeff",
    "\x1b[2J",
    "?!…",
    "a" * 5000,
]
odd_text = st.lists(st.text(max_size=20) | st.sampled_from(ODD), min_size=1, max_size=6).map("".join)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("odd")


@settings(max_examples=40, deadline=None)
@given(
    st.lists(odd_text.map(lambda text: text.replace("\n", " ")), min_size=1, max_size=5),
    st.booleans(),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_a_line_of_text_is_read_as_it_is(folder, lines, mark, end):
    path = folder / "corpus.txt"
    lines = [line.replace("\r", " ") for line in lines]
    path.write_bytes(("\ufeff" * mark + end.join(lines) + end).encode())
    if lines[0].startswith("\ufeff") and not mark:
        lines[0] = lines[0][1:]
    assert [utterance.text for utterance in read_text(path)] == [f"{line}{end}" for line in lines]
    kept = [line.strip() for line in lines if line.strip()]
    if kept:
        assert read_corpus(path) == kept
    else:
        with pytest.raises(DataError, match="empty"):
            read_corpus(path)


@settings(max_examples=40, deadline=None)
@given(odd_text)
def test_cleaning_running_text_changes_nothing_but_space(text):
    sentence, reason = clean(Utterance(text=text, source="a", order=1), CleaningRules(min_words=1))
    assert (sentence is None) != (reason is None)
    if sentence is not None:
        assert sentence == " ".join(text.split()) and "\n" not in sentence


@settings(max_examples=40, deadline=None)
@given(st.lists(odd_text, min_size=1, max_size=4))
def test_a_gloss_is_read_as_it_is(folder, glosses):
    path = folder / "export.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["gloss", "type", "speaker_role", "transcript_id", "utterance_order", "target_child_age"])
        writer.writerows([gloss, "declarative", "Mother", 1, order, 700] for order, gloss in enumerate(glosses))
    assert [utterance.text for utterance in read_childes_db(path)] == glosses


@settings(max_examples=100, deadline=None)
@given(odd_text)
def test_any_main_tier_gives_words_and_a_type(tier):
    words, kind = parse_main_tier(tier)
    assert words == " ".join(words.split()) and kind


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["a.txt", "a.txt.gz", "a.csv", "a.cha", "a.zip"]))
def test_any_bytes_are_read_or_refused_with_their_file(folder, content, name):
    path = folder / name
    path.write_bytes(content)
    reader = {"txt": read_text, "gz": read_text, "csv": read_childes_db}.get(name.split(".")[-1], read_chat)
    try:
        list(reader(path))
    except BabySSAError as error:
        assert error.path is not None


def test_edited_files_of_every_format_are_read_or_refused_in_one_line(tmp_path, capsys):
    path = Path(__file__).parents[2] / "benchmarks" / "fuzz_readers.py"
    spec = importlib.util.spec_from_file_location("fuzz_readers", path)
    fuzz = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fuzz)
    outcomes = collections.Counter()
    for number in range(400):
        rng = random.Random(number)
        name = rng.choice(list(fuzz.SEEDS))
        (tmp_path / name).write_bytes(fuzz.mutated(fuzz.SEEDS[name], rng))
        outcomes[fuzz.check(tmp_path / name, rng)] += 1
    assert min(outcomes["read"], outcomes["refused"]) > 50


def peak_memory(function):
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def refused(path, reader, says):
    def read():
        with pytest.raises(DataError, match=says):
            # Nothing is kept, so that only the reader's own memory is measured.
            collections.deque(reader(path), maxlen=0)

    return read


def test_a_line_of_100_mb_does_not_take_the_memory(tmp_path):
    path = tmp_path / "a.txt"
    with open(path, "wb") as file:
        file.truncate(100 << 20)
    assert peak_memory(refused(path, read_lines, "a.txt:1: |longer than")) < 4 * LINE_LIMIT
    assert peak_memory(refused(path, read_childes_db, "longer than")) < 4 * LINE_LIMIT


def test_a_gzip_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("babyssa.corpus.lines.TRANSCRIPT_LIMIT", 1 << 20)
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"the dog barks .\n" * 500_000))
    assert peak_memory(refused(path, read_lines, "expands to more than 200 times")) < 6 << 20
    path.write_bytes(gzip.compress(b"the dog barks .\n" * 1000))
    assert len(list(read_lines(path))) == 1000


def test_a_zip_is_read_in_memory_only_and_its_bombs_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("babyssa.corpus.lines.TRANSCRIPT_LIMIT", 1 << 20)
    transcript = "@UTF8\n@Begin\n@Participants:\tMOT Mother\n*MOT:\tthe dog .\n@End\n"
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../escaped.cha", transcript)
        archive.writestr("/etc/escaped.cha", transcript)
    inside = tmp_path / "deep" / "er"
    inside.mkdir(parents=True)
    (inside / "a.zip").write_bytes(content.getvalue())
    assert [utterance.text for utterance in read_chat(inside / "a.zip")] == ["the dog"] * 2
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["a.zip"]
    with zipfile.ZipFile(inside / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.cha", "@Begin\n" + " " * (50 << 20))
    assert peak_memory(refused(inside / "bomb.zip", read_chat, "larger than")) < 8 << 20
