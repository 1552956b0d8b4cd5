"""A minimal pair, and the name of the file that says what is in a folder of them."""

from __future__ import annotations

from dataclasses import dataclass, field

MANIFEST = "manifest.yaml"


@dataclass(frozen=True)
class MinimalPair:
    """A grammatical and an ungrammatical sentence that differ only in what their paradigm tests.

    ``line`` is where the pair begins in its file, for messages; it takes no part in equality.
    """

    good: str
    bad: str
    line: int | None = field(default=None, compare=False, repr=False)
