"""Precision: float32 everywhere by default; bfloat16 where asked for, or with auto on a machine that has it."""

import dataclasses

import pytest
import torch

from babyssa.encoder import train_encoder
from babyssa.errors import ConfigError
from babyssa.models.run_config import read_settings
from babyssa.training.config import Optimisation
from babyssa.training.devices import CPU_BFLOAT16, computes_in_bfloat16, precision_of

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="of the CPU")
HINT = "this machine computes in bfloat16, which is faster: --optimisation.precision auto uses it"


@pytest.fixture(params=["0", "1"])
def bfloat16_cpu(request, monkeypatch):
    """Whether the CPU is taken to compute in bfloat16, forced either way."""
    monkeypatch.setenv(CPU_BFLOAT16, request.param)
    return request.param == "1"


def test_the_default_is_float32_on_every_machine_and_auto_what_the_machine_computes_in(bfloat16_cpu):
    assert precision_of(Optimisation()) == "float32"
    assert precision_of(Optimisation(precision="bfloat16")) == "bfloat16"
    assert precision_of(Optimisation(precision="auto")) == ("bfloat16" if bfloat16_cpu else "float32")


@pytest.mark.parametrize("precision", ["float32", "auto"])
def test_a_run_says_where_it_leaves_bfloat16_unused(precision, bfloat16_cpu, settings, capsys):
    optimisation = Optimisation(batch_size=8, steps=1, precision=precision)
    run = train_encoder(dataclasses.replace(settings, optimisation=optimisation))
    used = "bfloat16" if bfloat16_cpu and precision == "auto" else "float32"
    assert read_settings(run.folder)["facts"]["precision"] == used
    said = capsys.readouterr().err.splitlines()
    assert said[0].endswith(used) and (HINT in said) == (bfloat16_cpu and precision == "float32")


def test_what_the_cpu_says_counts_unless_it_is_overridden(monkeypatch):
    monkeypatch.delenv(CPU_BFLOAT16, raising=False)
    for units, found in (({"avx2": True}, False), ({"amx_bf16": True}, True), ({"avx512_bf16": True}, True)):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda units=units: units)
        assert computes_in_bfloat16() == found
    monkeypatch.setenv(CPU_BFLOAT16, "yes")
    with pytest.raises(ConfigError, match="BABYSSA_CPU_BFLOAT16 is 'yes'; set it to 1 or 0"):
        precision_of(Optimisation(precision="auto"))
