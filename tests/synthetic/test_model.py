"""The transformer that reads numbers: causal, position-wise without attention, saved and loaded whole."""

import pytest
import torch
from transformers import AutoModel, GPT2Config, GPT2Model

from babyssa.attention import scorings, variants
from babyssa.errors import ConfigError, DataError
from babyssa.synthetic import InContextSize, build_transformer

TINY = InContextSize(layers=2, heads=4, width=16, max_numbers=20)
VALUES = torch.randn(3, 12, generator=torch.Generator().manual_seed(0))


def sized(**changes):
    return InContextSize(**{"layers": 2, "heads": 4, "width": 16, "max_numbers": 20, **changes})


def test_it_is_gpt2_between_two_linear_layers():
    model = build_transformer(TINY).eval()
    config = GPT2Config(
        vocab_size=1, n_positions=20, n_embd=16, n_layer=2, n_head=4, activation_function="gelu_new"
    )
    stock = GPT2Model(config).eval()
    missing, unexpected = stock.load_state_dict(model.transformer.state_dict(), strict=False)
    assert missing == ["wte.weight"] and not unexpected
    hidden = stock(inputs_embeds=model.read_in(VALUES[..., None])).last_hidden_state
    assert torch.allclose(model(values=VALUES).predictions, model.read_out(hidden)[..., 0], atol=1e-5)


@pytest.mark.parametrize("blocks", ["full", "attention"])
@pytest.mark.parametrize("variant", variants())
def test_a_prediction_sees_no_later_number(variant, blocks):
    model = build_transformer(sized(blocks=blocks), variant=variant).eval()
    changed = VALUES.clone()
    changed[:, 7:] += 3
    before, after = model(values=VALUES).predictions, model(values=changed).predictions
    assert torch.allclose(before[:, :7], after[:, :7], atol=1e-6)
    assert not torch.allclose(before[:, 7:], after[:, 7:], atol=1e-6)


@pytest.mark.parametrize("variant", variants())
def test_variants_start_from_the_same_weights(variant):
    plain = build_transformer(TINY, seed=3).state_dict()
    scored = build_transformer(TINY, variant=variant, seed=3).state_dict()
    assert all(torch.equal(value, scored[name]) for name, value in plain.items())
    assert not torch.equal(plain["read_in.weight"], build_transformer(TINY, seed=4).state_dict()["read_in.weight"])


@pytest.mark.parametrize("variant", ["softmax", "ssa", "mixed", "cosformer"])
def test_a_saved_model_predicts_the_same(variant, tmp_path):
    model = build_transformer(TINY, variant=variant).eval()
    model.save_pretrained(tmp_path)
    loaded = AutoModel.from_pretrained(tmp_path).eval()
    assert type(loaded) is type(model)
    assert torch.equal(model(values=VALUES).predictions, loaded(values=VALUES).predictions)


def test_without_attention_a_prediction_sees_its_own_number_alone():
    model = build_transformer(sized(blocks="feed-forward", positions=False)).eval()
    predictions = model(values=VALUES).predictions
    alone = model(values=VALUES.reshape(-1, 1)).predictions.reshape(VALUES.shape)
    assert torch.allclose(predictions, alone, atol=1e-6)
    assert not any("attn" in name for name in model.state_dict())


def test_attention_only_has_no_feed_forward_layer():
    model = build_transformer(sized(blocks="attention"), variant="ssa")
    assert not any("mlp" in name or "ln_2" in name for name in model.state_dict())
    assert len(scorings(model)) == 2


def test_without_positions_the_order_of_earlier_numbers_does_not_matter_to_one_layer():
    for positions, same in ((False, True), (True, False)):
        model = build_transformer(sized(layers=1, positions=positions)).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(8)
        swapped = VALUES[:, [1, 0, *range(2, 12)]]
        last = model(values=VALUES).predictions[:, -1], model(values=swapped).predictions[:, -1]
        assert torch.allclose(*last, atol=1e-5) is same


def test_cosformer_reaches_as_far_as_the_model():
    model = build_transformer(sized(max_numbers=300), variant="cosformer").eval()
    assert model(values=torch.randn(1, 300)).predictions.shape == (1, 300)


def test_what_cannot_be_built_or_read_is_refused():
    with pytest.raises(ConfigError, match=r"size\.width 10 is not a multiple"):
        sized(width=10)
    with pytest.raises(ConfigError, match="no place for 'ssa'"):
        build_transformer(sized(blocks="feed-forward"), variant="ssa")
    with pytest.raises(ConfigError, match="did you mean 'softmax'"):
        build_transformer(TINY, variant="sofmax")
    with pytest.raises(DataError, match="21 numbers is longer than the model's 20"):
        build_transformer(TINY)(values=torch.zeros(1, 21))
