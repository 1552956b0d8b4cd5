"""The lexicon: the words of child-directed speech, with what is needed to build sentences of them.

One file, ``probes/words.yaml``, serves the sample corpus and the minimal-pair suite. :func:`load_lexicon` reads
and checks it. Every inflected form is written out in the file; nothing is derived by rule.

Selection (who can do what to what) is by *kind*: each noun has one kind (person, animal, food, ...), and
verbs, adjectives and prepositions list the kinds, or single nouns, that plausibly go with them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from babyssa.errors import DataError, nearest
from babyssa.files import read_yaml, resource

GENDERS = ("male", "female", "neuter")
NUMBERS = ("singular", "plural")
FRAMES = ("intransitive", "transitive", "ditransitive", "optional", "locative")


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Name:
    """A person's name; `kin` marks kinship terms used as names ("Mommy")."""

    name: str
    gender: str
    kin: bool = False


@dataclass(frozen=True)
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

    @property
    def irregular(self) -> bool:
        """Whether the past is not formed with -ed."""
        return not self.past.endswith("ed")

    @property
    def distinct_participle(self) -> bool:
        """Whether past, participle and base are three forms ("ate", "eaten", "eat")."""
        return len({self.base, self.past, self.participle}) == 3


@dataclass(frozen=True)
class Adjective:
    """An adjective; `of` lists the kinds or nouns it plausibly describes."""

    word: str
    type: str
    of: tuple[str, ...]


@dataclass(frozen=True)
class Preposition:
    """A preposition of place; `of` lists the kinds or nouns that may be the place."""

    word: str
    of: tuple[str, ...]


@dataclass(frozen=True)
class Pronoun:
    """A personal pronoun with its cases."""

    subject: str
    object: str
    possessive: str
    reflexive: str
    person: int
    number: str
    gender: str | None = None


@dataclass(frozen=True)
class Determiner:
    """A determiner; `number` is that of the noun it takes, None for both."""

    word: str
    number: str | None = None


@dataclass(frozen=True)
class Quantifier:
    """A quantifier; strong ones cannot follow existential "there"."""

    word: str
    strength: str
    number: str | None = None


@dataclass(frozen=True)
class NumberWord:
    """A cardinal number."""

    word: str
    value: int


@dataclass(frozen=True)
class Lexicon:
    """All words, in the order of the file, with the questions that generators ask of them."""

    nouns: tuple[Noun, ...]
    names: tuple[Name, ...]
    verbs: tuple[Verb, ...]
    adjectives: tuple[Adjective, ...]
    prepositions: tuple[Preposition, ...]
    pronouns: tuple[Pronoun, ...]
    determiners: tuple[Determiner, ...]
    quantifiers: tuple[Quantifier, ...]
    numbers: tuple[NumberWord, ...]

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of noun, in order of first mention."""
        return tuple(dict.fromkeys(noun.kind for noun in self.nouns))

    @cached_property
    def _noun(self) -> Mapping[str, Noun]:
        return {noun.singular: noun for noun in self.nouns}

    @cached_property
    def _verb(self) -> Mapping[str, Verb]:
        return {verb.base: verb for verb in self.verbs}

    def noun(self, singular: str) -> Noun:
        """The noun with that singular; DataError if there is none."""
        return _look_up(self._noun, singular, "noun")

    def verb(self, base: str) -> Verb:
        """The verb with that base form; DataError if there is none."""
        return _look_up(self._verb, base, "verb")

    def pronoun(self, subject: str) -> Pronoun:
        """The pronoun with that subject form; DataError if there is none."""
        return _look_up({p.subject: p for p in self.pronouns}, subject, "pronoun")

    def select(
        self,
        of: Iterable[str],
        *,
        countable: bool | None = None,
        distinct_plural: bool | None = None,
        gender: str | None = None,
        relational: bool | None = None,
    ) -> tuple[Noun, ...]:
        """The nouns that are of the kinds, or are the nouns, listed in `of`, in the order of the file.

        A word that is both a kind and a noun ("toy") means the kind.

        Parameters
        ----------
        of : iterable of str
            Kinds and singulars.
        countable, distinct_plural, relational : bool, optional
            Only nouns for which the property of that name has this value.
        gender : str, optional
            Only nouns whose gender is fixed to this one.
        """
        wanted = set(of)
        return tuple(
            noun
            for noun in self.nouns
            if self._is_of(noun, wanted)
            and countable in (None, noun.countable)
            and distinct_plural in (None, noun.distinct_plural)
            and gender in (None, noun.gender)
            and relational in (None, noun.relational)
        )

    def _is_of(self, noun: Noun, wanted: Collection[str]) -> bool:
        return noun.kind in wanted or (noun.singular in wanted and noun.singular not in self.kinds)

    def nouns_of(self, *kinds: str, **conditions) -> tuple[Noun, ...]:
        """:meth:`select` with the kinds as arguments: ``nouns_of("food", "drink", countable=False)``."""
        return self.select(kinds, **conditions)

    def names_of(self, gender: str | None = None, *, kin: bool | None = False) -> tuple[Name, ...]:
        """The names of a gender; without kinship terms unless `kin` is True (only those) or None (all)."""
        return tuple(n for n in self.names if gender in (None, n.gender) and kin in (None, n.kin))

    def verbs_of(self, *frames: str, **conditions: bool) -> tuple[Verb, ...]:
        """The verbs of one of the frames for which each named property has the given value.

        ``verbs_of("transitive", "optional", state=False, irregular=True)``
        """
        return tuple(
            verb
            for verb in self.verbs
            if verb.frame in frames and all(getattr(verb, name) is value for name, value in conditions.items())
        )

    def subjects_of(self, verb: Verb, **conditions) -> tuple[Noun, ...]:
        """The nouns that can be the verb's subject; `conditions` as in :meth:`select`."""
        return self.select(verb.subjects, **conditions)

    def objects_of(self, verb: Verb, **conditions) -> tuple[Noun, ...]:
        """The nouns that can be the verb's direct object; `conditions` as in :meth:`select`."""
        return self.select(verb.objects, **conditions)

    def adjectives_of(self, noun: Noun) -> tuple[Adjective, ...]:
        """The adjectives that plausibly describe the noun."""
        return tuple(a for a in self.adjectives if self._is_of(noun, a.of))

    def prepositions_of(self, place: Noun) -> tuple[Preposition, ...]:
        """The prepositions that plausibly take the noun as their place."""
        return tuple(p for p in self.prepositions if self._is_of(place, p.of))

    def determiners_of(self, number: str) -> tuple[Determiner, ...]:
        """The determiners that mark that number, and so not "the"."""
        return tuple(d for d in self.determiners if d.number == number)

    def quantifiers_of(self, strength: str, number: str | None = None) -> tuple[Quantifier, ...]:
        """The weak or strong quantifiers; with `number`, only those that take a noun of that number."""
        return tuple(
            q
            for q in self.quantifiers
            if q.strength == strength and (number is None or q.number in (None, number))
        )

    def words(self) -> tuple[str, ...]:
        """Every form of every word, each once, in the order of the file."""
        forms: dict[str, None] = {}
        for section in _SECTIONS:
            for entry in getattr(self, section):
                forms.update(dict.fromkeys(getattr(entry, f) for f in _FORMS[type(entry)] if getattr(entry, f)))
        return tuple(forms)


def indefinite_article(word: str) -> str:
    """``"a"`` or ``"an"``, by the first letter (the lexicon has no "hour" and no "unicorn")."""
    return "an" if word[0].lower() in "aeiou" else "a"


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
        refers to a kind or noun that does not exist. The message names the entry.
    """
    path = resource("probes", "words.yaml") if path is None else Path(path)
    raw = read_yaml(path).values
    for section in raw.keys() - _SECTIONS.keys():
        raise DataError(f"unknown section '{section}'", path=path, remedy=nearest(str(section), _SECTIONS))
    sections = {}
    for section, kind in _SECTIONS.items():
        entries = raw.get(section)
        if not isinstance(entries, list) or not entries:
            raise DataError(
                f"section '{section}' is missing or empty", path=path, remedy="give it a list of entries"
            )
        sections[section] = tuple(_read_entry(kind, e, f"{section}[{i}]", path) for i, e in enumerate(entries, 1))
        _refuse_repeats(section, sections[section], path)
    lexicon = Lexicon(**sections)
    _check_references(lexicon, path)
    return lexicon


_SECTIONS = {
    "nouns": Noun,
    "names": Name,
    "verbs": Verb,
    "adjectives": Adjective,
    "prepositions": Preposition,
    "pronouns": Pronoun,
    "determiners": Determiner,
    "quantifiers": Quantifier,
    "numbers": NumberWord,
}

# The fields that are words of the language; the first identifies the entry within its section.
_FORMS = {
    Noun: ("singular", "plural"),
    Name: ("name",),
    Verb: ("base", "third", "past", "participle", "progressive"),
    Adjective: ("word",),
    Preposition: ("word",),
    Pronoun: ("subject", "object", "possessive", "reflexive"),
    Determiner: ("word",),
    Quantifier: ("word",),
    NumberWord: ("word",),
}

_ALLOWED = {
    "gender": GENDERS,
    "number": NUMBERS,
    "frame": FRAMES,
    "strength": ("weak", "strong"),
    "person": (1, 2, 3),
}


def _look_up(table: Mapping, key: str, what: str):
    try:
        return table[key]
    except KeyError:
        raise DataError(f"the lexicon has no {what} '{key}'", remedy=nearest(key, table)) from None


def _read_entry(kind: type, raw: Any, where: str, path: Path):
    """Build one dataclass from one YAML mapping, or say what is wrong with it."""
    if not isinstance(raw, dict):
        raise DataError(f"{where}: '{raw}' is not a mapping of fields", path=path)
    if kind is Verb and isinstance(raw.get("forms"), dict):
        raw = {**{key: value for key, value in raw.items() if key != "forms"}, **raw["forms"]}
    identity = raw.get(_FORMS[kind][0])
    where = f"{where} ({identity})" if identity is not None else where
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for key in raw.keys() - fields.keys():
        raise DataError(f"{where}: unknown field '{key}'", path=path, remedy=nearest(str(key), fields))
    values = {}
    for name, field in fields.items():
        if raw.get(name) is None:
            if field.default is dataclasses.MISSING:
                raise DataError(f"{where}: field '{name}' is missing", path=path)
            continue
        values[name] = _read_value(raw[name], name, field.type, where, path)
    entry = kind(**values)
    if kind is Verb and bool(entry.objects) == (entry.frame == "intransitive"):
        need = "cannot have" if entry.objects else "needs"
        raise DataError(f"{where}: frame '{entry.frame}' {need} objects", path=path)
    return entry


def _read_value(value: Any, name: str, annotation: str, where: str, path: Path) -> Any:
    """Check one field by the annotation of its dataclass (a string, as annotations are not evaluated)."""
    if annotation.startswith("tuple"):
        if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
            raise DataError(f"{where}: field '{name}' is not a list of words", path=path)
        return tuple(value)
    expected = {"bool": bool, "int": int}.get(annotation, str)
    if type(value) is not expected:
        hint = 'put it in quotes ("no", "on" and "yes" are truth values in YAML)' if expected is str else None
        raise DataError(f"{where}: field '{name}' is {value!r}, not a {expected.__name__}", path=path, remedy=hint)
    if expected is str and (not value or value != " ".join(value.split())):
        raise DataError(f"{where}: field '{name}' is empty or has stray white space", path=path)
    if name in _ALLOWED and value not in _ALLOWED[name]:
        known = ", ".join(map(str, _ALLOWED[name]))
        raise DataError(f"{where}: field '{name}' is '{value}'", path=path, remedy=f"known: {known}")
    return value


def _refuse_repeats(section: str, entries: tuple, path: Path) -> None:
    seen = set()
    for i, entry in enumerate(entries, 1):
        identity = getattr(entry, _FORMS[type(entry)][0])
        if identity in seen:
            raise DataError(
                f"{section}[{i}] ({identity}): is listed twice", path=path, remedy="remove one of them"
            )
        seen.add(identity)


def _check_references(lexicon: Lexicon, path: Path) -> None:
    """Every kind or noun that a verb, adjective or preposition lists must exist."""
    known = {*lexicon.kinds, *(noun.singular for noun in lexicon.nouns)}
    for section, names in (("verbs", ("subjects", "objects")), ("adjectives", ("of",)), ("prepositions", ("of",))):
        for i, entry in enumerate(getattr(lexicon, section), 1):
            for name in names:
                for reference in getattr(entry, name):
                    if reference not in known:
                        identity = getattr(entry, _FORMS[type(entry)][0])
                        raise DataError(
                            f"{section}[{i}] ({identity}): '{reference}' in '{name}' is neither a kind nor a noun",
                            path=path,
                            remedy=nearest(reference, known),
                        )
