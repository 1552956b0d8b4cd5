"""Writes the code of a checkpoint with a scoring: one file that loads it where this package is not installed.

The file is cut out of this package's own sources: :mod:`babyssa.attention.portable`, the classes of the scorings
that the checkpoint uses, and every definition that these reach, in the order of the imports. Only the registry,
which would look for other packages' scorings, is replaced.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from transformers.models.auto import modeling_auto

from babyssa import __version__
from babyssa.attention.registry import scoring_class
from babyssa.errors import ModelError

MODULE = "modeling_babyssa"
_AUTO = (
    "AutoModel",
    "AutoModelForMaskedLM",
    "AutoModelForCausalLM",
    "AutoModelForSequenceClassification",
    "AutoModelForTokenClassification",
    "AutoModelForQuestionAnswering",
)
_PORTABLE = "babyssa.attention.portable"
# Methods that only this package calls.
_LEFT_OUT = ("law", "save_pretrained")
_REGISTRY = '''
def scoring_classes():
    """The scorings of this checkpoint by name."""
    return {{{classes}}}


def scoring_from_dict(values):
    """The config of a scoring from what config.json says."""
    values = dict(values)
    return scoring_classes()[values.pop("name")].Config(**values)
'''


def auto_map(config_class: type) -> dict[str, str]:
    """What config.json says of where the classes of a scored model are, for a stock config class.

    Raises
    ------
    ModelError
        If the class is not one of transformers.
    """
    _check_stock(config_class)
    classes = {"AutoConfig": config_class, **_models(config_class)}
    return {auto: f"{MODULE}.Scored{kind.__name__}" for auto, kind in classes.items()}


def modelling_code(config_class: type, scoring: dict[str, Any]) -> str:
    """The source of the module that :func:`auto_map` names.

    Parameters
    ----------
    config_class : type of PreTrainedConfig
        The stock config class, such as RobertaConfig.
    scoring : dict
        The scoring as config.json stores it.

    Raises
    ------
    ModelError
        If the class is not one of transformers, or a scoring's source cannot be cut out.
    """
    _check_stock(config_class)
    return _code(config_class, tuple(sorted(set(_names(scoring)))))


def _check_stock(config_class: type) -> None:
    if not config_class.__module__.startswith("transformers."):
        raise ModelError(
            f"a model with a {config_class.__name__} needs this package",
            remedy="only models of transformers itself can be loaded without it",
        )


def _models(config_class: type) -> dict[str, type]:
    """The stock model class of every Auto class that has one."""
    found = {auto: getattr(modeling_auto, auto)._model_mapping.get(config_class, None) for auto in _AUTO}
    return {
        auto: kind for auto, kind in found.items() if inspect.isclass(kind) and kind.config_class is config_class
    }


def _names(scoring: Any) -> Iterator[str]:
    """The names of a scoring and of the scorings within it."""
    if isinstance(scoring, dict):
        yield scoring["name"]
        scoring = list(scoring.values())
    if isinstance(scoring, (list, tuple)):
        for part in scoring:
            yield from _names(part)


@cache
def _code(config_class: type, names: tuple[str, ...]) -> str:
    kinds = {name: scoring_class(name) for name in names}
    classes = ", ".join(f'"{name}": {kind.__name__}' for name, kind in kinds.items())
    registry = _REGISTRY.format(classes=classes).strip()
    models = _models(config_class)
    stock = [config_class, *dict.fromkeys(models.values())]
    cut = _Cut({"scoring_classes", "scoring_from_dict"})
    for kind in kinds.values():
        cut.take(cut.module(kind.__module__), kind.__name__)
    portable = cut.module(_PORTABLE)
    for name in portable.definitions:
        cut.take(portable, name)
    about = (
        f'"""{config_class.__name__.removesuffix("Config")} with attention scored by {", ".join(names)}: '
        "load it through an Auto class with trust_remote_code=True.\n\n"
        f"Cut out of babyssa {__version__} by `babyssa export`; needs torch and transformers 4.51 or later only.\n"
        '"""'
    )
    own = [
        f"class Scored{kind.__name__}(PortableModel, {kind.__name__}):\n"
        f"    config_class = Scored{config_class.__name__}"
        for kind in stock[1:]
    ]
    config = (
        f"class Scored{config_class.__name__}(PortableConfig, {config_class.__name__}):\n"
        f'    model_type = "babyssa-{config_class.model_type}"'
    )
    for kind in stock:
        cut.foreign[kind.__name__] = _Import("transformers", kind.__name__), True
    head = [about, "from __future__ import annotations", "\n".join(cut.imports())]
    return "\n\n".join(head) + "\n\n\n" + "\n\n\n".join([*cut.parts(), registry, config, *own]) + "\n"


@dataclass(frozen=True)
class _Import:
    """Where a name of a module comes from, and the name that it has there; None for a module itself."""

    module: str
    name: str | None


class _Module:
    """The source of a module: its docstring, and what each name at its top level is."""

    def __init__(self, name: str):
        self.name = name
        try:
            source = inspect.getsource(importlib.import_module(name))
        except (ImportError, OSError, TypeError) as error:
            raise ModelError(f"the source of {name} cannot be read: {error}") from None
        self.lines = source.splitlines()
        tree = ast.parse(source)
        self.about = ast.get_docstring(tree) or ""
        self.definitions: dict[str, ast.stmt] = {}
        self.imported: dict[str, _Import] = {}
        for node in tree.body:
            for bound in _bound(node):
                self.definitions[bound] = node
            if isinstance(node, ast.Import):
                self.imported |= {item.asname or item.name: _Import(item.name, None) for item in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
                self.imported |= {item.asname or item.name: _Import(node.module, item.name) for item in node.names}

    def text(self, node: ast.stmt) -> str:
        """The source of a definition, with the comment above it and without the methods left out."""
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]) - 1
        while self.lines[first - 1].startswith("#"):
            first -= 1
        dropped: set[int] = set()
        for method in _left_out(node):
            begin = min([method.lineno, *(d.lineno for d in method.decorator_list)]) - 1
            # With the empty line before it.
            dropped |= set(range(begin - 1, method.end_lineno))
        return "\n".join(
            line for i, line in enumerate(self.lines[first : node.end_lineno], first) if i not in dropped
        )


def _bound(node: ast.stmt) -> list[str]:
    """The names that a statement defines; imports, but for those that may fail, are none."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.Try):
        imports = (item for item in node.body if isinstance(item, ast.ImportFrom))
        return [alias.asname or alias.name for item in imports for alias in item.names]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _left_out(node: ast.stmt) -> list[ast.FunctionDef]:
    body = node.body if isinstance(node, ast.ClassDef) else []
    return [item for item in body if isinstance(item, ast.FunctionDef) and item.name in _LEFT_OUT]


def _used(node: ast.AST, skipped: tuple[ast.AST, ...] = ()) -> Iterator[tuple[str, bool]]:
    """The names that a definition uses, and whether it does so when it runs rather than in an annotation."""
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or child in skipped:
                continue
            runs = field not in ("annotation", "returns")
            if isinstance(child, ast.Name):
                yield child.id, runs
            for name, within in _used(child, skipped):
                yield name, runs and within


class _Cut:
    """Definitions of several modules, taken with everything that they reach.

    Parameters
    ----------
    given : set of str
        Names that are defined otherwise.
    """

    def __init__(self, given: set[str]):
        self.modules: dict[str, _Module] = {}
        self.own = given | set(self.module(_PORTABLE).definitions)
        self.taken: dict[tuple[str, str], ast.stmt] = {}
        self.aliases: dict[tuple[str, str], str] = {}
        self.foreign: dict[str, tuple[_Import, bool]] = {}

    def module(self, name: str) -> _Module:
        if name not in self.modules:
            self.modules[name] = _Module(name)
        return self.modules[name]

    def defined(self, source: _Import) -> _Import:
        """Where a name is defined that another module may only pass on, as babyssa.attention does."""
        if source.name in self.module(source.module).definitions:
            return source
        found = getattr(importlib.import_module(source.module), source.name, None)
        return _Import(getattr(found, "__module__", source.module), source.name)

    def take(self, module: _Module, name: str) -> None:
        """Take a definition of `module`, unless it is taken already."""
        if (name in self.own and module.name != _PORTABLE) or (module.name, name) in self.taken:
            return
        node = module.definitions.get(name)
        if node is None:
            raise ModelError(f"{module.name} does not define {name} at its top level", remedy="define it there")
        self.taken[module.name, name] = node
        for used, runs in dict.fromkeys(_used(node, tuple(_left_out(node)))):
            source = module.imported.get(used)
            if used in module.definitions:
                self.take(module, used)
            elif source is None or used in self.own:
                continue
            elif source.module.split(".")[0] != "babyssa":
                self.foreign[used] = source, runs or self.foreign.get(used, (source, False))[1]
            elif runs:
                source = self.defined(source)
                module.imported[used] = source
                self.take(self.module(source.module), source.name)
                if used != source.name:
                    self.aliases[source.module, source.name] = used

    def imports(self) -> Iterator[str]:
        """The imports of other packages, one a line; those for annotations only come last."""
        for runs in (True, False):
            lines = []
            modules: dict[str, list[str]] = {}
            for bound, (source, needed) in sorted(self.foreign.items()):
                if needed != runs:
                    continue
                if source.name is None:
                    lines.append(f"import {source.module}" + ("" if bound == source.module else f" as {bound}"))
                else:
                    alias = "" if bound == source.name else f" as {bound}"
                    modules.setdefault(source.module, []).append(source.name + alias)
            for name, names in sorted(modules.items()):
                one_line = f"from {name} import {', '.join(names)}"
                many = [f"from {name} import (", *(f"    {item}," for item in names), ")"]
                lines += [one_line] if len(one_line) <= 100 else many
            if runs:
                yield from lines
            elif lines:
                yield from ["from typing import TYPE_CHECKING", "", "if TYPE_CHECKING:"]
                yield from (f"    {line}" for line in lines)

    def parts(self) -> Iterator[str]:
        """The source of what is taken, module by module, each after those that it imports."""
        ordered: list[str] = []

        def visit(name: str) -> None:
            if name in ordered:
                return
            for source in self.modules[name].imported.values():
                if source.module in self.modules:
                    visit(source.module)
            ordered.append(name)

        for name in sorted(self.modules, key=_PORTABLE.__eq__):
            visit(name)
        users: dict[str, str] = {}
        for name in ordered:
            module = self.modules[name]
            names = [taken for owner, taken in self.taken if owner == name]
            if not names:
                continue
            about = "\n".join(f"# {line}".rstrip() for line in module.about.splitlines())
            parts = [f"# {'-' * 100}\n# {name}\n#\n{about}"]
            nodes = {id(module.definitions[taken]): module.definitions[taken] for taken in names}
            parts += [module.text(node) for node in sorted(nodes.values(), key=lambda node: node.lineno)]
            parts += [f"{self.aliases[name, taken]} = {taken}" for taken in names if (name, taken) in self.aliases]
            for clash in (taken for taken in names if users.setdefault(taken, name) != name):
                if not clash.startswith("_"):
                    raise ModelError(f"both {users[clash]} and {name} define {clash}", remedy="rename one")
                own = f"{clash}_{name.rpartition('.')[2]}"
                parts = [re.sub(rf"\b{clash}\b", own, part) for part in parts]
            yield from parts
