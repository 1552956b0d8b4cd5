"""What can fill the slots of templates: definitions read from YAML, and the words of the lexicon that fit them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from babyssa.errors import nearest
from babyssa.language.lexicon import (
    Adjective,
    Lexicon,
    Name,
    Noun,
    Preposition,
    Pronoun,
    Verb,
    indefinite_article,
)
from babyssa.language.source import Source, Weights
from babyssa.language.templates import Slot, Template, parse

Word = Noun | Name | Verb | Adjective | Preposition | Pronoun | str

# The fields that say what fills a slot, and the forms of each that a template can request.
_WORD_FORMS = {
    "noun": ("plural",),
    "name": (),
    "pronoun": ("object", "possessive", "reflexive", "subject"),
    "verb": ("third", "past", "participle", "progressive"),
    "preposition": (),
    "word": (),
    "adjective_of": (),
}

# The fields that list words of the lexicon, with their part of speech.
_WORDS_OF = {
    **{"noun": "noun", "pronoun": "pronoun", "preposition": "preposition", "among": "adjective"},
    **{"verb": "verb", "but_not": "verb", "not_asked": "verb"},
    **{"phrase": "noun or 'any'", "action": "verb or 'any'"},
}

# The form of a word if the template names none.
_PLAIN_FORM = {
    Noun: "singular",
    Name: "name",
    Verb: "base",
    Adjective: "word",
    Preposition: "word",
    Pronoun: "subject",
}


@dataclass(frozen=True, eq=False)
class SlotDefinition:
    """What can fill a slot. Exactly one of the first ten attributes is set; it is the slot's sort.

    The suite's slots hold words (the first seven sorts), drawn uniformly. The sample's mostly hold phrases, with
    determiners, adjectives, objects and so on, drawn by frequency. A mapping instead of a list gives weights; a
    weight of two numbers applies at the youngest and the oldest age.

    Attributes
    ----------
    noun : tuple of str
        Kinds and individual nouns of the lexicon.
    name : str
        ``male``, ``female`` or ``any``.
    pronoun : tuple or mapping of str
        Pronouns, by their subject form.
    verb, preposition : tuple of str
        The words, by their base form or only form.
    word : tuple of str
        Words or phrases, used as they are.
    adjective_of : str
        The noun slot that the adjective describes.
    phrase : tuple of str
        A noun phrase with a noun of these kinds; ``any`` is all kinds.
    action : tuple of str
        A verb phrase with one of these verbs; ``any`` is all verbs.
    either : tuple or mapping of str
        Other slots, one of which is drawn.
    object_of, subject_of, place_of : tuple of str
        Slots of the verbs (or the preposition) that the noun must fit.
    among : tuple of str
        Only these adjectives.
    gender : str
        Only nouns of this gender.
    mass, relational : bool
        Include mass nouns; include relational nouns ("brother"). Phrases include both.
    initial : str
        ``consonant``: only nouns that take "a".
    number : str, or tuple or mapping of str
        ``singular`` or ``plural``. By default a phrase is sometimes plural.
    determiner : str
        The form of the phrase if the template names none.
    modified : bool
        Adds a prepositional phrase or a relative clause after the noun.
    subject : bool
        A verb phrase agrees with this slot, if it is the first such slot with its digit.
    but_not, not_asked : tuple of str
        Verbs to exclude; verbs to exclude from requests to the child as well.
    frame : tuple of str
        Only verbs with these frames.
    state, clause : bool
        Only verbs with (true) or without (false) this property.
    complement : str
        What follows the verb: everything it takes (default), ``reflexive`` or ``none``.
    """

    noun: tuple[str, ...] = ()
    name: Literal["male", "female", "any"] | None = None
    pronoun: Weights = ()
    verb: tuple[str, ...] = ()
    preposition: tuple[str, ...] = ()
    word: tuple[str, ...] = ()
    adjective_of: str | None = None
    phrase: tuple[str, ...] = ()
    action: tuple[str, ...] = ()
    either: Weights = ()
    object_of: tuple[str, ...] = ()
    subject_of: tuple[str, ...] = ()
    place_of: tuple[str, ...] = ()
    among: tuple[str, ...] = ()
    gender: str | None = None
    mass: bool = False
    relational: bool = False
    initial: str | None = None
    number: Weights = ()
    determiner: str | None = None
    modified: bool = False
    subject: bool = False
    but_not: tuple[str, ...] = ()
    not_asked: tuple[str, ...] = ()
    frame: tuple[str, ...] = ()
    state: bool | None = None
    clause: bool | None = None
    complement: str | None = None

    def __post_init__(self):
        sorts = (*_WORD_FORMS, "phrase", "action", "either")
        found = [sort for sort in sorts if getattr(self, sort)]
        if len(found) != 1:
            given = " and ".join(found) or "none"
            raise ValueError(f"a slot needs exactly one of {', '.join(sorts)}, not {given}")

    @property
    def sort(self) -> str:
        """The name of the attribute that says what fills the slot."""
        return next(sort for sort in (*_WORD_FORMS, "phrase", "action", "either") if getattr(self, sort))

    @property
    def is_phrase(self) -> bool:
        """Whether phrases rather than words fill it."""
        return self.sort not in _WORD_FORMS

    @property
    def forms(self) -> tuple[str, ...]:
        """The forms of a word, other than the plain one, that a template can request."""
        return _WORD_FORMS.get(self.sort, ())

    @property
    def depends_on(self) -> tuple[str, ...]:
        """The slots that must be filled before this one."""
        described = () if self.adjective_of is None else (self.adjective_of,)
        return described + self.object_of + self.subject_of + self.place_of


_LISTS = {field.name for field in fields(SlotDefinition) if field.type.startswith(("tuple", "Weights"))}


def candidates(slot: SlotDefinition, lexicon: Lexicon) -> tuple[Word, ...]:
    """The words that can fill a slot of words; for a verb phrase, its verbs."""
    if slot.noun:
        properties: dict[str, Any] = {} if slot.gender is None else {"gender": slot.gender}
        if not slot.relational:
            properties["relational"] = False
        nouns = lexicon.select(slot.noun, **properties)
        if slot.initial == "consonant":
            nouns = tuple(noun for noun in nouns if indefinite_article(noun.singular) == "a")
        return nouns if slot.mass else tuple(noun for noun in nouns if noun.countable)
    if slot.name:
        return lexicon.names_of(None if slot.name == "any" else slot.name)
    if slot.action:
        return tuple(
            verb
            for verb in lexicon.verbs
            if (verb.base in slot.action or slot.action == ("any",))
            and verb.base not in slot.but_not
            and (not slot.frame or verb.frame in slot.frame)
            and slot.state in (None, verb.state)
            and slot.clause in (None, verb.clause)
        )
    if slot.verb:
        return tuple(map(lexicon.verb, slot.verb))
    if slot.pronoun:
        return tuple(map(lexicon.pronoun, slot.pronoun))
    if slot.preposition:
        return tuple(p for p in lexicon.prepositions if p.word in slot.preposition)
    if slot.adjective_of:
        return tuple(a for a in lexicon.adjectives if not slot.among or a.word in slot.among)
    return slot.word


def form(word: Word, name: str | None) -> str:
    """A form of a word by name; by default, the plain form."""
    return word if isinstance(word, str) else getattr(word, name or _PLAIN_FORM[type(word)])


class TemplateFile(Source):
    """A YAML file of slots and templates being read.

    Parameters
    ----------
    path : path-like
        The file.
    lexicon : Lexicon
        The words that slots may name.
    """

    def __init__(self, path: str | Path, lexicon: Lexicon):
        super().__init__(path)
        verbs = [verb.base for verb in lexicon.verbs]
        nouns = [*lexicon.kinds, *(noun.singular for noun in lexicon.nouns)]
        self._known = {
            "verb": verbs,
            "noun": nouns,
            "verb or 'any'": ["any", *verbs],
            "noun or 'any'": ["any", *nouns],
            "pronoun": [pronoun.subject for pronoun in lexicon.pronouns],
            "preposition": [preposition.word for preposition in lexicon.prepositions],
            "adjective": [adjective.word for adjective in lexicon.adjectives],
        }

    def template(self, text: Any, *place: str | int) -> Template:
        if not isinstance(text, str):
            raise self.error(f"{text!r} is not text", *place, remedy="put it in quotes")
        try:
            return parse(text)
        except ValueError as error:
            raise self.error(str(error), *place) from None

    def pieces(self, *place: str | int) -> dict[str, Template]:
        """The pieces of template in a mapping."""
        texts = self.get(*place, default={})
        return {name: self.template(text, *place, name) for name, text in texts.items()}

    def slots(
        self, *place: str | int, common: Mapping[str, SlotDefinition] | None = None
    ) -> dict[str, SlotDefinition]:
        """The slot definitions of a mapping, added to `common`; every slot that they refer to must exist."""
        slots = dict(common or {})
        own = self.get(*place, default={})
        for name, raw in own.items():
            slots[name] = self._definition(raw, *place, name)
            if slots[name].phrase:
                slots[f"sg_{name}"] = replace(slots[name], number=("singular",))
                slots[f"pl_{name}"] = replace(slots[name], number=("plural",))
        for name in own:
            for other in (*slots[name].depends_on, *slots[name].either):
                self.check_name("slot", other, slots, *place, name)
        return slots

    def _definition(self, raw: Any, *place: str | int) -> SlotDefinition:
        if isinstance(raw, dict):
            # One word stands for a list of one.
            raw = {
                key: [value] if key in _LISTS and isinstance(value, str) else value for key, value in raw.items()
            }
        slot = self.build(SlotDefinition, raw, *place)
        for field, sort in _WORDS_OF.items():
            self.check_words(sort, getattr(slot, field), *place, field)
        return slot

    def check_words(self, sort: str, words: Iterable[str], *place: str | int) -> None:
        """Raise DataError unless the lexicon has these words in that sort."""
        for word in words:
            self.check_name(sort, word, self._known[sort], *place)

    def check_slot(
        self, slot: Slot, slots: Mapping[str, SlotDefinition], forms: Iterable[str], *place: str | int
    ) -> None:
        """Raise DataError unless the slot is defined and the requested form is among `forms`."""
        self.check_name("slot", slot.name, slots, *place)
        if slot.form is not None and slot.form not in forms:
            known = nearest(slot.form, forms)
            raise self.error(f"slot '{slot.name}' has no form '{slot.form}'", *place, remedy=known)
