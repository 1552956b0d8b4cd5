"""SSA through FlexAttention against the plain path: its dense form on a CPU, its kernels on a GPU."""

import shutil

import pytest
import torch

from babyssa.attention import SSAConfig, build_scoring, ssa_map
from babyssa.attention.flex import SWITCH, flex_ssa, runs_through_flex, ssa_score_mod

HEADS = 2


def tensors(queries=130, keys=150, dim=16, dtype=torch.float32, device="cpu"):
    generator = torch.Generator().manual_seed(0)
    shapes = [(2, HEADS, length, dim) for length in (queries, keys, keys)]
    return [torch.randn(shape, generator=generator).to(device, dtype) for shape in shapes]


def padding(queries=130, keys=150, device="cpu"):
    """Keys left out in one of two sequences, and one query that may attend to nothing."""
    mask = torch.ones(2, 1, queries, keys, dtype=torch.bool)
    mask[1, :, :, 137:] = False
    mask[0, :, 7] = False
    return mask.to(device)


def ssa(device="cpu"):
    scoring = build_scoring(SSAConfig(), HEADS)
    with torch.no_grad():
        scoring.raw_n += torch.tensor([0.0, 1.0])
        scoring.raw_b += torch.tensor([0.0, -0.5])
    return scoring.to(device)


def test_the_score_mod_is_the_map_with_its_derivatives_at_zero_too():
    x = torch.tensor([0.0, -0.0, 1e-8, -0.5, 3.0, -1e4], dtype=torch.float64, requires_grad=True)
    n = torch.tensor([1.5, 3.0], dtype=torch.float64, requires_grad=True)
    head = torch.tensor(1)
    found, expected = ssa_score_mod(n)(x, None, head, None, None), ssa_map(x, n[1], 1.0)
    assert torch.equal(found, expected)
    for one, other in zip(*(torch.autograd.grad(t.sum(), (x, n)) for t in (found, expected)), strict=True):
        assert torch.allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("masked", [True, False])
def test_the_forward_pass_is_the_plain_ones(compiled, masked):
    if compiled and shutil.which("g++") is None:
        pytest.skip("FlexAttention on a CPU needs g++")
    query, key, value = tensors()
    mask = padding() if masked else None
    scoring = ssa()
    with torch.inference_mode():
        expected, _ = scoring(query, key, value, mask, scaling=0.25)
        found = flex_ssa(query, key, value, mask, n=scoring.n, b=scoring.b, scaling=0.25, compiled=compiled)
    assert torch.allclose(found, expected, atol=1e-5)
    if masked:
        assert (found[0, :, 7] == 0).all()


def test_a_cpu_takes_the_plain_path():
    assert not runs_through_flex(*tensors(), dropout=0.0, need_weights=False)


@pytest.fixture
def gpu():
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    return "cuda"


@pytest.mark.gpu
@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-3), (torch.bfloat16, 5e-2)])
@pytest.mark.parametrize("queries, keys", [(128, 128), (130, 150), (1000, 1000)])
@pytest.mark.parametrize("dim", [32, 64])
def test_gradients_on_a_gpu_are_the_plain_ones(gpu, monkeypatch, dtype, tolerance, queries, keys, dim):
    scoring = ssa(gpu)
    mask = padding(queries, keys, gpu) if keys > 137 else None
    found = {}
    for switch in ("0", "1"):
        monkeypatch.setenv(SWITCH, switch)
        leaves = [t.requires_grad_() for t in tensors(queries, keys, dim, dtype, gpu)]
        output, weights = scoring(*leaves, mask, scaling=dim**-0.5, need_weights=False)
        assert (weights is None) == (switch == "1")
        leaves += [scoring.raw_n, scoring.raw_b]
        found[switch] = [output, *torch.autograd.grad(output.float().square().sum(), leaves)]
    for plain, fused in zip(found["0"], found["1"], strict=True):
        assert torch.isfinite(fused).all()
        assert (plain.float() - fused.float()).norm() <= tolerance * plain.float().norm()


@pytest.mark.gpu
@pytest.mark.parametrize(
    "changes", [{"need_weights": True}, {"dropout": 0.1}, {"dim": 24}, {"queries": 64}, {"dtype": torch.float64}]
)
def test_on_a_gpu_what_flex_cannot_do_is_plain(gpu, changes):
    shape = {key: changes[key] for key in ("dim", "queries", "dtype") if key in changes}
    rule = {"need_weights": False, "dropout": 0.0}
    assert runs_through_flex(*tensors(device=gpu), **rule)
    rule |= {key: changes[key] for key in rule if key in changes}
    assert not runs_through_flex(*tensors(device=gpu, **shape), **rule)
