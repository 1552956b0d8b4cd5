"""Writes a model as ONNX, by way of torch.export, and compares its logits in onnxruntime with the model's."""

from __future__ import annotations

import importlib
import logging
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from babyssa.errors import BabySSAError, ModelError
from babyssa.models.loading import LoadedModel, evaluating

FILE = "model.onnx"
# Of the largest logit: onnxruntime orders sums otherwise than torch.
_TOLERANCE = 1e-4


def check_installed() -> None:
    """Raise BabySSAError unless everything that writes and runs ONNX is installed."""
    for package in ("onnx", "onnxscript", "onnxruntime"):
        try:
            importlib.import_module(package)
        except ImportError:
            raise BabySSAError(f"{package} is not installed", remedy="pip install 'babyssa[onnx]'") from None


class _Logits(nn.Module):
    """A model as a function from input_ids and attention_mask (batch, length) to logits alone."""

    def __init__(self, loaded: LoadedModel):
        super().__init__()
        self.model = loaded.model
        self.options = {"use_cache": False} if loaded.kind == "causal" else {}

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.model(input_ids=input_ids, attention_mask=attention_mask, **self.options).logits


def write_onnx(loaded: LoadedModel, folder: Path) -> float:
    """Write FILE, with any batch size and length; returns the largest difference of a logit in onnxruntime.

    Raises
    ------
    ModelError
        If torch cannot export the model, or its logits in onnxruntime are others.
    """
    import onnxruntime
    from onnxscript import opset18

    def signbit(x):
        return opset18.Less(x, 0.0)

    model, longest = _Logits(loaded), loaded.max_tokens or 64
    ids, mask = _inputs(loaded, 2, min(5, longest))
    dimensions = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length", max=longest)}
    with evaluating(loaded.model), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        try:
            program = torch.onnx.export(
                model,
                (ids, mask),
                input_names=["input_ids", "attention_mask"],
                output_names=["logits"],
                dynamic_shapes=(dimensions, dimensions),
                # What copysign is made of, and torch has no translation for.
                custom_translation_table={torch.ops.prims.signbit.default: signbit},
                dynamo=True,
                verbose=False,
            )
        except Exception as error:  # torch has no one class for what it cannot export
            said = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise ModelError(
                f"torch cannot export it: {said}", path=loaded.name, remedy="leave out --onnx"
            ) from error
        program.save(folder / FILE)
        session = onnxruntime.InferenceSession(folder / FILE)
        difference = 0.0
        # Other sizes than those that it was exported with.
        for batch, length in ((1, 1), (3, min(20, longest))):
            ids, mask = _inputs(loaded, batch, length)
            (found,) = session.run(["logits"], {"input_ids": ids.numpy(), "attention_mask": mask.numpy()})
            expected = model(ids, mask)[mask.bool()]
            difference = max(difference, float((torch.tensor(found)[mask.bool()] - expected).abs().max()))
            if not difference <= _TOLERANCE * max(1.0, float(expected.abs().max())):
                raise ModelError(
                    f"its logits differ by {difference:.2g} in onnxruntime",
                    path=folder / FILE,
                    remedy="please report it",
                )
    return difference


def _inputs(loaded: LoadedModel, batch: int, length: int) -> tuple[Tensor, Tensor]:
    """Ids and mask (batch, length), with padding in the last row of several."""
    ids = torch.arange(batch * length).view(batch, length) * 37 % len(loaded.tokenizer)
    mask = torch.ones_like(ids)
    if batch > 1:
        mask[-1, (length + 1) // 2 :] = 0
    return ids, mask
