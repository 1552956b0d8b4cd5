"""The adapter: any scoring in any model that dispatches through AttentionInterface, kept when saved."""

import copy
import json
import pickle
import subprocess
import sys

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    ModernBertConfig,
    ModernBertForMaskedLM,
    NemotronConfig,
    NemotronForCausalLM,
    RobertaConfig,
    RobertaForMaskedLM,
)

from babyssa.attention import (
    CosFormerConfig,
    MixedConfig,
    SoftmaxConfig,
    SSAConfig,
    new_model,
    scoring_classes,
    scoring_config,
    scoring_parameters,
    scorings,
    set_scoring,
    variants,
)
from babyssa.attention import adapter as adapter_module
from babyssa.attention.adapter import scored_attention_forward
from babyssa.errors import ConfigError, ModelError

SMALL = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
STOCK = {
    "roberta": (RobertaForMaskedLM, RobertaConfig(**SMALL, intermediate_size=48, max_position_embeddings=40)),
    "bert": (BertForMaskedLM, BertConfig(**SMALL, intermediate_size=48, max_position_embeddings=40)),
    "modernbert": (
        ModernBertForMaskedLM,
        # Windowed attention in the second layer; its own special ids lie beyond this vocabulary.
        ModernBertConfig(
            **SMALL,
            intermediate_size=48,
            max_position_embeddings=40,
            local_attention=4,
            global_attn_every_n_layers=2,
            pad_token_id=1,
            bos_token_id=3,
            eos_token_id=4,
            cls_token_id=3,
            sep_token_id=4,
        ),
    ),
    "gpt2": (GPT2LMHeadModel, GPT2Config(vocab_size=60, n_embd=32, n_layer=2, n_head=4, n_positions=40)),
    "llama": (
        LlamaForCausalLM,
        LlamaConfig(**SMALL, num_key_value_heads=2, intermediate_size=48, max_position_embeddings=40),
    ),
    "nemotron": (
        NemotronForCausalLM,
        NemotronConfig(**SMALL, num_key_value_heads=2, intermediate_size=48, max_position_embeddings=40),
    ),
}
CAUSAL = ["gpt2", "llama", "nemotron"]
# One model of each kind of attention: bidirectional, causal, causal with grouped queries and a cache.
KINDS = ["roberta", "gpt2", "nemotron"]
ALTERNATIVES = ["temperature", "sparsemax", "entmax", "sas", "mixed", "linear", "cosformer"]
# They count the keys that a query may attend to.
ALTERNATIVES += ["ssmax", "sigmoid"]
CASES = [(kind, variant) for kind in STOCK for variant in ("ssa", "ssa-1.5", "softmax")]
CASES += [(kind, variant) for kind in KINDS for variant in ALTERNATIVES]
CAUSAL_CASES = [(kind, variant) for kind, variant in CASES if kind in CAUSAL and variant != "softmax"]
# The rest of every scoring in every model, for the one test that all must pass.
OTHERS = [(kind, variant) for kind in STOCK for variant in variants() if (kind, variant) not in CASES]
MIXED = MixedConfig([["linear", 1], [{"name": "ssa", "n": 1.7}, 1], ["cosformer", 1], ["entmax", 1]])


def stock(kind):
    cls, config = STOCK[kind]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return cls(config.__class__.from_dict(config.to_dict())).eval()


def inputs(batch=3, length=9, padded=3):
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, 60, (batch, length), generator=generator)
    mask = torch.ones_like(ids)
    ids[1, length - padded :], mask[1, length - padded :] = 1, 0
    return {"input_ids": ids, "attention_mask": mask}


def auto_class(kind):
    return AutoModelForCausalLM if kind in CAUSAL else AutoModelForMaskedLM


@pytest.mark.parametrize("kind", STOCK)
def test_softmax_through_the_adapter_is_the_stock_model(kind):
    model = stock(kind)
    expected = model(**inputs()).logits
    found = set_scoring(model, SoftmaxConfig())(**inputs()).logits
    real = inputs()["attention_mask"].bool()
    assert torch.allclose(found[real], expected[real], atol=1e-6)


@pytest.mark.parametrize("kind, variant", CASES)
def test_padding_changes_nothing(kind, variant):
    model = set_scoring(stock(kind), scoring_config(variant))
    together = model(**inputs()).logits
    alone = model(input_ids=inputs()["input_ids"][1:2, :6]).logits
    assert torch.allclose(together[1, :6], alone[0], atol=1e-5)


@pytest.mark.parametrize("kind, variant", CAUSAL_CASES)
def test_causal_models_stay_causal(kind, variant):
    model = set_scoring(stock(kind), scoring_config(variant))
    ids = inputs()["input_ids"][:1]
    expected = model(input_ids=ids).logits
    changed = ids.clone()
    changed[0, 5:] = (changed[0, 5:] + 7) % 50 + 5
    found = model(input_ids=changed).logits
    assert torch.equal(found[0, :5], expected[0, :5])
    assert not torch.allclose(found[0, 5:], expected[0, 5:], atol=1e-3)


@pytest.mark.parametrize("kind, variant", CAUSAL_CASES)
def test_generation_with_a_cache_equals_recomputing(kind, variant):
    model = set_scoring(stock(kind), scoring_config(variant))
    ids = inputs()["input_ids"][:1, :4]
    mask = torch.ones_like(ids)
    settings = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 1, "eos_token_id": None}
    cached = model.generate(ids, attention_mask=mask, use_cache=True, **settings)
    assert torch.equal(cached, model.generate(ids, attention_mask=mask, use_cache=False, **settings))
    with torch.no_grad():
        longest = model(input_ids=cached[:, :-1]).logits.argmax(-1)
    assert torch.equal(longest[:, 3:], cached[:, 4:])


@pytest.mark.parametrize("kind", ["gpt2", "nemotron"])
@pytest.mark.parametrize("config", [scoring_config("linear"), scoring_config("cosformer"), MIXED], ids=str)
@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_generation_does_not_depend_on_left_padding(kind, config, cache):
    model = set_scoring(stock(kind), config)
    ids = inputs(padded=0)["input_ids"][:, :6]
    mask = torch.ones_like(ids)
    ids[1, :2], mask[1, :2] = 1, 0
    settings = {"max_new_tokens": 5, "do_sample": False, "pad_token_id": 1, "eos_token_id": None}
    together = model.generate(ids, attention_mask=mask, cache_implementation=cache, **settings)
    alone = model.generate(ids[1:2, 2:], attention_mask=mask[1:2, 2:], **settings)
    assert torch.equal(together[1, 2:], alone[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("config", [scoring_config("linear"), scoring_config("cosformer"), MIXED], ids=str)
def test_weights_that_are_not_formed_are_refused(kind, config):
    model = set_scoring(stock(kind), config)
    assert model(**inputs()).attentions is None
    with pytest.raises(ModelError, match="forms no attention weights; leave out output_attentions"):
        model(**inputs(), output_attentions=True)


def test_weights_that_are_not_formed_are_refused_where_the_config_asks_for_them():
    model = stock("roberta")
    model.set_attn_implementation("eager")
    model.config.output_attentions = True
    with pytest.raises(ModelError, match="scoring 'linear' forms no attention weights"):
        set_scoring(model, scoring_config("linear"))(**inputs())


@pytest.mark.parametrize("kind", STOCK)
def test_a_length_that_is_not_given_is_the_models(kind):
    mixed = MixedConfig([["cosformer", 1], [{"name": "cosformer", "max_length": 20}, 3]])
    longest = 38 if kind == "roberta" else 40
    assert set_scoring(stock(kind), scoring_config("cosformer")).config.attention_scoring["max_length"] == longest
    groups = set_scoring(stock(kind), mixed).config.attention_scoring["groups"]
    assert [scoring["max_length"] for scoring, _ in groups] == [longest, 20]


@pytest.mark.parametrize("given, found", [({}, 40), ({"max_length": 40}, 40), ({"max_length": 50}, 50)])
def test_a_new_models_length_may_be_given_unless_it_is_too_short(given, found):
    model_class, config = STOCK["nemotron"]
    model = new_model(model_class, copy.deepcopy(config), "cosformer", given)
    assert model.config.attention_scoring["max_length"] == found
    with pytest.raises(ConfigError, match="max_length is 39, and the model reads 40 tokens; leave it out, or"):
        new_model(model_class, copy.deepcopy(config), "cosformer", {"max_length": 39})


def test_a_text_longer_than_cosformer_measures_is_refused():
    model = set_scoring(stock("roberta"), CosFormerConfig(max_length=8))
    with pytest.raises(ModelError, match=r"9 tokens .* \(max_length 8\)"):
        model(**inputs())


@pytest.mark.parametrize("kind", STOCK)
def test_attention_weights_are_returned_on_request(kind):
    model = set_scoring(stock(kind), scoring_config("ssa"))
    found = model(**inputs(), output_attentions=True).attentions
    assert len(found) == 2
    for weights in found:
        assert weights.shape == (3, 4, 9, 9)
        assert torch.allclose(weights[0].sum(-1), torch.ones(()), atol=1e-5)
        assert (weights[1, :, :6, 6:] == 0).all()


@pytest.mark.parametrize(
    "kind, config",
    [
        *((kind, variants()[variant]) for kind, variant in CASES),
        *((kind, SSAConfig(granularity="layer")) for kind in KINDS),
        *((kind, SSAConfig(granularity="model")) for kind in KINDS),
        *((kind, MIXED) for kind in KINDS),
        ("roberta", CosFormerConfig(max_length=50)),
    ],
)
def test_a_saved_model_comes_back_with_its_scoring(kind, config, tmp_path):
    model = set_scoring(stock(kind), config)
    with torch.no_grad():
        for parameter in scorings(model).values():
            for value in parameter.parameters():
                value.add_(torch.linspace(0.1, 0.4, len(value)))
    expected = model(**inputs()).logits
    model.save_pretrained(tmp_path)
    again, report = auto_class(kind).from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report.values()), report
    assert torch.equal(again.eval()(**inputs()).logits, expected)
    assert scoring_parameters(again) == scoring_parameters(model)
    from_config = auto_class(kind).from_config(again.config)
    assert type(from_config) is type(again) and list(scorings(from_config)) == list(scorings(again))


@pytest.mark.parametrize("kind, variant", OTHERS)
def test_every_scoring_serves_every_listed_model(kind, variant, tmp_path):
    model = set_scoring(stock(kind), scoring_config(variant))
    expected = model(**inputs()).logits
    assert torch.isfinite(expected).all()
    model.save_pretrained(tmp_path)
    again, report = auto_class(kind).from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report.values()) and torch.equal(again(**inputs()).logits, expected)
    if kind in CAUSAL:
        ids = inputs()["input_ids"][:1, :4]
        settings = {"max_new_tokens": 4, "do_sample": False, "pad_token_id": 1, "eos_token_id": None}
        cached = again.generate(ids, attention_mask=torch.ones_like(ids), **settings)
        assert torch.equal(again(input_ids=cached[:, :-1]).logits.argmax(-1)[:, 3:], cached[:, 4:])


def test_one_model_wide_parameter_is_one_parameter(tmp_path):
    model = set_scoring(stock("roberta"), SSAConfig(granularity="model"))
    names = [name for name, _ in model.named_parameters() if "raw_" in name]
    assert names == ["roberta.scoring.raw_n", "roberta.scoring.raw_b"]
    model(**inputs()).logits.square().mean().backward()
    assert model.roberta.scoring.raw_n.grad.abs() > 0


def test_every_learnable_parameter_gets_a_gradient():
    model = set_scoring(stock("roberta"), SSAConfig())
    model.train()(**inputs()).logits.square().mean().backward()
    for scoring in scorings(model).values():
        for parameter in scoring.parameters():
            assert parameter.grad.shape == (4,) and (parameter.grad != 0).all()


def test_weights_that_variants_share_keep_their_names_and_values():
    plain, scored = stock("roberta"), set_scoring(stock("roberta"), SSAConfig())
    before, after = plain.state_dict(), scored.state_dict()
    assert {key for key in after if key not in before} == {
        f"roberta.encoder.layer.{i}.attention.self.scoring.raw_{p}" for i in (0, 1) for p in "nb"
    }
    assert all(torch.equal(before[key], after[key]) for key in before)


def test_a_scored_model_pickles():
    model = set_scoring(stock("roberta"), SSAConfig())
    again = pickle.loads(pickle.dumps(model))
    assert torch.equal(again(**inputs()).logits, model(**inputs()).logits)


IN_ANOTHER_PROCESS = """
import sys
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM, RobertaForMaskedLM, RobertaModel
assert not any(name.startswith("babyssa") for name in sys.modules)
for load in (AutoConfig, AutoModelForMaskedLM, RobertaForMaskedLM, RobertaModel):
    for options in ({}, {"attn_implementation": "eager"}):
        try:
            load.from_pretrained(sys.argv[1], **options)
        except Exception as error:
            assert "babyssa" in str(error) or "trust_remote_code" in str(error), error
        else:
            sys.exit(f"{load.__name__} opened it in silence with {options}")

import babyssa.attention
for folder in sys.argv[1:]:
    auto = AutoModelForCausalLM if folder.endswith(("gpt2", "llama", "nemotron")) else AutoModelForMaskedLM
    model, report = auto.from_pretrained(folder, output_loading_info=True)
    assert not any(report.values()), report
    assert babyssa.attention.scorings(model)
"""


@pytest.mark.slow
def test_transformers_alone_refuses_a_checkpoint_that_the_import_lets_it_load_for_every_listed_type(tmp_path):
    assert next(iter(STOCK)) == "roberta"
    for kind in STOCK:
        set_scoring(stock(kind), scoring_config("ssa-1.5")).save_pretrained(tmp_path / kind)
    folders = [str(tmp_path / kind) for kind in STOCK]
    done = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS, *folders],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_the_scoring_cannot_be_switched_off_by_accident(tmp_path):
    model = set_scoring(stock("roberta"), SSAConfig())
    expected = model(**inputs()).logits
    model.save_pretrained(tmp_path)
    for asked in ("eager", "sdpa", {"": "eager"}):
        for load in (
            lambda **asked: model.set_attn_implementation(**asked),
            lambda **asked: AutoConfig.from_pretrained(tmp_path, **asked),
            lambda **asked: AutoModelForMaskedLM.from_pretrained(tmp_path, **asked),
            lambda **asked: type(model).from_pretrained(tmp_path, config=model.config, **asked),
            lambda **asked: AutoModelForMaskedLM.from_config(copy.deepcopy(model.config), **asked),
        ):
            with pytest.raises(ModelError, match=r"cannot use attention '(eager|sdpa)' in place of its"):
                load(attn_implementation=asked)
    assert model.config._attn_implementation == "babyssa"
    assert torch.equal(model(**inputs()).logits, expected)
    again = AutoModelForMaskedLM.from_pretrained(tmp_path)
    assert again.config.id2label == model.config.id2label and again.config._attn_implementation == "babyssa"


def test_labels_of_the_users_own_are_kept(tmp_path):
    model = set_scoring(stock("roberta"), SSAConfig())
    model.config.id2label = {0: "no", 1: "yes"}
    model.save_pretrained(tmp_path)
    assert AutoModelForMaskedLM.from_pretrained(tmp_path).config.id2label == {0: "no", 1: "yes"}


def test_the_stock_class_does_not_run_such_a_checkpoint_as_softmax(tmp_path):
    set_scoring(stock("roberta"), scoring_config("ssa-1.5")).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="attention_scoring needs trust_remote_code=True, or 'import"):
        RobertaForMaskedLM.from_pretrained(tmp_path)


def test_the_scoring_stands_in_config_json(tmp_path):
    set_scoring(stock("roberta"), scoring_config("ssa-2", b=0.5)).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["model_type"] == "babyssa-roberta"
    assert config["attention_scoring"] == {
        "name": "ssa",
        "n": 2.0,
        "b": 0.5,
        "learn_n": False,
        "learn_b": True,
        "granularity": "head",
    }


def test_a_mixed_scoring_stands_in_config_json_as_plain_values(tmp_path):
    groups = [["softmax", 0.5], [{"name": "ssa-2", "b": 0.5, "learn_b": False}, 0.5]]
    model = set_scoring(stock("roberta"), MixedConfig(groups))
    model.save_pretrained(tmp_path)
    ssa = {"name": "ssa", "n": 2.0, "b": 0.5, "learn_n": False, "learn_b": False, "granularity": "head"}
    found = json.loads((tmp_path / "config.json").read_text())["attention_scoring"]
    assert found == {"name": "mixed", "groups": [[{"name": "softmax"}, 0.5], [ssa, 0.5]]}


def test_a_mixed_scoring_is_one_scoring_and_reports_its_groups():
    model = set_scoring(stock("roberta"), scoring_config("mixed"))
    assert list(scorings(model)) == [f"roberta.encoder.layer.{i}.attention.self.scoring" for i in (0, 1)]
    for values in scoring_parameters(model).values():
        assert values == {"1.n": pytest.approx([1.5, 1.5]), "1.b": pytest.approx([0.8, 0.8])}


def test_a_broken_scoring_in_config_json_is_refused(tmp_path):
    set_scoring(stock("roberta"), scoring_config("ssa-2")).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(path.read_text().replace('"name": "ssa"', '"name": "sssa"'))
    with pytest.raises(ConfigError, match="unknown scoring 'sssa'"):
        AutoModelForMaskedLM.from_pretrained(tmp_path)


def test_a_second_scoring_is_refused():
    model = set_scoring(stock("roberta"), SSAConfig())
    with pytest.raises(ModelError, match="has a scoring already"):
        set_scoring(model, SSAConfig())


def test_a_model_without_attention_interface_is_refused():
    from transformers import XLNetConfig, XLNetLMHeadModel

    model = XLNetLMHeadModel(XLNetConfig(vocab_size=60, d_model=32, n_layer=1, n_head=4, d_inner=48))
    with pytest.raises(ModelError, match="does not dispatch through transformers' AttentionInterface"):
        set_scoring(model, SSAConfig())


@pytest.mark.parametrize(
    "kind, values, says",
    [
        ("gemma2", {"head_dim": 8}, "Gemma2Attention caps its logits"),
        ("gpt_oss", {"head_dim": 8, "num_local_experts": 2}, "GptOssAttention has attention sinks"),
        ("t5", {"d_model": 32, "d_kv": 8, "d_ff": 48}, "T5Attention adds a position bias"),
    ],
)
def test_a_model_that_does_more_to_its_logits_is_refused_and_left_as_it_was(kind, values, says):
    small = {} if kind == "t5" else {**SMALL, "num_key_value_heads": 2, "intermediate_size": 48}
    config = AutoConfig.for_model(kind, **{"vocab_size": 60, "num_layers": 1, "num_heads": 4, **small, **values})
    model = AutoModel.from_config(config)
    before = type(model), type(model.config), list(model.state_dict())
    with pytest.raises(ModelError, match=f"{says}.*keep this model's own attention"):
        set_scoring(model, SSAConfig())
    assert (type(model), type(model.config), list(model.state_dict())) == before


def test_a_model_whose_softcap_is_off_is_taken():
    values = {**SMALL, "num_key_value_heads": 2, "intermediate_size": 48, "head_dim": 8}
    config = AutoConfig.for_model("gemma2", **values, attn_logit_softcapping=None)
    set_scoring(AutoModel.from_config(config), SSAConfig())(**inputs())


def test_a_config_that_transformers_lists_for_foreign_classes_too_is_taken(tmp_path):
    values = {**SMALL, "num_key_value_heads": 2, "intermediate_size": 48}
    model = set_scoring(AutoModelForCausalLM.from_config(AutoConfig.for_model("qwen2", **values)), SSAConfig())
    expected = model.eval()(**inputs()).logits
    model.save_pretrained(tmp_path)
    assert torch.equal(AutoModelForCausalLM.from_pretrained(tmp_path)(**inputs()).logits, expected)


def attend(mask, **options):
    """One layer of a scored model, called as a model that makes its own mask calls it."""
    layer = set_scoring(stock("roberta"), SoftmaxConfig()).roberta.encoder.layer[0].attention.self
    generator = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(1, 4, 5, 8, generator=generator) for _ in range(3))
    found, _ = scored_attention_forward(layer, query, key, value, mask, **options)
    return found.transpose(1, 2), (query, key, value)


def test_a_mask_that_is_added_excludes_as_one_of_truth_values():
    allowed = torch.ones(5, 5, dtype=torch.bool).tril()
    expected, _ = attend(allowed[None, None])
    for low in (-1e9, -torch.inf, torch.finfo(torch.float32).min):
        added = torch.zeros(1, 1, 5, 5).masked_fill(~allowed, low)
        assert torch.equal(attend(added)[0], expected)


def test_a_bias_inside_a_mask_is_refused():
    with pytest.raises(ModelError, match="adds a bias to its logits through its mask"):
        attend(torch.linspace(-1, 0, 25).view(1, 1, 5, 5))


def test_a_layer_that_is_causal_without_a_mask_stays_causal():
    for is_causal in (True, False):
        found, qkv = attend(None, is_causal=is_causal)
        assert torch.allclose(found, scaled_dot_product_attention(*qkv, is_causal=is_causal), atol=1e-6)


EVERY_SCORING = MixedConfig([[name, 1] for name in scoring_classes() if name != "mixed"])


@pytest.mark.parametrize("kind, config", [("roberta", EVERY_SCORING), ("nemotron", SSAConfig())])
def test_every_scoring_exports(kind, config):
    """One model whose heads have one scoring each, and a causal one."""
    model_class, stock_config = STOCK[kind]
    heads = len(getattr(config, "groups", range(4)))
    size = {"hidden_size": 4 * heads, "num_attention_heads": heads, "num_hidden_layers": 1}
    model = model_class(stock_config.__class__.from_dict({**stock_config.to_dict(), **size}))
    model = set_scoring(model.eval(), config)
    model.config.use_cache = False
    exported = torch.export.export(model, (), inputs()).module()
    # Each scoring must see padding again, and with another mask.
    for padded in (3, 5):
        found, expected = (m(**inputs(padded=padded)).logits for m in (exported, model))
        assert torch.allclose(found, expected, atol=1e-6)


def test_weights_are_saved_where_the_code_to_load_them_elsewhere_cannot_be(tmp_path, monkeypatch, caplog):
    def refuse(*_):
        raise ModelError("the source of toy cannot be read")

    model = new_model(*STOCK["roberta"], "ssa")
    monkeypatch.setattr(adapter_module, "modelling_code", refuse)
    model.save_pretrained(tmp_path)
    assert "will need babyssa to be loaded: the source of toy cannot be read" in caplog.text
    again = AutoModelForMaskedLM.from_pretrained(tmp_path)
    assert again.state_dict().keys() == model.state_dict().keys()
    assert all(torch.equal(again.state_dict()[name], value) for name, value in model.state_dict().items())
