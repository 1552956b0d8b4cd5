"""Words and regions of a text, and which of them a token belongs to."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from babyssa.errors import DataError, quoted
from babyssa.models.encoding import Span


def words_of(text: str, punctuation: str = "attached") -> list[Span]:
    """The words of a text as written: what stands between white space.

    With `punctuation` "apart", every punctuation mark or symbol at either end of a word is a word of its own;
    those inside stay: ``don't``, ``well-known``, ``3.5``.

    >>> text = "look, a well-known dog!"
    >>> [text[start:end] for start, end in words_of(text, "apart")]
    ['look', ',', 'a', 'well-known', 'dog', '!']
    """
    words = []
    for match in re.finditer(r"\S+", text):
        start, end = match.span()
        first, last = start, end
        if punctuation == "apart":
            while first < end and unicodedata.category(text[first])[0] in "PS":
                first += 1
            while last > first and unicodedata.category(text[last - 1])[0] in "PS":
                last -= 1
        words += [(at, at + 1) for at in range(start, first)]
        words += [(first, last)] if first < last else []
        words += [(at, at + 1) for at in range(last, end)]
    return words


def assign(text: str, tokens: Sequence[Span], units: Sequence[Span]) -> tuple[list[Span], list[int | None]]:
    """The units that tokens make up, and the place among them of each token's unit.

    A token belongs to the first unit that ends no earlier than it does, so that white space goes with what
    follows. Units that share a token are one: its probability cannot be divided.

    Parameters
    ----------
    text : str
        What the spans are of.
    tokens : sequence of (int, int)
        Spans, ascending; (-1, -1) for a special token, which belongs to no unit.
    units : sequence of (int, int)
        Spans, ascending, which do not overlap.

    Returns
    -------
    tuple of (list of (int, int), list of int or None)
        Spans of the units, and for each token an index into them.
    """
    ends = [end for _, end in units]
    joined: set[int] = set()
    found: list[int | None] = []
    for start, end in tokens:
        if end < 0:
            found.append(None)
            continue
        while start < end and text[start].isspace():
            start += 1
        last = min(bisect_left(ends, end), len(units) - 1)
        found.append(last)
        joined.update(range(bisect_right(ends, start) + 1, last + 1))
    merged: list[Span] = []
    place = []
    for number, (start, end) in enumerate(units):
        if number in joined:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
        place.append(len(merged) - 1)
    return merged, [None if unit is None else place[unit] for unit in found]


def regions_of_tokens(text: str, tokens: Sequence[Span], regions: Mapping[str, Span]) -> list[str | None]:
    """The name of the region that each token is in, None outside all.

    Raises
    ------
    DataError
        If two regions share a token.
    """
    names = sorted(regions, key=lambda name: regions[name])
    if not names:
        return [None] * len(tokens)
    merged, places = assign(text, tokens, [regions[name] for name in names])
    if len(merged) < len(names):
        raise DataError(f"two regions of {quoted(text)} share a token", remedy="let regions end between words")
    return [
        None if place is None or not regions[names[place]][0] < end <= regions[names[place]][1] else names[place]
        for (_, end), place in zip(tokens, places, strict=True)
    ]


def check_regions(regions: Mapping[str, Iterable[int]], text: str, **place) -> dict[str, Span]:
    """Regions as spans; DataError if one is no part of the text, or two overlap."""
    found = {}
    for name, span in regions.items():
        numbers = tuple(span)
        if len(numbers) != 2 or not all(isinstance(number, int) for number in numbers):
            raise DataError(f"region '{name}' is {numbers}, not a pair of whole numbers", **place)
        start, end = numbers
        if not 0 <= start < end <= len(text):
            raise DataError(
                f"region '{name}' is {start}-{end}, but {quoted(text)} has {len(text)} characters", **place
            )
        found[str(name)] = (start, end)
    ordered = sorted(found, key=lambda name: found[name])
    for one, other in pairwise(ordered):
        if found[one][1] > found[other][0]:
            raise DataError(f"regions '{one}' and '{other}' of {quoted(text)} overlap", **place)
    return found
