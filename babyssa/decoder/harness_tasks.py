"""Finds lm-evaluation-harness's tasks by name, without torch and without loading its list of them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from babyssa.errors import BabySSAError, ConfigError, DataError

DEFAULT_TASKS = ("arc_challenge", "arc_easy", "boolq", "cb", "copa", "hellaswag", "record", "winogrande")

_NAMES = re.compile(rb"""^['"]?(?:task|group|tag)['"]? *: *['"]?([\w.:/+-]+)""", re.MULTILINE)


@cache
def find_tasks(tasks: tuple[str, ...], include_path: str | Path | None = None) -> tuple[Path, ...]:
    """The folders of the YAML files that define tasks; a task may also come from a list in one of them.

    Raises
    ------
    BabySSAError
        If lm-evaluation-harness is not installed.
    ConfigError
        If there is no task, or one is not named in any file of the harness or of `include_path`.
    DataError
        If `include_path` is not a folder.
    """
    if not tasks:
        raise ConfigError("no task given", remedy=f"the usual ones: {', '.join(DEFAULT_TASKS)}")
    harness_version()
    if include_path is not None and not Path(include_path).is_dir():
        raise DataError("no such folder of tasks", path=include_path)
    roots = [*find_spec("lm_eval").submodule_search_locations, *([] if include_path is None else [include_path])]
    unseen = {task: re.compile(rb"(?<![\w-])" + re.escape(task.encode()) + rb"(?![\w-])") for task in tasks}
    folders: dict[str, Path] = {}
    known = set(DEFAULT_TASKS)
    for file in (file for root in roots for file in Path(root).rglob("*.yaml")):
        text = file.read_bytes()
        unseen = {task: name for task, name in unseen.items() if not name.search(text)}
        names = {name.decode() for name in _NAMES.findall(text)}
        known |= names
        folders |= dict.fromkeys(names.intersection(tasks), file.parent)
        if len(folders) == len(tasks):
            break
    if unseen:
        raise unknown_task(next(iter(unseen)), known)
    return tuple(dict.fromkeys(folders.values()))


def unknown_task(task: str, known: Iterable[str]) -> ConfigError:
    """The error for an unknown task, with the nearest known name."""
    close = difflib.get_close_matches(task, known, n=1, cutoff=0.7)
    guess = f"did you mean '{close[0]}'? " if close else ""
    return ConfigError(
        f"unknown task '{task}'",
        remedy=f"{guess}'lm-eval ls tasks' lists all, and --include-path adds your own",
    )


def harness_version() -> str:
    """The harness's version; BabySSAError if it is not installed."""
    try:
        return metadata.version("lm_eval")
    except metadata.PackageNotFoundError:
        raise BabySSAError(
            "lm-evaluation-harness is not installed", remedy="pip install 'babyssa[harness]'"
        ) from None
