"""The demo: everything on the packaged sample. Its full length is run by hand; here it is cut short."""

import dataclasses

import pytest

from babyssa.encoder import EncoderTraining
from babyssa.errors import OutputExistsError
from babyssa.experiments.demo import run_demo


@pytest.mark.slow
def test_the_demo_makes_a_corpus_a_tokenizer_four_models_and_a_comparison(tmp_path):
    settings = EncoderTraining.from_recipe("demo", corpus=tmp_path, out=tmp_path)
    short = dataclasses.replace(settings.optimisation, steps=3)
    out = tmp_path / "demo"
    made = run_demo(out, dataclasses.replace(settings, optimisation=short), pairs=4)
    assert made.sweep.comparison.parts["demo: packaged"].variants == ("softmax", "ssa-1.5", "ssa-2", "ssa")
    assert len((out / "corpus" / "corpus.txt").read_text().splitlines()) >= 20_000
    assert (out / "comparison" / "comparison.png").stat().st_size > 10_000
    assert "the dogs" in str(made) and str(made).splitlines()[-2:] == [
        f"page    {out}/report.html",
        f"figure  {out}/comparison/comparison.png",
    ]
    page = (out / "report.html").read_text()
    assert "babyssa report" in page and "demo: packaged" in page
    with pytest.raises(OutputExistsError, match="already exists"):
        run_demo(out, settings)
    with pytest.raises(OutputExistsError, match="was not made by the demo"):
        run_demo(tmp_path, settings, overwrite=True)
    assert (out / "corpus" / "corpus.txt").exists()
