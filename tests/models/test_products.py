"""The library of float32 products: the faster one, if it computes in float32; a run keeps its own."""

import time
from contextlib import contextmanager

import pytest
import torch

import babyssa.models.products as products
from babyssa.errors import ConfigError
from babyssa.models.products import BLAS, ONEDNN, PRODUCTS, choose_products, multiplying

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="of the CPU")


@pytest.fixture(autouse=True)
def machine(monkeypatch, tmp_path):
    """Replaces oneDNN by a library of a given error; what is slow takes a millisecond a product."""
    for function in (products._remembered, products._faster, products._computes_in_float32):
        function.cache_clear()
        monkeypatch.setattr(products, function.__name__, products.cache(function.__wrapped__))
    monkeypatch.setenv("BABYSSA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(PRODUCTS, raising=False)
    monkeypatch.setattr(products, "_SIZES", ((8, 64, 16),))
    real = products._products

    def make(rounded=lambda x: x * (1 + 1e-6), *, slow=BLAS):
        in_use = [BLAS]

        @contextmanager
        def onednn():
            in_use[0] = ONEDNN
            yield
            in_use[0] = BLAS

        def product(compute):
            time.sleep(0.001 if in_use[0] == slow else 0)
            return rounded(compute()) if in_use[0] == ONEDNN else compute()

        monkeypatch.setattr(products, "_onednn", onednn)
        monkeypatch.setattr(
            products,
            "_products",
            lambda dtype=torch.float32: [
                compute if dtype == torch.float64 else (lambda compute=compute: product(compute))
                for compute in real(dtype)
            ],
        )

    return make


def test_the_faster_library_is_taken(machine):
    machine(slow=BLAS)
    assert choose_products() == ONEDNN


def test_the_blas_is_kept_where_it_is_faster(machine):
    machine(slow=ONEDNN)
    assert choose_products() == BLAS


def test_a_library_that_rounds_to_bfloat16_is_refused_however_fast(machine, monkeypatch):
    machine(lambda x: x.bfloat16().float(), slow=BLAS)
    assert choose_products() == choose_products(recorded=ONEDNN) == BLAS
    monkeypatch.setenv(PRODUCTS, ONEDNN)
    with pytest.raises(ConfigError, match="which computes in bfloat16 on this CPU"):
        choose_products()


def test_the_choice_is_remembered_between_processes(machine):
    machine(slow=BLAS)
    assert choose_products() == ONEDNN
    # As a new process on a machine whose load has changed.
    products._remembered.cache_clear()
    products._faster.cache_clear()
    machine(slow=ONEDNN)
    assert choose_products() == ONEDNN


def test_the_environment_counts_before_the_record_and_that_before_the_measurement(machine, monkeypatch):
    machine(slow=BLAS)
    assert choose_products(recorded=BLAS) == BLAS
    assert choose_products(recorded="that of another machine") == BLAS
    monkeypatch.setenv(PRODUCTS, ONEDNN)
    assert choose_products(recorded=BLAS) == ONEDNN
    monkeypatch.setenv(PRODUCTS, "fast")
    with pytest.raises(ConfigError, match=f"{PRODUCTS} is 'fast'; set it to {BLAS} or onednn"):
        choose_products()


def test_torch_computes_in_float32_whatever_is_chosen_here(monkeypatch):
    generator = torch.Generator().manual_seed(1)
    x, y = (torch.randn(300, 300, dtype=torch.float64, generator=generator) for _ in range(2))
    with multiplying():
        assert (x.float() @ y.float() - x @ y).abs().max() < 1e-3


def test_torch_is_set_within_the_block_only_and_an_inner_block_keeps_the_library():
    matmul = torch.backends.mkldnn.matmul
    before = matmul.fp32_precision
    with multiplying(ONEDNN):
        assert matmul.fp32_precision == "bf16"
        with multiplying():
            assert matmul.fp32_precision == "bf16"
        assert matmul.fp32_precision == "bf16"
    assert matmul.fp32_precision == before
    with multiplying(BLAS), multiplying():
        assert matmul.fp32_precision == before
