"""The notation of templates, shared by the sample corpus and the minimal-pair suite.

A template is text with four kinds of marks:

================  ===================================================================================
``{slot}``        the filler of the slot; ``{slot.form}`` is another form of the same word or phrase. A
                  digit distinguishes two of a kind: ``{noun}`` and ``{noun2}``
``(a|b|)``        a choice; ``(3 a|b)`` chooses "a" three times as often as "b"
``[good|bad]``    the contrast of a minimal pair: the words of the grammatical and ungrammatical sentence
``<name>``        a piece of template that is defined elsewhere in the file
================  ===================================================================================

Marks can be nested in choices and contrasts. :mod:`babyssa.language.slots` defines what can fill a slot.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True)
class Slot:
    """A mention of a slot: its name, its digit, and the requested form (None: the plain one)."""

    name: str
    digit: str = ""
    form: str | None = None

    @property
    def key(self) -> str:
        """The same for all mentions of one filler."""
        return self.name + self.digit


@dataclass(frozen=True)
class Piece:
    """A mention of a piece of template by its name."""

    name: str


@dataclass(frozen=True)
class Choice:
    """Alternatives; `cumulative` are their cumulative weights, None if all are equal."""

    options: tuple[Template, ...]
    cumulative: tuple[float, ...] | None = None

    def draw(self, rng: random.Random) -> Template:
        if self.cumulative is None:
            return rng.choice(self.options)
        return rng.choices(self.options, cum_weights=self.cumulative)[0]


@dataclass(frozen=True)
class Contrast:
    """The two sides of a minimal pair at one place: good and bad."""

    sides: tuple[Template, Template]


Template = tuple[str | Slot | Piece | Choice | Contrast, ...]

_TOKEN = re.compile(r"\{(\w+?)(\d?)(?:\.(\w+))?\}|<(\w+)>|([()\[\]|])|([^{}<>()\[\]|]+)|(.)", re.DOTALL)
_WEIGHT = re.compile(r"(\d+(?:\.\d+)?)(?: |$)")


def parse(text: str) -> Template:
    """Read a template.

    Raises
    ------
    ValueError
        If a bracket is unbalanced, a contrast does not have two sides, or a mark is malformed.
    """
    # The open brackets, each with its alternatives so far; the first entry is the template itself.
    stack: list[tuple[str, list[list]]] = [("", [[]])]
    for token in _TOKEN.finditer(text):
        slot, digit, form, piece, mark, words, stray = token.groups()
        options = stack[-1][1]
        if slot:
            options[-1].append(Slot(slot, digit, form))
        elif piece:
            options[-1].append(Piece(piece))
        elif words:
            options[-1].append(words)
        elif stray:
            raise ValueError(f"'{stray}' in '{text}' is not part of a {{slot}}, {{slot.form}} or <piece>")
        elif mark in "([":
            stack.append((mark, [[]]))
        elif len(stack) == 1:
            raise ValueError(f"'{mark}' in '{text}' is not inside (a|b) or [good|bad]")
        elif mark == "|":
            options.append([])
        else:
            opening, _ = stack.pop()
            if opening + mark not in ("()", "[]"):
                raise ValueError(f"'{opening}' in '{text}' is closed by '{mark}'")
            if opening == "[" and len(options) != 2:
                raise ValueError(f"a contrast in '{text}' has {len(options)} sides, not [good|bad]")
            sides = tuple(map(tuple, options))
            stack[-1][1][-1].append(_choice(sides) if opening == "(" else Contrast(sides))
    if len(stack) > 1:
        raise ValueError(f"'{stack[-1][0]}' in '{text}' is not closed")
    return tuple(stack[0][1][0])


def _choice(options: tuple[Template, ...]) -> Choice:
    """Make a choice of options, which may start with weights."""
    weights, bare = [], []
    for option in options:
        found = _WEIGHT.match(option[0]) if option and isinstance(option[0], str) else None
        weights.append(float(found[1]) if found else 1.0)
        bare.append((option[0][found.end() :], *option[1:]) if found else option)
    return Choice(tuple(bare), tuple(accumulate(weights)) if tuple(bare) != options else None)


def parts_of(template: Template) -> Iterator[str | Slot | Piece | Choice | Contrast]:
    """Yield every part of a template, including nested ones, in the order of the text."""
    for part in template:
        yield part
        inner = part.options if isinstance(part, Choice) else part.sides if isinstance(part, Contrast) else ()
        for option in inner:
            yield from parts_of(option)


def insert(template: Template, pieces: Mapping[str, Template]) -> Template:
    """Replace the mentions of pieces, outside of choices, by the pieces; KeyError for an unknown name."""
    parts: list = []
    for part in template:
        if isinstance(part, Piece):
            parts.extend(pieces[part.name])
        elif isinstance(part, Contrast):
            parts.append(Contrast(tuple(insert(side, pieces) for side in part.sides)))
        else:
            parts.append(part)
    return tuple(parts)


def choose(template: Template, rng: random.Random) -> Template:
    """Make the choices of a template, from left to right."""
    parts: list = []
    for part in template:
        parts.extend(choose(part.draw(rng), rng) if isinstance(part, Choice) else [part])
    return tuple(parts)


def realise(template: Template, fill: Callable[[Slot | Piece], str], side: int = 0) -> str:
    """The text of a template without choices.

    `fill` returns the text of a slot or piece; `side` is 0 for the good sentence and 1 for the bad one.
    """
    texts = []
    for part in template:
        if isinstance(part, Contrast):
            texts.append(realise(part.sides[side], fill, side))
        else:
            texts.append(part if isinstance(part, str) else fill(part))
    return "".join(texts)


def tidy(text: str) -> str:
    """Text with single spaces, and "an" for "a" before a vowel (the lexicon has no "hour" and no "unicorn")."""
    return re.sub(r"\ba (?=[aeiouAEIOU])", "an ", " ".join(text.split()))
