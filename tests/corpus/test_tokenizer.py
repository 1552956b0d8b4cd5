"""The tokenizer: trained, saved, loaded, applied."""

import contextlib
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from babyssa.corpus import encode_sentences, load_tokenizer, masked_tokenizer, tokenizer_sha256, train_tokenizer
from babyssa.corpus.tokenizer import save_tokenizer
from babyssa.errors import ConfigError, DataError, ModelError, OutputExistsError

SENTENCES = [
    "The dog is on the mat .",
    "where's the dog ?",
    "look at the big dog !",
    "the cat and the dog are here .",
    "a literal <mask> and </s> in the text .",
] * 4


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer") / "out"
    train_tokenizer(corpus, folder, vocab_size=300)
    return folder


@pytest.fixture(scope="module")
def tokenizer(folder):
    return load_tokenizer(folder)


def test_the_special_ids_are_those_of_babyberta(tokenizer):
    assert tokenizer.convert_ids_to_tokens(range(5)) == ["<mask>", "<pad>", "<unk>", "<s>", "</s>"]
    assert (tokenizer.mask_token_id, tokenizer.pad_token_id, tokenizer.unk_token_id) == (0, 1, 2)
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id) == (3, 4)
    assert (tokenizer.cls_token_id, tokenizer.sep_token_id) == (3, 4)
    assert tokenizer.model_max_length == 128


def test_its_parts_are_those_of_the_published_tokenizer(shared, folder):
    published = json.loads((shared / "data/tokenizer/babyberta.json").read_text(encoding="utf-8"))
    ours = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    assert ours["normalizer"] == published["normalizer"]
    assert ours["post_processor"] == published["post_processor"]
    assert ours["pre_tokenizer"] == {**published["pre_tokenizer"], "use_regex": True}
    assert ours["added_tokens"] == published["added_tokens"]
    assert ours["model"]["unk_token"] == published["model"]["unk_token"]


def test_transformers_reads_the_ids_that_tokenizers_trained(folder):
    from tokenizers import Tokenizer
    from transformers import AutoTokenizer

    trained = Tokenizer.from_file(str(folder / "tokenizer.json"))
    loaded = AutoTokenizer.from_pretrained(str(folder))
    for sentence in [*SENTENCES, "dog", "The", "unseen words $5 caf\u00e9"]:
        assert loaded(sentence)["input_ids"] == trained.encode(sentence).ids
    assert loaded("the dog")["input_ids"] == loaded("THE Dog")["input_ids"]


def test_what_transformers_4_needs_is_in_the_config(folder):
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert config["add_prefix_space"] is True
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast"


def test_the_first_word_is_encoded_like_any_other(tokenizer):
    assert encode_sentences(tokenizer, ["dog the"])[0][1] == encode_sentences(tokenizer, ["the dog"])[0][-2]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from(["dog", "Th\u00e9", "<mask>", "</s>", "<pad>", "\U0001f436", "x", "'s", "."]), min_size=1
    )
)
def test_text_survives_the_round_trip_and_is_never_special(tokenizer, words):
    text = " ".join(words)
    (ids,) = encode_sentences(tokenizer, [text])
    assert (ids[0], ids[-1]) == (3, 4)
    assert min(ids[1:-1]) > 4
    assert tokenizer.decode(ids[1:-1]).removeprefix(" ") == text.lower()


def test_encoding_a_sentence_does_not_depend_on_its_neighbours(tokenizer):
    together = encode_sentences(tokenizer, SENTENCES[:5])
    assert together == [encode_sentences(tokenizer, [sentence])[0] for sentence in SENTENCES[:5]]
    assert encode_sentences(tokenizer, []) == []


def test_long_sentences_are_not_truncated(tokenizer):
    assert len(encode_sentences(tokenizer, [" ".join(["dog"] * 500)])[0]) == 502


def test_encoding_leaves_the_tokenizer_as_it_was(tokenizer):
    before = tokenizer("a <mask> here")["input_ids"]
    encode_sentences(tokenizer, ["a <mask> here"])
    assert tokenizer("a <mask> here")["input_ids"] == before
    assert 0 in before


def test_training_is_the_same_every_time_and_with_any_number_of_threads(corpus, folder, tmp_path, monkeypatch):
    for parallel in ("true", "false"):
        monkeypatch.setitem(os.environ, "TOKENIZERS_PARALLELISM", parallel)
        train_tokenizer(corpus, tmp_path / parallel, vocab_size=300)
        for file in ("tokenizer.json", "tokenizer_config.json"):
            assert (tmp_path / parallel / file).read_bytes() == (folder / file).read_bytes()


def test_a_small_corpus_gives_a_small_vocabulary(corpus, tmp_path):
    trained = train_tokenizer(corpus, tmp_path / "out", min_frequency=1000)
    assert len(trained) == 5 + 256


def test_a_cased_tokenizer_keeps_case(corpus, tmp_path):
    cased = train_tokenizer(corpus, tmp_path / "out", vocab_size=300, lowercase=False)
    (ids,) = encode_sentences(cased, ["The Dog"])
    assert cased.decode(ids[1:-1]) == " The Dog"
    assert encode_sentences(load_tokenizer(tmp_path / "out"), ["The Dog"]) == [ids]


def test_a_line_with_an_endless_word_is_named_and_left_out(corpus, folder, tmp_path, capsys):
    text = corpus.read_text(encoding="utf-8")
    (tmp_path / "corpus.txt").write_text("ab" * 450_000 + "\n" + text, encoding="utf-8")
    train_tokenizer(tmp_path / "corpus.txt", tmp_path / "out", vocab_size=300)
    assert (tmp_path / "out/tokenizer.json").read_bytes() == (folder / "tokenizer.json").read_bytes()
    assert capsys.readouterr().err == f"{tmp_path}/corpus.txt:1: left out: a word over 10,000 characters\n"


@pytest.mark.slow
def test_ctrl_c_is_answered_within_a_second_while_a_tokenizer_trains(tmp_path):
    letters = random.Random(0)
    words = ["".join(letters.choices("abcdefghijklmnop", k=9_999)) for _ in range(200)]
    (tmp_path / "corpus.txt").write_text("\n".join(words), encoding="utf-8")
    code = (
        "import sys, threading, tokenizers, transformers; from babyssa.corpus import train_tokenizer\n"
        "threading.Timer(0.1, lambda: print('training', flush=True)).start()\n"
        "try: train_tokenizer(sys.argv[1], sys.argv[2])\n"
        "except KeyboardInterrupt: print('interrupted', flush=True)\n"
    )
    command = [sys.executable, "-c", code, tmp_path / "corpus.txt", tmp_path / "out"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"training\n"
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    assert process.stdout.readline() == b"interrupted\n"
    assert time.monotonic() - started < 1
    assert process.wait(timeout=60) == 0
    assert not (tmp_path / "out/tokenizer.json").exists()


def test_a_saved_copy_keeps_ids_and_class_name(tokenizer, tmp_path):
    save_tokenizer(tokenizer, tmp_path / "copy")
    config = json.loads((tmp_path / "copy/tokenizer_config.json").read_text(encoding="utf-8"))
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert encode_sentences(load_tokenizer(tmp_path / "copy"), SENTENCES) == encode_sentences(tokenizer, SENTENCES)


def test_code_in_a_tokenizer_folder_is_never_run(folder, tmp_path, monkeypatch):
    evil = tmp_path / "evil"
    shutil.copytree(folder, evil)
    (evil / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Evil: pass\n")
    config = json.loads((evil / "tokenizer_config.json").read_text())
    config |= {"tokenizer_class": "Evil", "auto_map": {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}}
    (evil / "tokenizer_config.json").write_text(json.dumps(config))
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with contextlib.suppress(ModelError):
        load_tokenizer(evil)
    assert not (tmp_path / "ran").exists()


def test_an_incomplete_folder_is_an_error(folder, tmp_path):
    with pytest.raises(ModelError, match="no such tokenizer folder"):
        load_tokenizer(tmp_path / "none")
    broken = shutil.copytree(folder, tmp_path / "broken")
    for name in ("tokenizer_config.json", "tokenizer.json"):
        (broken / name).write_text('{"version": ', encoding="utf-8")
        with pytest.raises(ModelError, match="broken JSON"):
            load_tokenizer(broken)
        (broken / name).unlink()
    with pytest.raises(ModelError, match=r"lacks tokenizer\.json"):
        load_tokenizer(broken)
    (broken / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_tokenizer(broken)


def test_a_hub_id_that_cannot_be_had_is_one_line():
    with pytest.raises(ModelError, match="the hub does not give it") as caught:
        load_tokenizer("nosuch-organisation/nosuch-tokenizer")
    assert "\n" not in str(caught.value)


def backend_ids(folder, text):
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(folder / "tokenizer.json")).encode(text).ids


@pytest.mark.parametrize("name", ["RobertaTokenizerFast", "RobertaTokenizer", "GPT2Tokenizer", "BertTokenizer"])
def test_the_ids_are_those_of_tokenizer_json_whatever_class_is_named(folder, tmp_path, capsys, name):
    other = shutil.copytree(folder, tmp_path / "other")
    (other / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}), encoding="utf-8")
    loaded = load_tokenizer(other)
    said = capsys.readouterr().err
    assert f"{other}: the class" in said and "using those of the file" in said and said.count("\n") == 1
    for text in ["The Dog", "dog", " the  dogs", "don't", "caf\u00e9 5"]:
        assert loaded(text)["input_ids"] == backend_ids(other, text)
        assert encode_sentences(loaded, [text]) == [backend_ids(other, text)]
    assert len(loaded) == 300 and loaded.mask_token_id == 0
    # Saved and loaded again, it is the same, and nothing more is said.
    save_tokenizer(loaded, tmp_path / "saved")
    assert encode_sentences(load_tokenizer(tmp_path / "saved"), SENTENCES) == encode_sentences(loaded, SENTENCES)
    assert capsys.readouterr().err == ""


def test_a_prefix_space_that_the_config_denies_is_that_of_the_file(folder, tmp_path):
    other = shutil.copytree(folder, tmp_path / "other")
    config = json.loads((other / "tokenizer_config.json").read_text(encoding="utf-8"))
    (other / "tokenizer_config.json").write_text(json.dumps({**config, "add_prefix_space": False}))
    assert load_tokenizer(other)("dog")["input_ids"] == backend_ids(other, "dog")


def test_nothing_is_said_of_a_class_that_keeps_the_ids(folder, capsys):
    load_tokenizer(folder)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("as_folder", [True, False])
def test_a_tokenizer_json_alone_is_a_tokenizer(folder, tmp_path, capsys, as_folder):
    alone = tmp_path / "alone"
    alone.mkdir()
    file = shutil.copy(folder / "tokenizer.json", alone / ("tokenizer.json" if as_folder else "mine.json"))
    loaded = load_tokenizer(alone if as_folder else file)
    assert "special tokens by their names: mask <mask>, pad <pad>" in capsys.readouterr().err
    assert (loaded.mask_token_id, loaded.pad_token_id, loaded.bos_token_id, loaded.eos_token_id) == (0, 1, 3, 4)
    assert encode_sentences(loaded, SENTENCES) == encode_sentences(load_tokenizer(folder), SENTENCES)


def test_the_published_tokenizer_is_read_from_its_file(shared):
    from tokenizers import Tokenizer

    path = shared / "data/tokenizer/babyberta.json"
    loaded, published = load_tokenizer(path), Tokenizer.from_file(str(path))
    for text in SENTENCES[:10]:
        assert loaded(text)["input_ids"] == published.encode(text).ids


@pytest.fixture
def gpt2(tmp_path):
    """A folder of a cased tokenizer like GPT-2's: one special token, and none around a text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(SENTENCES, trainer)
    end = "<|endoftext|>"
    PreTrainedTokenizerFast(tokenizer_object=backend, bos_token=end, eos_token=end).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config | {"tokenizer_class": "GPT2Tokenizer"}))
    return tmp_path


def test_a_tokenizer_without_mask_pad_and_frame_gets_them_for_masked_training(gpt2, capsys):
    plain = encode_sentences(load_tokenizer(gpt2), ["The Dog"])[0]
    tokenizer = masked_tokenizer(load_tokenizer(gpt2))
    said = capsys.readouterr().err
    assert "no mask token and no pad token: added <mask> (300) and <pad> (301)" in said
    assert "marks no sentence boundaries" in said
    assert (tokenizer.mask_token_id, tokenizer.pad_token_id, len(tokenizer)) == (300, 301, 302)
    assert encode_sentences(tokenizer, ["The Dog"]) == [[0, *plain, 0]]
    save_tokenizer(tokenizer, gpt2 / "saved")
    saved = load_tokenizer(gpt2 / "saved")
    assert encode_sentences(saved, ["The Dog"]) == [[0, *plain, 0]]
    assert tokenizer_sha256(saved) == tokenizer_sha256(tokenizer)


def test_a_tokenizer_with_all_that_masked_training_needs_is_left_as_it_is(folder, capsys):
    tokenizer = load_tokenizer(folder)
    before = tokenizer_sha256(tokenizer)
    assert tokenizer_sha256(masked_tokenizer(tokenizer)) == before
    assert capsys.readouterr().err == ""


def test_bad_input_is_an_error_and_destroys_nothing(corpus, folder, tmp_path):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(OutputExistsError, match="--overwrite"):
        train_tokenizer(corpus, folder)
    with pytest.raises(DataError, match="no such file"):
        train_tokenizer(tmp_path / "none.txt", folder, overwrite=True)
    with pytest.raises(ConfigError, match="from 261"):
        train_tokenizer(corpus, folder, vocab_size=260, overwrite=True)
    with pytest.raises(ConfigError, match="min-frequency"):
        train_tokenizer(corpus, folder, min_frequency=0, overwrite=True)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_the_command_trains_and_fails_in_one_line(corpus, tmp_path, run_babyssa):
    status, out, err = run_babyssa("tokenizer", corpus, "--out", tmp_path / "out", "--vocab-size", 280)
    assert (status, out) == (0, "")
    assert "tokenizer.json" in err and "280 tokens in the vocabulary" in err
    status, out, err = run_babyssa("tokenizer", corpus, "--out", tmp_path / "out")
    assert (status, out) == (1, "")
    assert "already exists; choose another --out or pass --overwrite" in err
    assert len(err.strip().splitlines()) == 1
