"""Writing text: the cache changes nothing, a seed decides everything."""

import pytest
import torch

from babyssa.decoder import generate
from babyssa.encoder import EncoderSize, build_encoder
from babyssa.errors import ConfigError, DataError
from babyssa.training.run_folder import save_model


@pytest.mark.parametrize("variant", ["softmax", "ssa", "mixed", "linear", "cosformer"])
def test_the_most_probable_token_follows_as_without_a_cache(variant, decoder, decoder_tokenizer, logits):
    model = decoder(variant)
    ids = decoder_tokenizer("the dog sees")["input_ids"]
    start = len(ids)
    while len(ids) < start + 10 and ids[-1] != decoder_tokenizer.eos_token_id:
        ids.append(int(logits(model, ids)[-1].argmax()))
    (text,) = generate((model, decoder_tokenizer), ["the dog sees"], max_new_tokens=10, temperature=0)
    assert text == decoder_tokenizer.decode(ids, skip_special_tokens=True).strip()


def test_a_seed_decides_each_prompt_by_itself(decoder, decoder_tokenizer):
    pair = (decoder("ssa"), decoder_tokenizer)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = generate(pair, ["the dog", ""], max_new_tokens=8, seed=1)
    assert torch.equal(before, torch.get_rng_state()) and first[0].startswith("the dog")
    assert generate(pair, ["", "the dog"], max_new_tokens=8, seed=1) == first[::-1]
    assert generate(pair, ["the dog", ""], max_new_tokens=8, seed=2) != first
    assert generate(pair, ["the dog", ""], max_new_tokens=8, seed=1, temperature=0.01) != first


def test_bad_input_is_refused(decoder, decoder_tokenizer, tokenizer):
    pair = (decoder(), decoder_tokenizer)
    with pytest.raises(DataError, match="more than the 24 tokens"):
        generate(pair, ["the dog"], max_new_tokens=23)
    with pytest.raises(ConfigError, match="at least 1"):
        generate(pair, max_new_tokens=0)
    with pytest.raises(ConfigError, match="temperature is -1"):
        generate(pair, temperature=-1)
    with pytest.raises(ConfigError, match="list of strings"):
        generate(pair, "the dog")
    size = EncoderSize(layers=1, heads=2, hidden_size=16, feed_forward_size=24)
    with pytest.raises(ConfigError, match="needs a causal model"):
        generate((build_encoder(size, tokenizer), tokenizer))


def test_the_command_prints_a_line_for_each_prompt(decoder, decoder_tokenizer, tmp_path, run_babyssa):
    save_model(tmp_path, decoder("ssa"), decoder_tokenizer)
    options = ("--max_new_tokens", 5, "--seed", 3)
    status, stdout, _ = run_babyssa("generate", tmp_path, "where is", "the dog", *options)
    assert status == 0 and stdout.startswith("where is") and "\nthe dog" in stdout
    status, again, _ = run_babyssa("generate", tmp_path, "where is", "the dog", *options)
    assert again == stdout
    assert run_babyssa("generate", tmp_path, *options)[0] == 0
    status, stdout, stderr = run_babyssa("generate", tmp_path, "the dog", "--max_new_tokens", 50)
    assert (status, stdout) == (1, "") and len(stderr.splitlines()) == 1


def test_transformers_alone_generates_from_a_softmax_folder(decoder_tokenizer, decoder, tmp_path):
    from transformers import pipeline

    save_model(tmp_path, decoder(), decoder_tokenizer)
    write = pipeline("text-generation", model=str(tmp_path), device="cpu")
    (result,) = write("the dog", max_new_tokens=4, do_sample=False)
    (text,) = generate(tmp_path, ["the dog"], max_new_tokens=4, temperature=0)
    assert result["generated_text"].endswith(text.removeprefix("the dog"))
