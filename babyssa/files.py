"""Files and folders: written whole or not at all, overwritten on request only, checked, locked while in use."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from babyssa.console import say
from babyssa.errors import (
    BabySSAError,
    BusyError,
    ConfigError,
    DamageError,
    DataError,
    OutputExistsError,
    StorageError,
    nearest,
    printable,
)

if TYPE_CHECKING:
    from torch import Tensor

CHECKSUMS = "checksums.json"
LOCK = ".lock"

_PARTIAL = ".partial"

_FULL = {
    errno.ENOSPC: "no space left on the device",
    errno.EDQUOT: "disk quota exceeded",
    errno.EFBIG: "larger than a file may be here",
}

_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL)

_YAML_NODES = 100_000

_VERSIONED = ("babyssa", "torch", "transformers", "tokenizers", "datasets", "numpy")

_PACKAGE = Path(__file__).resolve().parent


# Writing


def check_overwrite(folder: Path, names: Iterable[str], overwrite: bool) -> None:
    """Raise OutputExistsError if `folder` already holds one of `names` and `overwrite` is false.

    Call it before any work is done. Creates nothing.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise OutputExistsError("is a file, not a folder", path=folder, remedy="choose another --out")
    for name in names:
        if (folder / name).exists() and not overwrite:
            raise OutputExistsError(
                "already exists", path=folder / name, remedy="choose another --out or pass --overwrite"
            )


@contextmanager
def atomic_path(path: Path, *, last: str | None = None) -> Iterator[Path]:
    """Yield a path beside `path` to write a file or folder to; move it to `path` if the block succeeds.

    What was at `path` before is replaced, or kept as it was if the block fails. What is moved is synced to disk
    first. Of several processes that write the same path at once, the last one wins.

    Parameters
    ----------
    path : Path
        A file or folder. Its parent is created.
    last : str, optional
        Keep the other files of the folder `path`, and move the new ones into it one by one, the one of this name
        last: where it exists, all of them do. A killed process leaves its half-written files within `path`.

    Raises
    ------
    StorageError
        If the disk is full.
    """
    path = Path(path)
    final = path if last is None else path / last
    final.parent.mkdir(parents=True, exist_ok=True)
    partial = final.with_name(f".{final.name}.{secrets.token_hex(4)}{_PARTIAL}")
    try:
        with storage_errors(final):
            yield partial
            for file in partial.rglob("*") if partial.is_dir() else [partial]:
                if file.is_file():
                    _sync(file)
            if last is not None:
                for file in sorted(partial.iterdir(), key=lambda file: (file.name == last, file.name)):
                    os.replace(file, path / file.name)
            else:
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                os.replace(partial, path)
            _sync(final.parent)
    finally:
        _remove(partial)


@contextmanager
def atomic_write(path: Path, mode: str = "w") -> Iterator[IO]:
    """Open a file that becomes `path` when the block ends without an error, as :func:`atomic_path` does."""
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    with atomic_path(path) as partial, open(partial, mode, **text) as file:
        yield file


def remove_partials(folder: Path) -> None:
    """Remove what a killed process left half-written in `folder`. Call it only while holding the folder's lock."""
    for path in Path(folder).glob(f".*{_PARTIAL}"):
        _remove(path)


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Raise a StorageError that names `path` where the block fails because the disk is full.

    safetensors raises an error of its own, with the system's error number in the text.
    """
    try:
        yield
    except StorageError as error:
        # From a file within `path`.
        raise StorageError(error.what, path=path, remedy=error.remedy) from error
    except Exception as error:
        number = getattr(error, "errno", None)
        if type(error).__name__ == "SafetensorError" and (found := re.search(r"os error (\d+)", str(error))):
            number = int(found.group(1))
        if number not in _FULL:
            raise
        raise StorageError(
            f"cannot be written: {_FULL[number]}", path=path, remedy="free some space and run the command again"
        ) from error


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Make a file or a folder's entries outlast a power cut; not every system can sync a folder."""
    with suppress(OSError) if path.is_dir() else storage_errors(path):
        descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# Locking


@contextmanager
def locked(folder: Path, doing: str) -> Iterator[None]:
    """Hold the lock of `folder` during the block; create the folder if necessary.

    The lock belongs to the process and ends with it, even if it is killed. Where the file system has no locks,
    warn and run the block without one.

    Parameters
    ----------
    folder : Path
        What to lock.
    doing : str
        What the holder does, such as "a sweep", for the error that others get.

    Raises
    ------
    BusyError
        If another process, or another call in this one, holds the lock; names the process and its machine.
    """
    from filelock import FileLock, Timeout

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / LOCK

    def name_holder(descriptor: int) -> None:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{doing}, process {os.getpid()} on {platform.node()}\n".encode())

    # An attempt fails too where the previous holder removes the file in the same moment: hence the short timeout.
    lock = FileLock(path, timeout=0.2, fallback_to_soft=False, on_acquired=name_holder)
    try:
        lock.acquire()
    except Timeout:
        with suppress(OSError):
            doing = path.read_text(encoding="utf-8", errors="replace").strip()
        raise BusyError(
            f"is in use by {printable(doing)}", path=folder, remedy="wait until it ends or choose another --out"
        ) from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        say(f"warning: {folder} cannot be locked ({error.strerror}): start nothing else in it meanwhile")
    try:
        yield
    finally:
        if lock.is_locked:
            with suppress(OSError):  # on Windows, an open file cannot be removed
                path.unlink()
            lock.release()


# JSON and YAML


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON; NaN and infinity are errors, since JSON has neither."""
    with atomic_write(path) as file:
        file.write(json_text(value))


def json_text(value: Any) -> str:
    """What :func:`write_json` writes."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read_json(path: Path) -> Any:
    """Read a JSON file; raise DataError with the line where it is broken."""
    path = Path(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError("no such file", path=path) from None
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8 (byte {error.start})", path=path) from None
    except json.JSONDecodeError as error:
        raise DataError(f"broken JSON: {error.msg}", path=path, line=error.lineno) from None
    except RecursionError:
        raise DataError("broken JSON: nested too deeply", path=path) from None


@dataclass(frozen=True)
class YamlMapping:
    """The content of a YAML file, and where it stands.

    Attributes
    ----------
    values : dict
        The content.
    lines : dict of str to int
        The line of each dotted key, without keys inside lists.
    places : dict of tuple to int
        The line of each key and list item, by its path: ``("nouns", 2, "plural")``.
    """

    values: dict[str, Any]
    lines: dict[str, int]
    places: dict[tuple[str | int, ...], int]

    def line(self, *path: str | int) -> int | None:
        """The line of the value at `path`, or else of the nearest one around it."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path)


def read_yaml(path: Path, error: type[BabySSAError] = DataError) -> YamlMapping:
    """Read a YAML file whose top level is a mapping.

    PyYAML's loader in C reads the packaged word list in 0.05 s; ruamel.yaml, which keeps lines by itself, takes
    ten times as long.

    Raises
    ------
    DataError, or the given `error`
        If the file is missing, not UTF-8, broken or not a mapping, or if a mapping has the same key twice, which
        YAML itself would accept silently; names the line.
    """
    import yaml

    path = Path(path)
    places: dict[tuple[str | int, ...], int] = {}
    nodes = 0

    def check(node: yaml.Node, place: tuple[str | int, ...]) -> None:
        nonlocal nodes
        nodes += 1
        if nodes > _YAML_NODES:
            # A few lines of aliases of aliases can stand for more nodes than fit in memory.
            raise error(
                f"has more than {_YAML_NODES:,} values", path=path, remedy="check that it is the right file"
            )
        if isinstance(node, yaml.SequenceNode):
            for i, item in enumerate(node.value):
                places[*place, i] = item.start_mark.line + 1
                check(item, (*place, i))
        elif isinstance(node, yaml.MappingNode):
            seen = set()
            for key, value in node.value:
                line = key.start_mark.line + 1
                if key.value in seen:
                    raise error(f"duplicate key '{key.value}'", path=path, line=line)
                seen.add(key.value)
                places[*place, key.value] = line
                check(value, (*place, key.value))

    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(path.read_text(encoding="utf-8"))
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode):
            raise error("is not a mapping", path=path, remedy="write 'key: value' lines")
        check(root, ())
        lines = {".".join(place): line for place, line in places.items() if all(isinstance(p, str) for p in place)}
        return YamlMapping(loader.construct_document(root), lines, places)
    except FileNotFoundError:
        raise error("no such file", path=path) from None
    except UnicodeDecodeError as broken:
        raise error(f"not UTF-8 (byte {broken.start})", path=path, remedy="save it as UTF-8") from None
    except RecursionError:
        raise error("broken YAML: nested too deeply", path=path) from None
    except yaml.YAMLError as broken:
        mark, problem = getattr(broken, "problem_mark", None), getattr(broken, "problem", None)
        line = None if mark is None else mark.line + 1
        raise error(f"broken YAML: {problem or broken}", path=path, line=line) from None


# Checksums


def sha256(path: Path) -> str:
    """The SHA-256 of one file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tensors_sha256(tensors: Mapping[str, Tensor]) -> str:
    """Hash of names, types, shapes and values: the same in memory and from any file."""
    import torch

    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def write_checksums(folder: Path, sums: Mapping[str, str]) -> None:
    """Write `sums`, from file name to SHA-256, as the folder's checksums.json."""
    write_json(Path(folder) / CHECKSUMS, {"sha256": dict(sorted(sums.items()))})


def check_checksums(folder: Path) -> None:
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
        remedy = f"restore it or make it again; if you meant to change it, delete {folder / CHECKSUMS}"
        if not path.is_file():
            raise DamageError(f"is missing, but listed in {CHECKSUMS}", path=path, remedy=remedy)
        if sha256(path) != expected:
            raise DamageError("is damaged: it is not the file that was written", path=path, remedy=remedy)


def read_checksums(folder: Path) -> dict[str, str]:
    """File names and SHA-256 of a folder's checksums.json; raise DataError if it is not one."""
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


# Places and versions


def resource_folder(name: str) -> Path:
    """The folder of the packaged ``configs``, ``data`` or ``probes``.

    In a checkout it is beside the package; in an installed wheel, under ``babyssa.share`` (see ``package_dir`` in
    setup.cfg).
    """
    for folder in (_PACKAGE / "share" / name, _PACKAGE.parent / name):
        if folder.is_dir():
            return folder
    raise BabySSAError(f"the installed package has no {name} folder", path=_PACKAGE, remedy="reinstall babyssa")


def resource(folder: str, name: str) -> Path:
    """The path of one packaged file, such as ``resource("configs", "encoder/small.yaml")``."""
    root = resource_folder(folder)
    if not (root / name).exists():
        known = [path.relative_to(root).as_posix() for path in root.rglob("*.*") if path.is_file()]
        raise BabySSAError(f"no packaged file '{folder}/{name}'", remedy=nearest(name, known))
    return root / name


def cache_folder() -> Path:
    """Where to keep what can be made again: $BABYSSA_CACHE, else babyssa/ in the user's cache folder."""
    given = os.environ.get("BABYSSA_CACHE")
    if given:
        return Path(given)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "babyssa"
    except RuntimeError:
        raise ConfigError("there is no home folder", remedy="set BABYSSA_CACHE to a folder") from None


def versions() -> dict[str, str]:
    """Versions of what a result depends on, read from package metadata (imports none of them)."""
    # Slow to import, and help does not need it.
    from importlib import metadata

    found = {"python": platform.python_version()}
    for name in _VERSIONED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
