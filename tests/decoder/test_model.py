"""The decoder's architecture: it is stock Nemotron, of the published size, with the scoring exchanged."""

import math

import pytest
import torch
from transformers import AutoModelForCausalLM, NemotronConfig, NemotronForCausalLM

from babyssa.attention import variants
from babyssa.decoder import DecoderSize, DecoderTraining, build_decoder
from babyssa.decoder.model import causal_lm_loss
from babyssa.errors import ConfigError


class GPT2Vocabulary:
    """As many tokens as the released model's vocabulary has."""

    pad_token_id = bos_token_id = eos_token_id = 50_255

    def __len__(self):
        return 50_256


def parameters(model):
    return sum(parameter.numel() for parameter in model.parameters())


def test_the_released_size_has_the_published_number_of_parameters():
    size = DecoderTraining.from_recipe("nemotron-114m", out="x", tokenizer="t").size
    released = DecoderTraining.from_recipe("released-scoring", corpus="c", out="x")
    assert size == DecoderSize() and released.variant == "ssa"
    per_head = {**released.scoring, "granularity": "head"}
    with torch.device("meta"):
        softmax = build_decoder(size, GPT2Vocabulary())
        of_layers = build_decoder(size, GPT2Vocabulary(), variant="ssa", scoring=released.scoring)
        of_heads = build_decoder(size, GPT2Vocabulary(), variant="ssa", scoring=per_head)
    assert parameters(softmax) == 114_132_480
    assert parameters(of_layers) == 114_132_480 + 12
    assert parameters(of_heads) == 114_132_480 + 12 * 24
    assert of_layers.config.attention_scoring["n"] == 1.5 and of_layers.config.attention_scoring["b"] == 0.8
    layer = 2 * 768 * 768 + 2 * 768 * 256 + 2 * 768 * 3072
    assert parameters(softmax) == 50_256 * 768 + 12 * layer + 25 * 2 * 768


def test_the_released_budget_is_17_billion_tokens_and_not_the_10_of_the_paper():
    recipe = DecoderTraining.from_recipe("nemotron-114m", out="x", tokenizer="t")
    optimisation = recipe.optimisation
    batch = optimisation.batch_size * optimisation.gradient_accumulation * recipe.size.max_length
    assert optimisation.steps * batch == 22_000 * 768 * 1_024 == 17_301_504_000
    assert math.ceil(10e9 / batch) == 12_716
    assert "fineweb-edu" in recipe.corpus and recipe.streaming


def test_with_softmax_the_decoder_is_transformers_own_nemotron(decoder, decoder_tokenizer, tmp_path):
    model = decoder()
    assert type(model) is NemotronForCausalLM
    stock = NemotronForCausalLM(
        NemotronConfig(
            vocab_size=len(decoder_tokenizer),
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=24,
            tie_word_embeddings=True,
        )
    ).eval()
    stock.load_state_dict(model.state_dict())
    ids = torch.randint(5, len(decoder_tokenizer), (3, 24), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(model(ids).logits, stock(ids).logits, atol=1e-6, rtol=0)
    model.save_pretrained(tmp_path)
    assert AutoModelForCausalLM.from_pretrained(tmp_path).config.model_type == "nemotron"


def test_variants_share_their_initial_weights_and_leave_the_global_random_state(decoder):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    weights = {name: decoder(name, seed=3).state_dict() for name in ("softmax", "ssa", "mixed", "linear")}
    assert torch.equal(before, torch.get_rng_state())
    for other in weights.values():
        assert all(torch.equal(value, other[key]) for key, value in weights["softmax"].items())
    assert not torch.equal(
        weights["softmax"]["lm_head.weight"], decoder("softmax", seed=4).state_dict()["lm_head.weight"]
    )


@pytest.mark.parametrize("variant", variants())
def test_no_token_sees_a_later_one(variant, decoder, decoder_tokenizer):
    model = decoder(variant)
    ids = torch.arange(5, 29)[None]
    changed = ids.clone()
    changed[0, 15:] = torch.arange(40, 49)
    with torch.no_grad():
        torch.testing.assert_close(model(ids).logits[:, :15], model(changed).logits[:, :15], atol=1e-5, rtol=0)
        assert not torch.allclose(model(ids).logits[:, 15:], model(changed).logits[:, 15:], atol=1e-3)


@pytest.mark.parametrize("variant", ["softmax", "ssa"])
def test_the_loss_is_transformers_own(variant, decoder):
    model = decoder(variant)
    ids = torch.arange(5, 29).repeat(3, 1)
    torch.testing.assert_close(causal_lm_loss(model, {"input_ids": ids}), model(ids, labels=ids).loss)


def test_a_scoring_with_a_length_gets_the_models(decoder_tokenizer, decoder):
    assert decoder("cosformer").config.attention_scoring["max_length"] == 24
    assert decoder("cosformer", scoring={"max_length": 50}).config.attention_scoring["max_length"] == 50


def test_the_fixed_b_of_the_released_recipe(decoder):
    model = decoder("ssa", scoring={"learn_b": False})
    added = [name for name, _ in model.named_parameters() if "scoring" in name]
    assert len(added) == 2 and model.config.attention_scoring["b"] == 0.8


@pytest.mark.parametrize(
    "changes, says",
    [
        ({"heads": 3}, "not a multiple of 4 x size.heads"),
        ({"key_value_heads": 5}, "not a multiple of size.key-value-heads"),
        ({"max_length": 1}, "size.max-length"),
        ({"attention_dropout": 1.0}, "size.attention-dropout"),
        ({"layers": 0}, "size.layers"),
    ],
)
def test_a_size_that_cannot_be_built_is_refused(changes, says):
    with pytest.raises(ConfigError, match=says):
        DecoderSize(**{"heads": 2, "key_value_heads": 1, "hidden_size": 16, **changes})


def test_unknown_variants_and_parameters_are_refused(decoder):
    with pytest.raises(ConfigError, match="did you mean 'softmax'"):
        decoder("sofmax")
    with pytest.raises(ConfigError, match="no parameter 'learnb'"):
        decoder("ssa", scoring={"learnb": False})
