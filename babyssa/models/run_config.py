"""What a run folder says about itself in its config.yaml; imports nothing heavy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from babyssa.files import read_yaml

CONFIG = "config.yaml"
CHECKPOINTS = "checkpoints"


def read_settings(folder: Path) -> dict[str, Any]:
    """The config.yaml of a run folder; DataError if it is missing or broken."""
    return read_yaml(Path(folder) / CONFIG).values
