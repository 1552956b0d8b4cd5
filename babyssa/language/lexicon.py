"""The lexicon: the words of child-directed speech, with what it takes to build sentences of them.

One file, ``probes/words.yaml``, serves the sample corpus and the minimal-pair suite. :func:`load_lexicon` reads
and checks it. Every inflected form is written out in the file; nothing is derived by rule.

Selection (who can do what to what) is by *kind*: each noun has one kind (person, animal, food, ...), and
verbs, adjectives and prepositions list the kinds, or single nouns, that plausibly go with them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from babyssa.errors import DataError, nearest
from babyssa.files import YamlMapping, read_yaml, resource


@dataclass(frozen=True, eq=False)
class Noun:
    """A common noun.

    A mass noun has no plural; `gender` is set where the word itself fixes it; a `relational` noun ("brother")
    wants a possessor ("my brother").
    """

    singular: str
    kind: str
    plural: str | None = None
    gender: str | None = None
    relational: bool = False

    @property
    def countable(self) -> bool:
        return self.plural is not None

    @property
    def distinct_plural(self) -> bool:
        """Whether the two numbers can be told apart (not so for "fish")."""
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
    gender: str
    kin: bool = False


@dataclass(frozen=True, eq=False)
class Verb:
    """A verb with its five forms and its frame.

    `frame` is ``intransitive``, ``transitive`` (the object cannot be dropped), ``ditransitive`` (takes a
    recipient and a theme), ``optional`` (with or without object) or ``locative`` (object and place: "put").
    `objects` are the kinds or nouns of the direct object, for a ditransitive of the theme. `recipient`: takes
    an indirect object too ("buy him a hat"). `motion`: goes with a goal ("walk to"). `state`: no
    progressive. `clause`: takes a clause ("think").
    """

    base: str
    third: str
    past: str
    participle: str
    progressive: str
    frame: str
    subjects: tuple[str, ...]
    objects: tuple[str, ...] = ()
    recipient: bool = False
    motion: bool = False
    state: bool = False
    clause: bool = False


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
    person: int
    number: str
    gender: str | None = None


@dataclass(frozen=True, eq=False)
class Lexicon:
    """All words, in the order of the file, with the questions that generators ask of them."""

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
        """The nouns that are of the kinds, or are the nouns, listed in `of`, in the order of the file.

        A word that is both a kind and a noun ("toy") means the kind. The same request gives the same object.

        Parameters
        ----------
        of : iterable of str
            Kinds and singulars.
        **properties
            Only nouns whose property of that name has this value: ``countable=False``, ``gender="female"``.
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
        """The names of a gender (None: of any); only kinship terms if `kin`, else none of them."""
        return tuple(n for n in self.names if gender in (None, n.gender) and n.kin == kin)

    def adjectives_of(self, noun: Noun) -> tuple[Adjective, ...]:
        """The adjectives that plausibly describe the noun."""
        fitting = (adjective for adjective in self.adjectives if self._is_of(noun, adjective.of))
        return self._remembered(("adjectives", noun), lambda: fitting)

    def prepositions_of(self, place: Noun) -> tuple[Preposition, ...]:
        """The prepositions that plausibly take the noun as their place."""
        return tuple(p for p in self.prepositions if self._is_of(place, p.of))

    def takers_of(self, noun: Noun) -> tuple[Verb, ...]:
        """The verbs that can have the noun as their only object."""
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


# The sections of the file, with the class of their entries.
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

_ALLOWED = {
    "gender": ("male", "female", "neuter"),
    "number": ("singular", "plural"),
    "frame": ("intransitive", "transitive", "ditransitive", "optional", "locative"),
    "person": (1, 2, 3),
}

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
        If the file cannot be read, or an entry lacks a field, has an unknown one, repeats another entry, or
        refers to a kind or noun that does not exist. Names the line, the entry, and the nearest known name.
    """
    return _Reader(resource("probes", "words.yaml") if path is None else Path(path)).lexicon()


class _Reader:
    """A lexicon file being read: its content, and errors that say where."""

    def __init__(self, path: Path):
        self.path = path
        self.file: YamlMapping = read_yaml(path)

    def error(self, what: str, *place: str | int, remedy: str | None = None) -> DataError:
        """An error at `place`: a section, the position of an entry in it, and a field."""
        if len(place) > 1:
            entry = self.file.values[place[0]][place[1]]
            identity = entry.get(_IDENTITY[place[0]]) if isinstance(entry, Mapping) else None
            what = f"{place[0]}[{place[1] + 1}]{'' if identity is None else f' ({identity})'}: {what}"
        return DataError(what, path=self.path, line=self.file.line(*place), remedy=remedy)

    def lexicon(self) -> Lexicon:
        for section in self.file.values.keys() - _SECTIONS.keys():
            raise self.error(f"unknown section '{section}'", section, remedy=nearest(str(section), _SECTIONS))
        lexicon = Lexicon(**{section: self.entries(section) for section in _SECTIONS})
        known = {*lexicon.kinds, *(noun.singular for noun in lexicon.nouns)}
        for section in _SECTIONS:
            for i, entry in enumerate(getattr(lexicon, section)):
                for field in _REFERENCES:
                    for word in set(getattr(entry, field, ())) - known:
                        what = f"'{word}' in '{field}' is neither a kind nor a noun"
                        raise self.error(what, section, i, field, remedy=nearest(word, known))
        return lexicon

    def entries(self, section: str) -> tuple[Any, ...]:
        raw = self.file.values.get(section)
        if not isinstance(raw, list) or not raw:
            what = f"section '{section}' is missing or empty"
            raise self.error(what, section, remedy="give it a list of entries")
        entries: dict[str, Any] = {}
        for i, fields in enumerate(raw):
            entry = self.entry(fields, section, i)
            identity = getattr(entry, _IDENTITY[section])
            if identity in entries:
                raise self.error("is listed twice", section, i, remedy="remove one of them")
            entries[identity] = entry
        return tuple(entries.values())

    def entry(self, raw: Any, section: str, i: int) -> Any:
        """Build one word from one YAML mapping, or say what is wrong with it."""
        if not isinstance(raw, dict):
            raise self.error(f"'{raw}' is not a mapping of fields", section, i)
        if isinstance(raw.get("forms"), dict):
            raw = {**{key: value for key, value in raw.items() if key != "forms"}, **raw["forms"]}
        fields = {field.name: field for field in dataclasses.fields(_SECTIONS[section])}
        for key in raw.keys() - fields.keys():
            raise self.error(f"unknown field '{key}'", section, i, key, remedy=nearest(str(key), fields))
        values = {}
        for name, field in fields.items():
            if raw.get(name) is not None:
                values[name] = self.value(raw[name], field.type, section, i, name)
            elif field.default is dataclasses.MISSING:
                raise self.error(f"field '{name}' is missing", section, i)
        entry = _SECTIONS[section](**values)
        if isinstance(entry, Verb) and bool(entry.objects) == (entry.frame == "intransitive"):
            need = "cannot have" if entry.objects else "needs"
            raise self.error(f"frame '{entry.frame}' {need} objects", section, i, "frame")
        return entry

    def value(self, value: Any, annotation: str, *place: str | int) -> Any:
        """Check one field by the annotation of its dataclass (a string, as annotations are not evaluated)."""
        name = place[-1]
        if annotation.startswith("tuple"):
            if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
                raise self.error(f"field '{name}' is not a list of words", *place)
            return tuple(value)
        expected = {"bool": bool, "int": int}.get(annotation, str)
        if type(value) is not expected:
            hint = 'put it in quotes ("no", "on" and "yes" are truth values in YAML)' if expected is str else None
            raise self.error(f"field '{name}' is {value!r}, not a {expected.__name__}", *place, remedy=hint)
        if expected is str and (not value or value != " ".join(value.split())):
            raise self.error(f"field '{name}' is empty or has stray white space", *place)
        if value not in _ALLOWED.get(name, (value,)):
            known = ", ".join(map(str, _ALLOWED[name]))
            raise self.error(f"field '{name}' is '{value}'", *place, remedy=f"known: {known}")
        return value
