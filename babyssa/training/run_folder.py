"""The folder of one training run: what is in it, and whether it is finished.

- config.yaml: every resolved setting, the versions, and what the run was made from; written first;
- log.jsonl: one JSON object per logged step;
- checkpoints/step-N/, checkpoints/words-N/: the model along the way, where asked for;
- resume/step-N/: what a stopped run continues from; removed when the run is finished;
- checkpoint.json: the run, variant and seed, and how many steps, words and tokens the model has seen; each
  checkpoint has its own;
- the tokenizer, if there is one, and the model in save_pretrained's format; checksums.json, of all these files;
  model.safetensors is moved into place last, so a folder that has it is finished.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from babyssa.corpus import save_tokenizer
from babyssa.errors import OutputExistsError
from babyssa.files import (
    CHECKSUMS,
    atomic_path,
    atomic_write,
    check_overwrite,
    remove_partials,
    sha256,
    versions,
    write_checksums,
    write_json,
)
from babyssa.models.run_config import CHECKPOINTS, CONFIG, IDENTITY, read_settings

LOG = "log.jsonl"
WEIGHTS = "model.safetensors"
RESUME = "resume"

# How masks, the order of batches and dropout are drawn from a seed. A version that changes it raises this number,
# so that it neither resumes the runs of earlier versions nor takes them for its own.
DRAWS = 2

# What runs of earlier versions had where their config.yaml does not say it.
EARLIER = {"optimisation.schedule": "linear", "optimisation.checkpoint_words": 0}

# Settings that may differ between two calls of one run: where its files are and how precision was asked for (the
# facts have hashes, and the precision that was used), how often it saves, and what it reports to.
NOT_COMPARED = (
    "corpus",
    "out",
    "tokenizer",
    "init",
    "init_revision",
    "vocab_size",
    "optimisation.precision",
    "optimisation.resume_every",
    "optimisation.report_to",
)


def plain(value: Any) -> Any:
    """A config as plain values that YAML and JSON hold: dataclasses as dicts, paths as strings."""
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def check_earlier_run(out: Path, overwrite: bool) -> None:
    """Raise OutputExistsError if `out` holds a finished run and `overwrite` is false.

    An unfinished run passes: it is resumed if its settings are the same, which :func:`check_same_run` checks once
    all of them are known.
    """
    out = Path(out)
    if (out / CONFIG).is_file() and not is_finished(out):
        return
    remove_leftovers(out)
    check_overwrite(out, [CONFIG, LOG, WEIGHTS, "config.json", CHECKPOINTS], overwrite)


def check_same_run(
    folder: Path,
    wanted: dict[str, Any],
    what: str,
    remedy: str,
    ignored: Iterable[str] = NOT_COMPARED,
) -> None:
    """Raise OutputExistsError unless config.yaml in `folder` has all of `wanted`; names the first difference.

    Parameters
    ----------
    folder : Path
        A run folder.
    wanted : dict
        Settings and facts, nested as in config.yaml or with dotted keys.
    what, remedy : str
        Start and end of the message, such as "was trained with".
    ignored : iterable of str
        Dotted keys that may differ.
    """
    wanted = {key: value for key, value in flat(wanted).items() if key not in set(ignored)}
    check_same(EARLIER | flat(read_settings(folder)), wanted, what, folder, remedy)


def check_same(found: dict[str, Any], wanted: dict[str, Any], what: str, path: Path, remedy: str) -> None:
    """Raise OutputExistsError for the first key of `wanted` that is missing in `found`, or has another value."""
    for key, value in wanted.items():
        if found.get(key) != value:
            raise OutputExistsError(f"{what} {key} {found.get(key)!r}, not {value!r}", path=path, remedy=remedy)


def flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted name."""
    found = {}
    for key, value in values.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found


def start_run(out: Path, settings: dict[str, Any]) -> None:
    """Create a run folder with its config.yaml; delete an earlier run's weights, log and checkpoints."""
    out = Path(out)
    for name in (RESUME, CHECKPOINTS):
        shutil.rmtree(out / name, ignore_errors=True)
    for name in (WEIGHTS, "config.json", LOG, IDENTITY, CHECKSUMS):
        (out / name).unlink(missing_ok=True)
    with atomic_write(out / CONFIG) as file:
        commit = source_commit()
        made_with = versions() if commit is None else {**versions(), "commit": commit}
        yaml.safe_dump({**settings, "versions": made_with}, file, sort_keys=False, allow_unicode=True)


@functools.cache
def source_commit() -> str | None:
    """The commit of this package's sources, with "+" if they differ from it; None outside a checkout."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        # An environment within another checkout is not part of it.
        git("ls-files", "--error-unmatch", __file__)
        changed = git("status", "--porcelain", "--untracked-files=no", "..")
        return git("rev-parse", "--short=12", "HEAD") + "+" * bool(changed)
    except (OSError, subprocess.CalledProcessError):
        return None


def finish_run(out: Path, model, tokenizer=None, identity: dict[str, Any] | None = None) -> None:
    """Save the trained model, with the checksums of all files of the run, which marks the run as finished."""
    out = Path(out)
    save_model(out, model, tokenizer, identity, beside=(CONFIG, LOG))
    remove_leftovers(out)


def remove_leftovers(out: Path) -> None:
    """Remove the resume points of a finished run, which a kill at the last moment leaves behind."""
    if is_finished(out):
        shutil.rmtree(Path(out) / RESUME, ignore_errors=True)


def save_model(
    folder: Path, model, tokenizer=None, identity: dict[str, Any] | None = None, beside: Iterable[str] = ()
) -> None:
    """Save model, tokenizer and identity, if it has them, into `folder`; the weights appear last and whole.

    checksums.json, written just before them, has the sums of these files and of those named in `beside`.
    """
    folder = Path(folder)
    remove_partials(folder)
    with atomic_path(folder, last=WEIGHTS) as partial:
        if tokenizer is not None:
            save_tokenizer(tokenizer, partial)
        model.save_pretrained(partial)
        if identity:
            write_json(partial / IDENTITY, identity)
        sums = {path.name: sha256(path) for path in partial.iterdir()}
        sums |= {name: sha256(folder / name) for name in beside if (folder / name).is_file()}
        for path in partial.iterdir():
            path.chmod(_default_mode())
        write_checksums(partial, sums)


def _default_mode() -> int:
    """The mode that a new file gets from the user's umask; safetensors' files are readable by their owner only."""
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def is_finished(folder: Path) -> bool:
    """Whether `folder` holds a finished run."""
    return (Path(folder) / WEIGHTS).is_file()
