"""The encoder: transformers' own RoBERTa with Softmax, the same weights under any scoring."""

import subprocess
import sys

import pytest
import torch
from transformers import AutoModelForMaskedLM, RobertaConfig, RobertaForMaskedLM

from babyssa.attention import scorings, variants
from babyssa.encoder import EncoderSize, EncoderTraining, MaskedSentences, Masking, Vocabulary, build_encoder
from babyssa.encoder.model import masked_lm_loss
from babyssa.errors import ConfigError

SMALL = EncoderSize(layers=2, heads=4, hidden_size=32, feed_forward_size=48, max_length=40)


def stock_copy(model):
    """A RobertaForMaskedLM that this package had no hand in, with the same weights."""
    values = {key: value for key, value in model.config.to_dict().items() if key != "architectures"}
    copy = RobertaForMaskedLM(RobertaConfig(**values))
    copy.load_state_dict(model.state_dict(), strict=True)
    return copy.eval()


def ids(tokenizer, length=9):
    generator = torch.Generator().manual_seed(0)
    return torch.randint(5, len(tokenizer), (3, length), generator=generator)


def test_with_softmax_it_is_the_stock_model(tokenizer):
    model = build_encoder(SMALL, tokenizer, seed=1).eval()
    assert type(model) is RobertaForMaskedLM and model.config.model_type == "roberta"
    stock = stock_copy(model)
    assert list(stock.state_dict()) == list(model.state_dict())
    assert torch.allclose(model(ids(tokenizer)).logits, stock(ids(tokenizer)).logits, atol=1e-6)


WITHOUT_THIS_PACKAGE = """
import sys, torch
from transformers import AutoModelForMaskedLM
model, report = AutoModelForMaskedLM.from_pretrained(sys.argv[1], output_loading_info=True)
assert not any(report.values()), report
assert not any(name.startswith("babyssa") for name in sys.modules)
torch.save(model.eval()(torch.tensor([[3, 7, 8, 9, 4]])).logits, sys.argv[2])
"""


@pytest.mark.slow
def test_a_softmax_checkpoint_needs_nothing_of_this_package(tokenizer, tmp_path):
    model = build_encoder(SMALL, tokenizer, seed=1).eval()
    model.save_pretrained(tmp_path / "model")
    arguments = [sys.executable, "-c", WITHOUT_THIS_PACKAGE, tmp_path / "model", tmp_path / "logits.pt"]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = torch.load(tmp_path / "logits.pt", weights_only=True)
    assert torch.allclose(found, model(torch.tensor([[3, 7, 8, 9, 4]])).logits, atol=1e-6)


def test_babyberta_has_the_published_size():
    class Published:
        """The published tokenizer's numbers."""

        pad_token_id, bos_token_id, eos_token_id = 1, 3, 4

        def __len__(self):
            return 8192

    settings = EncoderTraining.from_recipe("babyberta", corpus="x", out="y")
    model = build_encoder(settings.size, Published())
    assert sum(p.numel() for p in model.parameters()) == pytest.approx(8.52e6, rel=0.005)


def test_the_papers_recipe_is_that_of_its_script():
    recipe = EncoderTraining.from_recipe("roberta-masking", corpus="x", out="y")
    optimisation, masking = recipe.optimisation, recipe.masking
    assert recipe.size == EncoderTraining.from_recipe("babyberta", corpus="x", out="y").size
    assert (optimisation.steps, optimisation.warmup_steps, optimisation.batch_size) == (160_000, 24_000, 16)
    assert optimisation.learning_rate == 1e-4
    assert (masking.probability, masking.random, masking.unchanged) == (0.15, 0.1, 0.1)


@pytest.mark.parametrize("variant", variants())
def test_variants_start_from_the_same_common_weights(variant, tokenizer):
    baseline = build_encoder(SMALL, tokenizer, seed=5).state_dict()
    state = build_encoder(SMALL, tokenizer, variant=variant, seed=5).state_dict()
    assert all(torch.equal(state[key], value) for key, value in baseline.items())
    assert all(".scoring." in key and ".raw_" in key for key in state if key not in baseline)


def test_the_seed_decides_the_weights_and_nothing_else_does(tokenizer):
    torch.manual_seed(0)
    before = torch.random.get_rng_state()
    first = build_encoder(SMALL, tokenizer, variant="ssa", seed=2).state_dict()
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(77)
    second = build_encoder(SMALL, tokenizer, variant="ssa", seed=2).state_dict()
    assert all(torch.equal(first[key], second[key]) for key in first)
    other = build_encoder(SMALL, tokenizer, variant="ssa", seed=3).state_dict()
    assert not torch.equal(first["lm_head.dense.weight"], other["lm_head.dense.weight"])


@pytest.mark.parametrize("variant", variants())
def test_a_saved_encoder_comes_back(variant, tokenizer, tmp_path):
    model = build_encoder(SMALL, tokenizer, variant=variant).eval()
    model.save_pretrained(tmp_path)
    again = AutoModelForMaskedLM.from_pretrained(tmp_path).eval()
    assert torch.equal(again(ids(tokenizer)).logits, model(ids(tokenizer)).logits)
    assert list(scorings(again)) == list(scorings(model))


@pytest.mark.parametrize("variant", ["softmax", "ssa"])
def test_the_loss_at_masked_positions_is_the_stock_loss(variant, tokenizer, some_sentences):
    model = build_encoder(SMALL, tokenizer, variant=variant).eval()
    data = MaskedSentences(some_sentences([5, 9, 3, 9]), Vocabulary.of(tokenizer), Masking(), 1, seed=0)
    batch = data.__getitems__([0, 1, 2, 3])
    labels = torch.full_like(batch["input_ids"], -100)
    labels.view(-1)[batch["positions"]] = batch["labels"]
    stock = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], labels=labels).loss
    stock.backward()
    expected = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    loss = masked_lm_loss(model, batch)
    loss.backward()
    assert torch.allclose(loss, stock, atol=1e-6)
    for name, parameter in model.named_parameters():
        assert torch.allclose(parameter.grad, expected[name], atol=1e-6), name


@pytest.mark.parametrize(
    "values", [{"hidden_size": 30, "heads": 4}, {"layers": 0}, {"max_length": 2}, {"dropout": 1.0}]
)
def test_sizes_out_of_domain_are_refused(values):
    with pytest.raises(ConfigError, match="size"):
        EncoderSize(**values)
