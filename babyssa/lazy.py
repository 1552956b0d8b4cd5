"""Names of a package that are imported from its modules on first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable


def lazy_exports(package: str, names_of_module: dict[str, list[str]]) -> tuple[Callable, Callable, list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` for `package` (PEP 562).

    Parameters
    ----------
    package : str
        The ``__name__`` of the package.
    names_of_module : dict of str to list of str
        Absolute module name to the public names that it defines.
    """
    module_of_name = {name: module for module, names in names_of_module.items() for name in names}

    def get(name: str):
        if name not in module_of_name:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        value = getattr(importlib.import_module(module_of_name[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted({*vars(sys.modules[package]), *module_of_name}), list(module_of_name)
