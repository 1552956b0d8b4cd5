"""What a run folder and its checkpoints say about themselves; imports nothing heavy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from babyssa.files import read_json, read_yaml

CONFIG = "config.yaml"
CHECKPOINTS = "checkpoints"
IDENTITY = "checkpoint.json"


def read_settings(folder: Path) -> dict[str, Any]:
    """The config.yaml of a run folder; DataError if it is missing or broken."""
    return read_yaml(Path(folder) / CONFIG).values


def read_identity(folder: Path) -> dict[str, Any]:
    """What a model folder says of where it comes from; nothing if no run of this package wrote it.

    Returns
    -------
    dict
        Of run, kind, variant, scoring, seed, training_precision, step, words and tokens what is known. Early
        versions wrote no checkpoint.json; their checkpoints have their step in their name.
    """
    folder = Path(folder)
    if (folder / IDENTITY).is_file():
        return read_json(folder / IDENTITY)
    place = folder.absolute()
    run = place.parent.parent if place.parent.name == CHECKPOINTS else place
    if not (run / CONFIG).is_file():
        return {}
    settings = read_settings(run)
    facts = settings.get("facts")
    known = {
        "run": run.name,
        "kind": settings.get("kind"),
        "variant": settings.get("variant"),
        "scoring": settings.get("scoring"),
        "seed": settings.get("seed"),
        "training_precision": facts.get("precision") if isinstance(facts, dict) else None,
    }
    step = place.name.removeprefix("step-")
    return {**known, "step": int(step)} if run != place and step.isdecimal() else known


def list_checkpoints(run: Path) -> list[Path]:
    """The folders of a run's checkpoints, in the order of their steps, and the run itself if it is finished."""
    folders = [path for path in (Path(run) / CHECKPOINTS).glob("*") if (path / "model.safetensors").is_file()]
    folders.sort(key=lambda folder: read_identity(folder).get("step") or 0)
    return [*folders, Path(run)] if (Path(run) / "model.safetensors").is_file() else folders
