"""The folder of one training run: what is in it, and whether it is finished.

- config.yaml: every resolved setting, the versions, and what the run was made from; written first;
- log.jsonl: one JSON object per logged step;
- checkpoints/step-N/: the model along the way, where asked for;
- probe/: what a sweep scored the model with;
- the tokenizer, if there is one, and the model in save_pretrained's format; model.safetensors is moved into
  place last, so a folder that has it is finished.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
from pathlib import Path
from typing import Any

import yaml

from babyssa.console import say
from babyssa.data import save_tokenizer
from babyssa.files import atomic_write, read_yaml, refuse_to_overwrite, versions

CONFIG = "config.yaml"
LOG = "log.jsonl"
WEIGHTS = "model.safetensors"
CHECKPOINTS = "checkpoints"
PROBE = "probe"
PROBE_FILES = (f"{PROBE}/summary.json", f"{PROBE}/pairs.csv")

# What config.yaml holds besides the settings themselves.
PROVENANCE = ("kind", "facts", "versions")


def plain(value: Any) -> Any:
    """A config as plain values that YAML and JSON hold: dataclasses as dicts, paths as strings."""
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def refuse_earlier_run(out: Path, overwrite: bool) -> None:
    """Raise OutputExistsError if `out` holds a run and `overwrite` is false. Changes nothing.

    A run that stopped before there was a model to keep is replaced without being asked.
    """
    out = Path(out)
    kept = (WEIGHTS, "config.json", CHECKPOINTS)
    if (out / CONFIG).is_file() and not any((out / name).exists() for name in kept):
        say(f"{out}: starting an unfinished run again")
        return
    refuse_to_overwrite(out, [CONFIG, LOG, *kept], overwrite)


def start_run(out: Path, settings: dict[str, Any]) -> None:
    """Create a run folder with its config.yaml, in place of an earlier run's files.

    An earlier run's weights, log, checkpoints and probe results go: they would not belong to this config.
    """
    out = Path(out)
    for name in (WEIGHTS, "config.json", LOG, *PROBE_FILES):
        (out / name).unlink(missing_ok=True)
    shutil.rmtree(out / CHECKPOINTS, ignore_errors=True)
    with atomic_write(out / CONFIG) as file:
        yaml.safe_dump({**settings, "versions": versions()}, file, sort_keys=False, allow_unicode=True)


def save_model(folder: Path, model, tokenizer=None) -> None:
    """Save model and tokenizer, if it has one, into `folder`; the weights appear last and whole."""
    folder = Path(folder)
    partial = folder / ".model.partial"
    shutil.rmtree(partial, ignore_errors=True)
    if tokenizer is not None:
        save_tokenizer(tokenizer, partial)
    model.save_pretrained(partial)
    readable = _default_mode()
    for path in sorted(partial.iterdir(), key=lambda path: (path.suffix == ".safetensors", path.name)):
        path.chmod(readable)
        os.replace(path, folder / path.name)
    partial.rmdir()


def _default_mode() -> int:
    """The mode that a new file gets from the user's umask; safetensors' files are readable by their owner only."""
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def is_finished(folder: Path) -> bool:
    """Whether `folder` holds a finished run."""
    return (Path(folder) / WEIGHTS).is_file()


def read_settings(folder: Path) -> dict[str, Any]:
    """The config.yaml of a run folder; DataError if it is missing or broken."""
    return read_yaml(Path(folder) / CONFIG).values
