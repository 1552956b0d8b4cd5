"""Attention maps and their summaries are those of the weights with which the model attends, for any scoring."""

import copy
import csv
import json
import math

import numpy as np
import pytest
import torch

from babyssa import attention_maps
from babyssa.attention import MixedConfig, SSAConfig, scoring_config, scorings, set_scoring
from babyssa.errors import DataError, ModelError
from babyssa.models import load_model
from babyssa.probing.attention import mean_entropy, words_of
from babyssa.probing.figures import draw_attention_maps
from babyssa.probing.heads import draw_history, learned_numbers
from babyssa.synthetic.config import InContextSize
from babyssa.synthetic.model import build_transformer

TEXT = "the dog on the mat is big ."


def scored(pair, config):
    model, tokenizer = pair
    return set_scoring(copy.deepcopy(model), config), tokenizer


def by_hand(model, inputs):
    """Logits x = q.k / sqrt(head_dim) of a RoBERTa's layers in float64, from the hidden states that enter them."""
    states = model(**inputs, output_hidden_states=True).hidden_states
    for layer, hidden in zip(model.roberta.encoder.layer, states, strict=False):
        attention = layer.attention.self
        query, key = (
            linear(hidden)[0].double().unflatten(-1, (attention.num_attention_heads, -1)).transpose(0, 1)
            for linear in (attention.query, attention.key)
        )
        yield attention, query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])


@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_the_maps_of_a_stock_model_are_those_that_it_returns(kind, request):
    model, tokenizer = request.getfixturevalue(kind)
    found = attention_maps((model, tokenizer), TEXT)
    eager = copy.deepcopy(model)
    eager.set_attn_implementation("eager")
    ids = tokenizer(TEXT, add_special_tokens=kind == "masked")["input_ids"]
    ids = torch.tensor([ids if kind == "masked" else [3, *ids]])
    assert found.tokens == tuple(tokenizer.convert_ids_to_tokens(ids[0])) and found.kind == kind
    expected = eager(input_ids=ids, output_attentions=True).attentions
    for weights, layer in zip(found.weights, expected, strict=True):
        assert np.allclose(weights, layer[0].detach().numpy(), atol=1e-7)
        assert np.allclose(weights.sum(-1), 1, atol=1e-6)
    assert all(head.scoring is None and head.numbers == {} for head in found.heads)


@pytest.mark.parametrize("variant", ["softmax", "ssa", "sparsemax", "sas"])
def test_a_causal_model_looks_at_nothing_that_comes_later(variant, causal):
    pair = causal if variant == "softmax" else scored(causal, scoring_config(variant))
    found = attention_maps(pair, TEXT)
    assert found.tokens[0] == "<s>"
    for weights in found.weights:
        assert (np.triu(weights, k=1) == 0).all() and (variant == "sas" or (weights[:, 0, 0] == 1).all())


def test_an_ssa_map_is_the_papers_formula(masked):
    model, tokenizer = scored(masked, SSAConfig(n=1.8, b=0.7))
    with torch.no_grad():
        for layer in model.roberta.encoder.layer:
            layer.attention.self.scoring.raw_b.add_(torch.tensor([0.0, 0.5]))
    found = attention_maps((model, tokenizer), TEXT)
    inputs = {"input_ids": torch.tensor([tokenizer(TEXT)["input_ids"]])}
    for number, (attention, x) in enumerate(by_hand(model, inputs)):
        n, b = (getattr(attention.scoring, key).double().view(-1, 1, 1) for key in "nb")
        weights = (1 + b * x.abs()) ** (x.sign() * n)
        weights = (weights / weights.sum(-1, keepdim=True)).detach().numpy()
        assert np.allclose(found.weights[number], weights, atol=1e-5)
        entropy = -(weights * np.log(weights)).sum(-1).mean(-1)
        for head in range(2):
            summary = found.heads[2 * number + head]
            assert (summary.layer, summary.head, summary.scoring) == (number + 1, head + 1, "ssa")
            assert summary.entropy == pytest.approx(entropy[head], rel=1e-4)
            assert summary.max_weight == pytest.approx(weights[head].max(-1).mean(), rel=1e-4)
            expected = {key: getattr(attention.scoring, key)[head].item() for key in "nb"}
            assert summary.numbers == pytest.approx(expected)
    assert found.heads[0].numbers["b"] < found.heads[1].numbers["b"]


@pytest.mark.parametrize("granularity", ["head", "layer", "model"])
def test_every_head_has_its_numbers_whatever_shares_them(granularity, masked):
    found = attention_maps(scored(masked, SSAConfig(granularity=granularity, learn_n=False)), TEXT)
    assert all(head.numbers == pytest.approx({"n": 1.5, "b": 0.8}) for head in found.heads)


def test_mixed_heads_are_named_each_by_its_own_scoring(masked):
    config = MixedConfig([["sparsemax", 1], [{"name": "temperature", "tau": 2.0}, 1]])
    heads = attention_maps(scored(masked, config), TEXT).heads
    assert [head.scoring for head in heads] == ["sparsemax", "temperature"] * 2
    assert [head.numbers for head in heads] == [{}, {"tau": pytest.approx(2.0)}] * 2


def test_a_uniform_head_has_the_entropy_of_its_keys_and_a_sharp_one_none():
    assert mean_entropy(np.full((3, 5), 0.2, dtype=np.float32)) == pytest.approx(math.log(5))
    assert mean_entropy(np.eye(4)) == 0
    # Weights that do not sum to 1 are taken relative to their sum, and a query without weights counts 0.
    assert mean_entropy(np.array([[0.1, 0.1, 0.0], [0.0, 0.0, 0.0]])) == pytest.approx(math.log(2) / 2)


def test_the_model_is_left_as_it_was(masked):
    model = copy.deepcopy(masked[0]).train()
    before = model.config._attn_implementation
    attention_maps((model, masked[1]), TEXT)
    assert model.training and model.config._attn_implementation == before == "sdpa"


@pytest.mark.parametrize("variant", ["linear", "cosformer"])
def test_a_scoring_without_weights_has_no_maps(variant, masked, make, run_babyssa, tmp_path):
    folder = make.save(*scored(masked, scoring_config(variant)), tmp_path / "model")
    status, stdout, stderr = run_babyssa("attention", folder, TEXT, "--out", tmp_path / "out")
    assert status == 1 and not stdout and len(stderr.splitlines()) == 1
    assert f"scoring '{variant}' forms no attention weights" in stderr and not (tmp_path / "out").exists()


def test_a_model_without_attention_has_no_maps(make):
    from transformers import MambaConfig, MambaForCausalLM

    tokenizer = make.tokenizer(frame=False)
    config = MambaConfig(vocab_size=len(tokenizer), hidden_size=8, state_size=2, num_hidden_layers=1)
    with pytest.raises(ModelError, match="returns no attention weights"):
        attention_maps((MambaForCausalLM(config), tokenizer), TEXT)


def test_texts_that_a_model_cannot_read_are_refused(masked, causal):
    for pair in (masked, causal):
        with pytest.raises(DataError, match=r"tokens long, but the model takes 40"):
            attention_maps(pair, "dog " * 60)
        with pytest.raises(DataError, match="is empty"):
            attention_maps(pair, "  ")


def test_the_command_writes_every_weight(masked, make, run_babyssa, tmp_path):
    folder = make.save(*scored(masked, scoring_config("ssa-2")), tmp_path / "model")
    text, out = "look at $x_{1} , dog", tmp_path / "out"
    status, stdout, stderr = run_babyssa("attention", folder, text, "--out", out)
    assert status == 0 and stderr.startswith("wrote attention.json, heads.csv, weights.csv, attention.png")
    found = attention_maps(load_model(folder), text)
    assert stdout.splitlines()[1].split() == ["layer", "head", "scoring", "entropy", "largest", "weight", "n", "b"]
    assert [line.split()[-2:] for line in stdout.splitlines()[3:]] == [["2.000", "0.800"]] * 4
    with open(out / "weights.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    expected = np.concatenate([layer.ravel() for layer in found.weights])
    assert [float(row["weight"]) for row in rows] == pytest.approx(expected.tolist(), rel=1e-7)
    assert tuple(row["key_token"] for row in rows[: len(found.tokens)]) == found.tokens
    assert (rows[-1]["layer"], rows[-1]["head"], rows[-1]["query"]) == ("2", "2", str(len(found.tokens)))
    with open(out / "heads.csv", newline="") as file:
        assert [float(row["entropy"]) for row in csv.DictReader(file)] == [head.entropy for head in found.heads]
    assert json.loads((out / "attention.json").read_text()) == found.summary()
    assert (out / "attention.png").read_bytes().startswith(b"\x89PNG")
    status, _, stderr = run_babyssa("attention", folder, text, "--out", out)
    assert status == 1 and "already exists" in stderr


def test_json_is_the_summary(causal_folder, run_babyssa):
    status, stdout, stderr = run_babyssa("attention", causal_folder, TEXT, "--json")
    assert status == 0 and not stderr
    assert json.loads(stdout) == attention_maps(str(causal_folder), TEXT).summary()


def test_layers_and_heads_are_chosen_by_number(masked, make, run_babyssa, tmp_path):
    folder, out = make.save(*scored(masked, SSAConfig()), tmp_path / "model"), tmp_path / "out"
    status, stdout, _ = run_babyssa("attention", folder, TEXT, "--layers", 2, "--heads", 2, "--out", out)
    assert status == 0 and [line.split()[:2] for line in stdout.splitlines()[3:]] == [["2", "2"]]
    every, found = attention_maps(str(folder), TEXT), attention_maps(str(folder), TEXT, layers=[2], heads=[2])
    assert found.heads == every.heads[3:] and np.array_equal(found.weights, [every.weights[1][1:]])
    with open(out / "weights.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["layer"], row["head"]) for row in rows} == {("2", "2")}
    assert [float(row["weight"]) for row in rows] == pytest.approx(found.weights[0].ravel().tolist(), rel=1e-7)
    for words, says in ((("--layers", 3), "there is no layer 3"), (("--heads", 0), "there is no head 0")):
        status, _, stderr = run_babyssa("attention", folder, TEXT, *words)
        assert status == 2 and says in stderr


@pytest.fixture
def trained(masked, make, tmp_path):
    """A folder as a run leaves it: learned numbers of two steps are in its log, and of one in a checkpoint."""
    config = MixedConfig([[SSAConfig(granularity="layer", learn_b=False), 1], ["temperature", 1]])
    model, tokenizer = scored(masked, config)
    make.save(model, tokenizer, tmp_path / "run" / "checkpoints" / "step-2")
    with torch.no_grad():
        for number, layer in enumerate(model.roberta.encoder.layer):
            layer.attention.self.scoring.groups[0].raw_n.add_(number + 1)
    names = [f"roberta.encoder.layer.{layer}.attention.self.scoring" for layer in range(2)]
    logged = [{"step": 1, "loss": 3.0}, *({"step": n, "scoring": {}} for n in (4, 10))]
    for line in logged[1:]:
        line["scoring"] = {name: {"0.n": [1.0 + line["step"]], "1.tau": [9.0]} for name in names}
    folder = make.save(model, tokenizer, tmp_path / "run")
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in logged))
    return folder, model


def test_without_a_text_the_numbers_of_every_head_and_their_history_are_shown(trained, run_babyssa, tmp_path):
    folder, model = trained
    out = tmp_path / "out"
    status, stdout, stderr = run_babyssa("attention", folder, "--out", out)
    assert status == 0 and stderr == f"wrote numbers.csv, numbers.png to {out}\n"
    n = [layer.attention.self.scoring.groups[0].n.item() for layer in model.roberta.encoder.layer]
    expected = [["1", "1", "ssa", f"{n[0]:.4f}", "0.8000"], ["1", "2", "temperature", "1.0000"]]
    expected += [["2", "1", "ssa", f"{n[1]:.4f}", "0.8000"], ["2", "2", "temperature", "1.0000"]]
    assert [line.split() for line in stdout.splitlines()[3:7]] == expected and "steps 2 to 10" in stdout
    with open(out / "numbers.csv", newline="") as file:
        rows = [tuple(row.values()) for row in csv.DictReader(file)]
    learned = [(row[0], row[-1]) for row in rows if row[1:5] == ("2", "1", "ssa", "n")]
    assert [step for step, _ in learned] == ["2", "4", "10", "model"]
    assert [float(value) for _, value in learned] == pytest.approx([1.5, 5.0, 11.0, n[1]])
    assert not any(row[4] == "b" for row in rows if row[0] != "model")
    assert (out / "numbers.png").read_bytes().startswith(b"\x89PNG")
    assert run_babyssa("attention", folder, "--out", out)[0] == 1
    status, stdout, _ = run_babyssa("attention", folder, "--heads", 2, "--json")
    assert status == 0 and {at["head"] for at in json.loads(stdout)["heads"]} == {2}


def test_the_figure_of_the_history_has_a_panel_for_each_number_and_layer(trained):
    panels = draw_history(learned_numbers(str(trained[0]))).axes
    assert [axes.get_ylabel() for axes in panels] == ["tau", "", "n", ""]
    (line,) = panels[3].lines
    assert line.get_xydata().tolist() == [[2.0, pytest.approx(1.5)], [4.0, 5.0], [10.0, 11.0]]


def test_models_of_every_setting_show_their_numbers(decoder, tmp_path):
    size = InContextSize(layers=12, heads=2, width=8)
    in_context = build_transformer(size, variant="ssa", scoring={"granularity": "layer", "learn_b": False})
    with torch.no_grad():
        for number, module in enumerate(scorings(in_context).values()):
            module.raw_n.fill_(number)
    in_context.save_pretrained(tmp_path / "in-context")
    shared = decoder(variant="ssa", scoring={"granularity": "model", "n": 3.0})
    shared.save_pretrained(tmp_path / "decoder")
    found = learned_numbers(tmp_path / "in-context")
    # Layer 10 comes after layer 2.
    expected = [1 + math.log1p(math.exp(layer)) for layer in range(12) for _ in range(2)]
    assert [head.numbers["n"] for head in found.heads] == pytest.approx(expected, rel=1e-5)
    assert all(head.numbers["n"] == pytest.approx(3.0) for head in learned_numbers(tmp_path / "decoder").heads)
    assert learned_numbers(shared).heads == learned_numbers(tmp_path / "decoder").heads
    with pytest.raises(ModelError, match="reads numbers, not text; leave the text out"):
        attention_maps(str(tmp_path / "in-context"), TEXT)
    with pytest.raises(ModelError, match="holds no model"):
        learned_numbers(tmp_path)


def test_tokens_are_shown_as_words():
    assert words_of(["<s>", "Ġdo", "gs", "Ġ,", "</s>"]) == ["<s>", "do", "-gs", ",", "</s>"]
    assert words_of(["<s>", "Hel", "lo", "Ġyou"]) == ["<s>", "Hel", "-lo", "you"]
    assert words_of(["[CLS]", "dog", "##s"]) == ["[CLS]", "dog", "##s"]


def test_one_line_for_bad_input(masked_folder, run_babyssa, tmp_path):
    for model, text, says in (
        (tmp_path / "no/such/model", TEXT, "no such model folder"),
        (masked_folder, " ", "is empty"),
        (masked_folder, "dog " * 60, "the model takes 40"),
    ):
        status, stdout, stderr = run_babyssa("attention", model, text)
        assert status == 1 and not stdout and says in stderr and len(stderr.splitlines()) == 1


def test_a_figure_has_a_map_for_each_head_and_shows_tokens_as_they_are():
    tokens = ["<s>", "$x_{", "a" * 30, "日", "</s>"]
    weights = [np.full((3, 5, 5), 0.2), np.full((2, 5, 5), 0.2)]
    figure = draw_attention_maps(tokens, weights)
    maps = [axes for axes in figure.axes if axes.images]
    assert len(maps) == 5 and [a.get_title() for a in maps] == ["head 1", "head 2", "head 3", "", ""]
    labels = [label.get_text() for label in maps[0].get_yticklabels()]
    assert labels[:2] == ["<s>", r"\$x_{"] and labels[2] == "a" * 13 + "…"
    assert "0 to 0.2 in all maps" in figure.axes[-1].get_ylabel()
    figure.canvas.draw()


def test_a_map_says_what_it_is_of_and_negative_weights_have_a_colour_of_their_own():
    weights = [np.array([[[0.5, -0.2], [0.1, 0.4]]])]
    figure = draw_attention_maps(["a", "b"], weights, title="runs/x: a b", layers=[3], heads=[7])
    (axes,) = (axes for axes in figure.axes if axes.images)
    assert (axes.get_title(), axes.get_ylabel(), figure.get_suptitle()) == ("head 7", "layer 3", "runs/x: a b")
    assert axes.images[0].get_clim() == (-0.5, 0.5) and "-0.2 to 0.5" in figure.axes[-1].get_ylabel()


def test_a_long_text_labels_only_what_has_room():
    figure = draw_attention_maps([f"t{i}" for i in range(128)], [np.full((1, 128, 128), 1 / 128)])
    labels = figure.axes[0].get_yticklabels()
    assert 20 < len(labels) < 40 and max(figure.get_size_inches()) < 10
