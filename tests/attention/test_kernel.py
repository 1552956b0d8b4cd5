"""Linear attention and CosFormer: the linear forms against the quadratic definition, in every kind of mask."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from babyssa.attention import CosFormerConfig, LinearConfig, build_scoring
from babyssa.attention.kernel import _CHUNK
from babyssa.errors import ConfigError, ModelError

HEADS, DIM = 2, 4
# More than one chunk, and not a whole number of them.
LENGTH = 2 * _CHUNK + 9


@pytest.fixture(params=[LinearConfig(), CosFormerConfig(max_length=300)], ids=["linear", "cosformer"])
def scoring(request):
    return build_scoring(request.param, HEADS)


def tensors(length, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(2, HEADS, length, DIM, generator=generator, dtype=dtype) for _ in range(3)]


def padding(length, side):
    """The second sentence is 7 tokens shorter."""
    kept = torch.ones(2, 1, 1, length, dtype=torch.bool)
    kept[1, ..., slice(length - 7, None) if side == "right" else slice(7)] = False
    return kept


def masks(length):
    causal = torch.ones(1, 1, length, length, dtype=torch.bool).tril()
    right, left = padding(length, "right"), padding(length, "left")
    return {
        "none": None,
        "padding": right,
        "padding, expanded": right.expand(2, HEADS, length, length),
        "causal": causal,
        "causal, padded right": causal & right,
        "causal, padded left": causal & left,
        "causal, by head": (causal & right).expand(2, HEADS, length, length),
        "sliding window": causal.triu(-5) & right,
        "bidirectional window": torch.ones_like(causal).triu(-5).tril(5),
    }


@pytest.mark.parametrize("kind", masks(2))
def test_the_output_is_the_definition(scoring, kind, definition):
    query, key, value = tensors(LENGTH)
    mask = masks(LENGTH)[kind]
    # The definition goes row by row in Python: some rows of one head.
    rows = [0, 1, 6, 7, _CHUNK - 1, _CHUNK, 2 * _CHUNK, LENGTH - 8, LENGTH - 1]
    allowed = torch.ones(2, HEADS, LENGTH, LENGTH, dtype=torch.bool)
    allowed = allowed if mask is None else allowed & mask
    only = torch.zeros(LENGTH, 1, dtype=torch.bool)
    only[rows] = True
    expected = definition(scoring, query, key, allowed & only, scaling=0.5) @ value
    output, weights = scoring(query, key, value, mask, scaling=0.5)
    assert weights is None
    assert torch.allclose(output[:, :, rows], expected[:, :, rows], atol=1e-10)
    single = scoring(*tensors(LENGTH, torch.float32), mask, scaling=0.5)[0]
    assert single.dtype == torch.float32


@pytest.mark.parametrize("kind", masks(2))
def test_float32_is_close_to_float64(scoring, kind):
    inputs = tensors(LENGTH)
    mask = masks(LENGTH)[kind]
    exact = scoring(*inputs, mask, scaling=0.5)[0]
    found = scoring(*(t.float() for t in inputs), mask, scaling=0.5)[0]
    assert torch.allclose(found.double(), exact, atol=1e-4)


@pytest.mark.parametrize("new", [1, 3])
@pytest.mark.parametrize("pad", [0, 4])
def test_new_queries_with_a_cache_get_what_the_whole_sequence_gives(scoring, new, pad):
    """As in generation; `pad` keys at the end are not filled yet, as in a static cache."""
    query, key, value = tensors(20)
    causal = masks(20)["causal"]
    whole = scoring(query, key, value, causal, scaling=0.5)[0][:, :, -new:]
    mask = torch.nn.functional.pad(causal[..., -new:, :], (0, pad))
    key, value = (torch.nn.functional.pad(t, (0, 0, 0, pad), value=1.0) for t in (key, value))
    found = scoring(query[:, :, -new:], key, value, mask, scaling=0.5)[0]
    assert torch.allclose(found, whole, atol=1e-12)
    if not pad and new == 1:
        found = scoring(query[:, :, -new:], key, value, None, scaling=0.5)[0]
        assert torch.allclose(found, whole, atol=1e-12)


class LargestTensor(TorchDispatchMode):
    """Notes the most elements of any floating-point tensor made inside."""

    elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, (list, tuple)) else [made]:
            if isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
                self.elements = max(self.elements, tensor.numel())
        return made


@pytest.mark.parametrize("kind", ["none", "padding, expanded", "causal", "causal, padded right"])
def test_memory_grows_with_the_length_not_its_square(kind):
    scoring = build_scoring(CosFormerConfig(max_length=2048), HEADS)
    largest = []
    for length in (1024, 2048):
        query, key, value = (t.requires_grad_() for t in tensors(length, torch.float32))
        mask = masks(length)[kind]
        with LargestTensor() as seen:
            scoring(query, key, value, mask, scaling=0.5)[0].sum().backward()
        largest.append(seen.elements)
    assert largest[1] <= 2 * largest[0] and largest[1] < 2048 * 2048 / 16


def test_queries_far_below_zero_still_attend():
    """elu(x) + 1 underflows there, but only the proportions of a query's features matter."""
    scoring = build_scoring(LinearConfig(), 1)
    query = torch.tensor([-1000.0, -1001.0]).view(1, 1, 1, 2)
    key, value = torch.eye(2).view(1, 1, 2, 2) * 9, torch.eye(2).view(1, 1, 2, 2)
    found = scoring(query, key, value, scaling=1.0)[0].flatten()
    features = torch.tensor([1.0, 1 / torch.e])
    expected = torch.tensor([[10.0, 1.0], [1.0, 10.0]]) @ features
    assert torch.allclose(found, expected / expected.sum(), atol=1e-6)


def test_autocast_does_not_reach_the_sums(scoring):
    query, key, value = tensors(LENGTH, torch.float32)
    expected = scoring(query, key, value, scaling=0.5)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(scoring(query, key, value, scaling=0.5)[0], expected)


def test_cosformer_weighs_near_keys_more():
    scoring = build_scoring(CosFormerConfig(max_length=10), 1)
    query = key = torch.ones(1, 1, 10, 1)
    found = scoring(query, key, torch.eye(10).view(1, 1, 10, 10), scaling=1.0)[0][0, 0, 0]
    expected = torch.cos(torch.pi / 2 * torch.arange(10) / 10)
    assert torch.allclose(found, expected / expected.sum(), atol=1e-6)


def test_cosformer_where_no_feature_is_shared_gives_zero():
    scoring = build_scoring(CosFormerConfig(), 1)
    query = torch.tensor([[1.0, -1.0], [-1.0, -1.0]]).view(1, 1, 2, 2).requires_grad_()
    key = torch.tensor([[-1.0, 1.0], [0.0, 2.0]]).view(1, 1, 2, 2)
    output, _ = scoring(query, key, torch.ones(1, 1, 2, 2), scaling=1.0)
    assert (output == 0).all()
    output.sum().backward()
    assert torch.isfinite(query.grad).all()


def test_a_sequence_beyond_max_length_is_refused():
    scoring = build_scoring(CosFormerConfig(max_length=8), HEADS)
    with pytest.raises(ModelError, match=r"9 tokens .* \(max_length 8\); set the scoring's max_length"):
        scoring(*tensors(9), scaling=0.5)


@pytest.mark.parametrize("length", [0, -1, 2.5, "many", True])
def test_max_length_out_of_domain_is_refused(length):
    with pytest.raises(ConfigError, match="max_length is a whole number"):
        CosFormerConfig(max_length=length)
