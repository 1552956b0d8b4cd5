"""Models are loaded whole, with a tokenizer that fits them, or refused with the reason."""

import json
import shutil

import pytest
import torch

import babyssa
from babyssa.corpus import load_tokenizer
from babyssa.errors import ConfigError, ModelError
from babyssa.models import load_model, score
from babyssa.models.loading import as_loaded, weights_sha256


@pytest.fixture
def folder(masked_folder, tmp_path):
    """A copy of the masked model's folder, to be broken."""
    return shutil.copytree(masked_folder, tmp_path / "model")


def edit_json(path, **values):
    content = json.loads(path.read_text())
    path.write_text(json.dumps({k: v for k, v in (content | values).items() if v is not None}))


def test_the_kind_is_that_of_the_saved_class(masked_folder, causal_folder):
    assert load_model(masked_folder).kind == "masked"
    assert load_model(causal_folder).kind == "causal"


def test_the_kind_of_a_config_without_architectures_is_that_of_its_model_type(folder):
    edit_json(folder / "config.json", architectures=None)
    assert load_model(folder).kind == "masked"


def test_loaded_models_are_in_eval_mode_and_float32(masked_folder):
    loaded = load_model(masked_folder)
    assert not loaded.model.training
    assert {p.dtype for p in loaded.model.parameters()} == {torch.float32}
    assert loaded.name == str(masked_folder)


def test_loading_says_nothing_and_leaves_the_verbosity_as_it_was(masked_folder, capfd):
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    load_model(masked_folder)
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("config.json", r"no config\.json"),
        ("model.safetensors", r"no weights \(model\.safetensors\)"),
        ("tokenizer.json", r"no tokenizer \(tokenizer\.json\)"),
    ],
)
def test_an_incomplete_folder_is_refused_with_what_it_lacks(folder, file, message):
    (folder / file).unlink()
    with pytest.raises(ModelError, match=message):
        load_model(folder)


@pytest.mark.parametrize("name", ["RobertaTokenizerFast", "GPT2Tokenizer"])
def test_a_tokenizer_class_that_gives_other_ids_is_not_used_and_that_is_said(masked, folder, name, capsys):
    edit_json(folder / "tokenizer_config.json", tokenizer_class=name)
    sentences = ["The dog on the mat is big .", "don't you want it ?"]
    expected = [scored.score for scored in score(masked, sentences)]
    loaded = load_model(folder)
    assert f"{folder}: the class" in capsys.readouterr().err
    assert [scored.score for scored in score(loaded, sentences)] == pytest.approx(expected, abs=1e-4)


def test_truncated_weights_are_refused(folder):
    with open(folder / "model.safetensors", "r+b") as file:
        file.truncate(2000)
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_model(folder)


def test_broken_json_is_refused(folder):
    (folder / "config.json").write_text("{")
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_model(folder)


def test_missing_weights_are_refused_though_transformers_would_invent_them(masked, make, tmp_path):
    model, tokenizer = masked
    folder = make.save(model.roberta, tokenizer, tmp_path / "headless")
    with pytest.raises(ModelError, match=r"lacks \d+ of the model's weights \(lm_head"):
        load_model(folder)


def test_weights_of_other_shapes_are_refused(folder):
    edit_json(folder / "config.json", intermediate_size=64)
    with pytest.raises(ModelError, match="shapes differ"):
        load_model(folder)


def test_a_tokenizer_with_more_tokens_than_embeddings_is_refused(masked, make):
    _, tokenizer = masked
    model = make.masked(tokenizer, vocab_size=100)
    with pytest.raises(ModelError, match=r"320 tokens but the model only 100 embeddings"):
        as_loaded((model, tokenizer))


def test_a_masked_model_needs_a_mask_token(make):
    tokenizer = make.tokenizer(mask_token=None)
    with pytest.raises(ModelError, match="no mask token"):
        as_loaded((make.masked(tokenizer), tokenizer))


@pytest.mark.parametrize("name", ["./nosuch", "/nosuch/folder", "a/b/c"])
def test_a_missing_folder_is_refused_without_asking_the_hub(name):
    with pytest.raises(ModelError, match="no such model folder"):
        load_model(name)


def test_a_hub_id_that_cannot_be_had_is_one_line():
    with pytest.raises(ModelError) as caught:
        load_model("nosuch-organisation/nosuch-model")
    assert "\n" not in str(caught.value)


def test_a_file_is_not_a_model(folder):
    with pytest.raises(ModelError, match="is a file"):
        load_model(folder / "config.json")


def test_an_unknown_device_is_a_usage_error(masked_folder):
    with pytest.raises(ConfigError, match="cannot use device 'abacus'"):
        load_model(masked_folder, "abacus")


def test_an_encoder_decoder_is_refused(masked):
    from transformers import T5Config, T5ForConditionalGeneration

    _, tokenizer = masked
    config = T5Config(vocab_size=320, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    with pytest.raises(ModelError, match="encoder-decoder"):
        as_loaded((T5ForConditionalGeneration(config), tokenizer))


@pytest.fixture
def with_code(folder, make, tmp_path):
    """The masked model's folder as one that needs a class of its own, whose code leaves a file behind."""
    (folder / "modeling_own.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w').close()\n"
        "from transformers import RobertaConfig, RobertaForMaskedLM\n\n\n"
        "class OwnConfig(RobertaConfig):\n    model_type = 'own'\n\n\n"
        "class OwnForMaskedLM(RobertaForMaskedLM):\n    config_class = OwnConfig\n"
    )
    classes = {"AutoConfig": "modeling_own.OwnConfig", "AutoModelForMaskedLM": "modeling_own.OwnForMaskedLM"}
    edit_json(folder / "config.json", model_type="own", architectures=["OwnForMaskedLM"], auto_map=classes)
    return folder


def test_code_that_comes_with_a_model_runs_only_if_it_is_trusted(with_code, masked, run_babyssa, tmp_path):
    status, _, err = run_babyssa("score", with_code, "the dog is big .")
    assert status == 1 and err.count("\n") == 1
    assert "needs the code that comes with it (modeling_own.py)" in err and "pass --trust-remote-code" in err
    assert not (tmp_path / "ran").exists()
    status, out, err = run_babyssa("score", with_code, "the dog is big .", "--json", "--trust-remote-code")
    assert status == 0 and (tmp_path / "ran").exists()
    assert "running the code that comes with it (modeling_own.py), which can do whatever you can" in err
    (expected,) = score(masked, ["the dog is big ."])
    assert json.loads(out)["sentences"][0]["score"] == pytest.approx(expected.score, abs=1e-5)


def test_a_known_class_is_used_unless_the_code_is_trusted_and_that_is_said(with_code, capsys, tmp_path):
    edit_json(with_code / "config.json", model_type="roberta")
    assert type(load_model(with_code).model).__name__ == "RobertaForMaskedLM"
    assert "(modeling_own.py) does not run without --trust-remote-code" in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()


def test_a_tokenizer_with_code_is_refused_unless_it_is_trusted(folder):
    (folder / "config.json").unlink()
    code = {"AutoTokenizer": [None, "own.Own"]}
    edit_json(folder / "tokenizer_config.json", tokenizer_class="Own", auto_map=code)
    with pytest.raises(ModelError, match=r"the tokenizer needs the code that comes with it.*--trust-remote-code"):
        load_tokenizer(folder)


@pytest.mark.parametrize("verb", ["score", "perplexity", "generate", "evaluate", "probe", "diagnose", "attention"])
def test_a_folder_has_no_revision(run_babyssa, masked_folder, verb, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the dog is big .\n")
    words = {"perplexity": [text], "evaluate": ["--tasks", "copa"], "probe": [], "diagnose": []}
    status, _, err = run_babyssa(verb, masked_folder, *words.get(verb, ["the dog"]), "--revision", "chck_1M")
    assert status == 2 and err.count("\n") == 1
    assert f"{masked_folder} is on this machine, and has no revision 'chck_1M'" in err


def test_a_model_in_memory_has_no_revision(masked):
    with pytest.raises(ConfigError, match="revision is given for a model in memory"):
        babyssa.score(masked, ["the dog"], revision="main")


def test_the_hub_is_asked_for_the_revision_of_every_file(run_babyssa, masked_folder, monkeypatch, tmp_path):
    """A hub that has one model, in a cache such as the hub's own: files are found by their revision."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    place = tmp_path / "models--someone--tiny"
    shutil.copytree(masked_folder, place / "snapshots" / commit)
    (place / "refs").mkdir()
    (place / "refs" / "chck_1M").write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("transformers.utils.hub.constants.HF_HUB_CACHE", str(tmp_path))
    status, out, err = run_babyssa("score", "someone/tiny", "the dog", "--json", "--revision", "chck_1M")
    assert status == 0, err
    found = json.loads(out)
    assert found["model"] == "someone/tiny@chck_1M"
    (expected,) = score(masked_folder, ["the dog"])
    assert found["sentences"][0]["score"] == expected.score
    status, _, err = run_babyssa("score", "someone/tiny", "the dog")
    assert status == 1 and err.count("\n") == 1


def test_the_hash_is_of_the_weights_wherever_they_are(masked, masked_folder, make):
    model, tokenizer = masked
    assert weights_sha256(load_model(masked_folder).model) == weights_sha256(model)
    assert weights_sha256(make.masked(tokenizer, seed=1)) != weights_sha256(model)
