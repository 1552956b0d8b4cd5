"""A run records which library multiplied its matrices, and resumes with it."""

import pytest
import torch
import yaml

import babyssa.models.products as products
from babyssa.encoder import train_encoder
from babyssa.models.products import BLAS, ONEDNN, PRODUCTS
from babyssa.models.run_config import read_settings

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="of the CPU")


@pytest.fixture(autouse=True)
def used(monkeypatch):
    """The libraries that torch was set to, one after the other; the machine's faster one is oneDNN."""
    found = []
    original = products._onednn

    def onednn():
        found.append(ONEDNN)
        return original()

    monkeypatch.delenv(PRODUCTS)
    monkeypatch.setattr(products, "_onednn", onednn)
    monkeypatch.setattr(products, "_remembered", lambda threads: ONEDNN)
    monkeypatch.setattr(products, "_computes_in_float32", lambda: True)
    return found


def test_a_run_takes_the_faster_library_and_records_it(settings, used, capsys):
    run = train_encoder(settings)
    assert read_settings(run.folder)["facts"]["products"] == ONEDNN
    assert "products by onednn, float32" in capsys.readouterr().err
    assert used


def test_a_run_resumes_with_the_library_that_it_began_with(settings, used, killed_at, monkeypatch, capsys):
    monkeypatch.setattr(products, "_remembered", lambda threads: BLAS)
    killed_at(settings, 7)
    monkeypatch.setattr(products, "_remembered", lambda threads: ONEDNN)
    train_encoder(settings)
    said = capsys.readouterr().err
    assert f"products by {BLAS}" in said and "warning" not in said
    assert read_settings(settings.out)["facts"]["products"] == BLAS


def test_a_run_of_an_earlier_version_resumes_with_the_blas(settings, killed_at, monkeypatch, capsys):
    monkeypatch.setattr(products, "_remembered", lambda threads: BLAS)
    killed_at(settings, 7)
    config = settings.out / "config.yaml"
    values = yaml.safe_load(config.read_text())
    del values["facts"]["products"]
    config.write_text(yaml.safe_dump(values, sort_keys=False))
    monkeypatch.setattr(products, "_remembered", lambda threads: ONEDNN)
    train_encoder(settings)
    said = capsys.readouterr().err
    assert f"products by {BLAS}" in said and "warning" not in said


def test_another_library_may_resume_a_run_and_the_warning_names_it(settings, killed_at, monkeypatch, capsys):
    killed_at(settings, 7)
    monkeypatch.setenv(PRODUCTS, BLAS)
    train_encoder(settings)
    assert f"from those of an uninterrupted run: products was onednn, is {BLAS}" in capsys.readouterr().err
