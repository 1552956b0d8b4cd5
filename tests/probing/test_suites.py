"""Suites are read from every format, in the stated order, or refused with file and line."""

import json

import pytest

from babyssa.errors import BabySSAError, ConfigError, DataError
from babyssa.probing import MinimalPair, Paradigm, Suite, load_suite
from babyssa.probing.suites import phenomenon_of

THIRTEEN = {
    "agreement_determiner_noun",
    "agreement_subject_verb",
    "anaphor_agreement",
    "argument_structure",
    "binding",
    "case",
    "ellipsis",
    "filler-gap",
    "irregular",
    "island-effects",
    "local_attractor",
    "npi_licensing",
    "quantifiers",
}

ZORRO = "the dogs is big .\nthe dog is big .\nthe cats is big .\nthe cat is big .\n"
PAIRS = (
    MinimalPair("the dog is big .", "the dogs is big ."),
    MinimalPair("the cat is big .", "the cats is big ."),
)


def write(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_zorro_text_is_read_in_the_order_that_is_stated(tmp_path):
    path = write(tmp_path, "agreement-number.txt", ZORRO)
    (paradigm,) = load_suite(path, "bad-first").paradigms
    assert paradigm == Paradigm("agreement-number", "agreement", PAIRS)
    (other,) = load_suite(path, "good-first").paradigms
    assert [(p.good, p.bad) for p in other.pairs] == [(p.bad, p.good) for p in PAIRS]


def test_no_order_is_guessed(tmp_path):
    path = write(tmp_path, "agreement-number.txt", ZORRO)
    with pytest.raises(ConfigError, match="--order bad-first"):
        load_suite(path)
    with pytest.raises(ConfigError, match="did you mean 'bad-first'"):
        load_suite(path, "bad_first")


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends_byte_order_mark_and_last_line_end_do_not_matter(tmp_path, ending, mark, last):
    content = ZORRO if last else ZORRO.rstrip("\n")
    path = write(tmp_path, "a.txt", mark + content.replace("\n", ending).encode())
    assert load_suite(path, "bad-first").paradigms[0].pairs == PAIRS


def test_separators_of_unicode_do_not_end_lines(tmp_path):
    path = write(tmp_path, "a.txt", "one\u2028two\x85\x0b .\nthree\n")
    assert load_suite(path, "good-first").paradigms[0].pairs == (MinimalPair("one\u2028two\x85\x0b .", "three"),)


def test_blimp_json_lines_name_their_paradigm_and_phenomenon(tmp_path):
    record = {"sentence_good": "A.", "sentence_bad": "B.", "UID": "principle_A", "linguistics_term": "binding"}
    path = write(tmp_path, "x.jsonl", json.dumps(record) + "\n" + json.dumps(record | {"UID": "other"}))
    first, second = load_suite(path).paradigms
    assert first == Paradigm("principle_A", "binding", (MinimalPair("A.", "B."),))
    assert second.name == "other"


@pytest.mark.parametrize(("suffix", "delimiter"), [(".csv", ","), (".tsv", "\t")])
def test_tables_are_read_by_column_name(tmp_path, suffix, delimiter):
    rows = [
        ["id", "bad", "good", "paradigm", "phenomenon"],
        ["0", '"x, ""y"" null"', "NA", "a-b", "case"],
        ["1", "p", "q", "c-d", "binding"],
    ]
    path = write(tmp_path, "table" + suffix, "\n".join(map(delimiter.join, rows)) + "\n")
    assert load_suite(path).paradigms == (
        Paradigm("a-b", "case", (MinimalPair("NA", 'x, "y" null'),)),
        Paradigm("c-d", "binding", (MinimalPair("q", "p"),)),
    )


def test_columns_may_be_called_otherwise_and_default_to_the_file_name(tmp_path):
    path = write(tmp_path, "case-pronoun.csv", "gram,ungram\nhe ran,him ran\n")
    suite = load_suite(path, columns={"good": "gram", "bad": "ungram"})
    assert suite.paradigms == (Paradigm("case-pronoun", "case", (MinimalPair("he ran", "him ran"),)),)
    with pytest.raises(ConfigError, match="unknown column role 'god'"):
        load_suite(path, columns={"god": "gram"})


def test_a_folder_may_mix_formats(tmp_path):
    write(tmp_path, "b-two.txt", ZORRO)
    write(tmp_path, "a-one.csv", "good,bad\nx,y\n")
    write(tmp_path, "c.jsonl", '{"sentence_good": "x", "sentence_bad": "y"}\n')
    write(tmp_path, "README.md", "not a suite")
    write(tmp_path, ".hidden.txt", "odd")
    suite = load_suite(tmp_path, "bad-first")
    assert [p.name for p in suite.paradigms] == ["a-one", "b-two", "c"]
    assert suite.name == tmp_path.name
    assert suite.n_pairs == 4


def test_a_manifest_states_names_order_and_columns(tmp_path):
    write(tmp_path, "x.txt", ZORRO)
    write(tmp_path, "y.csv", "right,wrong\na,b\n")
    write(
        tmp_path,
        "manifest.yaml",
        "name: mine\nversion: 1\norder: bad-first\nparadigms:\n"
        "  - {name: number, phenomenon: agreement, file: x.txt}\n"
        "  - {name: case-pronoun, file: y.csv, columns: {good: right, bad: wrong}}\n",
    )
    suite = load_suite(tmp_path)
    assert suite.name == "mine"
    assert [(p.name, p.phenomenon) for p in suite.paradigms] == [("number", "agreement"), ("case-pronoun", "case")]
    assert suite.paradigms[0].pairs == PAIRS
    assert load_suite(tmp_path, "bad-first") == suite
    with pytest.raises(ConfigError, match="contradicts 'bad-first' in the manifest"):
        load_suite(tmp_path, "good-first")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name: x\n", "no list of paradigms"),
        ("paradigms: []\n", "no list of paradigms"),
        ("paradigms: [{name: a}]\n", "has no file"),
        ("paradigms: [{file: nosuch.txt}]\n", "nosuch.txt: no such file"),
        ("order: up\nparadigms: [{file: x.txt}]\n", "unknown order 'up'"),
        ("paradigms:\n  - {file: x\n", "manifest.yaml:3: broken YAML"),
        ("columns: {god: a}\nparadigms: [{file: x.txt}]\n", "'columns' must map"),
        ("order: bad-first\nparadigms: [{file: x.txt}, {file: x.txt}]\n", "already read"),
    ],
)
def test_a_broken_manifest_is_refused(tmp_path, content, message):
    write(tmp_path, "x.txt", ZORRO)
    write(tmp_path, "manifest.yaml", content)
    with pytest.raises(BabySSAError, match=message):
        load_suite(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "one\ntwo\nthree\n", "a.txt:3: odd number of lines"),
        ("a.txt", "one\n\ntwo\nthree\n", "a.txt:2: empty line inside a pair"),
        ("a.txt", "\none\ntwo\n\nthree\n", "a.txt:5: odd number of lines \\(3\\)"),
        ("a.txt", "\n \n", "a.txt: no pairs"),
        ("a.txt", "", "a.txt: no pairs"),
        ("a.txt", b"one\ntwo\nthr\xffee\nfour\n", "a.txt:3: byte 0xff is not UTF-8"),
        ("a.jsonl", '{"sentence_good": "x", "sentence_bad": "y"}\n{"sent', "a.jsonl:2: broken JSON"),
        (
            "a.jsonl",
            '{"sentence_good": "x", "sentence_bda": "y"}\n',
            "a.jsonl:1: no key 'sentence_bad'; did you mean",
        ),
        ("a.jsonl", '{"sentence_good": "x", "sentence_bad": 3}\n', "a.jsonl:1: 'sentence_bad' is not a string"),
        ("a.jsonl", '{"sentence_good": " ", "sentence_bad": "y"}\n', "a.jsonl:1: empty member"),
        ("a.jsonl", "[1]\n", "a.jsonl:1: not a JSON object"),
        ("a.jsonl", "\n", "a.jsonl: no pairs"),
        ("a.jsonl", '{"good": "x", "bad": "y", "sen": "x", "wrong_sen": "y"}\n', "several pairs of keys"),
        ("a.csv", "good,wrong\nx,y\n", "a.csv:1: no column 'bad'"),
        ("a.csv", "good,bad\nx,y\nz\n", "a.csv:3: 1 fields under 2 columns"),
        ("a.csv", "good,bad\nx,y\nz,\n", "a.csv:3: empty member"),
        ("a.csv", 'good,bad\nx,"y\nz,w\n', "a.csv:3: broken row"),
        ("a.csv", "", "a.csv:1: no column 'good'"),
        ("a.csv", "left,right\nx,y\n", "a.csv:1: no column 'good'.*--columns good=NAME"),
        ("a.tsv", 'good\tbad\n"x\ty\nz\n', "a.tsv:3: 1 fields under 2 columns"),
        ("a.csv", "good,bad\n", "a.csv: no pairs"),
        (
            "a.csv",
            "good,bad,paradigm,phenomenon\na,b,p,x\nc,d,p,y\n",
            "a.csv:3: paradigm 'p' belongs to 'x' above",
        ),
        ("a.xlsx", "x", "cannot read '.xlsx' files"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(tmp_path, name, content, message):
    path = write(tmp_path, name, content)
    with pytest.raises(DataError, match=message):
        load_suite(path, "good-first")


def test_rows_over_several_lines_are_named_by_their_first(tmp_path):
    path = write(tmp_path, "a.csv", 'good,bad\n"x\ny",z\na,\n')
    with pytest.raises(DataError, match=r"a\.csv:4: "):
        load_suite(path)


def test_missing_and_empty_folders_are_refused(tmp_path):
    with pytest.raises(DataError, match="no such file or folder"):
        load_suite(tmp_path / "nosuch")
    with pytest.raises(DataError, match="folder holds no"):
        load_suite(tmp_path)


def test_two_files_may_not_hold_one_paradigm(tmp_path):
    write(tmp_path, "a.txt", ZORRO)
    write(tmp_path, "a.csv", "good,bad\nx,y\n")
    with pytest.raises(DataError, match="already read"):
        load_suite(tmp_path, "bad-first")


def test_the_hash_is_of_the_content_not_of_the_format(tmp_path):
    text = write(tmp_path, "p-q.txt", ZORRO)
    table = write(tmp_path, "p-q.csv", "bad,good\n" + "".join(f"{p.bad},{p.good}\n" for p in PAIRS))
    first, second = load_suite(text, "bad-first"), load_suite(table)
    assert first.sha256 == second.sha256
    assert load_suite(text, "good-first").sha256 != first.sha256
    assert first.select(limit=1).sha256 != first.sha256


def test_selecting_paradigms_and_pairs():
    suite = Suite("s", (Paradigm("a", "x", PAIRS), Paradigm("b", "x", PAIRS)))
    assert [p.name for p in suite.select(["b", "a", "b"]).paradigms] == ["b", "a"]
    assert suite.select(limit=1).n_pairs == 2
    assert suite.select() == suite
    for bad in ({"names": ["c"]}, {"names": []}, {"limit": 0}):
        with pytest.raises(ConfigError):
            suite.select(**bad)


@pytest.mark.parametrize(
    ("name", "phenomenon"),
    [
        ("island-effects-adjunct_island", "island-effects"),
        ("filler-gap-wh_question_object", "filler-gap"),
        ("quantifiers-superlative", "quantifiers"),
        ("principle_A", "principle_A"),
    ],
)
def test_the_phenomenon_is_what_stands_before_the_last_dash(name, phenomenon):
    assert phenomenon_of(name) == phenomenon


def test_zorro_as_published_has_23_paradigms_in_13_phenomena(shared):
    suite = load_suite(shared / "data" / "zorro", "bad-first")
    assert len(suite.paradigms) == 23
    assert {len(p.pairs) for p in suite.paradigms} == {2000}
    assert {p.phenomenon for p in suite.paradigms} == THIRTEEN
    pair = suite.paradigms[0].pairs[0]
    assert (pair.good, pair.bad) == ("look at this purple thing .", "look at this purple things .")


def test_blimp_as_published(shared):
    suite = load_suite(shared / "data" / "blimp")
    assert {(p.name, p.phenomenon, len(p.pairs)) for p in suite.paradigms} == {
        ("distractor_agreement_relative_clause", "subject_verb_agreement", 1000),
        ("principle_A_c_command", "binding", 1000),
        ("superlative_quantifiers_1", "quantifiers", 1000),
    }


IDENTICAL = [{"sentence_good": g, "sentence_bad": b} for g, b in [("a .", "b ."), ("c .", "c ."), ("d .", "d .")]]


@pytest.mark.parametrize("name", ["p.jsonl", "p.csv", "p.tsv", "p.txt"])
def test_identical_pairs_are_read_with_one_warning_that_names_their_lines(tmp_path, capsys, name):
    separator = {".jsonl": None, ".csv": ",", ".tsv": "\t", ".txt": "\n"}[name[1:]]
    if separator is None:
        content, lines = "\n".join(map(json.dumps, IDENTICAL)), "2,3"
    else:
        rows = [separator.join(record.values()) for record in IDENTICAL]
        content = "\n".join(rows if separator == "\n" else [separator.join(["good", "bad"]), *rows])
        lines = "3,5" if separator == "\n" else "3,4"
    path = write(tmp_path, name, content + "\n")
    suite = load_suite(path, "good-first")
    assert [(pair.good, pair.bad) for pair in suite.paradigms[0].pairs] == [tuple(r.values()) for r in IDENTICAL]
    assert capsys.readouterr().err == (f"warning: 2 pairs of identical members count as ties: {path}:{lines}\n")
    with pytest.raises(DataError, match=rf"{name}:{lines[0]}: .*identical: 'c \.'.*--strict"):
        load_suite(path, "good-first", strict=True)


def test_one_warning_names_the_identical_pairs_of_all_files(tmp_path, capsys):
    for name in ("p.jsonl", "q.jsonl"):
        write(tmp_path, name, "\n".join(map(json.dumps, IDENTICAL)) + "\n")
    load_suite(tmp_path)
    assert capsys.readouterr().err == (
        "warning: 4 pairs of identical members count as ties: "
        f"{tmp_path / 'p.jsonl'}:2,3, {tmp_path / 'q.jsonl'}:2,3\n"
    )


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("multiblimp.tsv", "sen\twrong_sen\tn\ngood one\tbad one\t3\n", "good is 'sen', bad is 'wrong_sen'"),
        (
            "binding.csv",
            "good_sentence;bad_sentence;phenomenon\ngood one;bad one;binding\n",
            "good is 'good_sentence', bad is 'bad_sentence', phenomenon is 'phenomenon', "
            "columns separated by semicolon",
        ),
        ("turblimp.csv", 'good_sentence,bad_sentence\n"good one","bad one"\n', "good is 'good_sentence'"),
        (
            "xcomps.csv",
            "item,acceptable_sent,unacceptable_sent\n1,good one,bad one\n",
            "good is 'acceptable_sent'",
        ),
        ("xcomps.jsonl", '{"acceptable_sent": "good one", "unacceptable_sent": "bad one"}\n', "'acceptable_sent'"),
        (
            "jblimp.jsonl",
            '{"good_sentence": "good one", "bad_sentence": "bad one", "paradigm": "p", "ID": 1}\n',
            "good is 'good_sentence', bad is 'bad_sentence', paradigm is 'paradigm'",
        ),
        ("plain.tsv", "sentence_good,sentence_bad\ngood one,bad one\n", "columns separated by comma"),
    ],
)
def test_published_suites_are_read_as_they_are_and_what_was_chosen_is_said(tmp_path, capsys, name, content, said):
    path = write(tmp_path, name, content)
    (paradigm,) = load_suite(path).paradigms
    assert [(pair.good, pair.bad) for pair in paradigm.pairs] == [("good one", "bad one")]
    assert paradigm.name == ("p" if name == "jblimp.jsonl" else path.stem)
    assert paradigm.phenomenon in (paradigm.name, "binding")
    message = capsys.readouterr().err
    assert message.startswith(f"{path}: ") and said in message and message.count("\n") == 1


def test_nothing_is_said_of_what_is_usual(tmp_path, capsys):
    write(tmp_path, "supplement.jsonl", '{"sentence_good": "x", "sentence_bad": "y"}\n')
    write(tmp_path, "a.csv", "good,bad\nx,y\n")
    assert [p.name for p in load_suite(tmp_path).paradigms] == ["a", "supplement"]
    assert capsys.readouterr().err == ""


def test_a_file_without_paradigms_has_one_for_each_phenomenon_that_it_names(tmp_path):
    path = write(tmp_path, "data.tsv", "sen\twrong_sen\tphenomenon\na\tb\tSV-#\nc\td\tSV-P\ne\tf\tSV-#\n")
    assert load_suite(path).paradigms == (
        Paradigm("SV-#", "SV-#", (MinimalPair("a", "b"), MinimalPair("e", "f"))),
        Paradigm("SV-P", "SV-P", (MinimalPair("c", "d"),)),
    )


@pytest.mark.parametrize("given", ["semicolon", ";"])
def test_a_delimiter_may_be_given(tmp_path, given):
    path = write(tmp_path, "a.csv", "good;bad\nyes, a;no, b\n")
    assert load_suite(path, delimiter=given).paradigms[0].pairs == (MinimalPair("yes, a", "no, b"),)
    with pytest.raises(DataError, match="no column 'good'"):
        load_suite(path, delimiter="tab")
    with pytest.raises(ConfigError, match="one character"):
        load_suite(path, delimiter=";;")


@pytest.mark.parametrize(
    ("fields", "read"),
    [
        (('"Go," he said .', "x"), ('"Go," he said .', "x")),
        (('"Go', "x"), ('"Go', "x")),
        (('"Go" .', '"x"'), ('"Go" .', '"x"')),
        (("5'10\"", "x"), ("5'10\"", "x")),
        (('"a ""b"" c"', '"x"'), ('a "b" c', "x")),
    ],
)
def test_tsv_is_quoted_only_where_the_quotes_balance(tmp_path, fields, read):
    path = write(tmp_path, "a.tsv", "good\tbad\n" + "\t".join(fields) + "\nz\tw\n")
    assert load_suite(path).paradigms[0].pairs == (MinimalPair(*read), MinimalPair("z", "w"))


def test_quotes_on_several_lines_of_a_tsv_are_text(tmp_path):
    path = write(tmp_path, "a.tsv", 'good\tbad\n"Go\tx\ny\tz\n"Stop\tw\n')
    assert [pair.good for pair in load_suite(path).paradigms[0].pairs] == ['"Go', "y", '"Stop']


@pytest.mark.parametrize(
    ("name", "content", "count"),
    [
        ("a.txt", "\nx\ny\n\n \nz\nw\n", 3),
        (
            "a.jsonl",
            '{"sentence_good": "x", "sentence_bad": "y"}\n\n{"sentence_good": "z", "sentence_bad": "w"}\n',
            1,
        ),
        ("a.csv", "good,bad\nx,y\n\nz,w\n  \n", 2),
        ("a.tsv", "good\tbad\r\nx\ty\r\n\r\nz\tw\r\n", 1),
    ],
)
def test_empty_lines_are_skipped_and_counted(tmp_path, capsys, name, content, count):
    path = write(tmp_path, name, content)
    assert load_suite(path, "good-first").paradigms[0].pairs == (MinimalPair("x", "y"), MinimalPair("z", "w"))
    assert f"{path}: skipped {count} empty line" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["null", '""', "7"])
def test_a_paradigm_may_be_missing_or_a_number(tmp_path, value):
    path = write(tmp_path, "a.jsonl", f'{{"sentence_good": "x", "sentence_bad": "y", "UID": {value}}}\n')
    assert load_suite(path).paradigms[0].name == ("7" if value == "7" else "a")
