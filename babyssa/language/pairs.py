"""Choices between texts, among them the minimal pair, and the name of the file that describes a folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

MANIFEST = "manifest.yaml"


class Option(NamedTuple):
    """A text that is scored, and what stands before it and is not, with the separator in either."""

    text: str
    given: str = ""

    @property
    def whole(self) -> str:
        """Both together."""
        return self.given + self.text


@dataclass(frozen=True)
class Item:
    """A choice between two or more options, of which the first is right.

    ``ratio`` is the share of people who chose the first, where a model is compared with that. ``line`` is where
    the item begins in its file, for messages; it takes no part in equality.
    """

    options: tuple[Option, ...]
    line: int | None = field(default=None, compare=False, repr=False)
    ratio: float | None = None


@dataclass(frozen=True)
class MinimalPair:
    """A grammatical and an ungrammatical sentence that differ only in what their paradigm tests.

    ``line`` is as in :class:`Item`.
    """

    good: str
    bad: str
    line: int | None = field(default=None, compare=False, repr=False)
    ratio = None

    @property
    def options(self) -> tuple[Option, ...]:
        """The pair as the options of an :class:`Item`."""
        return Option(self.good), Option(self.bad)
