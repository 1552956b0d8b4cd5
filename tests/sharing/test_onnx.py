"""Exports as ONNX, run by onnxruntime; skipped where the extra `onnx` is not installed (120 MB)."""

import sys

import numpy as np
import pytest
import torch

import babyssa
from babyssa.attention import scoring_config, set_scoring
from babyssa.sharing.onnx import FILE


@pytest.mark.parametrize("variant", ["softmax", "ssa"])
def test_onnx_gives_the_same_logits_for_any_batch_and_length(variant, make, tmp_path):
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package, reason="needs pip install 'babyssa[onnx]'")
    import onnxruntime

    tokenizer = make.tokenizer()
    model = make.masked(tokenizer)
    if variant != "softmax":
        model = set_scoring(model, scoring_config(variant))
    found = babyssa.export((model, tokenizer), out=tmp_path, onnx=True)
    assert found.onnx_difference <= 1e-4 and f"{found.onnx_difference:.1g}" in str(found)
    session = onnxruntime.InferenceSession(tmp_path / FILE)
    for batch, length in ((1, 3), (5, 40)):
        ids = torch.randint(5, len(tokenizer), (batch, length), generator=torch.Generator().manual_seed(0))
        mask = torch.ones_like(ids)
        mask[batch // 2, length - 2 :] = 0
        with torch.no_grad():
            expected = model(input_ids=ids, attention_mask=mask).logits.numpy()
        (logits,) = session.run(["logits"], {"input_ids": ids.numpy(), "attention_mask": mask.numpy()})
        real = mask.numpy() == 1
        np.testing.assert_allclose(logits[real], expected[real], atol=1e-4)


def test_without_onnx_the_command_says_what_to_install(masked_folder, run_babyssa, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    monkeypatch.setitem(sys.modules, "onnx", sys)
    status, _, err = run_babyssa("export", masked_folder, "--out", tmp_path / "out", "--onnx")
    assert status == 1 and err == "babyssa: error: onnxscript is not installed; pip install 'babyssa[onnx]'\n"
    assert not (tmp_path / "out").exists()
