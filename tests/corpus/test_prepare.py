"""Preparing a corpus: sources, order, counts, and what happens when it fails."""

import json
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from babyssa.corpus import prepare, read_corpus, read_utterances
from babyssa.errors import ConfigError, DataError, OutputExistsError

HEADER = "gloss,type,speaker_role,transcript_id,utterance_order,target_child_age,collection_name"
CHAT = (
    "@UTF8\n@Begin\n@Languages:\teng\n@Participants:\tCHI Target_Child , MOT Mother\n"
    "@ID:\teng|X|CHI|1;00.|||||Target_Child|||\n*MOT:\tfrom the chat .\n*CHI:\tno no no .\n@End\n"
)


def csv_file(path, *rows):
    path.write_text("\n".join([HEADER, *rows, ""]), encoding="utf-8")
    return path


def row(gloss, transcript=1, order=1, age="400", role="Mother", type="declarative"):
    return f"{gloss},{type},{role},{transcript},{order},{age},Eng-NA"


@pytest.fixture
def corpus(tmp_path):
    """One small corpus of every kind; returns its folder."""
    folder = tmp_path / "in"
    folder.mkdir()
    csv_file(
        folder / "a.csv",
        row("older child here", 2, 1, "900"),
        row("second line here", 10, 2),
        row("first line here", 10, 1),
        row("an earlier transcript", 9, 5),
        row("mine mine mine", 9, 6, role="Target_Child"),
        row("no age here", 3, 1, "NA"),
        row("xxx is here", 9, 7),
        row("yes", 9, 8),
    )
    (folder / "b.cha").write_text(CHAT, encoding="utf-8")
    return folder


def test_sentences_are_ordered_by_age_then_transcript_then_utterance(corpus, tmp_path):
    prepare(corpus, tmp_path / "out")
    assert read_corpus(tmp_path / "out") == [
        "from the chat .",
        "an earlier transcript .",
        "first line here .",
        "second line here .",
        "older child here .",
    ]


def test_source_order_is_the_order_of_reading(corpus, tmp_path):
    prepare(corpus, tmp_path / "out", order="source", keep_unknown_age=True)
    sentences = read_corpus(tmp_path / "out")
    assert sentences[0] == "older child here ."
    assert sentences[-2:] == ["no age here .", "from the chat ."]


def test_what_has_no_age_comes_last_as_read(corpus, tmp_path):
    text = tmp_path / "t.txt"
    text.write_text("zebras are last .\napples are after .\n", encoding="utf-8")
    prepare([text, corpus], tmp_path / "out", keep_unknown_age=True)
    assert read_corpus(tmp_path / "out")[-3:] == ["zebras are last .", "apples are after .", "no age here ."]


def test_every_utterance_is_kept_or_counted_once(corpus, tmp_path):
    stats = prepare(corpus, tmp_path / "out")
    assert (stats.read, stats.kept) == (10, 5)
    assert {reason: n for reason, n in stats.dropped.items() if n} == {
        "speaker is a child": 2,
        "age unknown": 1,
        "xxx, yyy, www or U+FFFD": 1,
        "too few words": 1,
    }
    assert stats.tokens == sum(len(s.split()) for s in read_corpus(tmp_path / "out"))
    assert (stats.min_age, stats.max_age) == (12 * 30.4375, 900)
    assert [(Path(s.name).name, s.kind, s.read, s.kept) for s in stats.sources] == [
        ("a.csv", "childes-db", 8, 4),
        ("b.cha", "chat", 2, 1),
    ]
    stored = json.loads((tmp_path / "out/stats.json").read_text(encoding="utf-8"))
    assert stored["dropped"] == stats.dropped
    assert stored["rules"]["min_words"] == 3
    assert "babyssa" in stored["versions"]


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(6)), st.integers(1, 5))
def test_age_order_does_not_depend_on_how_utterances_are_spread_over_files(tmp_path_factory, order, cut):
    tmp_path = tmp_path_factory.mktemp("spread")
    rows = [row(f"utterance number {i}", 1 + i // 3, i, 300 + 100 * (i // 2)) for i in range(6)]
    csv_file(tmp_path / "a.csv", *(rows[i] for i in order[:cut]))
    csv_file(tmp_path / "b.csv", *(rows[i] for i in order[cut:]))
    prepare([tmp_path / "b.csv", tmp_path / "a.csv"], tmp_path / "out")
    assert read_corpus(tmp_path / "out") == [f"utterance number {i} ." for i in range(6)]


def test_files_folders_globs_and_zips_mix_and_nothing_is_read_twice(corpus, tmp_path):
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        archive.writestr("c.cha", CHAT.replace("from the chat", "from the zip"))
    sources = [corpus / "a.csv", corpus, f"{corpus}/*.cha", tmp_path / "c.zip"]
    texts = [u.text for u in read_utterances(sources)]
    assert len(texts) == 12
    assert texts.count("from the chat") == texts.count("from the zip") == 1


def test_a_readme_beside_transcripts_is_not_speech(corpus, capsys):
    (corpus / "LICENSE.txt").write_text("all rights reserved .\n", encoding="utf-8")
    (corpus / ".hidden.csv").write_text("junk", encoding="utf-8")
    assert len(list(read_utterances(corpus))) == 10
    assert capsys.readouterr().err == f"{corpus}: skipped 1 file of other kinds (LICENSE.txt)\n"
    assert len(list(read_utterances(corpus, kind="text"))) == 1
    (corpus / "0metadata.cdc").write_text("cite me", encoding="utf-8")
    assert len(list(read_utterances(corpus, kind="chat"))) == 2


def test_a_folder_of_plain_text_is_read_line_by_line(tmp_path):
    (tmp_path / "b.txt").write_text("a second file .\n", encoding="utf-8")
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfsome first line .\r\n\r\nand  more\there .")
    stats = prepare(tmp_path, tmp_path / "out")
    assert read_corpus(tmp_path / "out") == ["some first line .", "and more here .", "a second file ."]
    assert stats.dropped["no words"] == 1
    assert stats.min_age is None


BABYLM = "= = = childes/Eng-NA/Adam/adam01.cha = = =\n*CHI:\tmore juice please\n*MOT:\tyou want more juice ?\n"


@pytest.fixture
def babylm(tmp_path):
    """A folder as BabyLM gives it, of texts that are called .train and .dev."""
    folder = tmp_path / "babylm"
    folder.mkdir()
    (folder / "childes.train").write_text(BABYLM, encoding="utf-8")
    (folder / "switchboard.dev").write_text("A:\tit is cold here .\nB:\tyes it is .\n", encoding="utf-8")
    return folder


def test_an_explicit_kind_reads_every_file_of_a_folder(babylm, tmp_path):
    with pytest.raises(DataError, match=r"nothing to read.*--kind text reads every file"):
        prepare(babylm, tmp_path / "out")
    stats = prepare(babylm, tmp_path / "out", kind="text")
    assert [Path(source.name).name for source in stats.sources] == ["childes.train", "switchboard.dev"]


def test_headings_labels_and_child_lines_of_texts_go_and_are_counted(babylm, tmp_path, capsys):
    stats = prepare(babylm, tmp_path / "out", kind="text")
    assert read_corpus(tmp_path / "out") == ["you want more juice ?", "it is cold here .", "yes it is ."]
    assert {reason: n for reason, n in stats.dropped.items() if n} == {
        "speaker is a child": 1,
        "heading, no sentence": 1,
    }
    assert stats.roles == {"MOT": 1, "A": 1, "B": 1}
    assert (
        "removed the speaker labels of 4 lines of text (CHI, MOT, A, ...)\nchildren's lines are left out"
        in capsys.readouterr().err
    )
    prepare(babylm, tmp_path / "out", kind="text", keep_child=True, overwrite=True)
    assert read_corpus(tmp_path / "out")[0] == "more juice please"


def test_what_children_say_may_be_kept_of_transcripts_too(corpus, tmp_path):
    prepare(corpus, tmp_path / "out", keep_child=True)
    assert {"mine mine mine .", "no no no ."} <= set(read_corpus(tmp_path / "out"))


def test_files_that_gave_nothing_are_named(tmp_path):
    good = csv_file(tmp_path / "good.csv", row("come over here"))
    csv_file(tmp_path / "noage.csv", row("come over here", age="NA"), row("come on now", age="NA"), row("no"))
    (tmp_path / "adults.cha").write_text(CHAT.replace("Target_Child", "Child"), encoding="utf-8")
    (tmp_path / "empty.txt").write_text("", encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("one.cha", CHAT)
        archive.writestr("two.cha", CHAT.replace("1;00.", ""))
    sources = [good, *(tmp_path / name for name in ("noage.csv", "adults.cha", "empty.txt", "all.zip"))]
    stats = prepare(sources, tmp_path / "out")
    assert {name.replace(f"{tmp_path}/", ""): reason for name, reason in stats.lost.items()} == {
        "noage.csv": "age unknown",
        "adults.cha": "age unknown",
        "empty.txt": "nothing in it",
        "all.zip!two.cha": "age unknown",
    }
    assert "4  files from which nothing was kept:" in str(stats)
    assert f"{tmp_path}/noage.csv (age unknown)" in str(stats)
    assert json.loads((tmp_path / "out/stats.json").read_text())["lost"] == stats.lost


def test_a_line_with_an_endless_word_is_named_and_left_out(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("one two three .\n" + "a" * 900_000 + "\nfour five six .\n", encoding="utf-8")
    stats = prepare(tmp_path / "a.txt", tmp_path / "out")
    assert read_corpus(tmp_path / "out") == ["one two three .", "four five six ."]
    assert stats.dropped["a word over 10,000 characters"] == 1
    assert f"{tmp_path}/a.txt:2: left out: a word over 10,000 characters" in capsys.readouterr().err


def test_text_with_carriage_returns_alone_has_lines(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one two three .\rfour five six .\r")
    prepare(tmp_path / "a.txt", tmp_path / "out")
    assert read_corpus(tmp_path / "out") == ["one two three .", "four five six ."]


@pytest.mark.parametrize("name", ["a.csv", "a.cha", "a.jsonl", "a.zip"])
def test_what_is_no_text_is_not_read_as_one(tmp_path, name):
    (tmp_path / name).write_text("one two three\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"not a text with one sentence per line.*babyssa prepare"):
        read_corpus(tmp_path / name)


def test_datasets_are_read_from_files_and_saved_folders(tmp_path):
    import datasets

    rows = {"said": ["one little duck .\ntwo little ducks .", None, "three big ducks ."], "n": [1, 2, 3]}
    data = datasets.Dataset.from_dict(rows)
    data.save_to_disk(tmp_path / "saved")
    data.to_json(tmp_path / "rows.jsonl")
    for source in (tmp_path / "saved", tmp_path / "rows.jsonl"):
        prepare(source, tmp_path / "out", text_column="said", overwrite=True)
        assert read_corpus(tmp_path / "out") == ["one little duck .", "two little ducks .", "three big ducks ."]
    with pytest.raises(DataError, match=r"no column 'text' \(found: said, n\)"):
        list(read_utterances(tmp_path / "saved"))
    with pytest.raises(DataError, match="holds a int, not text"):
        list(read_utterances(tmp_path / "saved", text_column="n"))


@pytest.mark.parametrize("name", ["missing.csv", "missing-folder/", "*.cha"])
def test_a_missing_source_is_an_error(tmp_path, name):
    with pytest.raises(DataError, match=r"no such file|no file matches"):
        prepare(f"{tmp_path}/{name}", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_with_nothing_readable_is_an_error(tmp_path):
    (tmp_path / "notes.md").write_text("hello", encoding="utf-8")
    with pytest.raises(DataError, match=r"nothing to read.*\.csv.*\.cha.*\.txt"):
        prepare(tmp_path, tmp_path / "out")


def test_a_file_of_unknown_kind_is_an_error_that_names_the_kinds(tmp_path):
    (tmp_path / "notes.md").write_text("a b c .\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"--kind.*childes-db"):
        prepare(tmp_path / "notes.md", tmp_path / "out")
    assert prepare(tmp_path / "notes.md", tmp_path / "out", kind="text").kept == 1


def test_an_empty_corpus_is_an_error_with_the_reasons(tmp_path):
    path = csv_file(tmp_path / "a.csv", row("no"), row("no way out", age="NA"))
    with pytest.raises(DataError, match=r"nothing is left of 2 utterances \(age unknown: 1, too few words: 1\)"):
        prepare(path, tmp_path / "out")


@pytest.mark.parametrize(
    ("setting", "what"),
    [
        ({"kind": "chatt"}, "did you mean 'chat'"),
        ({"order": "aged"}, "did you mean 'age'"),
        ({"min_words": 0}, "min-words"),
        ({"max_age": 0.0}, "max-age"),
    ],
)
def test_an_unknown_setting_is_an_error(corpus, tmp_path, setting, what):
    with pytest.raises(ConfigError, match=what):
        prepare(corpus, tmp_path / "out", **setting)


def test_an_earlier_corpus_is_replaced_only_on_request_and_never_by_a_failure(corpus, tmp_path):
    out = tmp_path / "out"
    prepare(corpus, out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(OutputExistsError, match="--overwrite"):
        prepare(corpus, out)
    broken = csv_file(tmp_path / "z.csv", row("fine so far"), "short,row")
    with pytest.raises(DataError, match="2 fields"):
        prepare([corpus, broken], out, overwrite=True)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert prepare(corpus, out, overwrite=True, keep_unknown_age=True).kept == 6
    assert len(read_corpus(out)) == 6


def test_the_corpus_is_the_same_every_time(corpus, tmp_path):
    for name in ("one", "two"):
        prepare(corpus, tmp_path / name)
    for file in ("corpus.txt", "stats.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_preparing_a_prepared_corpus_changes_nothing(corpus, tmp_path):
    prepare(corpus, tmp_path / "one")
    prepare(tmp_path / "one", tmp_path / "two")
    assert read_corpus(tmp_path / "two") == read_corpus(tmp_path / "one")


def test_empty_lines_of_a_corpus_are_skipped_and_counted(tmp_path, capsys):
    (tmp_path / "a.txt").write_bytes(b"one .\n\n \r\ntwo .")
    assert read_corpus(tmp_path / "a.txt") == ["one .", "two ."]
    assert capsys.readouterr().err == f"{tmp_path}/a.txt: skipped 2 empty lines (the first is line 2)\n"


def test_reading_a_corpus_that_is_missing_empty_or_not_utf8_is_an_error(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_corpus(tmp_path / "x.txt")
    with pytest.raises(DataError, match="babyssa prepare"):
        read_corpus(tmp_path)
    (tmp_path / "corpus.txt").write_bytes(b"\n \n")
    with pytest.raises(DataError, match="is empty"):
        read_corpus(tmp_path)
    (tmp_path / "corpus.txt").write_bytes(b"fine .\n\xff\n")
    with pytest.raises(DataError, match="not UTF-8") as caught:
        read_corpus(tmp_path)
    assert caught.value.line == 2


def test_the_command_prints_the_counts_and_says_what_it_wrote(corpus, tmp_path, run_babyssa):
    status, out, err = run_babyssa("prepare", corpus, "--out", tmp_path / "out", "--min-words", 3)
    assert status == 0
    assert "5  sentences" in out
    assert "2  speaker is a child" in out
    assert "corpus.txt" in err


@pytest.mark.parametrize(
    ("arguments", "status", "what"),
    [
        (["{in}/none.csv", "--out", "{out}"], 1, "none.csv: no such file"),
        (["--out", "{out}"], 2, "SOURCES is missing"),
        (["{in}"], 2, "out"),
        (["{in}", "--out", "{out}", "--kind", "word"], 2, "kind"),
        (["{in}", "--out", "{out}", "--min-wrods", "3"], 2, "did you mean '--min-words'"),
        (["{in}", "--out", "{in}/a.csv"], 1, "is a file, not a folder"),
    ],
)
def test_a_failing_command_says_so_in_one_line(corpus, tmp_path, run_babyssa, arguments, status, what):
    places = {"in": corpus, "out": tmp_path / "out"}
    got, out, err = run_babyssa("prepare", *(word.format(**places) for word in arguments))
    assert (got, out) == (status, "")
    assert what in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()
