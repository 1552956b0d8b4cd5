"""Recipes: YAML files with the settings of a run, in configs/ or the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from babyssa.errors import ConfigError, nearest
from babyssa.files import resource_folder

Settings = TypeVar("Settings")


def recipes_for(settings: type) -> str:
    """The folder of configs/ with the recipes of a settings class: that of its subpackage, such as encoder."""
    return settings.__module__.split(".")[1]


def find_recipe(name: str, folder: str) -> Path:
    """The YAML file called `name`: a path, or the name of a packaged recipe of `folder`, such as ``small``.

    Raises
    ------
    ConfigError
        If there is neither; names the packaged recipes.
    """
    if Path(name).is_file():
        return Path(name)
    packaged = {path.stem: path for path in sorted((resource_folder("configs") / folder).glob("*.yaml"))}
    if name not in packaged:
        raise ConfigError(f"no file and no packaged {folder} recipe '{name}'", remedy=nearest(name, packaged))
    return packaged[name]


def read_recipe(name: str, settings: type[Settings], **changes: Any) -> Settings:
    """The settings of a recipe, with `changes` to its top-level keys."""
    import jsonargparse

    parser = jsonargparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("--config", action="config")
    parser.add_class_arguments(settings)
    given = [f"--{key}={value}" for key, value in changes.items()]
    recipe = find_recipe(name, recipes_for(settings))
    values = parser.instantiate(parser.parse_args([f"--config={recipe}", *given]))
    return settings(**{key: value for key, value in vars(values).items() if key != "config"})
