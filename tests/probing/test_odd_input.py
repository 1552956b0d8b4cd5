"""What is scored is what was given, whatever characters it has, or it is refused."""

import csv
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from babyssa.console import say
from babyssa.display import escape_markdown
from babyssa.errors import BabySSAError, DataError, ModelError, describe
from babyssa.files import read_json, read_yaml
from babyssa.models import as_loaded, load_model, score
from babyssa.models.encoding import encode
from babyssa.probing import load_suite

ODD = [
    "<mask>",
    "</s>",
    "<pad>",
    "👩\u200d👧",
    "e\u0301\u0323",
    "\u202eשלום",
    "\0",
    "\r",
    "\n",
    "\ufeff",
    "\x1b[2J",
    "\x9b1m",
]
odd_text = st.lists(st.text(max_size=12) | st.sampled_from([*ODD, "a" * 300]), min_size=1, max_size=5).map("".join)


@settings(max_examples=80, deadline=None)
@given(odd_text)
def test_the_tokens_of_a_sentence_spell_it_or_it_is_refused(masked, sentence):
    loaded = as_loaded(masked)
    tokenizer = loaded.tokenizer
    try:
        encoding = encode(loaded, sentence)
    except DataError as error:
        assert re.search("is empty|tokens long|has no tokens", str(error))
        return
    ids = [encoding.ids[position] for position in encoding.inside]
    assert not set(ids) & set(tokenizer.all_special_ids)
    given_text = tokenizer.backend_tokenizer.normalizer.normalize_str(sentence)
    spelt = tokenizer.decode(ids, clean_up_tokenization_spaces=False)
    assert spelt.removeprefix(" ") == given_text.removeprefix(" ")


@settings(max_examples=12, deadline=None)
@given(st.lists(odd_text.filter(str.strip).map(lambda text: text[:12]).filter(str.strip), min_size=1, max_size=4))
def test_a_score_does_not_depend_on_what_else_is_scored(masked, sentences):
    try:
        together = score(masked, [*sentences, *sentences])
    except DataError:
        return
    scores = [found.score for found in together]
    assert scores[: len(sentences)] == scores[len(sentences) :]
    assert [found.text for found in together] == [*sentences, *sentences]
    for sentence, found in zip(sentences, scores, strict=False):
        assert score(masked, [sentence])[0].score == pytest.approx(found, abs=1e-4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("odd")


def write_suite(path, pairs):
    with open(path, "w", encoding="utf-8", newline="") as file:
        if path.suffix == ".jsonl":
            for good, bad in pairs:
                file.write(
                    json.dumps({"sentence_good": good, "sentence_bad": bad}, ensure_ascii=len(good) % 2) + "\n"
                )
        elif path.suffix == ".csv":
            csv.writer(file).writerows([("good", "bad"), *pairs])
        else:
            file.writelines(f"{bad}\n{good}\n" for good, bad in pairs)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(odd_text, odd_text), min_size=1, max_size=4), st.sampled_from(["a.jsonl", "a.csv", "a.txt"])
)
def test_a_suites_sentences_are_read_as_they_are_or_refused(folder, pairs, name):
    path = folder / name
    if name == "a.txt":
        # Lines end at \n or \r\n, and a byte-order mark may begin the file.
        pairs = [tuple(re.sub("[\r\n\ufeff]", " ", text) for text in pair) for pair in pairs]
        # An empty line separates pairs, so it cannot be a member of one.
        pairs = [tuple(text if text.strip() else "a" for text in pair) for pair in pairs]
    write_suite(path, pairs)
    valid = all(good.strip() and bad.strip() for good, bad in pairs)
    try:
        suite = load_suite(path, "bad-first" if name == "a.txt" else None)
    except DataError as error:
        assert not valid and error.path == path and error.line is not None
        return
    assert valid
    assert [(pair.good, pair.bad) for pair in suite.paradigms[0].pairs] == pairs


@settings(max_examples=100, deadline=None)
@given(odd_text)
def test_foreign_text_steers_neither_a_terminal_nor_a_table(text):
    cell = escape_markdown(text)
    assert cell.isprintable() and not re.search(r"(?<!\\)(?:\\\\)*\|", cell)
    assert "<" not in cell and ">" not in cell
    assert describe(BabySSAError(text, path=f"a{text}b".replace("\0", ""))).isprintable()
    assert describe(ValueError(text)).isprintable()


def test_a_message_is_one_printable_line(capsys):
    say("a\x1b[2J\nb\u202ec\x9b")
    assert capsys.readouterr().err == "a [2J b c \n"


def test_a_suites_line_of_100_mb_is_refused(tmp_path):
    with open(tmp_path / "a.jsonl", "wb") as file:
        file.truncate(100 << 20)
    with pytest.raises(DataError, match=r"a\.jsonl:1: the line is longer than"):
        load_suite(tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    "content, says",
    [
        (
            "a: &a [x, x, x, x, x, x, x, x, x]\n"
            + "".join(
                f"{y}: &{y} [{', '.join([f'*{x}'] * 9)}]\n" for x, y in zip("abcdefgh", "bcdefghi", strict=True)
            ),
            "more than 100,000 values",
        ),
        ("a: &a\n  b: *a\n", "nested too deeply"),
        ("a: " + "[" * 3000, "broken YAML"),
        ("a: !!python/object/apply:os.system [echo]\n", "broken YAML"),
    ],
)
def test_a_hostile_yaml_is_refused(content, says, tmp_path):
    (tmp_path / "a.yaml").write_text(content)
    with pytest.raises(DataError, match=says):
        read_yaml(tmp_path / "a.yaml")


def test_json_nested_without_end_is_refused(tmp_path):
    (tmp_path / "a.json").write_text("[" * 100_000)
    with pytest.raises(DataError, match="nested too deeply"):
        read_json(tmp_path / "a.json")


def test_pickled_weights_are_refused_unopened(masked, tmp_path):
    model, tokenizer = masked
    tokenizer.save_pretrained(tmp_path)
    model.config.save_pretrained(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(ModelError, match=r"pytorch_model\.bin: the weights are a pickle, which can run any code"):
        load_model(tmp_path)


def test_a_models_own_code_is_not_run(masked_folder, tmp_path):
    for path in masked_folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {"model_type": "mine", "auto_map": {"AutoConfig": "mine.Mine", "AutoModelForMaskedLM": "mine.Mine"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with pytest.raises(ModelError, match=r"needs the code that comes with it .mine.py."):
        load_model(tmp_path)
    assert not (tmp_path / "ran").exists()
