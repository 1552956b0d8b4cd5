"""The errors that a user can cause, each with its place and its remedy.

They are raised where the cause is known and printed in one place, :func:`babyssa.cli.main`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class BabySSAError(Exception):
    """A failure that the user can mend; prints as ``path:line: what; remedy`` on one line.

    Parameters
    ----------
    what : str
        What is wrong.
    path : path-like, optional
        The file or folder it is wrong in.
    line : int, optional
        The 1-based line in `path`.
    remedy : str, optional
        What to do about it.
    """

    exit_code = 1

    def __init__(
        self,
        what: str,
        *,
        path: str | Path | None = None,
        line: int | None = None,
        remedy: str | None = None,
    ):
        self.what = what
        self.path = None if path is None else Path(path)
        self.line = line
        self.remedy = remedy
        super().__init__(what)

    def __str__(self) -> str:
        where = "" if self.path is None else f"{self.path}: "
        if self.path is not None and self.line is not None:
            where = f"{self.path}:{self.line}: "
        remedy = "" if self.remedy is None else f"; {self.remedy}"
        return " ".join(f"{where}{self.what}{remedy}".split())


class DataError(BabySSAError):
    """A corpus, suite or result file cannot be read as what it should be."""


class ModelError(BabySSAError):
    """A model or tokenizer cannot be loaded, or does not fit what it is asked to do."""


class OutputExistsError(BabySSAError):
    """A command would overwrite an earlier result."""


class DamageError(BabySSAError):
    """A file is not what its checksum says that it was."""


class StorageError(BabySSAError):
    """A result cannot be written, because the disk is full."""


class BusyError(BabySSAError):
    """Another process is writing into the same folder."""


class Stopped(BabySSAError):
    """The user or the system asked a run to stop, and it saved what it goes on from.

    Parameters
    ----------
    what, path, remedy
        As of :class:`BabySSAError`.
    signal : int
        The signal; the exit status is 128 + that, as a shell gives it.
    """

    def __init__(self, what: str, *, signal: int, path: str | Path | None = None, remedy: str | None = None):
        super().__init__(what, path=path, remedy=remedy)
        self.signal = signal
        self.exit_code = 128 + signal


class ConfigError(BabySSAError):
    """A setting is unknown or out of its domain (wrong usage: exit code 2)."""

    exit_code = 2


def describe(error: Exception) -> str:
    """One line for any exception: what, where, remedy; nothing in it can steer a terminal."""
    message = " ".join(str(error).split())
    if not isinstance(error, BabySSAError):
        if isinstance(error, OSError) and error.strerror:
            where = f"{error.filename}: " if error.filename is not None else ""
            message = f"{where}{error.strerror}"
        else:
            message = f"{type(error).__name__}: {message}; run again with --debug for the traceback"
    return "".join(c if c.isprintable() else " " for c in message)


def nearest(name: str, known: Iterable[str]) -> str:
    """Say which known name the user may have meant, and list them all if few.

    >>> nearest("sofmax", ["softmax", "ssa"])
    "did you mean 'softmax'? known: softmax, ssa"
    """
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    guess = f"did you mean '{close[0]}'? " if close else ""
    if guess and len(known) > 12:
        return guess.strip()
    return f"{guess}known: {', '.join(known)}"


def quoted(text: str) -> str:
    """A sentence in quotation marks for a message: shortened, with nothing that could steer a terminal."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    return f"'{shown if len(shown) <= 60 else shown[:57] + '...'}'"
