"""Recipes: YAML files with the settings of a run, in configs/ or the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from babyssa.encoder.config import EncoderTraining
from babyssa.errors import ConfigError, nearest
from babyssa.resources import resource_folder


def find_recipe(name: str) -> Path:
    """The YAML file called `name`: a path, or the name of a packaged recipe such as ``small``.

    Raises
    ------
    ConfigError
        If there is neither; names the packaged recipes.
    """
    if Path(name).is_file():
        return Path(name)
    packaged = {path.stem: path for path in sorted(resource_folder("configs").rglob("*.yaml"))}
    if name not in packaged:
        raise ConfigError(f"no file and no packaged recipe '{name}'", remedy=nearest(name, packaged))
    return packaged[name]


def read_recipe(name: str, **changes: Any) -> EncoderTraining:
    """The settings of a recipe, with `changes` to its top-level keys."""
    import jsonargparse

    parser = jsonargparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("--config", action="config")
    parser.add_class_arguments(EncoderTraining)
    given = [f"--{key}={value}" for key, value in changes.items()]
    values = parser.instantiate(parser.parse_args([f"--config={find_recipe(name)}", *given]))
    return EncoderTraining(**{key: value for key, value in vars(values).items() if key != "config"})
