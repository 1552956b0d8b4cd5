"""Training a decoder: what is written, what decides it, what is refused."""

import hashlib
import json
import math

import numpy as np
import pytest
import torch
import yaml
from transformers import AutoModelForCausalLM, AutoTokenizer

from babyssa.attention import scoring_parameters
from babyssa.decoder import DecoderTraining, Evaluation, generate, train_decoder
from babyssa.decoder.training import unigram_perplexity
from babyssa.errors import ConfigError, DataError, OutputExistsError
from babyssa.models import perplexity, score
from babyssa.training.config import Optimisation

TINY = [
    *("--size.layers", 1, "--size.heads", 2, "--size.key_value_heads", 1, "--size.hidden_size", 16),
    *("--size.feed_forward_size", 24, "--size.max_length", 32, "--optimisation.batch_size", 4),
    *("--optimisation.steps", 6, "--optimisation.log_every", 2, "--optimisation.learning_rate", 0.01),
    *("--evaluation.held_out", 5),
]


def fingerprint(folder):
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def log_of(folder):
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("variant", ["softmax", "ssa", "cosformer"])
def test_the_command_writes_a_run_folder_for_every_other_command(
    variant, corpus, tokenizer_folder, tmp_path, run_babyssa
):
    out = tmp_path / "run"
    status, stdout, stderr = run_babyssa(
        *("train", "decoder", "--corpus", corpus, "--tokenizer", tokenizer_folder, "--out", out),
        *("--variant", variant, *TINY),
    )
    assert status == 0, stderr
    assert str(out) in stdout and "\nperplexity " in stdout
    written = yaml.safe_load((out / "config.yaml").read_text())
    assert (written["kind"], written["variant"], written["documents"]) == ("decoder", variant, "lines")
    assert written["scoring"].get("max_length") == (32 if variant == "cosformer" else None)
    facts = written["facts"]
    assert facts["held_out_documents"] == 5 and facts["training_documents"] == 115
    assert facts["training_sequences"] * 32 + facts["remainder_tokens"] == facts["training_tokens"]
    assert facts["held_out_unigram_perplexity"] > 1
    log = log_of(out)
    assert [line["step"] for line in log] == [2, 4, 6, 6]
    assert log[-1]["perplexity"] > 1 and log[2]["tokens"] == 6 * 4 * 32

    model, tokenizer = AutoModelForCausalLM.from_pretrained(out), AutoTokenizer.from_pretrained(out)
    assert model.config.vocab_size == len(tokenizer) and tokenizer.bos_token == tokenizer.eos_token
    (tmp_path / "pairs.csv").write_text("good,bad\nthe dogs are big .,the dogs is big .\n")
    status, stdout, stderr = run_babyssa("probe", out, "--suite", tmp_path / "pairs.csv", "--out", tmp_path / "p")
    assert status == 0 and "loglik" in stdout, stderr
    status, stdout, _ = run_babyssa("score", out, "the dogs are big .", "--json")
    (scored,) = json.loads(stdout)["sentences"]
    ids = tokenizer("the dogs are big .", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        logits = model(ids).logits[0].log_softmax(-1)
    expected = [logits[i - 1, ids[0, i]].item() for i in range(1, ids.shape[1])]
    assert scored["token_scores"] == pytest.approx(expected, abs=1e-5)
    assert run_babyssa("generate", out, "the dog", "--max_new_tokens", 5)[0] == 0
    status, _, stderr = run_babyssa("probe", out, "--method", "pll", "--out", tmp_path / "q")
    assert status == 2 and "does not fit a causal model" in stderr


def test_the_held_out_perplexity_is_that_of_the_held_out_documents(corpus, settings, tmp_path):
    run = train_decoder(settings())
    lines = corpus.read_text().splitlines()
    held_out = [lines[i] for i in np.linspace(0, len(lines) - 1, 5).astype(int)]
    (tmp_path / "held_out.txt").write_text("\n".join(held_out))
    found = perplexity(run.folder, tmp_path / "held_out.txt")
    assert found.layout == "lines" and found.perplexity == pytest.approx(run.measured["perplexity"], rel=1e-5)


def test_the_unigram_perplexity_is_that_of_smoothed_counts():
    training, held_out = np.array([0, 0, 1]), np.array([0, 2])
    assert unigram_perplexity(training, held_out, 3) == pytest.approx(math.sqrt((6 / 3) * (6 / 1)))


@pytest.mark.slow
def test_a_decoder_learns_more_than_the_frequency_of_words(settings):
    optimisation = Optimisation(batch_size=8, steps=120, log_every=10, learning_rate=0.01)
    run = train_decoder(settings(variant="ssa", scoring={"learn_b": False}, optimisation=optimisation))
    written = yaml.safe_load((run.folder / "config.yaml").read_text())
    assert run.measured["perplexity"] < 0.3 * written["facts"]["held_out_unigram_perplexity"]
    (learned,) = scoring_parameters(AutoModelForCausalLM.from_pretrained(run.folder)).values()
    assert set(learned) == {"n"} and 1.5 not in learned["n"]
    assert written["scoring"]["b"] == 0.8 and written["scoring"]["learn_b"] is False
    assert generate(run.folder, ["the dog"], max_new_tokens=20, temperature=0)[0].startswith("the dog")


def test_one_seed_gives_the_same_bytes_and_another_gives_others(settings):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        torch.manual_seed(seed + len(name))
        train_decoder(settings(name, variant="ssa", seed=seed))
    folders = [settings(name).out for name in "abc"]
    assert fingerprint(folders[0]) == fingerprint(folders[1]) != fingerprint(folders[2])


def test_a_written_config_trains_the_same_run_again(settings, tmp_path, run_babyssa):
    run = train_decoder(settings("a", variant="ssa", scoring={"n": 2.5}))
    recipe_and_out = ("--config", run.folder / "config.yaml", "--out", tmp_path / "b")
    status, _, stderr = run_babyssa("train", "decoder", *recipe_and_out)
    assert status == 0, stderr
    assert fingerprint(tmp_path / "a") == fingerprint(tmp_path / "b")


@pytest.mark.parametrize("variant", ["softmax", "ssa"])
def test_accumulated_batches_make_the_big_batch(variant, settings):
    """The gradient is a mean of means over equally many tokens: the same but for rounding."""
    weights, losses = [], []
    for name, size, accumulation in (("whole", 8, 1), ("parts", 2, 4)):
        optimisation = Optimisation(
            batch_size=size, gradient_accumulation=accumulation, steps=3, log_every=1, learning_rate=1e-3
        )
        run = train_decoder(settings(name, variant=variant, optimisation=optimisation))
        assert run.steps == 3 and run.tokens == 3 * 8 * 32
        weights.append(AutoModelForCausalLM.from_pretrained(run.folder).state_dict())
        losses.append([line["loss"] for line in log_of(run.folder) if "loss" in line])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for key, value in weights[0].items():
        torch.testing.assert_close(value, weights[1][key], atol=2e-5, rtol=1e-4)


def test_an_epoch_counts_optimiser_steps(settings):
    optimisation = Optimisation(batch_size=2, gradient_accumulation=3, epochs=2)
    run = train_decoder(settings(optimisation=optimisation))
    sequences = yaml.safe_load((run.folder / "config.yaml").read_text())["facts"]["training_sequences"]
    assert run.steps == 2 * math.ceil(math.ceil(sequences / 2) / 3) and run.tokens == 2 * sequences * 32


def test_a_learning_curve_measures_perplexity_and_accuracy_without_changing_the_run(settings, tmp_path):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("good,bad\nthe dogs are big .,the dogs is big .\nhe sees him .,him sees he .\n")
    evaluation = Evaluation(held_out=5, every=2, suite=str(pairs))
    measured = train_decoder(settings("measured", evaluation=evaluation)).folder
    plain = train_decoder(settings("plain")).folder
    curve = [line for line in log_of(measured) if "accuracy" in line]
    assert [line["step"] for line in curve] == [2, 4, 6] and all(line["perplexity"] > 1 for line in curve)
    assert fingerprint(measured) == fingerprint(plain)


def test_without_a_tokenizer_one_is_trained_on_the_documents(settings, tmp_path, corpus):
    rows = [{"text": line} for line in corpus.read_text().splitlines()]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    folders = [
        train_decoder(settings(name, corpus=str(path), tokenizer=None, vocab_size=300)).folder
        for name, path in (("text", corpus), ("rows", tmp_path / "rows.jsonl"))
    ]
    assert len(AutoTokenizer.from_pretrained(folders[0])) == 300
    assert fingerprint(folders[0]) == fingerprint(folders[1])


@pytest.mark.parametrize("kind", ["jsonl", "txt"])
def test_a_stream_is_trained_on_without_its_first_documents(kind, settings, tmp_path, corpus):
    lines = corpus.read_text().splitlines()
    path = tmp_path / f"rows.{kind}"
    path.write_text("\n".join(json.dumps({"text": line}) if kind == "jsonl" else line for line in lines))
    run = train_decoder(settings(corpus=str(path), streaming=True, shuffle_buffer=20))
    again = train_decoder(settings("again", corpus=str(path), streaming=True, shuffle_buffer=20))
    other = train_decoder(settings("other", corpus=str(path), streaming=True, shuffle_buffer=1))
    assert run.tokens == 6 * 4 * 32
    assert fingerprint(run.folder) == fingerprint(again.folder) != fingerprint(other.folder)
    (tmp_path / "first.txt").write_text("\n".join(lines[:5]))
    assert perplexity(run.folder, tmp_path / "first.txt").perplexity == pytest.approx(
        run.measured["perplexity"], rel=1e-5
    )


def test_blocks_are_documents(settings, tmp_path):
    (tmp_path / "a.txt").write_text("\n\n".join(["the dog sees\na cat .", "look !"] * 40))
    run = train_decoder(settings(corpus=str(tmp_path / "a.txt"), documents="blocks"))
    facts = yaml.safe_load((run.folder / "config.yaml").read_text())["facts"]
    assert facts["training_documents"] + facts["held_out_documents"] == 80
    assert perplexity(run.folder, tmp_path / "a.txt").layout == "blocks"


@pytest.mark.parametrize("recipe, layers, batch", [("mini", 4, 8), ("nemotron-114m", 12, 768)])
def test_the_recipes_read(recipe, layers, batch, tmp_path):
    settings = DecoderTraining.from_recipe(recipe, corpus="corpus", tokenizer="tokenizer", out=tmp_path)
    optimisation = settings.optimisation
    assert settings.size.layers == layers
    assert optimisation.batch_size * optimisation.gradient_accumulation == batch
    if recipe == "nemotron-114m":
        assert (optimisation.steps, optimisation.warmup_steps, settings.vocab_size) == (22_000, 500, 50_256)


@pytest.mark.parametrize(
    "text, says",
    [
        ("", "the corpus is empty"),
        (" \n \n", "the corpus is empty"),
        ("hi .\nyes .\nno .\n", "cannot hold out 5 documents from a corpus of 3"),
        ("hi .\n" * 7, "fewer than one sequence of 32"),
    ],
)
@pytest.mark.parametrize("streaming", ["false", "true"])
def test_a_tiny_corpus_is_refused_and_nothing_is_lost(
    text, says, streaming, settings, tokenizer_folder, tmp_path, run_babyssa
):
    (tmp_path / "a.txt").write_text(text)
    kept = train_decoder(settings()).folder
    before = fingerprint(kept)
    status, stdout, stderr = run_babyssa(
        *("train", "decoder", "--corpus", tmp_path / "a.txt", "--tokenizer", tokenizer_folder, "--out", kept),
        *("--overwrite", "--streaming", streaming, *TINY),
    )
    *said, error = stderr.splitlines()
    assert (status, stdout) == (1, "") and error.startswith("babyssa: error: ") and fingerprint(kept) == before
    assert all("skipped" in line for line in said)
    if streaming == "false" or "sequence" in says:
        assert says in stderr


@pytest.mark.parametrize(
    "options, says",
    [
        (("--variant", "sofmax"), "did you mean 'softmax'"),
        (("--scoring.m", 2), "no parameter"),
        (("--size.heads", 3), "not a multiple"),
        (("--size.dropout", 0.1), "unknown option '--size.dropout'"),
        (("--optimisation.gradient_accumulation", 0), "gradient-accumulation is 0"),
        (("--documents", "words"), "documents"),
        (("--shuffle_buffer", 0), "shuffle-buffer is 0"),
        (("--config", "minni"), "did you mean 'mini'"),
    ],
)
def test_wrong_settings_are_one_line_before_any_work(
    options, says, corpus, tokenizer_folder, tmp_path, run_babyssa
):
    status, stdout, stderr = run_babyssa(
        *("train", "decoder", "--corpus", corpus, "--tokenizer", tokenizer_folder, "--out", tmp_path / "run"),
        *(*TINY, *options),
    )
    assert (status, stdout) == (2, "") and len(stderr.splitlines()) == 1 and says in stderr
    assert not (tmp_path / "run").exists()


def test_a_stream_says_what_it_needs(settings):
    with pytest.raises(ConfigError, match="needs a tokenizer"):
        settings(streaming=True, tokenizer=None)
    with pytest.raises(ConfigError, match=r"needs optimisation\.steps"):
        settings(streaming=True, optimisation=Optimisation())


def test_a_missing_corpus_or_an_earlier_run_is_refused(settings, tmp_path):
    with pytest.raises(DataError, match="no such file"):
        train_decoder(settings(corpus=str(tmp_path / "none.txt")))
    train_decoder(settings())
    with pytest.raises(OutputExistsError):
        train_decoder(settings())


def test_a_sentence_longer_than_the_model_is_refused(settings):
    run = train_decoder(settings())
    with pytest.raises(DataError, match="tokens long, but the model takes 32"):
        score(run.folder, ["dog " * 40])
