"""Exported checkpoints: used without this package as others use them, and again with it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, RobertaConfig

import babyssa
from babyssa.attention import MixedConfig, scoring_classes, scoring_config, scorings, set_scoring
from babyssa.attention.flat import modelling_code
from babyssa.errors import ModelError, OutputExistsError

MIXED = MixedConfig([["softmax", 1], [{"name": "ssa", "n": 1.7}, 1]])
OUTSIDE = Path(__file__).with_name("outside.py")


@pytest.fixture(scope="module")
def exported(make, tmp_path_factory):
    """Exports, each beside the logits of the model that was exported."""
    folder = tmp_path_factory.mktemp("exported")

    def export(name, model, tokenizer, scoring=None):
        if scoring is not None:
            model = set_scoring(model, scoring)
        with torch.no_grad():
            for module in scorings(model).values():
                for number in module.parameters():
                    number.add_(torch.linspace(0.1, 0.9, len(number)))
        babyssa.export((model, tokenizer), out=folder / name)
        generator = torch.Generator().manual_seed(0)
        inputs = {"input_ids": torch.randint(5, len(tokenizer), (3, 9), generator=generator)}
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
        inputs["input_ids"][1, 6:], inputs["attention_mask"][1, 6:] = 1, 0
        with torch.no_grad():
            logits = model(**inputs).logits
        dog = tokenizer("The dog sees a cat .")["input_ids"]
        np.savez(folder / f"{name}.npz", logits=logits, dog=dog, **inputs)

    masked, causal = make.tokenizer(), make.tokenizer(frame=False)
    export("encoder-softmax", make.masked(masked), masked)
    export("encoder-ssa-1.5", make.masked(masked), masked, scoring_config("ssa-1.5"))
    export("decoder-mixed", make.causal(causal), causal, MIXED)
    return folder


@pytest.fixture(scope="module")
def outside(exported, tmp_path_factory):
    """What a process that cannot import this package finds, by the export's name."""
    blocked = tmp_path_factory.mktemp("blocked")
    (blocked / "babyssa.py").write_text("raise ImportError('not installed')\n")
    shutil.copytree(exported / "encoder-ssa-1.5", exported / "wrong")
    with np.load(exported / "encoder-ssa-1.5.npz") as right:
        np.savez(exported / "wrong.npz", **{**right, "logits": right["logits"] + 0.5})
    names = sorted(path.stem for path in exported.glob("*.npz"))
    done = subprocess.run(
        [sys.executable, OUTSIDE, *(exported / path.removesuffix(".npz") for path in names)],
        env={**os.environ, "PYTHONPATH": str(blocked), "HF_HOME": str(blocked / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {found["model"]: found for found in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("name", ["encoder-softmax", "encoder-ssa-1.5", "decoder-mixed"])
def test_an_export_works_where_this_package_is_not_installed(outside, name):
    found = outside[name]
    assert found["difference"] <= 1e-5 and found["reload"] <= 1e-5
    assert found["base"] and found["fine-tune"] and found["tokenizer"] and found.get("generate", True)


@pytest.mark.parametrize("name", ["encoder-ssa-1.5", "decoder-mixed"])
def test_an_export_with_a_scoring_never_runs_as_softmax(outside, name):
    assert outside[name]["refuses"] and outside[name]["class"].startswith("Scored")


def test_an_export_with_softmax_is_a_stock_checkpoint(outside, exported):
    assert outside["encoder-softmax"]["class"] == "RobertaForMaskedLM"
    assert not (exported / "encoder-softmax" / "modeling_babyssa.py").exists()


def test_a_difference_would_be_seen(outside):
    assert outside["wrong"]["difference"] == pytest.approx(0.5, abs=1e-5)


def test_an_export_is_read_again_with_this_package(exported, run_babyssa):
    status, stdout, _ = run_babyssa("score", exported / "encoder-ssa-1.5", "the dog is big .")
    assert status == 0 and "dog" in stdout
    trusting = ("score", exported / "encoder-ssa-1.5", "the dog is big .", "--trust-remote-code")
    # This package has the class, so that nothing needs to be trusted.
    assert run_babyssa(*trusting) == (0, stdout, "")


def test_an_export_is_read_by_its_own_code_where_this_package_does_not_know_it(exported, run_babyssa, tmp_path):
    folder = shutil.copytree(exported / "encoder-ssa-1.5", tmp_path / "foreign")
    (folder / "checksums.json").unlink()
    for name in ("config.json", "modeling_babyssa.py"):
        text = (folder / name).read_text()
        (folder / name).write_text(text.replace("babyssa-roberta", "foreign-roberta"))
    status, _, err = run_babyssa("score", folder, "the dog is big .")
    assert status == 1 and "needs the code that comes with it (modeling_babyssa.py)" in err
    status, own, err = run_babyssa("score", folder, "the dog is big .", "--json", "--trust-remote-code")
    assert status == 0 and "running the code that comes with it" in err
    _, expected, _ = run_babyssa("score", exported / "encoder-ssa-1.5", "the dog is big .", "--json")
    score, wanted = (json.loads(each)["sentences"][0]["score"] for each in (own, expected))
    assert score == pytest.approx(wanted, abs=1e-5)


def test_an_export_loads_with_this_package_bit_for_bit(exported):
    with np.load(exported / "encoder-ssa-1.5.npz") as expected, torch.no_grad():
        model = AutoModelForMaskedLM.from_pretrained(exported / "encoder-ssa-1.5")
        inputs = {key: torch.tensor(expected[key]) for key in ("input_ids", "attention_mask")}
        found = model(**inputs).logits[inputs["attention_mask"].bool()]
        assert torch.equal(found, torch.tensor(expected["logits"])[inputs["attention_mask"].bool()])


def test_a_checkpoint_of_an_earlier_version_is_read(exported, tmp_path):
    folder = shutil.copytree(exported / "encoder-ssa-1.5", tmp_path / "earlier")
    values = json.loads((folder / "config.json").read_text())
    values["id2label"] = {"0": "no", "1": "yes", "this checkpoint needs 'import babyssa.attention'": ""}
    (folder / "config.json").write_text(json.dumps(values))
    assert AutoModelForMaskedLM.from_pretrained(folder).config.id2label == {0: "no", 1: "yes"}


@pytest.mark.parametrize("name", [*scoring_classes(), None])
def test_the_code_of_every_scoring_stands_alone(name):
    scoring = [{"name": each} for each in scoring_classes()] if name is None else {"name": name}
    code = modelling_code(RobertaConfig, scoring)
    imports = [line for line in code.splitlines() if line.lstrip().startswith(("import ", "from "))]
    assert not any("babyssa" in line for line in imports)
    namespace = {"__name__": f"alone_{name}"}
    sys.modules[namespace["__name__"]] = type(sys)(namespace["__name__"])
    try:
        exec(compile(code, f"{name}.py", "exec"), vars(sys.modules[namespace["__name__"]]))
    finally:
        del sys.modules[namespace["__name__"]]


def test_a_model_of_this_package_alone_has_no_code():
    from babyssa.synthetic.model import InContextConfig

    with pytest.raises(ModelError, match="a model with a InContextConfig needs this package"):
        modelling_code(InContextConfig, {"name": "ssa"})


def test_an_earlier_export_is_kept(exported, masked):
    with pytest.raises(OutputExistsError):
        babyssa.export(masked, out=exported / "encoder-softmax")
