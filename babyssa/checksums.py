"""Checksums of the files of a folder, so that damage is found before it becomes a number."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from babyssa.errors import DamageError, DataError
from babyssa.files import read_json, sha256, write_json

if TYPE_CHECKING:
    from torch import Tensor

CHECKSUMS = "checksums.json"


def tensors_sha256(tensors: Mapping[str, Tensor]) -> str:
    """Hash of names, types, shapes and values, the same in memory and from any file."""
    import torch

    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def write_checksums(folder: Path, sums: Mapping[str, str]) -> None:
    """Write `sums`, from file name to SHA-256, as the folder's checksums.json."""
    write_json(Path(folder) / CHECKSUMS, {"sha256": dict(sorted(sums.items()))})


def verify_checksums(folder: Path) -> None:
    """Compare the files of a folder with its checksums.json, if it has one.

    Raises
    ------
    DamageError
        For the first file that is missing or differs.
    DataError
        If checksums.json itself is not readable.
    """
    folder = Path(folder)
    if not (folder / CHECKSUMS).is_file():
        return
    for name, expected in read_checksums(folder).items():
        path = folder / name
        remedy = f"restore it or make it again; if the change is meant, delete {folder / CHECKSUMS}"
        if not path.is_file():
            raise DamageError("is missing, though the folder's checksums name it", path=path, remedy=remedy)
        if sha256(path) != expected:
            raise DamageError("is damaged: it is not the file that was written", path=path, remedy=remedy)


def read_checksums(folder: Path) -> dict[str, str]:
    """File names and SHA-256 of a folder's checksums.json; DataError if it is not one."""
    path = Path(folder) / CHECKSUMS
    remedy = "make the folder again, or delete this file to do without it"
    try:
        found = read_json(path)
    except DataError as error:
        raise DataError(error.what, path=path, line=error.line, remedy=remedy) from None
    sums = found.get("sha256") if isinstance(found, dict) else None
    if not isinstance(sums, dict) or not all(
        isinstance(value, str) and Path(name).name == name for name, value in sums.items()
    ):
        raise DataError("is not a list of checksums", path=path, remedy=remedy)
    return sums
