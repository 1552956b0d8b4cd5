"""Choices between texts, such as minimal pairs, and the name of the file that describes a suite folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

MANIFEST = "manifest.yaml"


class Option(NamedTuple):
    """A text to score, and the unscored context before it; the separator is part of one of them."""

    text: str
    given: str = ""

    @property
    def whole(self) -> str:
        """The context followed by the text."""
        return self.given + self.text


@dataclass(frozen=True)
class Item:
    """A choice between two or more options; the first is the right one.

    ``ratio`` is the share of people who chose the first, for data that compares models with people. ``line`` is
    where the item begins in its file, for messages; it does not affect equality.
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
