"""Exports a model as a folder that transformers loads where this package is not installed."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from babyssa.attention.flat import MODULE
from babyssa.console import quiet_transformers
from babyssa.display import Column, Shown, Table
from babyssa.errors import ModelError
from babyssa.models.loading import LoadedModel, as_loaded, evaluating
from babyssa.models.run_config import read_identity
from babyssa.sharing import onnx
from babyssa.training.run_folder import save_model

# Between the logits of the model and of its export, which computes the same.
_TOLERANCE = 1e-5


@dataclass(frozen=True)
class Export(Shown):
    """What was exported.

    Parameters
    ----------
    folder : Path
        The folder that was written.
    model_class : str
        The class that loads it.
    needs_code : bool
        Whether it needs ``trust_remote_code=True``: a model with Softmax is one of transformers.
    difference : float
        The largest difference between a logit of the model and of its export.
    onnx_difference : float, optional
        The same of model.onnx in onnxruntime, where it was written.
    """

    folder: Path
    model_class: str
    needs_code: bool
    difference: float
    onnx_difference: float | None = None

    @property
    def loading(self) -> str:
        """The Python that loads it."""
        return loading_code(self.model_class, str(self.folder), self.needs_code)

    def tables(self) -> Iterator[Table]:
        rows = [
            ("class", self.model_class),
            ("largest difference of a logit", f"{self.difference:.1g}"),
            ("to load it", self.loading),
        ]
        if self.onnx_difference is not None:
            rows.insert(2, (f"of {onnx.FILE} in onnxruntime", f"{self.onnx_difference:.1g}"))
        yield Table((Column("what"), Column("value")), rows, f"exported to {self.folder}", header=False)


def loading_code(model_class: str, name: str, needs_code: bool) -> str:
    """The Python that loads an exported model."""
    auto = "AutoModelForMaskedLM" if model_class.endswith("ForMaskedLM") else "AutoModelForCausalLM"
    return f'{auto}.from_pretrained("{name}"{", trust_remote_code=True" if needs_code else ""})'


def export(model: Any, out: Path, *, with_onnx: bool = False) -> Export:
    """Write `model` into `out`; :func:`babyssa.export` explains the parameters."""
    if with_onnx:
        onnx.check_installed()
    loaded = as_loaded(model, device="cpu")
    out = Path(out)
    _state_rotary(loaded.model.config)
    with quiet_transformers():
        save_model(out, loaded.model, loaded.tokenizer, read_identity(Path(loaded.name)))
        again = _load_alone(out, type(loaded.model))
    difference = _largest_difference(loaded, again)
    if not difference <= _TOLERANCE:
        raise ModelError(f"the export's logits differ by {difference:.2g}", path=out, remedy="please report it")
    needs_code = bool(getattr(again.config, "auto_map", None))
    onnx_difference = onnx.write_onnx(loaded, out) if with_onnx else None
    return Export(out, type(again).__name__, needs_code, difference, onnx_difference)


def _state_rotary(config: Any) -> None:
    """State rotary parameters where transformers before version 5 reads them, too."""
    for key, value in (getattr(config, "rope_parameters", None) or {}).items():
        if key in ("rope_theta", "partial_rotary_factor"):
            setattr(config, key, value)


def _load_alone(folder: Path, model_class: type[PreTrainedModel]) -> PreTrainedModel:
    """The exported model, by its own code if it has any."""
    path = folder / f"{MODULE}.py"
    if path.is_file():
        spec = importlib.util.spec_from_file_location(f"{MODULE}_of_an_export", path)
        module = importlib.util.module_from_spec(spec)
        # Dataclasses look up their module.
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        architecture = json.loads((folder / "config.json").read_text(encoding="utf-8"))["architectures"][0]
        model_class = getattr(module, architecture)
    return model_class.from_pretrained(folder, dtype=torch.float32)


def _largest_difference(loaded: LoadedModel, again: PreTrainedModel) -> float:
    length = min(loaded.max_tokens or 64, 64)
    ids = torch.arange(2 * length).view(2, length) * 37 % len(loaded.tokenizer)
    mask = torch.ones_like(ids)
    mask[1, length // 2 :] = 0
    logits = []
    for model in (loaded.model, again):
        with evaluating(model):
            logits.append(model(input_ids=ids, attention_mask=mask).logits[mask.bool()])
    return float((logits[0] - logits[1]).abs().max())
