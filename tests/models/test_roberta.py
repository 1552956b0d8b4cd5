"""The forward pass at some positions: transformers' own, without what no answer depends on."""

import pytest
import torch
from torch import nn
from transformers import BertConfig, BertForMaskedLM, RobertaConfig, RobertaForMaskedLM

from babyssa.attention import set_scoring, variants
from babyssa.attention.ssa import SSAConfig
from babyssa.encoder import EncoderSize, build_encoder
from babyssa.models.roberta import computes, logits_at

SIZE = EncoderSize(layers=3, heads=4, hidden_size=32, feed_forward_size=48, max_length=40)
SSA_OF_THE_MODEL = {"granularity": "model"}


def batch_of(tokenizer, lengths):
    """Token ids of random sentences, padded, their mask, and some places in order."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, len(tokenizer), (len(lengths), max(lengths)), generator=generator)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    ids[~mask] = tokenizer.pad_token_id
    asked = mask & (torch.rand(mask.shape, generator=generator) < 0.4)
    return ids, mask.long(), asked.flatten().nonzero().squeeze(1)


def assert_as_stock(model, ids, mask, positions):
    """The logits, and the gradients of all parameters, are those of the model's own forward."""
    expected = model(input_ids=ids, attention_mask=mask).logits.flatten(0, 1)[positions]
    found = logits_at(model, ids, mask, positions)
    assert torch.allclose(found, expected, atol=1e-12)
    parameters = list(model.parameters())
    weights = torch.randn(expected.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    of_stock = torch.autograd.grad((expected * weights).sum(), parameters, materialize_grads=True)
    of_ours = torch.autograd.grad((found * weights).sum(), parameters, materialize_grads=True)
    for (name, _), a, b in zip(model.named_parameters(), of_ours, of_stock, strict=True):
        assert torch.allclose(a.to_dense(), b, atol=1e-10), name


@pytest.mark.parametrize("variant", variants())
@pytest.mark.parametrize("lengths", [[9, 5, 11, 3], [6, 6]], ids=["padded", "of one length"])
def test_logits_and_gradients_are_those_of_the_whole_model(variant, lengths, tokenizer):
    model = build_encoder(SIZE, tokenizer, variant=variant).double().eval()
    ids, mask, positions = batch_of(tokenizer, lengths)
    assert_as_stock(model, ids, mask, positions)
    if min(lengths) == max(lengths):
        assert_as_stock(model, ids, None, positions)


@pytest.mark.parametrize("scoring", [SSA_OF_THE_MODEL, {"learn_n": False}])
def test_shared_and_fixed_scorings_too(scoring, tokenizer):
    model = build_encoder(SIZE, tokenizer, variant="ssa", scoring=scoring).double().eval()
    assert_as_stock(model, *batch_of(tokenizer, [9, 5, 11, 3]))


def test_rows_of_which_nothing_or_everything_is_asked(tokenizer):
    model = build_encoder(SIZE, tokenizer, variant="ssa").double().eval()
    ids, mask, _ = batch_of(tokenizer, [5, 7, 4])
    assert_as_stock(model, ids, mask, torch.arange(7, 14))


def test_a_padding_id_that_is_a_word_takes_no_position_as_in_the_whole_model():
    config = RobertaConfig(
        vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
        max_position_embeddings=30, pad_token_id=9,
    )  # fmt: skip
    model = RobertaForMaskedLM(config).double().eval()
    ids = torch.tensor([[3, 9, 7, 8, 4], [3, 5, 6, 9, 4]])
    assert_as_stock(model, ids, None, torch.arange(10))


def test_an_untied_head_works(tokenizer):
    config = RobertaConfig(
        vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
        max_position_embeddings=30, tie_word_embeddings=False,
    )  # fmt: skip
    model = RobertaForMaskedLM(config).double().eval()
    assert_as_stock(model, torch.randint(5, 50, (3, 6)), None, torch.tensor([1, 4, 8, 15]))


def test_padding_and_all_but_the_asked_tokens_stay_out_of_the_last_layer(tokenizer):
    model = build_encoder(SIZE, tokenizer).eval()
    ids, mask, positions = batch_of(tokenizer, [9, 5, 11, 3])
    rows = []
    for layer in model.roberta.encoder.layer:
        layer.intermediate.dense.register_forward_hook(lambda _, inputs, output: rows.append(inputs[0].shape[0]))
    logits_at(model, ids, mask, positions)
    assert rows == [mask.sum(), mask.sum(), len(positions)]


@pytest.mark.parametrize("variant", ["softmax", "ssa"])
def test_dropout_acts_in_training_as_often_as_in_the_whole_model(variant, tokenizer):
    model = build_encoder(SIZE, tokenizer, variant=variant).train()
    ids, mask, positions = batch_of(tokenizer, [9, 5, 11, 3])
    torch.manual_seed(0)
    first, second = (logits_at(model, ids, mask, positions) for _ in range(2))
    torch.manual_seed(0)
    assert torch.equal(logits_at(model, ids, mask, positions), first) and not torch.equal(first, second)
    with torch.no_grad():
        ours = torch.stack([logits_at(model, ids, mask, positions) for _ in range(300)])
        stock = torch.stack([model(ids, mask).logits.flatten(0, 1)[positions] for _ in range(300)])
    assert torch.allclose(ours.std(0).mean(), stock.std(0).mean(), rtol=0.05)
    assert torch.allclose(ours.mean(0), stock.mean(0), atol=float(6 * stock.std(0).max() * (2 / 300) ** 0.5))


def test_under_autocast_it_is_near(tokenizer):
    model = build_encoder(SIZE, tokenizer, variant="ssa").eval()
    ids, mask, positions = batch_of(tokenizer, [9, 5, 11, 3])
    expected = logits_at(model, ids, mask, positions)
    with torch.autocast("cpu", torch.bfloat16):
        found = logits_at(model, ids, mask, positions)
    assert torch.allclose(found.float(), expected, atol=0.02)


def test_it_says_which_models_it_knows():
    tiny = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4}
    assert computes(RobertaForMaskedLM(RobertaConfig(**tiny)))
    assert computes(set_scoring(RobertaForMaskedLM(RobertaConfig(**tiny)), SSAConfig()))
    assert not computes(RobertaForMaskedLM(RobertaConfig(**tiny, is_decoder=True)))
    assert not computes(BertForMaskedLM(BertConfig(**tiny)))
    assert not computes(nn.Linear(2, 2))
