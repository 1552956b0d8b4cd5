"""How adults speak to children: the templates of ``data/registers.yaml``, the habits of ``data/usage.yaml``."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from babyssa.files import resource
from babyssa.language.lexicon import Lexicon, Noun, Verb
from babyssa.language.slots import SlotDefinition, TemplateFile, candidates
from babyssa.language.source import Weights
from babyssa.language.templates import Choice, Piece, Slot, Template, parts_of

# Slots that are built by the grammar, not defined in the file.
BUILT_IN = ("child", "boy", "friend", "where")

END_MARKS = (".", "?", "!", "+")

# The forms of a noun phrase, besides determiners and agreement, and those of a verb phrase.
PHRASE_FORMS = ("the", "bare", "head", "adj", "attr", "pronoun", "object", "possessive", "reflexive")
ACTION_FORMS = ("present", "past", "participle", "progressive")

# The determiners and pieces that the grammar uses by name.
_DETERMINERS = ("any_determiner", "a", "definite", "unowned", "relational", "place")
_PIECES = (
    *("number", "goal", "here", "mood", "gender", "size", "after_object", "after_verb", "thing_pronoun"),
    *("mass_pronoun", "other_than_1", "other_than_2", "other_than_3", "joining", "one_word", "telegraphic"),
)


@dataclass(frozen=True)
class Register:
    """What is said on one kind of occasion: templates, and weights at the youngest and the oldest age."""

    name: str
    young: float
    old: float
    templates: Choice
    joined: bool
    plain: bool


@dataclass(frozen=True)
class Registers:
    """The content of ``registers.yaml``; determiners by name, then by number (singular, plural, mass)."""

    slots: Mapping[str, SlotDefinition]
    agreement: Mapping[str, tuple[str, str, str]]
    determiners: Mapping[str, Mapping[str, Template]]
    pieces: Mapping[str, Template]
    registers: Mapping[str, Register]


def load_registers(lexicon: Lexicon, path: str | Path | None = None) -> Registers:
    """Read and check the registers, by default the packaged ``data/registers.yaml``.

    Raises
    ------
    DataError
        If a template is malformed or names an unknown slot, form, piece or word. Names the line and the nearest
        known name.
    """
    file = TemplateFile(resource("data", "registers.yaml") if path is None else path, lexicon)
    slots = file.slots("slots")
    agreement = {name: _agreeing(file, "agreement", name) for name in file.get("agreement")}
    determiners = {name: _determiner(file, "determiners", name) for name in file.get("determiners")}
    pieces = file.pieces("pieces")
    for section, known, needed in (
        ("determiners", determiners, _DETERMINERS),
        ("pieces", pieces, _PIECES),
    ):
        for name in needed:
            file.check_name(section.removesuffix("s"), name, known, section)
    forms = {"phrase": (*PHRASE_FORMS, *agreement, *determiners), "action": ACTION_FORMS}
    forms |= dict.fromkeys(("name", "pronoun", "either"), forms["phrase"])

    def check(template: Template, *place: str | int) -> Template:
        for part in parts_of(template):
            if isinstance(part, Piece):
                file.check_name("piece", part.name, {**pieces, **determiners}, *place)
            elif isinstance(part, Slot) and part.name not in BUILT_IN:
                sort = slots[part.name].sort if part.name in slots else ""
                file.check_slot(part, slots, forms.get(sort, ()), *place)
        return template

    for section, templates in (("pieces", pieces), ("determiners", determiners)):
        for name, template in templates.items():
            for each in [template] if section == "pieces" else template.values():
                check(each, section, name)
    for name, slot in slots.items():
        if slot.determiner is not None:
            file.check_name("determiner", slot.determiner, determiners, "slots", name)
    registers = {}
    for name in file.get("registers"):
        place = ("registers", name, "templates")
        weights, templates = [], []
        for i in file.items(*place):
            found = re.fullmatch(r"(\d+(?:\.\d+)?) (.+)", str(file.get(*place, i)))
            if found is None or not _ends_in_mark(file.template(found[2], *place, i)):
                what = f"'{file.get(*place, i)}' is not a weight and a template with an end mark"
                raise file.error(what, *place, i, remedy="write '2 where is {noun.the} ?'")
            weights.append(float(found[1]))
            templates.append(check(file.template(found[2], *place, i), *place, i))
        registers[name] = Register(
            name,
            file.number("registers", name, "young"),
            file.number("registers", name, "old"),
            Choice(tuple(templates), tuple(accumulate(weights))),
            file.get("registers", name, "joined", default=False),
            file.get("registers", name, "plain", default=False),
        )
    return Registers(slots, agreement, determiners, pieces, registers)


def _ends_in_mark(template: Template) -> bool:
    """Whether every utterance of a template ends in an end mark, for every choice."""
    earlier = [text.strip() for part in template if isinstance(part, str) for text in part.split("/")[:-1]]
    last = template[-1] if template else ""
    if isinstance(last, Choice):
        ended = all(map(_ends_in_mark, last.options))
    else:
        ended = isinstance(last, str) and last.rstrip().endswith(END_MARKS)
    return ended and all(text.endswith(END_MARKS) for text in earlier if text)


def _agreeing(file: TemplateFile, *place: str) -> tuple[str, str, str]:
    """Verb forms for third person singular, for others, and for "I" (by default as for others)."""
    forms = [file.get(*place, i) for i in file.items(*place)]
    if len(forms) not in (2, 3) or not all(isinstance(form, str) for form in forms):
        raise file.error(f"'{place[-1]}' needs two or three forms", *place, remedy="write [is, are, am]")
    return (*forms, forms[1])[:3]


def _determiner(file: TemplateFile, *place: str) -> dict[str, Template]:
    """Templates for a singular, a plural and a mass noun; a single one serves all three."""
    given = file.get(*place)
    texts = given if isinstance(given, list) else [given] * 3
    if len(texts) != 3:
        raise file.error(f"'{place[-1]}' needs one determiner or three", *place, remedy="singular, plural, mass")
    return dict(zip(("singular", "plural", "mass"), (file.template(text, *place) for text in texts), strict=True))


@dataclass(frozen=True)
class Habits:
    """The content of ``usage.yaml``, documented there; a contraction is a pattern, a short form and a share."""

    frequent_verbs: tuple[str, ...]
    frequent_adjectives: tuple[str, ...]
    frequent_prepositions: Weights
    owned: tuple[str, ...]
    posture_verbs: tuple[str, ...]
    goalless_verbs: tuple[str, ...]
    addressing_verbs: tuple[str, ...]
    dative_verbs: tuple[str, ...]
    full_object_verbs: tuple[str, ...]
    openings: Weights
    statement_openings: tuple[str, ...]
    contractions: tuple[tuple[re.Pattern, str, float], ...] = ()
    rare_nouns: tuple[Noun, ...] = ()


def load_habits(lexicon: Lexicon, path: str | Path | None = None) -> Habits:
    """Read and check how words are used, by default the packaged ``data/usage.yaml``.

    Raises
    ------
    DataError
        If a field is missing or a word is not in the lexicon. Names the line and the nearest known word.
    """
    file = TemplateFile(resource("data", "usage.yaml") if path is None else path, lexicon)
    own = ("contractions", "rare_nouns")
    habits = file.build(Habits, {key: value for key, value in file.file.values.items() if key not in own})
    sorts = {name: "verb" for name in vars(habits) if name.endswith("_verbs")}
    sorts |= {"frequent_adjectives": "adjective", "frequent_prepositions": "preposition", "owned": "noun"}
    for name, sort in sorts.items():
        file.check_words(sort, getattr(habits, name), name)
    for kind in file.get("rare_nouns"):
        file.check_name("kind", kind, lexicon.kinds, "rare_nouns", kind)
    return replace(
        habits,
        contractions=tuple(_contraction(file, i) for i in file.items("contractions")),
        rare_nouns=tuple(_rare_nouns(file.get("rare_nouns"), {noun.singular for noun in lexicon.nouns})),
    )


def _contraction(file: TemplateFile, i: int) -> tuple[re.Pattern, str, float]:
    try:
        pattern, short, share = file.get("contractions", i)
        return re.compile(pattern), short, float(share)
    except (TypeError, ValueError, re.error) as error:
        what = f"contractions[{i + 1}] is not [pattern, short form, share]: {error}"
        raise file.error(what, "contractions", i) from None


def _rare_nouns(kinds: Mapping[str, Iterable[Any]], known: set[str]) -> Iterator[Noun]:
    """Yield the nouns that are not in the lexicon, with their plural in the file or else a regular one."""
    for kind, entries in kinds.items():
        for entry in entries:
            ((singular, plural),) = entry.items() if isinstance(entry, dict) else [(entry, None)]
            if singular not in known:
                yield Noun(singular, kind, plural or _regular_plural(singular))


def _regular_plural(noun: str) -> str:
    if re.search(r"[^aeiou]y$", noun):
        return f"{noun[:-1]}ies"
    return noun + ("es" if re.search(r"(s|x|z|ch|sh)$", noun) else "s")


class Usage:
    """The lexicon extended by rare nouns, and a weight for each word.

    Weights fall with the rank, within a kind of noun and among verbs, by Zipf's law with an offset (Mandelbrot
    1953) that keeps low-ranked words learnable. Ranks are drawn from `rng`.
    """

    def __init__(self, common: Lexicon, habits: Habits, rng: random.Random):
        self.common = common
        self.habits = habits
        self.lexicon = replace(common, nouns=(*common.nouns, *habits.rare_nouns))
        self.weight: dict[Any, float] = {}
        self._found: dict[tuple, tuple] = {}
        for noun in habits.rare_nouns:
            self.weight[noun] = 0.0012 * min(rng.paretovariate(0.8), 15)
        for kind in common.kinds:
            nouns = common.select((kind,))
            for rank, noun in enumerate(rng.sample(nouns, len(nouns))):
                self.weight[noun] = 1 / (rank + 20)
        verbs = rng.sample(common.verbs, len(common.verbs))
        verbs.sort(key=lambda verb: verb.base not in habits.frequent_verbs)
        self.weight |= {verb: 1 / (rank + 50) for rank, verb in enumerate(verbs)}
        for adjective in common.adjectives:
            self.weight[adjective] = 5.0 if adjective.word in habits.frequent_adjectives else rng.uniform(1, 3)
        self.weight |= {p: habits.frequent_prepositions.get(p.word, 1.4) for p in common.prepositions}

    def candidates(self, slot: SlotDefinition) -> tuple[Any, ...]:
        """The words that can fill a slot; the same object at every call."""
        return self._remembered((slot,), lambda: candidates(slot, self.lexicon))

    def _remembered(self, key: tuple, find: Callable[[], tuple]) -> tuple:
        if key not in self._found:
            self._found[key] = find()
        return self._found[key]

    def verbs(self, slot: SlotDefinition, subject_kinds: frozenset[str], asked: bool) -> tuple[Verb, ...]:
        """The verbs of a slot that take a subject of these kinds; if `asked`, only ones to request of a child."""
        return self._remembered(
            (slot, subject_kinds, asked),
            lambda: tuple(
                verb
                for verb in self.candidates(slot)
                if subject_kinds & set(verb.subjects) and not (asked and verb.base in slot.not_asked)
            ),
        )

    def ownable(self, noun: Noun) -> bool:
        """Whether it can follow "your"."""
        return noun.kind not in ("person", "animal", "place") or noun.singular in self.habits.owned
