"""A scoring of another package, installed beside this one and registered through ``babyssa.scorings``."""

import os
import subprocess
import sys
import zipfile
from importlib.metadata import EntryPoint

import pytest
import torch

from babyssa.attention import build_scoring, registry, scoring_config, set_scoring, variants
from babyssa.errors import ConfigError, ModelError
from babyssa.probing.saturation import saturation

# Sigmoid attention with a bias per head (Ramapuram et al. 2024): its weights do not sum to 1, its learned number
# has no bound, and its initial value needs the model's length.
TOY = """
import math
from dataclasses import dataclass

import torch

from babyssa.attention import LogitScoring
from babyssa.attention.laws import Law
from babyssa.attention.learnable import Bound, Learnable, per_head


@dataclass(frozen=True)
class ToyConfig:
    bias: float = -1.0
    learn_bias: bool = True
    granularity: str = "head"
    max_length: int | None = None


class Toy(Learnable, LogitScoring):
    name = "toy"
    description = "sigmoid(x + bias) / log(max_length)"
    Config = ToyConfig
    variants = {"toy-fixed": ToyConfig(learn_bias=False), "ssa-2": ToyConfig()}
    bounds = {"bias": Bound(-math.inf)}
    needs_length = True
    normalised = False

    def weights(self, logits, mask=None):
        w = torch.sigmoid(logits + per_head(self.number("bias"))) / math.log(self.config.max_length)
        return w if mask is None else w.masked_fill(~mask, 0)

    def law(self, setting):
        kept = torch.sigmoid(setting.logits(torch.ones(1)) + self.config.bias)
        if setting.condition == "magnification":
            kept = torch.arange(setting.keys)[None] * 2 >= setting.keys
        others = float(kept[0, :-1].sum())
        return Law("limit", others / (others + 1))


class CausalToy(Toy):
    name = "causal-toy"
    Config = dataclass(frozen=True)(type("CausalToyConfig", (ToyConfig,), {}))
    variants = {}
    needs_causal = True


class Lawless(LogitScoring):
    name = "lawless"

    @dataclass(frozen=True)
    class Config:
        pass
"""
ENTRIES = {"toy": "toy_scoring:Toy", "causal-toy": "toy_scoring:CausalToy", "lawless": "toy_scoring:Lawless"}

TRAIN = """
import sys
from pathlib import Path

from transformers import AutoModelForMaskedLM

import babyssa
from babyssa.attention import scoring_parameters
from babyssa.encoder.config import EncoderSize, EncoderTraining, Evaluation, Optimisation

corpus, tokenizer, out = map(Path, sys.argv[1:])
run = babyssa.train_encoder(
    EncoderTraining(
        corpus, out, tokenizer, variant="toy", scoring={"bias": -2.0},
        size=EncoderSize(layers=1, heads=2, hidden_size=16, feed_forward_size=24, max_length=32),
        optimisation=Optimisation(batch_size=4, steps=5, learning_rate=0.01), evaluation=Evaluation(held_out=5),
    )
)
model = AutoModelForMaskedLM.from_pretrained(out)
expected = {"bias": -2.0, "learn_bias": True, "granularity": "head", "max_length": 32}
assert model.config.attention_scoring == {"name": "toy", **expected}
(learned,) = scoring_parameters(model).values()
assert len(learned["bias"]) == 2 and all(0 < abs(bias + 2.0) < 0.1 for bias in learned["bias"])
for line in ("scoring:", "max_length: 32", "bias: -2.0"):
    assert line in (out / "config.yaml").read_text()
assert babyssa.score(str(out), ["look ."])[0].score < 0
curves = [curve for curve in babyssa.saturation().curves if curve.scoring.startswith("toy")]
assert [curve.scoring for curve in curves] == ["toy", "toy", "toy-fixed", "toy-fixed"]
assert all(abs(curve.deviation_percent) < 1e-3 for curve in curves)
"""


def wheel(folder, entries=ENTRIES):
    """The toy package, built as a wheel by hand."""
    path = folder / "toy_scoring-1.0-py3-none-any.whl"
    lines = [f"[{registry.GROUP}]", *(f"{name} = {value}" for name, value in entries.items())]
    files = {
        "METADATA": "Metadata-Version: 2.1\nName: toy-scoring\nVersion: 1.0\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "entry_points.txt": "\n".join(lines),
        "RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("toy_scoring.py", TOY)
        for name, text in files.items():
            archive.writestr(f"toy_scoring-1.0.dist-info/{name}", text)
    return path


@pytest.mark.slow
def test_an_installed_packages_scoring_trains_saves_loads_and_saturates(tmp_path, corpus, tokenizer_folder):
    site = tmp_path / "site"
    install = ("pip", "install", "--quiet", "--no-deps", "--no-index", "--target", site, wheel(tmp_path))
    subprocess.run([sys.executable, "-m", *install], check=True)
    path = os.pathsep.join([str(site), os.getcwd(), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", TRAIN, corpus, tokenizer_folder, tmp_path / "run"]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "left out: 'ssa-2' of scoring 'toy', a name in use" in done.stderr


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put the toy package on the path of this process, with entry points of the test's own."""

    def forget():
        for function in (registry._entries, registry.scoring_class, registry.scoring_classes, registry.variants):
            function.cache_clear()
        sys.modules.pop("toy_scoring", None)

    def put(**entries):
        # Python imports from zip files; importlib.metadata reads them too.
        monkeypatch.syspath_prepend(wheel(tmp_path, {**ENTRIES, **entries}))
        forget()

    yield put
    forget()


def test_a_broken_package_is_one_clear_line_where_its_scoring_is_used(install, caplog):
    install(broken="no_such_module:Scoring", shapeless="toy_scoring:ToyConfig", alias="toy_scoring:Toy")
    assert "toy" in variants() and "broken" not in variants()
    assert "scoring 'broken' (no_such_module:Scoring) cannot be loaded: ModuleNotFoundError" in caplog.text
    assert build_scoring(scoring_config("ssa-2"), 2).name == "ssa"
    for name, says in (
        ("broken", r"scoring 'broken' \(no_such_module:Scoring\) cannot be loaded: .*; fix or uninstall it"),
        ("shapeless", r"'shapeless' \(toy_scoring:ToyConfig\) "),
        ("alias", r"'alias' \(toy_scoring:Toy\) is not a Scoring with this name and a dataclass Config"),
        ("toyy", "unknown variant 'toyy'; did you mean 'toy'"),
    ):
        with pytest.raises(ConfigError, match=says):
            scoring_config(name)


def test_a_name_in_use_is_refused(install):
    install(ssa="toy_scoring:Toy")
    says = "'ssa' is registered as babyssa.attention.ssa:SSA and as toy_scoring:Toy; uninstall or rename"
    with pytest.raises(ConfigError, match=says):
        scoring_config("ssa")
    assert scoring_config("softmax") == variants()["softmax"]


def test_a_scoring_that_needs_a_causal_model_is_refused_in_another(install, masked, causal, make):
    install()
    with pytest.raises(ModelError, match="'causal-toy' is defined in causal models only, and RobertaForMaskedLM"):
        set_scoring(make.masked(masked[1]), scoring_config("causal-toy"))
    model = set_scoring(make.causal(causal[1]), scoring_config("causal-toy"))
    assert model.config.attention_scoring["max_length"] == 40


def test_a_group_of_mixed_heads_may_be_another_packages(install):
    install()
    config = scoring_config("mixed", groups=[["toy", 1], ["ssa", 1]])
    mixed = build_scoring(registry.fit_scoring(config, 50), 2)
    assert not mixed.normalised and mixed.groups[0].config.max_length == 50
    assert registry.scoring_from_dict(registry.scoring_to_dict(mixed.config)) == mixed.config
    output, weights = mixed(*torch.ones(3, 1, 2, 4, 8), None, scaling=1.0)
    assert output.shape == (1, 2, 4, 8) and weights.sum(-1)[0, 1].tolist() == pytest.approx([1.0] * 4)


def test_a_scoring_without_a_law_has_no_saturation_but_works(install):
    install()
    assert "lawless" not in {curve.scoring for curve in saturation(keys=4).curves}
    with pytest.raises(ConfigError, match="scoring 'lawless' states no law of saturation; define its method law"):
        saturation(["lawless"])


def test_a_scorings_line_is_an_entry_point():
    for name, value in registry._PACKAGED.items():
        assert EntryPoint(name, value, registry.GROUP).load() is registry.scoring_class(name)
