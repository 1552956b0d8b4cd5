"""Errors with their place and remedy: raised where the cause is known, printed in :func:`babyssa.cli.main`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class BabySSAError(Exception):
    """A failure that the user can fix; prints as ``path:line: what; remedy`` on one line.

    Parameters
    ----------
    what : str
        What is wrong.
    path : path-like, optional
        The file or folder concerned.
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
    """A corpus, suite or result file is not in the expected format."""


class ModelError(BabySSAError):
    """A model or tokenizer cannot be loaded, or does not fit the task."""


class OutputExistsError(BabySSAError):
    """A command would overwrite an earlier result."""


class DamageError(BabySSAError):
    """A file does not match its checksum."""


class StorageError(BabySSAError):
    """A result cannot be written because the disk is full."""


class BusyError(BabySSAError):
    """Another process is writing to the same folder."""


class Stopped(BabySSAError):
    """The user or the system stopped a run, which saved what it needs to resume.

    Parameters
    ----------
    what, path, remedy
        As for :class:`BabySSAError`.
    signal : int
        The signal; the exit status is 128 + this number, as in a shell.
    """

    def __init__(self, what: str, *, signal: int, path: str | Path | None = None, remedy: str | None = None):
        super().__init__(what, path=path, remedy=remedy)
        self.signal = signal
        self.exit_code = 128 + signal


class ConfigError(BabySSAError):
    """A setting is unknown or out of range (wrong usage: exit status 2)."""

    exit_code = 2


def describe(error: Exception) -> str:
    """One printable line for any exception: what, where, remedy."""
    message = " ".join(str(error).split())
    if not isinstance(error, BabySSAError):
        if isinstance(error, OSError) and error.strerror:
            where = f"{error.filename}: " if error.filename is not None else ""
            message = f"{where}{error.strerror}"
        else:
            message = f"{type(error).__name__}: {message}; run again with --debug for the traceback"
    return printable(message)


def nearest(name: str, known: Iterable[str]) -> str:
    """Suggest the known name that is closest, and list them all if there are few.

    >>> nearest("sofmax", ["softmax", "ssa"])
    "did you mean 'softmax'? known: softmax, ssa"
    """
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    guess = f"did you mean '{close[0]}'? " if close else ""
    if guess and len(known) > 12:
        return guess.strip()
    return f"{guess}known: {', '.join(known)}"


def printable(text: str) -> str:
    """Foreign text on one line, with spaces for the control characters that could steer a terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def quoted(text: str) -> str:
    """A sentence in quotation marks for a message: printable, and shortened to 60 characters."""
    shown = printable(text)
    return f"'{shown if len(shown) <= 60 else shown[:57] + '...'}'"
