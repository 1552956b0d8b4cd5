"""``probe`` and ``score`` from end to end."""

import io
import json

import pytest

ZORRO = "the dogs is big .\nthe dog is big .\nthe cats is big .\nthe cat is big .\n"


@pytest.fixture
def suite(tmp_path):
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "agreement-number.txt").write_text(ZORRO)
    return folder


@pytest.fixture
def stdin(monkeypatch):
    def give(content: bytes):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))

    return give


def test_probe_prints_a_plain_table_and_writes_the_result(run_babyssa, masked_folder, suite, tmp_path):
    out = tmp_path / "out"
    status, printed, err = run_babyssa(
        "probe", masked_folder, "--suite", suite, "--order", "bad-first", "--out", out, "--seed", 5
    )
    assert status == 0, err
    assert "\x1b" not in printed
    summary = json.loads((out / "summary.json").read_text())
    assert summary["seed"] == 5
    lines = printed.splitlines()
    assert lines[0].endswith("pll (sum)")
    assert lines[3].split() == [
        "agreement-number",
        "2",
        f"{100 * summary['accuracy']:.1f}",
        str(summary["paradigms"][0]["ties"]),
    ]
    assert lines[-1].startswith("mean over paradigms")
    assert (out / "pairs.csv").read_text().count("\n") == 3


def test_probe_refuses_to_overwrite_before_it_loads_anything(run_babyssa, suite, tmp_path):
    (tmp_path / "summary.json").write_text("mine")
    status, printed, err = run_babyssa("probe", "nosuch", "--suite", suite, "--out", tmp_path)
    assert (status, printed) == (1, "")
    assert "--overwrite" in err and err.count("\n") == 1
    assert (tmp_path / "summary.json").read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        ([], 2, "--order bad-first"),
        (["--order", "bad-first", "--method", "mlm"], 2, "--method is 'mlm'"),
        (["--order", "bad-first", "--paradigms", "agreement_number"], 2, "did you mean 'agreement-number'"),
        (["--order", "bad-first", "--columns", "good"], 2, "good=NAME"),
        (["--order", "bad-first", "--limit", "0"], 2, "at least 1"),
        (["--order", "bad-first", "--precision", "float16"], 2, "is 'float16', expected float32 or bfloat16"),
        (["--ordre", "bad-first"], 2, "did you mean '--order'"),
    ],
)
def test_probe_with_bad_options_is_one_line(run_babyssa, masked_folder, suite, tmp_path, options, status, message):
    found, _, err = run_babyssa("probe", masked_folder, "--suite", suite, "--out", tmp_path / "out", *options)
    assert found == status
    assert message in err and err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_probe_reads_columns_by_other_names(run_babyssa, masked_folder, tmp_path):
    (tmp_path / "s.csv").write_text("right,wrong\nthe dog is,the dogs is\n")
    status, _, err = run_babyssa(
        "probe",
        masked_folder,
        "--suite",
        tmp_path / "s.csv",
        "--columns",
        "good=right",
        "bad=wrong",
        "--out",
        tmp_path / "o",
    )
    assert status == 0, err


def test_score_prints_every_token_and_the_sum(run_babyssa, masked_folder):
    status, printed, _ = run_babyssa("score", masked_folder, "the dog is big .", "a\x1b[31mb")
    assert status == 0
    assert "\x1b" not in printed
    blocks = printed.split("\n\n")
    assert blocks[0].endswith("pll (sum), nats")
    rows = [line.split() for line in blocks[1].splitlines()]
    assert rows[0] == ["the", "dog", "is", "big", "."]
    assert sum(float(row[1]) for row in rows[3:-2]) == pytest.approx(float(rows[-1][1]), abs=1e-3)


def test_score_as_json_is_what_the_function_returns(run_babyssa, causal_folder):
    from babyssa.models import score

    texts = ["the dog 🙂", "<mask>"]
    status, printed, _ = run_babyssa("score", causal_folder, *texts, "--json", "--reduction", "mean")
    assert status == 0
    result = json.loads(printed)
    assert (result["method"], result["reduction"]) == ("loglik", "mean")
    for found, expected in zip(result["sentences"], score(causal_folder, texts, reduction="mean"), strict=True):
        assert found["text"] == expected.text
        assert found["tokens"] == list(expected.tokens)
        assert found["token_scores"] == list(expected.token_scores)
        assert found["score"] == expected.score


def test_precision_is_passed_on_and_recorded(run_babyssa, masked_folder, suite, tmp_path):
    from babyssa.models import score

    out = tmp_path / "out"
    options = ("--precision", "bfloat16")
    status, _, err = run_babyssa(
        "probe", masked_folder, "--suite", suite, "--order", "bad-first", "--out", out, *options
    )
    assert status == 0, err
    assert json.loads((out / "summary.json").read_text())["precision"] == "bfloat16"
    status, printed, _ = run_babyssa("score", masked_folder, "the dog", "--json", *options)
    result = json.loads(printed)
    (expected,) = score(masked_folder, ["the dog"], precision="bfloat16")
    assert result["precision"] == "bfloat16" and result["sentences"][0]["score"] == expected.score
    assert expected.score != score(masked_folder, ["the dog"])[0].score


def test_words_that_mean_something_in_yaml_are_sentences_too(run_babyssa, masked_folder):
    texts = ["null", "1.0", "a: b", "[x]", '{"a": 1}', "true", "é"]
    status, printed, err = run_babyssa("score", masked_folder, *texts, "--json")
    assert status == 0, err
    assert [s["text"] for s in json.loads(printed)["sentences"]] == texts


def test_control_characters_in_a_suite_do_not_reach_the_terminal(run_babyssa, masked_folder, tmp_path):
    (tmp_path / "s.csv").write_text("good,bad\nx\x1b[31m,x\x1b[31m\n")
    status, _, err = run_babyssa(
        "probe", masked_folder, "--suite", tmp_path / "s.csv", "--out", tmp_path / "o", "--strict"
    )
    assert status == 1
    assert "identical" in err and "\x1b" not in err


def test_score_reads_sentences_from_standard_input(run_babyssa, masked_folder, stdin):
    stdin("the dog .\r\né 🙂\n".encode())
    status, printed, _ = run_babyssa("score", masked_folder, "--json")
    assert status == 0
    assert [s["text"] for s in json.loads(printed)["sentences"]] == ["the dog .", "é 🙂"]


def test_score_skips_empty_lines_and_counts_them(run_babyssa, masked_folder, stdin):
    stdin(b"the dog .\n\nthe cat .\r \r")
    status, out, err = run_babyssa("score", masked_folder, "--json", "--device", "cpu")
    assert status == 0
    assert [s["text"] for s in json.loads(out)["sentences"]] == ["the dog .", "the cat ."]
    assert "standard input: skipped 2 empty lines" in err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no sentences"),
        (b"\n \n", "standard input: no sentences"),
        (b"the dog\nth\xff\n", "standard input:2: byte 0xff is not UTF-8"),
    ],
)
def test_score_refuses_bad_standard_input(run_babyssa, masked_folder, stdin, content, message):
    stdin(content)
    status, printed, err = run_babyssa("score", masked_folder)
    assert (status, printed) == (1, "")
    assert message in err


def test_score_with_a_missing_model_is_one_line(run_babyssa, tmp_path):
    status, _, err = run_babyssa("score", tmp_path / "nosuch", "the dog")
    assert status == 1
    assert "no such model folder" in err and err.count("\n") == 1


def test_the_brute_force_script_agrees_with_probe(brute_force, masked_folder, suite, capsys):
    brute_force.main(str(masked_folder), str(suite), "4", "bad-first", "pll-word-l2r")
    printed = capsys.readouterr().out
    assert "4 sentences in 1 paradigms" in printed
    assert float(printed.split("difference: ")[1].split()[0]) < 1e-4
    assert "decided differently: 0" in printed


def test_identical_members_are_a_tie_and_strict_refuses_them(run_babyssa, masked_folder, tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("good,bad\nthe dog .,the dogs .\nthe cat .,the cat .\n")
    for options in ([], ["--limit", 2], ["--paradigms", "p"]):
        out = tmp_path / f"out{len(options)}{options[:1]}"
        status, _, err = run_babyssa("probe", masked_folder, "--suite", path, "--out", out, *options)
        assert (status, err.count("warning")) == (0, 1) and f"{path}:3" in err
        (paradigm,) = json.loads((out / "summary.json").read_text())["paradigms"]
        assert paradigm["ties"] == 1 and paradigm["accuracy"] in (0.25, 0.75)
    status, _, err = run_babyssa("probe", masked_folder, "--suite", path, "--out", tmp_path / "x", "--strict")
    assert status == 1 and "p.csv:3: " in err and not (tmp_path / "x").exists()
