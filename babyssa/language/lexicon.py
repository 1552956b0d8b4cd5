"""The lexicon: words of child-directed speech, with what is needed to build sentences from them.

One file, ``probes/words.yaml``, serves both the sample corpus and the minimal-pair suite. :func:`load_lexicon`
reads and checks it. The file spells out every inflected form; nothing is derived by rule.

Selection (who can do what to what) is by *kind*: each noun has one kind (person, animal, food, ...), and
verbs, adjectives and prepositions list the kinds, or single nouns, that they plausibly combine with.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from babyssa.errors import DataError, nearest
from babyssa.files import resource
from babyssa.language.source import Source

Gender = Literal["male", "female", "neuter"]


@dataclass(frozen=True, eq=False)
class Noun:
    """A common noun.

    A mass noun has no plural; `gender` is set where the word implies it; a `relational` noun ("brother") takes a
    possessor ("my brother").
    """

    singular: str
    kind: str
    plural: str | None = None
    gender: Gender | None = None
    relational: bool = False

    @property
    def countable(self) -> bool:
        return self.plural is not None

    @property
    def distinct_plural(self) -> bool:
        """Whether singular and plural differ (not so for "fish")."""
        return self.plural is not None and self.plural != self.singular

    def form(self, number: str) -> str:
        """The form for ``"singular"`` or ``"plural"``."""
        if number == "plural" and self.plural is None:
            raise ValueError(f"'{self.singular}' is a mass noun and has no plural")
        return self.plural if number == "plural" else self.singular


@dataclass(frozen=True, eq=False)
class Name:
    """A person's name; `kin` marks kinship terms used as names ("Mommy")."""

    name: str
    gender: Gender
    kin: bool = False


@dataclass(frozen=True, eq=False)
class Verb:
    """A verb with its five forms and its frame.

    `frame` is ``intransitive``, ``transitive`` (the object cannot be dropped), ``ditransitive`` (takes a
    recipient and a theme), ``optional`` (with or without object) or ``locative`` (object and place: "put").
    `objects` are the kinds or nouns of the direct object (of a ditransitive, the theme). `recipient`: also takes
    an indirect object ("buy him a hat"). `motion`: takes a goal ("walk to"). `state`: has no progressive.
    `clause`: takes a clause ("think").
    """

    base: str
    third: str
    past: str
    participle: str
    progressive: str
    frame: Literal["intransitive", "transitive", "ditransitive", "optional", "locative"]
    subjects: tuple[str, ...]
    objects: tuple[str, ...] = ()
    recipient: bool = False
    motion: bool = False
    state: bool = False
    clause: bool = False

    def __post_init__(self):
        if bool(self.objects) == (self.frame == "intransitive"):
            raise ValueError(f"frame '{self.frame}' {'cannot have' if self.objects else 'needs'} objects")


@dataclass(frozen=True, eq=False)
class Adjective:
    """An adjective; `of` lists the kinds or nouns it plausibly describes."""

    word: str
    type: str
    of: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Preposition:
    """A preposition of place; `of` lists the kinds or nouns that may be the place."""

    word: str
    of: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Pronoun:
    """A personal pronoun with its cases."""

    subject: str
    object: str
    possessive: str
    reflexive: str
    person: Literal[1, 2, 3]
    number: Literal["singular", "plural"]
    gender: Gender | None = None


@dataclass(frozen=True, eq=False)
class Lexicon:
    """All words, in file order, and the look-ups that the generators need."""

    nouns: tuple[Noun, ...]
    names: tuple[Name, ...]
    verbs: tuple[Verb, ...]
    adjectives: tuple[Adjective, ...]
    prepositions: tuple[Preposition, ...]
    pronouns: tuple[Pronoun, ...]

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of noun, in order of first mention."""
        return tuple(dict.fromkeys(noun.kind for noun in self.nouns))

    def noun(self, singular: str) -> Noun:
        """The noun with that singular; DataError if there is none."""
        return self._word("nouns", singular)

    def verb(self, base: str) -> Verb:
        """The verb with that base form; DataError if there is none."""
        return self._word("verbs", base)

    def pronoun(self, subject: str) -> Pronoun:
        """The pronoun with that subject form; DataError if there is none."""
        return self._word("pronouns", subject)

    @cached_property
    def _by_identity(self) -> dict[str, dict[str, Any]]:
        return {
            section: {getattr(word, identity): word for word in getattr(self, section)}
            for section, identity in _IDENTITY.items()
        }

    def _word(self, section: str, key: str) -> Any:
        table = self._by_identity[section]
        if key not in table:
            raise DataError(f"the lexicon has no {section.removesuffix('s')} '{key}'", remedy=nearest(key, table))
        return table[key]

    def select(self, of: Iterable[str], **properties: Any) -> tuple[Noun, ...]:
        """The nouns listed in `of` by kind or singular, in file order.

        A word that is both a kind and a noun ("toy") means the kind. The same request returns the same object.

        Parameters
        ----------
        of : iterable of str
            Kinds and singulars.
        **properties
            Keep only nouns with these property values: ``countable=False``, ``gender="female"``.
        """
        of = tuple(of)
        return self._remembered(
            (of, *properties.items()),
            lambda: (
                noun
                for noun in self.nouns
                if self._is_of(noun, of) and all(getattr(noun, p) == value for p, value in properties.items())
            ),
        )

    def _is_of(self, noun: Noun, of: Collection[str]) -> bool:
        return noun.kind in of or (noun.singular in of and noun.singular not in self.kinds)

    def names_of(self, gender: str | None = None, *, kin: bool = False) -> tuple[Name, ...]:
        """The names of one gender (None: of any); kinship terms if `kin`, else proper names."""
        return tuple(n for n in self.names if gender in (None, n.gender) and n.kin == kin)

    def adjectives_of(self, noun: Noun) -> tuple[Adjective, ...]:
        """The adjectives that can plausibly describe the noun."""
        fitting = (adjective for adjective in self.adjectives if self._is_of(noun, adjective.of))
        return self._remembered(("adjectives", noun), lambda: fitting)

    def prepositions_of(self, place: Noun) -> tuple[Preposition, ...]:
        """The prepositions whose place the noun can plausibly be."""
        return tuple(p for p in self.prepositions if self._is_of(place, p.of))

    def takers_of(self, noun: Noun) -> tuple[Verb, ...]:
        """The verbs that can take the noun as their only object."""
        one_object = (verb for verb in self.verbs if verb.frame in ("transitive", "optional"))
        fitting = (verb for verb in one_object if self._is_of(noun, verb.objects))
        return self._remembered(("takers", noun), lambda: fitting)

    def _remembered(self, key: tuple, find: Callable[[], Iterable]) -> tuple:
        if key not in self._answers:
            self._answers[key] = tuple(find())
        return self._answers[key]

    @cached_property
    def _answers(self) -> dict[tuple, tuple]:
        return {}


def indefinite_article(word: str) -> str:
    """``"a"`` or ``"an"``, by the first letter (the lexicon has no "hour" and no "unicorn")."""
    return "an" if word[0].lower() in "aeiou" else "a"


# The sections of the file, and the class of their entries.
_SECTIONS = {
    "nouns": Noun,
    "names": Name,
    "verbs": Verb,
    "adjectives": Adjective,
    "prepositions": Preposition,
    "pronouns": Pronoun,
}

# The field that identifies an entry within its section.
_IDENTITY = {section: dataclasses.fields(kind)[0].name for section, kind in _SECTIONS.items()}

# The fields that list kinds and nouns.
_REFERENCES = ("subjects", "objects", "of")


def load_lexicon(path: str | Path | None = None) -> Lexicon:
    """Read and check a lexicon file.

    Parameters
    ----------
    path : path-like, optional
        By default the packaged ``probes/words.yaml``.

    Raises
    ------
    DataError
        If the file cannot be read, or an entry lacks a field, has an unknown one, duplicates another entry, or
        refers to an unknown kind or noun. Names the line, the entry, and the nearest known name.
    """
    return _WordList(resource("probes", "words.yaml") if path is None else path).lexicon()


class _WordList(Source):
    """A lexicon file being read."""

    def error(self, what: str, *place: str | int, remedy: str | None = None) -> DataError:
        """An error that also names the entry."""
        if len(place) > 1:
            section, i, *_ = place
            entry = self.file.values[section][i]
            identity = entry.get(_IDENTITY[section]) if isinstance(entry, Mapping) else None
            what = f"{section}[{i + 1}]{'' if identity is None else f' ({identity})'}: {what}"
        return super().error(what, *place, remedy=remedy)

    def lexicon(self) -> Lexicon:
        for section in self.file.values:
            self.check_name("section", section, _SECTIONS, section)
        lexicon = Lexicon(**{section: self.entries(section) for section in _SECTIONS})
        known = {*lexicon.kinds, *(noun.singular for noun in lexicon.nouns)}
        for section in _SECTIONS:
            for i, entry in enumerate(getattr(lexicon, section)):
                for field in _REFERENCES:
                    for word in getattr(entry, field, ()):
                        self.check_name("kind or noun", word, known, section, i, field)
        return lexicon

    def entries(self, section: str) -> tuple[Any, ...]:
        entries: dict[str, Any] = {}
        for i in self.items(section):
            raw = self.get(section, i)
            if isinstance(raw, dict) and isinstance(raw.get("forms"), dict):
                raw = {**{key: value for key, value in raw.items() if key != "forms"}, **raw["forms"]}
            entry = self.build(_SECTIONS[section], raw, section, i)
            identity = getattr(entry, _IDENTITY[section])
            if identity in entries:
                raise self.error("is listed twice", section, i, remedy="remove one of them")
            entries[identity] = entry
        return tuple(entries.values())
