"""Verbs that give a model to others."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from babyssa.checks import checked
from babyssa.commands.named import names_model

if TYPE_CHECKING:
    from babyssa.sharing.export import Export
    from babyssa.sharing.hub import Push


@checked
@names_model
def export(model: Any, *, out: Path, onnx: bool = False, overwrite: bool = False) -> Export:
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
    onnx : bool
        write model.onnx too, for any batch size and length, and compare its logits in onnxruntime; needs
        `pip install 'babyssa[onnx]'`
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
    BabySSAError
        If ONNX is asked for and not installed.

    Examples
    --------
    babyssa export runs/ssa --out exported/ssa
    babyssa export runs/ssa/checkpoints/step-1000 --out exported/ssa-1000
    babyssa export runs/ssa --out exported/ssa --onnx
    """
    from babyssa.files import check_overwrite

    check_overwrite(out, ["config.json", "model.safetensors"], overwrite)

    from babyssa.sharing.export import export

    return export(model, out, with_onnx=onnx)


@checked
def push(
    run: Path,
    repo: str,
    *,
    results: Iterable[Path] = (),
    out: Path | None = None,
    license: str = "cc-by-nc-sa-3.0",
    private: bool = False,
    dry_run: bool = False,
    overwrite: bool = False,
) -> Push:
    """Push a run to the Hugging Face hub: export, tokenizer, model card, and checkpoints as revisions.

    Checkpoints by words become the revisions chck_1M, chck_2M and so on, as BabyLM asks. The card says what the
    run was trained on and how, its learned numbers, its probe results, and how to load and cite it. Log in first,
    with `hf auth login`.

    Parameters
    ----------
    run : path-like
        a run folder
    repo : str
        owner/name on the hub; created if there is none
    results : iterable of path-like
        folders written by babyssa probe, for the card: of this run, and of other seeds of its variant, which give
        intervals
    out : path-like, optional
        keep what is sent in this folder, a folder for each revision
    license : str
        the license of the model as the hub calls it (default: that of CHILDES' transcripts)
    private : bool
        make a new repository private
    dry_run : bool
        send nothing; show what would go
    overwrite : bool
        replace what an earlier push left in --out

    Returns
    -------
    Push

    Raises
    ------
    OutputExistsError
        If `out` holds an earlier push and `overwrite` is false.
    ConfigError, DataError, ModelError
        If `repo` is no name, a result is of another model, or the hub refuses; the message says which.

    Examples
    --------
    babyssa push runs/ssa me/ssa-babyberta --dry-run --out pushed
    babyssa push runs/ssa-0 me/ssa-babyberta --results probed/ssa-*
    """
    from babyssa.files import check_overwrite
    from babyssa.sharing.hub import push

    if out is not None:
        check_overwrite(out, ["main"], overwrite)
    return push(run, repo, results=results, out=out, license_name=license, private=private, dry_run=dry_run)
