"""Verbs that give a model to others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from babyssa.sharing.export import Export


def export(model: Any, *, out: Path, overwrite: bool = False) -> Export:
    """Export a model as a folder that transformers loads where babyssa is not installed.

    Writes the model, its tokenizer and, unless its attention is Softmax, modeling_babyssa.py: the code of its
    attention, which ``from_pretrained(FOLDER, trust_remote_code=True)`` runs, in transformers 4.51 or later. Then
    loads it by that code, and compares the logits. Without this consent it does not load, rather
    than run as Softmax.

    Parameters
    ----------
    model : str, path-like, LoadedModel or (model, tokenizer)
        a run folder, a checkpoint in it, or any model folder or hub id, masked or causal
    out : path-like
        folder to write
    overwrite : bool
        replace an earlier model in --out

    Returns
    -------
    Export

    Raises
    ------
    OutputExistsError
        If `out` holds a model and `overwrite` is false.
    ModelError
        If the model cannot be loaded, or needs this package.

    Examples
    --------
    babyssa export runs/ssa --out exported/ssa
    babyssa export runs/ssa/checkpoints/step-1000 --out exported/ssa-1000
    """
    from babyssa.files import check_overwrite

    check_overwrite(out, ["config.json", "model.safetensors"], overwrite)

    from babyssa.sharing.export import export

    return export(model, out)
