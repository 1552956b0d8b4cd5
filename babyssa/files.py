"""Reading and writing results: nothing half-written, nothing overwritten by accident."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from babyssa.errors import BabySSAError, ConfigError, DataError, OutputExistsError, StorageError

_PARTIAL = ".partial"

_FULL = {
    errno.ENOSPC: "no space is left on the device",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "it is larger than a file may be here",
}

_YAML_NODES = 100_000

_VERSIONED = ("babyssa", "torch", "transformers", "tokenizers", "datasets", "numpy")


def refuse_to_overwrite(folder: Path, names: Iterable[str], overwrite: bool) -> None:
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
def atomic_write(path: Path, mode: str = "w"):
    """Open a temporary file beside `path`, and move it to `path` when the block ends without an error.

    Raises
    ------
    StorageError
        If the disk is full; what was at `path` is as it was.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}{_PARTIAL}")
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        with full_disk_named(path):
            with open(partial, mode, **text) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def full_disk_named(path: Path) -> Iterator[None]:
    """Turn the error of a full disk within the block into a StorageError that names `path`.

    safetensors has an error of its own for it, with the number of the system's in its text.
    """
    try:
        yield
    except StorageError as error:
        # Of a file within `path`.
        raise StorageError(error.what, path=path, remedy=error.remedy) from error
    except Exception as error:
        number = getattr(error, "errno", None)
        if type(error).__name__ == "SafetensorError" and (found := re.search(r"os error (\d+)", str(error))):
            number = int(found.group(1))
        if number not in _FULL:
            raise
        raise StorageError(
            f"cannot be written: {_FULL[number]}", path=path, remedy="free some space, and give the command again"
        ) from error


@contextmanager
def moved_into_place(folder: Path) -> Iterator[Path]:
    """A new folder beside `folder`, moved there, in place of what is there, when the block ends without an error.

    Of several processes that write the same folder at once, the last one's stays.
    """
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=_PARTIAL, dir=folder.parent))
    try:
        with full_disk_named(folder):
            yield partial
            shutil.rmtree(folder, ignore_errors=True)
            os.replace(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def cache_folder() -> Path:
    """Where what can be made again is kept: $BABYSSA_CACHE, else babyssa/ in the user's cache folder."""
    given = os.environ.get("BABYSSA_CACHE")
    if given:
        return Path(given)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "babyssa"
    except RuntimeError:
        raise ConfigError("there is no home folder", remedy="set BABYSSA_CACHE to a folder") from None


def remove_partials(folder: Path) -> None:
    """Remove what a killed process left half-written in `folder`; only for one that holds its lock."""
    for path in Path(folder).glob(f".*{_PARTIAL}"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make what was moved into `folder` outlast a power cut, where the system lets a folder be synced."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        return
    finally:
        os.close(descriptor)


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON; NaN and infinity are errors, since JSON has neither."""
    with atomic_write(path) as file:
        file.write(json_text(value))


def json_text(value: Any) -> str:
    """What :func:`write_json` writes."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read_json(path: Path) -> Any:
    """Read a JSON file; DataError with the line where it breaks off."""
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
    """The content of a YAML file, and the line on which each dotted key stands (keys in lists left out)."""

    values: dict[str, Any]
    lines: dict[str, int]


def read_yaml(path: Path, error: type[BabySSAError] = DataError) -> YamlMapping:
    """Read a YAML file whose top level is a mapping.

    Raises
    ------
    DataError, or what `error` says
        If it is missing, not UTF-8, broken or not a mapping, or if a key stands twice in one mapping, which
        YAML itself would settle in silence; names the line.
    """
    import yaml

    # The loader in C, where PyYAML was built with it, gives the same result in less time.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
        root = yaml.compose(text, Loader=loader)
    except FileNotFoundError:
        raise error("no such file", path=path) from None
    except UnicodeDecodeError as broken:
        raise error(f"not UTF-8 (byte {broken.start})", path=path, remedy="save it as UTF-8") from None
    except yaml.YAMLError as broken:
        mark, problem = getattr(broken, "problem_mark", None), getattr(broken, "problem", None)
        line = None if mark is None else mark.line + 1
        raise error(f"broken YAML: {problem or broken}", path=path, line=line) from None
    if not isinstance(root, yaml.MappingNode):
        raise error("is not a mapping", path=path, remedy="write 'key: value' lines")
    lines: dict[str, int] = {}
    nodes = 0

    def walk(node, prefix: str | None) -> None:
        nonlocal nodes
        nodes += 1
        if nodes > _YAML_NODES:
            # A few lines of aliases of aliases can stand for more nodes than any memory holds.
            raise error(f"has more than {_YAML_NODES:,} values", path=path, remedy="is it what it should be?")
        if isinstance(node, yaml.SequenceNode):
            for item in node.value:
                walk(item, None)
        elif isinstance(node, yaml.MappingNode):
            seen = set()
            for key, value in node.value:
                line = key.start_mark.line + 1
                if key.value in seen:
                    raise error(f"key '{key.value}' stands here a second time", path=path, line=line)
                seen.add(key.value)
                if prefix is not None:
                    lines[f"{prefix}{key.value}"] = line
                walk(value, None if prefix is None else f"{prefix}{key.value}.")

    try:
        walk(root, "")
        values = yaml.load(text, Loader=loader)
    except RecursionError:
        raise error("broken YAML: nested too deeply", path=path) from None
    except yaml.YAMLError as broken:
        raise error(f"broken YAML: {getattr(broken, 'problem', broken)}", path=path) from None
    return YamlMapping(values, lines)


def sha256(path: Path) -> str:
    """The SHA-256 of one file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def versions() -> dict[str, str]:
    """Versions of what a result depends on, read from package metadata (imports none of them)."""
    found = {"python": platform.python_version()}
    for name in _VERSIONED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
