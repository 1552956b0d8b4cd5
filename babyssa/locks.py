"""One process at a time in a folder: a lock that a killed process leaves open."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from babyssa.console import say
from babyssa.errors import BusyError

LOCK = ".lock"


@contextmanager
def locked(folder: Path, doing: str) -> Iterator[None]:
    """Hold the lock of `folder`, which is created if it is not there, while the block runs.

    The lock is the system's (flock), so it ends with its process, however that ends. The file tells others
    who holds it. Where the system or the file system has no such locks, the block runs without one.

    Parameters
    ----------
    folder : Path
        What is locked.
    doing : str
        What the holder does, such as "a sweep", for the message that others get.

    Raises
    ------
    BusyError
        If another process, or another call in this one, holds it; names the process and its machine.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    path = folder / LOCK
    while True:
        # Closed in the finally below, or where it is not kept.
        file = open(path, "a+", encoding="utf-8")  # noqa: SIM115
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(path)
            file.close()
            raise BusyError(
                f"is in use by {holder}", path=folder, remedy="wait until it ends, or choose another --out"
            ) from None
        except OSError as error:
            file.close()
            say(f"warning: {folder} cannot be locked ({error.strerror}): start nothing else in it meanwhile")
            yield
            return
        # The holder before may have removed the file between opening and locking it here.
        if path.exists() and os.fstat(file.fileno()).st_ino == path.stat().st_ino:
            break
        file.close()
    try:
        file.truncate(0)
        file.write(f"{doing}, process {os.getpid()} on {platform.node()}\n")
        file.flush()
        yield
    finally:
        path.unlink(missing_ok=True)
        file.close()


def _holder(path: Path) -> str:
    try:
        said = path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        said = ""
    return "".join(c if c.isprintable() else " " for c in said) or "another process"
