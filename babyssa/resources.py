"""Where the files that travel with the package are: configs, the sample corpus, the probes.

In a checkout they stand beside the package (``configs/``, ``data/``, ``probes/``); in an installed wheel
they are packages under ``babyssa.share`` (see ``package_dir`` in setup.cfg).
"""

from __future__ import annotations

from pathlib import Path

from babyssa.errors import BabySSAError, nearest

_PACKAGE = Path(__file__).resolve().parent


def resource_folder(name: str) -> Path:
    """The folder of packaged ``configs``, ``data`` or ``probes``.

    Raises
    ------
    BabySSAError
        If the installation lacks it.
    """
    for folder in (_PACKAGE / "share" / name, _PACKAGE.parent / name):
        if folder.is_dir():
            return folder
    raise BabySSAError(f"the installed package has no {name} folder", path=_PACKAGE, remedy="reinstall babyssa")


def resource(folder: str, name: str) -> Path:
    """The path of one packaged file, such as ``resource("configs", "encoder/small.yaml")``."""
    path = resource_folder(folder) / name
    if not path.exists():
        root = resource_folder(folder)
        known = [p.relative_to(root).as_posix() for p in root.rglob("*.*") if p.is_file()]
        raise BabySSAError(f"no packaged file '{folder}/{name}'", remedy=nearest(name, known))
    return path
