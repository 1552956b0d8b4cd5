"""An experiment: variants of a recipe under several seeds, and what is measured of them; a YAML file in configs/.

Imports nothing heavy: the command line builds the options of a sweep from it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from babyssa.checks import Seed, check
from babyssa.decoder.config import DecoderTraining
from babyssa.encoder.config import EncoderTraining
from babyssa.errors import ConfigError, nearest
from babyssa.experiments.measures import KINDS, Measure
from babyssa.files import YamlMapping, read_yaml, resource_folder
from babyssa.recipes import build_settings
from babyssa.synthetic.config import SyntheticTraining

Training = EncoderTraining | DecoderTraining | SyntheticTraining
SETTINGS = {"encoder": EncoderTraining, "decoder": DecoderTraining, "synthetic": SyntheticTraining}

_KEYS = {
    "setting": str,
    "recipe": str,
    "settings": dict,
    "conditions": dict,
    "variants": dict,
    "seeds": list,
    "baseline": str,
    "data": dict,
    "measures": dict,
}
_REQUIRED = ("setting", "variants", "seeds", "measures")


@dataclass(frozen=True)
class ExperimentFile:
    """The YAML file of an experiment, with its lines.

    Parameters
    ----------
    path : Path
        The file.
    yaml : YamlMapping
        Its content.
    """

    path: Path
    yaml: YamlMapping

    @property
    def training(self) -> type[Training]:
        """The settings class of its runs."""
        return SETTINGS[self.yaml.values["setting"]]

    def part(self, *keys: str) -> tuple[dict[str, Any], Path, dict[str, int]]:
        """The mapping under some keys, the file, and the line of each dotted key in that mapping."""
        values: Any = self.yaml.values
        for key in keys:
            values = values.get(key) or {}
            if not isinstance(values, Mapping):
                line = self.yaml.line(*keys)
                raise ConfigError(f"{'.'.join(keys)} is {values!r}, expected a mapping", path=self.path, line=line)
        above = len(keys)
        inner = {p[above:]: line for p, line in self.yaml.places.items() if p[:above] == keys and len(p) > above}
        lines = {".".join(p): line for p, line in inner.items() if all(isinstance(key, str) for key in p)}
        return dict(values), self.path, lines


@dataclass(frozen=True)
class Experiment:
    """What is trained and measured.

    Parameters
    ----------
    name : str
        What its results are called.
    settings : dataclass
        Of every run; ``out`` is the folder of all.
    variants : dict of str to dict
        What each variant sets; its name is what results call it.
    seeds : tuple of int
        The seeds.
    measures : dict of str to Measure
        What is measured of every run.
    conditions : dict of str to dict
        Settings under which the variants are compared, each by itself, such as tasks; a single one has no name.
    baseline : str, optional
        The variant that the others are compared with; softmax, or else the first one, if not given.
    data : dict of str to str
        What the reader supplies, by name, in words.
    """

    name: str
    settings: Training
    variants: dict[str, dict[str, Any]]
    seeds: tuple[int, ...]
    measures: dict[str, Measure]
    conditions: dict[str, dict[str, Any]] = field(default_factory=lambda: {"": {}})
    baseline: str | None = None
    data: dict[str, str] = field(default_factory=dict)

    def __post_init__(self):
        if not self.variants or not self.seeds:
            raise ConfigError("nothing to sweep over", remedy="give at least one variant and one seed")
        for seed in self.seeds:
            check("seed", seed, Seed)
        kind = next(name for name, settings in SETTINGS.items() if isinstance(self.settings, settings))
        for name, measure in self.measures.items():
            fitting = KINDS[measure.kind].settings
            if kind not in fitting:
                what = f"'{name}' is of kind {measure.kind}, which does not measure models of setting {kind}"
                raise ConfigError(what, remedy=f"it is for: {', '.join(fitting)}")
        if self.baseline is None:
            chosen = "softmax" if "softmax" in self.variants else next(iter(self.variants))
            object.__setattr__(self, "baseline", chosen)

    def select(self, variants: Iterable[str] = (), seeds: Iterable[int] = ()) -> Experiment:
        """The experiment with only some of its variants, and other seeds, where they are given."""
        chosen = list(dict.fromkeys(variants)) or list(self.variants)
        for name in chosen:
            if name not in self.variants:
                raise ConfigError(f"{self.name} has no variant '{name}'", remedy=nearest(name, self.variants))
        seeds = tuple(dict.fromkeys(seeds)) or self.seeds
        return dataclasses.replace(self, variants={name: self.variants[name] for name in chosen}, seeds=seeds)

    def run_settings(self, condition: str, variant: str) -> Training:
        """The settings of the runs of a variant under a condition, under any seed."""
        changed = self.settings
        for changes in (self.conditions[condition], self.variants[variant]):
            changed = build_settings(type(changed), changes, changed)
        return changed


def read_experiment(name: str | Path) -> ExperimentFile:
    """Read the file of an experiment: a path, or the name of a packaged one, such as ``encoder-grammar``.

    Raises
    ------
    ConfigError
        If there is neither, or a key is unknown, missing or of the wrong kind; names the line.
    """
    path = Path(name)
    if not path.is_file():
        packaged = {
            file.stem: file for file in sorted((resource_folder("configs") / "experiments").glob("*.yaml"))
        }
        if str(name) not in packaged:
            remedy = nearest(str(name), packaged)
            raise ConfigError(f"no file and no packaged experiment '{name}'", remedy=remedy)
        path = packaged[str(name)]
    yaml = read_yaml(path, ConfigError)
    for key, value in yaml.values.items():
        place = {"path": path, "line": yaml.line(key)}
        if key not in _KEYS:
            raise ConfigError(f"unknown key '{key}'", **place, remedy=nearest(str(key), _KEYS))
        if not isinstance(value, _KEYS[key]):
            expected = {str: "text", dict: "a mapping", list: "a list"}[_KEYS[key]]
            raise ConfigError(f"{key} is {value!r}, expected {expected}", **place)
    for key in _REQUIRED:
        if not yaml.values.get(key):
            raise ConfigError(f"{key} is missing", path=path, remedy="see configs/experiments/ for an example")
    setting = yaml.values["setting"]
    if setting not in SETTINGS:
        remedy = nearest(setting, SETTINGS)
        raise ConfigError(f"unknown setting '{setting}'", path=path, line=yaml.line("setting"), remedy=remedy)
    return ExperimentFile(path, yaml)


def make_experiment(file: ExperimentFile, settings: Training, data: Mapping[str, str]) -> Experiment:
    """The experiment of a file.

    Parameters
    ----------
    file : ExperimentFile
        Variants, seeds and measures.
    settings : dataclass
        Of every run, the file's own settings among them.
    data : mapping
        Where the data are that the file names.

    Raises
    ------
    ConfigError
        If a variant or measure cannot be, or data are missing.
    """
    values = file.yaml.values
    known = values.get("data") or {}
    for name in data:
        if name not in known:
            raise ConfigError(f"{file.path.stem} needs no data '{name}'", remedy=nearest(name, known))
    missing = next((name for name in known if name not in data), None)
    if missing is not None:
        raise ConfigError(f"--data.{missing} is missing", remedy=f"give {known[missing]}")
    parts = {}
    for key in ("conditions", "variants"):
        parts[key] = {name: file.part(key, name) for name in values.get(key) or {}}
        for part in parts[key].values():
            build_settings(type(settings), part[0], settings, *part[1:])
    experiment = Experiment(
        name=file.path.stem,
        settings=settings,
        variants={name: part[0] for name, part in parts["variants"].items()},
        conditions={name: part[0] for name, part in parts["conditions"].items()} or {"": {}},
        seeds=tuple(values["seeds"]),
        measures={name: _make_measure(file, name, data) for name in values["measures"]},
        baseline=values.get("baseline"),
        data=dict(known),
    )
    if experiment.baseline not in experiment.variants:
        remedy = nearest(experiment.baseline, experiment.variants)
        raise ConfigError(
            f"no variant '{experiment.baseline}'", path=file.path, line=file.yaml.line("baseline"), remedy=remedy
        )
    return experiment


def _make_measure(file: ExperimentFile, name: str, data: Mapping[str, str]) -> Measure:
    """One of a file's measures, with the paths of its data."""
    options, path, lines = file.part("measures", name)
    kind = options.pop("kind", None)
    if kind not in KINDS:
        line = file.yaml.line("measures", name, "kind")
        remedy = nearest(str(kind), KINDS)
        raise ConfigError(f"measures.{name}.kind is {kind!r}", path=path, line=line, remedy=remedy)
    built = build_settings(KINDS[kind].options, options, None, path, lines)
    return Measure(kind, built, {key: str(value) for key, value in data.items()})
