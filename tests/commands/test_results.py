"""What every verb returns shows itself: within any width, as a frame, as Markdown and as HTML."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

import babyssa
from babyssa.commands.corpus import GeneratedSuite
from babyssa.decoder.harness import HarnessResult, TaskResult
from babyssa.language.sample import SampleStats
from babyssa.language.suite import ParadigmSummary
from babyssa.probing.diagnostic import DiagnosticResult, LayerResult
from babyssa.training.run import TrainingRun

PARADIGM = "agreement_subject_verb-across_prepositional_phrase"


@pytest.fixture(scope="module")
def results(masked, causal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    (folder / f"{PARADIGM}.txt").write_text("the dogs is big .\nthe dog is big .\n" * 2)
    (folder / "text.txt").write_text("the dogs are big .\n")
    return {
        "probe": babyssa.probe(masked, folder / f"{PARADIGM}.txt", order="bad-first"),
        "score": babyssa.score(masked, ["the dog is big .", "don't you want another cookie ?"]),
        "perplexity": babyssa.perplexity(causal, folder / "text.txt"),
        "attention": babyssa.attention_maps(masked, "the dog is big ."),
        "saturation": babyssa.saturation(["softmax", "ssa-2"], keys=8),
        "prepare": babyssa.prepare([folder / "text.txt"], out=folder / "corpus"),
        "sample": SampleStats(30000, 10000, 100000, 900, 100, 300, 2100),
        "suite": GeneratedSuite((ParadigmSummary(PARADIGM, "agreement_subject_verb", folder / "a.txt", 1000),)),
        "train": TrainingRun(Path("runs/ssa"), "ssa", 0, 1000, 10, 5000, 1.5, {"pseudo_perplexity": 12.34}),
        "evaluate": HarnessResult(
            "runs/ssa",
            "ssa",
            0,
            (TaskResult("arc_easy", 100, 0, {"acc": 0.25}, {"acc": 0.01}),),
            {"lm_eval": "0.4"},
        ),
        "diagnose": DiagnosticResult(
            "m", "ssa", 0, "x", "subject-number", 400, 50, 5, 0, 0.5, (LayerResult(0, *[0.5] * 8),), {}
        ),
    }


NAMES = (
    *("probe", "score", "perplexity", "attention", "saturation", "prepare", "sample", "suite", "train"),
    *("evaluate", "diagnose"),
)


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("name", NAMES)
def test_a_result_fits_the_terminal(name, width, results):
    console = Console(file=io.StringIO(), width=width)
    console.print(results[name])
    lines = console.file.getvalue().splitlines()
    assert len(lines) > 1 and max(map(len, lines)) <= width


@pytest.mark.parametrize("name", NAMES)
def test_a_result_is_a_frame_and_a_markdown_and_an_html_table(name, results):
    frame = results[name].to_frame()
    assert len(frame) and not any(str(column).isdigit() for column in frame)
    assert "| --- |" in results[name].to_markdown() or "---: |" in results[name].to_markdown()
    assert "<td" in results[name]._repr_html_()


def test_the_whole_name_of_a_paradigm_fits_80_columns(results):
    console = Console(file=io.StringIO(), width=80)
    console.print(results["probe"])
    assert PARADIGM in console.file.getvalue()
    assert results["probe"].to_frame().phenomenon.tolist() == ["agreement_subject_verb"]


def test_tokens_are_shown_as_words_and_kept_as_they_are_elsewhere(results):
    text = str(results["score"])
    assert "▁" in text and "Ġ" not in text
    assert "Ġ" in json.dumps(results["score"].summary(), ensure_ascii=False)


def test_scores_are_a_sequence(results):
    first, second = results["score"]
    assert len(results["score"]) == 2 and results["score"][1] is second
    frame = results["score"].to_frame()
    assert frame[frame.sentence == 0].score.sum() == pytest.approx(first.score)


def test_a_training_and_a_perplexity_are_one_row():
    run = TrainingRun(Path("runs/ssa"), "ssa", 0, 1000, 10, 5000, 1.5, {"pseudo_perplexity": 12.34})
    (row,) = run.to_frame().to_dict("records")
    assert (row["variant"], row["pseudo_perplexity"]) == ("ssa", 12.34)
