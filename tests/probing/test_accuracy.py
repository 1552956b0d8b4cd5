"""Probing counts right pairs, ties and nothing else, and writes what it counted."""

import csv
import json

import pytest
import torch

from babyssa import probe
from babyssa.errors import DataError, OutputExistsError
from babyssa.models import score
from babyssa.probing import MinimalPair, Paradigm, Suite

SUITE = Suite(
    "small",
    (
        Paradigm(
            "agreement-number",
            "agreement",
            (
                MinimalPair("the dog is big .", "the dogs is big ."),
                MinimalPair("the dogs are big .", "the dog are big ."),
                MinimalPair("the cat, is", 'the cats, "is"'),
            ),
        ),
        Paradigm("case-pronoun", "case", (MinimalPair("he don't", "him don't"),)),
    ),
)


def write_suite(folder):
    folder.mkdir()
    for paradigm in SUITE.paradigms:
        lines = "".join(f"{pair.bad}\n{pair.good}\n" for pair in paradigm.pairs)
        (folder / f"{paradigm.name}.txt").write_text(lines)
    return folder


@pytest.mark.parametrize("method", ["pll", "pll-word-l2r", "holistic", "loglik"])
def test_a_pair_is_right_if_brute_force_scores_the_good_member_higher(masked, causal, brute_force, method):
    model = causal if method == "loglik" else masked
    result = probe(model, SUITE, method=method)
    for paradigm, counted in zip(SUITE.paradigms, result.paradigms, strict=True):
        expected = [
            brute_force.score(*model, p.good, method) > brute_force.score(*model, p.bad, method)
            for p in paradigm.pairs
        ]
        assert counted.accuracy == sum(expected) / len(expected)
        assert counted.n_pairs == len(expected)
    assert result.accuracy == sum(p.accuracy for p in result.paradigms) / 2
    assert result.n_pairs == 4


def test_the_scores_of_a_pair_are_those_of_its_sentences(masked):
    result = probe(masked, SUITE)
    for paradigm in SUITE.paradigms:
        flat = [text for pair in paradigm.pairs for text in (pair.good, pair.bad)]
        expected = [s.score for s in score(masked, flat)]
        assert result.scores[paradigm.name].flatten().tolist() == pytest.approx(expected, abs=1e-4)


def test_a_model_that_knows_nothing_ties_on_every_pair_of_equal_length(make):
    tokenizer = make.tokenizer()
    model = make.masked(tokenizer)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    pairs = (MinimalPair("a b c", "c b a"), MinimalPair("x y", "y x"), MinimalPair("a", "b"))
    for method in ("pll", "pll-word-l2r", "holistic"):
        (paradigm,) = probe((model, tokenizer), Suite("s", (Paradigm("p", "p", pairs),)), method=method).paradigms
        assert (paradigm.accuracy, paradigm.ties) == (0.5, 3)


def test_pairs_that_the_tokenizer_reads_alike_tie_whatever_the_batches(masked, monkeypatch):
    monkeypatch.setattr("babyssa.models.scores._TOKENS_PER_CHUNK", 1)
    pairs = (MinimalPair("The dog sleeps .", "the dog sleeps ."), MinimalPair("the dog", "the dogs sleep"))
    (paradigm,) = probe(masked, Suite("s", (Paradigm("p", "p", pairs),)), batch_size=1).paradigms
    assert paradigm.ties == 1


def test_accuracy_is_the_mean_over_paradigms_not_over_pairs(masked):
    result = probe(masked, SUITE)
    whole = sum(p.accuracy * p.n_pairs for p in result.paradigms) / result.n_pairs
    first, second = (p.accuracy for p in result.paradigms)
    assert first != second and result.accuracy == (first + second) / 2 != whole


def test_the_files_have_the_contracts_keys_and_agree_with_each_other(masked_folder, tmp_path):
    result = probe(masked_folder, SUITE, out=tmp_path / "out", variant="ssa", seed=3)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert list(summary) == [
        "model",
        "variant",
        "seed",
        "run",
        "step",
        "words",
        "tokens",
        "suite",
        "suite_sha256",
        "model_sha256",
        "tokenizer_sha256",
        "method",
        "reduction",
        "precision",
        "training_precision",
        "n_pairs",
        "accuracy",
        "paradigms",
        "versions",
    ]
    counts = ["n_pairs", "accuracy", "ties", "unknown", "correlation"]
    assert list(summary["paradigms"][0]) == ["name", "phenomenon", *counts]
    assert (summary["variant"], summary["seed"], summary["method"], summary["reduction"]) == (
        "ssa",
        3,
        "pll",
        "sum",
    )
    assert summary["suite_sha256"] == SUITE.sha256
    assert summary == result.summary() | {"paradigms": [vars(p) for p in result.paradigms]}
    with open(tmp_path / "out" / "pairs.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(r["paradigm"], r["pair"]) for r in rows] == [
        ("agreement-number", "0"),
        ("agreement-number", "1"),
        ("agreement-number", "2"),
        ("case-pronoun", "0"),
    ]
    assert (rows[2]["good"], rows[2]["bad"]) == ("the cat, is", 'the cats, "is"')
    for paradigm in summary["paradigms"]:
        own = [(float(r["score_good"]), float(r["score_bad"])) for r in rows if r["paradigm"] == paradigm["name"]]
        assert own == [tuple(pair) for pair in result.scores[paradigm["name"]].tolist()]
        assert paradigm["accuracy"] == sum((g > b) + (g == b) / 2 for g, b in own) / len(own)


def test_what_is_written_can_be_compared(masked_folder, tmp_path):
    from babyssa.comparison.results import read_result

    probe(masked_folder, SUITE, out=tmp_path / "out")
    assert read_result(tmp_path / "out").variant == "tiny-masked"


def test_variant_and_seed_are_those_that_training_wrote(masked, make, tmp_path):
    folder = make.save(*masked, tmp_path / "run")
    assert (probe(folder, SUITE).variant, probe(folder, SUITE).seed) == ("run", None)
    (folder / "config.yaml").write_text("variant: ssa-2\nseed: 7\nmodel: {layers: 2}\n")
    assert (probe(folder, SUITE).variant, probe(folder, SUITE).seed) == ("ssa-2", 7)
    assert (probe(folder, SUITE, seed=0).variant, probe(folder, SUITE, seed=0).seed) == ("ssa-2", 0)
    assert probe(folder, SUITE).training_precision is None
    (folder / "config.yaml").write_text("variant: ssa-2\nfacts: {precision: bfloat16}\n")
    assert probe(folder, SUITE).training_precision == "bfloat16"
    (folder / "config.yaml").write_text("variant: [")
    with pytest.raises(DataError, match=r"config\.yaml:2: broken YAML"):
        probe(folder, SUITE)
    (folder / "config.yaml").write_text("seed: many\n")
    with pytest.raises(DataError, match="not a whole number"):
        probe(folder, SUITE)


def test_a_model_in_memory_gives_what_its_folder_gives_and_stays_in_training(make, masked, masked_folder):
    _, tokenizer = masked
    model = make.masked(tokenizer).train()
    memory, folder = probe((model, tokenizer), SUITE), probe(masked_folder, SUITE)
    assert model.training
    assert memory.paradigms == folder.paradigms
    assert memory.model_sha256 == folder.model_sha256
    model(torch.tensor([[3, 9, 4]]), labels=torch.tensor([[3, 9, 4]])).loss.backward()


def test_nothing_is_overwritten_unless_asked(masked, tmp_path):
    probe(masked, SUITE, out=tmp_path)
    before = (tmp_path / "pairs.csv").read_bytes()
    with pytest.raises(OutputExistsError):
        probe(masked, "nosuch-suite", out=tmp_path)
    assert (tmp_path / "pairs.csv").read_bytes() == before
    probe(masked, SUITE, out=tmp_path, overwrite=True, limit=1)
    assert json.loads((tmp_path / "summary.json").read_text())["n_pairs"] == 2


def test_a_sentence_that_is_too_long_is_named_before_anything_is_scored(masked, tmp_path):
    folder = write_suite(tmp_path / "suite")
    (folder / "long.txt").write_text("the dog\nthe dogs\nthe dog\n" + "x " * 50 + "\n")
    with pytest.raises(DataError, match=r"long\.txt:3: sentence 'x x .* the model takes 40"):
        probe(masked, folder, order="bad-first", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_subset_is_probed_as_the_whole(masked):
    whole = probe(masked, SUITE)
    part = probe(masked, SUITE, paradigms=["case-pronoun"])
    assert part.paradigms == whole.paradigms[1:]
