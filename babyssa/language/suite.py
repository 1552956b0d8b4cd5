"""Generation of minimal-pair suites from the sentence patterns in ``probes/templates.yaml``.

A paradigm is a factorial design, as in a psycholinguistic experiment. An *item* is one drawing of words for the
slots of one template; it yields one pair for every *cell* of the design. The cells are chosen so that over one
item the words of the good sentences are exactly those of the bad sentences: "this dog" against "these dog",
and "these dogs" against "this dogs". No word, and no number of words, tells good from bad. The law is checked
for every item that is made. ``docs/suite.md`` describes the notation and the paradigms.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from babyssa.console import progress
from babyssa.errors import ConfigError, DataError, ModelError, nearest
from babyssa.files import atomic_write, check_overwrite, read_yaml, resource
from babyssa.language.lexicon import (
    Adjective,
    Lexicon,
    Name,
    Noun,
    Preposition,
    Pronoun,
    Verb,
    indefinite_article,
    load_lexicon,
)
from babyssa.language.pairs import MANIFEST, MinimalPair

Filler = Noun | Name | Verb | Adjective | Preposition | Pronoun | str
WordTest = Callable[[str], bool]

_CONTRAST = re.compile(r"\[([^\[\]|]*)\|([^\[\]|]*)\]")
_SLOT = re.compile(r"\{(\w+)(?:\.(\w+))?\}")
_CELL = re.compile(r"<(\w+)>")

# The fields of a slot that say its part of speech, each with the forms that a pattern can ask for.
_FORMS_OF = {
    "noun": ("plural",),
    "name": (),
    "pronoun": ("subject", "object", "possessive", "reflexive"),
    "verb": ("third", "past", "participle", "progressive"),
    "preposition": (),
    "word": (),
    "adjective_of": (),
}

# The form that a slot has when the pattern names none.
_PLAIN_FORM = {
    Noun: "singular",
    Name: "name",
    Verb: "base",
    Adjective: "word",
    Preposition: "word",
    Pronoun: "subject",
}

# A template that repeats itself this often in a row has no new sentences left.
_MOST_REPEATS = 300


@dataclass(frozen=True)
class Slot:
    """What may fill a slot. Exactly one of the first seven attributes says which part of speech.

    Attributes
    ----------
    noun : tuple of str
        Kinds and single nouns of the lexicon.
    name : str
        ``male``, ``female`` or ``any``.
    pronoun, verb, preposition : tuple of str
        The words, by their subject form, base form and only form.
    word : tuple of str
        Words or phrases that stand as they are.
    adjective_of : str
        The noun slot that the adjective describes.
    object_of, subject_of, place_of : tuple of str
        Slots of verbs (of the preposition) that the noun must go with.
    among : tuple of str
        Only these adjectives.
    gender : str
        Only nouns of this gender.
    mass, relational : bool
        Mass nouns too; relational nouns ("brother") too.
    initial : str
        ``consonant``: only nouns that take "a".
    """

    noun: tuple[str, ...] = ()
    name: str | None = None
    pronoun: tuple[str, ...] = ()
    verb: tuple[str, ...] = ()
    preposition: tuple[str, ...] = ()
    word: tuple[str, ...] = ()
    adjective_of: str | None = None
    object_of: tuple[str, ...] = ()
    subject_of: tuple[str, ...] = ()
    place_of: tuple[str, ...] = ()
    among: tuple[str, ...] = ()
    gender: str | None = None
    mass: bool = False
    relational: bool = False
    initial: str | None = None

    def __post_init__(self):
        if len(self._parts_of_speech) != 1:
            found = " and ".join(self._parts_of_speech) or "none"
            raise ValueError(f"a slot needs exactly one of {', '.join(_FORMS_OF)}, not {found}")
        if self.name not in (None, "male", "female", "any"):
            raise ValueError(f"a name slot is male, female or any, not '{self.name}'")

    @property
    def _parts_of_speech(self) -> list[str]:
        return [field for field in _FORMS_OF if getattr(self, field)]

    @property
    def forms(self) -> tuple[str, ...]:
        """The forms that a pattern can ask for, beside the plain one."""
        return _FORMS_OF[self._parts_of_speech[0]]

    @property
    def depends_on(self) -> tuple[str, ...]:
        """The slots that must be filled before this one."""
        described = () if self.adjective_of is None else (self.adjective_of,)
        return described + self.object_of + self.subject_of + self.place_of


@dataclass(frozen=True)
class Template:
    """One sentence pattern per cell, with the contrast in brackets and the slots in braces."""

    cells: tuple[str, ...]

    def forms(self) -> dict[str, set[str | None]]:
        """The slots that the cells mention, each with the forms it occurs in."""
        found: dict[str, set[str | None]] = {}
        for cell in self.cells:
            for slot, form in _SLOT.findall(cell):
                found.setdefault(slot, set()).add(form or None)
        return found

    def literals(self) -> list[str]:
        """The words of the pattern itself."""
        bare = " ".join(_SLOT.sub(" ", cell) for cell in self.cells)
        return list(dict.fromkeys(re.sub(r"[\[\]|]", " ", bare).split()))


@dataclass(frozen=True)
class ParadigmDesign:
    """What one paradigm tests and the templates that make it."""

    name: str
    description: str
    contrast: str
    counterbalance: str
    slots: Mapping[str, Slot]
    templates: tuple[Template, ...]

    @property
    def phenomenon(self) -> str:
        return self.name.rpartition("-")[0]

    @property
    def pairs_per_item(self) -> int:
        return len(self.templates[0].cells)


@dataclass(frozen=True)
class SuiteDesign:
    """The templates file: the suite's name and version, and its paradigms by name."""

    name: str
    version: int
    paradigms: Mapping[str, ParadigmDesign]


@dataclass(frozen=True)
class ParadigmSummary:
    """One generated paradigm: its name, its phenomenon, its file and how many pairs it holds."""

    name: str
    phenomenon: str
    path: Path
    pairs: int


def generate_suite(
    out: str | Path,
    *,
    pairs: int = 1000,
    seed: int = 0,
    tokenizer: str | Path | None = None,
    paradigms: Iterable[str] | None = None,
    overwrite: bool = False,
) -> list[ParadigmSummary]:
    """Generate a suite: one text file per paradigm (bad sentence first) and a ``manifest.yaml``.

    The result depends on the arguments only. A paradigm's pairs do not depend on which others are asked for.

    Parameters
    ----------
    out : path-like
        The folder to write.
    pairs : int
        Pairs per paradigm, a multiple of 4.
    seed : int
        Of the random choice of words.
    tokenizer : path-like, optional
        A tokenizer folder (or its tokenizer.json). Only words that it keeps whole are used.
    paradigms : iterable of str, optional
        Names of paradigms; all by default.
    overwrite : bool
        Replace what an earlier call wrote.

    Returns
    -------
    list of ParadigmSummary
        In the order of the templates file.

    Raises
    ------
    ConfigError
        If `pairs` does not fit the designs or a paradigm is unknown.
    DataError
        If too few words are left for so many pairs.
    ModelError
        If the tokenizer cannot be read.
    OutputExistsError
        If `out` holds a suite and `overwrite` is false.
    """
    out = Path(out)
    design = load_templates()
    wanted = set(design.paradigms if paradigms is None else paradigms)
    for name in wanted - design.paradigms.keys():
        raise ConfigError(f"unknown paradigm '{name}'", remedy=nearest(name, design.paradigms))
    chosen = [d for name, d in design.paradigms.items() if name in wanted]
    if not chosen:
        raise ConfigError("no paradigm asked for", remedy="name one, or leave --paradigms out for all")
    files = {d.name: f"{d.name}.txt" for d in chosen}
    check_overwrite(out, [MANIFEST, *files.values()], overwrite)
    lexicon = load_lexicon()
    is_whole = None if tokenizer is None else whole_word_test(tokenizer)
    made = {d.name: fill(d, lexicon, pairs, seed, is_whole) for d in progress(chosen, "generating the suite")}
    for name, minimal_pairs in made.items():
        with atomic_write(out / files[name]) as file:
            file.writelines(f"{pair.bad}\n{pair.good}\n" for pair in minimal_pairs)
    generator = {"seed": seed, "pairs": pairs}
    if tokenizer is not None:
        generator["tokenizer"] = Path(tokenizer).resolve().name
    manifest = {
        "name": design.name,
        "version": design.version,
        "order": "bad-first",
        "generator": generator,
        "paradigms": [
            {
                "name": d.name,
                "phenomenon": d.phenomenon,
                "file": files[d.name],
                "description": d.description,
                "contrast": d.contrast,
                "counterbalance": d.counterbalance,
            }
            for d in chosen
        ],
    }
    with atomic_write(out / MANIFEST) as file:
        yaml.safe_dump(manifest, file, sort_keys=False, allow_unicode=True, width=110)
    return [ParadigmSummary(d.name, d.phenomenon, out / files[d.name], len(made[d.name])) for d in chosen]


def generate_paradigm(name: str, lexicon: Lexicon, pairs: int, seed: int) -> list[MinimalPair]:
    """The pairs of one packaged paradigm, without writing anything.

    Parameters
    ----------
    name : str
        Such as ``"binding-principle_a"``.
    lexicon : Lexicon
        Where the words come from.
    pairs : int
        How many; a multiple of the number of cells in the paradigm's design (1, 2 or 4).
    seed : int
        Of the random choice of words.

    Raises
    ------
    ConfigError
        If the paradigm is unknown or `pairs` does not fit its design.
    DataError
        If the lexicon has too few words for so many pairs.
    """
    designs = load_templates().paradigms
    if name not in designs:
        raise ConfigError(f"unknown paradigm '{name}'", remedy=nearest(name, designs))
    return fill(designs[name], lexicon, pairs, seed)


def fill(
    design: ParadigmDesign, lexicon: Lexicon, pairs: int, seed: int, is_whole: WordTest | None = None
) -> list[MinimalPair]:
    """Fill the templates of a design, in turn, until there are `pairs` different pairs.

    Parameters and errors are those of :func:`generate_paradigm`; `is_whole` says which words may be used.
    """
    size = design.pairs_per_item
    if pairs < 1 or pairs % size:
        fitting = max(size, pairs - pairs % size)
        raise ConfigError(
            f"{design.name}: {pairs} pairs cannot be counterbalanced over {size} cells",
            remedy=f"ask for a multiple of {size}, such as {fitting}",
        )
    # Text seeds hash to the same state on every platform, and give each paradigm its own stream.
    rng = random.Random(f"{seed} {design.name}")
    drawers = [_ItemDrawer(template, design, lexicon, is_whole) for template in design.templates]
    usable = [drawer for drawer in drawers if drawer.usable]
    repeats = Counter()
    made: list[MinimalPair] = []
    seen: set[str] = set()
    turn = 0
    while len(made) < pairs:
        if not usable:
            raise DataError(_too_few(design, drawers, len(made), pairs, is_whole), remedy="ask for fewer pairs")
        drawer = usable[turn % len(usable)]
        item = drawer.draw(rng)
        new = set() if item is None else {pair.good for pair in item} - seen
        if len(new) < size:
            repeats[id(drawer)] += 1
            if repeats[id(drawer)] > _MOST_REPEATS:
                usable.remove(drawer)
            continue
        repeats[id(drawer)] = 0
        turn += 1
        seen |= new
        made.extend(item)
    return made


def whole_word_test(tokenizer: str | Path) -> WordTest:
    """A test whether a word, after a space, is one token both as written and lower-cased; end marks pass.

    Parameters
    ----------
    tokenizer : path-like
        A transformers tokenizer folder, or its ``tokenizer.json``.

    Raises
    ------
    ModelError
        If there is no readable ``tokenizer.json``.
    """
    from tokenizers import Tokenizer

    path = Path(tokenizer)
    path = path / "tokenizer.json" if path.is_dir() else path
    if not path.is_file():
        raise ModelError("no such tokenizer", path=path, remedy="give a folder that holds a tokenizer.json")
    try:
        loaded = Tokenizer.from_file(str(path))
    except Exception as error:  # the tokenizers library raises bare Exception
        raise ModelError(f"is not a tokenizer ({error})", path=path) from None
    unknown = loaded.token_to_id(getattr(loaded.model, "unk_token", None) or "<unk>")

    @cache
    def is_whole(word: str) -> bool:
        if not word.isalpha():
            return True
        for form in {word, word.lower()}:
            encoded = loaded.encode(f" {form}", add_special_tokens=False)
            # The end of the token is compared because a vocabulary without bytes drops unknown letters.
            if len(encoded) != 1 or encoded.ids[0] == unknown or encoded.offsets[0][1] != len(form) + 1:
                return False
        return True

    return is_whole


def load_templates(path: str | Path | None = None) -> SuiteDesign:
    """Read and check a templates file, by default the packaged ``probes/templates.yaml``.

    Raises
    ------
    DataError
        If a paradigm lacks a field, or a template names a slot, form or cell that does not exist.
    """
    path = resource("probes", "templates.yaml") if path is None else Path(path)
    raw = read_yaml(path).values
    try:
        common = {name: _read_slot(spec) for name, spec in raw.get("slots", {}).items()}
        designs = [_read_design(entry, common) for entry in raw["paradigms"]]
        return SuiteDesign(str(raw["name"]), int(raw["version"]), {d.name: d for d in designs})
    except KeyError as error:
        raise DataError(f"field {error} is missing", path=path) from None
    except (TypeError, ValueError, AttributeError) as error:
        raise DataError(str(error), path=path) from None


def _read_slot(spec: Mapping[str, Any]) -> Slot:
    """Build a slot from its YAML; single words stand for lists of one."""
    annotations = {field.name: field.type for field in fields(Slot)}
    values = {}
    for key, value in spec.items():
        if key not in annotations:
            raise ValueError(f"a slot has no field '{key}': {nearest(key, annotations)}")
        if annotations[key].startswith("tuple"):
            value = (value,) if isinstance(value, str) else tuple(value)
        values[key] = value
    return Slot(**values)


def _read_design(entry: Mapping[str, Any], common: Mapping[str, Slot]) -> ParadigmDesign:
    name = entry["name"]
    slots = {**common, **{key: _read_slot(spec) for key, spec in entry.get("slots", {}).items()}}
    cells = entry.get("cells", [{}])
    templates = tuple(_read_template(patterns, cells, name) for patterns in entry["templates"])
    for template in templates:
        for slot, forms in template.forms().items():
            _check_slot(slot, slots, name)
            for form in forms - {None, *slots[slot].forms}:
                raise ValueError(f"{name}: slot '{slot}' has no form '{form}': {nearest(form, slots[slot].forms)}")
        if len(template.cells) != len(templates[0].cells):
            raise ValueError(
                f"{name}: template '{template.cells[0]}' has {len(template.cells)} cells, not as the first"
            )
    return ParadigmDesign(
        name=name,
        description=entry["description"],
        contrast=entry["contrast"],
        counterbalance=entry["counterbalance"],
        slots=slots,
        templates=templates,
    )


def _read_template(patterns: str | list[str], cells: list[Mapping[str, str]], name: str) -> Template:
    """A list has a pattern for each cell; a single pattern takes the texts of each of the paradigm's cells."""
    if isinstance(patterns, list):
        expanded = tuple(patterns)
    else:
        for key in _CELL.findall(patterns):
            if any(key not in cell for cell in cells):
                raise ValueError(
                    f"{name}: '{patterns}' names <{key}>, which a cell lacks: {nearest(key, cells[0])}"
                )
        expanded = tuple(_CELL.sub(lambda match, cell=cell: cell[match[1]], patterns) for cell in cells)
    for pattern in expanded:
        if not _CONTRAST.search(pattern):
            raise ValueError(f"{name}: '{pattern}' has no contrast in brackets")
    return Template(expanded)


def _check_slot(slot: str, slots: Mapping[str, Slot], name: str) -> None:
    if slot not in slots:
        raise ValueError(f"{name}: no slot '{slot}': {nearest(slot, slots)}")
    for other in slots[slot].depends_on:
        _check_slot(other, slots, name)


class _ItemDrawer:
    """Draws items of one template: which words may fill its slots, and which of them go together."""

    def __init__(self, template: Template, design: ParadigmDesign, lexicon: Lexicon, is_whole: WordTest | None):
        self.template = template
        self.design = design
        self.lexicon = lexicon
        self.is_whole = is_whole or (lambda word: True)
        self.missing = [word for word in template.literals() if not self.is_whole(word)]
        self.candidates: dict[str, list[Filler]] = {}
        for slot, forms in template.forms().items():
            self._collect(slot, forms)
        self._fitting = cache(self._find_fitting)

    @property
    def usable(self) -> bool:
        return not self.missing and all(self.candidates.values())

    def draw(self, rng: random.Random) -> list[MinimalPair] | None:
        """One item, or None if the words drawn leave a slot without a filler."""
        fillers: dict[str, Filler] = {}
        for slot in self.candidates:
            if slot not in fillers and not self._fill(slot, fillers, rng):
                return None
        item = [
            MinimalPair(self._render(cell, fillers, side=0), self._render(cell, fillers, side=1))
            for cell in self.template.cells
        ]
        _check_balance(item, self.template)
        words = {word for pair in item for word in pair.good.split()}
        return item if all(map(self.is_whole, words)) else None

    def _collect(self, name: str, forms: set[str | None]) -> None:
        """List the fillers of a slot by themselves, and of the slots it depends on."""
        slot = self.design.slots[name]
        self.candidates[name] = [f for f in self._all_fillers(slot, forms) if self._keeps_whole(f, forms)]
        for other in slot.depends_on:
            if other not in self.candidates:
                self._collect(other, self.template.forms().get(other, set()))

    def _all_fillers(self, slot: Slot, forms: set[str | None]) -> Iterable[Filler]:
        lexicon = self.lexicon
        if slot.noun:
            nouns = lexicon.select(slot.noun, gender=slot.gender, relational=None if slot.relational else False)
            if slot.initial == "consonant":
                nouns = tuple(noun for noun in nouns if indefinite_article(noun.singular) == "a")
            if "plural" in forms:
                return (noun for noun in nouns if noun.distinct_plural)
            return (noun for noun in nouns if noun.countable or slot.mass)
        if slot.name:
            return lexicon.names_of(None if slot.name == "any" else slot.name)
        if slot.verb:
            return map(lexicon.verb, slot.verb)
        if slot.pronoun:
            return map(lexicon.pronoun, slot.pronoun)
        if slot.preposition:
            return (p for p in lexicon.prepositions if p.word in slot.preposition)
        if slot.adjective_of:
            return (a for a in lexicon.adjectives if not slot.among or a.word in slot.among)
        return slot.word

    def _keeps_whole(self, filler: Filler, forms: set[str | None]) -> bool:
        """Whether all forms that the template uses are whole words."""
        return all(self.is_whole(word) for form in forms for word in _form(filler, form).split())

    def _fill(self, name: str, fillers: dict[str, Filler], rng: random.Random) -> bool:
        """Draw a filler that goes with those drawn before and that no other slot has."""
        slot = self.design.slots[name]
        for other in slot.depends_on:
            if other not in fillers and not self._fill(other, fillers, rng):
                return False
        others = tuple(fillers[other] for other in slot.depends_on)
        used = [filler for filler in fillers.values() if not isinstance(filler, str)]
        options = [f for f in self._fitting(name, *others) if not any(f is filler for filler in used)]
        if not options:
            return False
        # random() is the one method whose values Python promises never to change.
        fillers[name] = options[int(rng.random() * len(options))]
        return True

    def _find_fitting(self, name: str, *others: Filler) -> list[Filler]:
        """The candidates of a slot that go with the fillers of the slots it depends on, in their order."""
        slot, lexicon = self.design.slots[name], self.lexicon
        filler_of = dict(zip(slot.depends_on, others, strict=True))
        groups = [
            *(lexicon.objects_of(filler_of[verb]) for verb in slot.object_of),
            *(lexicon.subjects_of(filler_of[verb]) for verb in slot.subject_of),
            *(lexicon.select(filler_of[preposition].of) for preposition in slot.place_of),
        ]
        if slot.adjective_of is not None:
            groups.append(lexicon.adjectives_of(filler_of[slot.adjective_of]))
        fitting = self.candidates[name]
        for group in groups:
            members = set(map(id, group))
            fitting = [filler for filler in fitting if id(filler) in members]
        return fitting

    def _render(self, cell: str, fillers: Mapping[str, Filler], side: int) -> str:
        text = _CONTRAST.sub(lambda match: match[1 + side], cell)
        text = _SLOT.sub(lambda match: _form(fillers[match[1]], match[2]), text)
        words = text.split()
        for i, word in enumerate(words[:-1]):
            if word == "a":
                words[i] = indefinite_article(words[i + 1])
        return " ".join(words)


def _form(filler: Filler, form: str | None) -> str:
    if isinstance(filler, str):
        return filler
    return getattr(filler, form or _PLAIN_FORM[type(filler)])


def _check_balance(item: list[MinimalPair], template: Template) -> None:
    """The law of the suite: over one item, good and bad sentences have the same words equally often."""
    good = Counter(word for pair in item for word in pair.good.split())
    bad = Counter(word for pair in item for word in pair.bad.split())
    if good != bad or any(pair.good == pair.bad for pair in item):
        raise DataError(
            f"template '{template.cells[0]}' is not counterbalanced: '{item[0].good}' against '{item[0].bad}'",
            remedy="let every word of a contrast be right in one cell and wrong in another",
        )


def _too_few(
    design: ParadigmDesign, drawers: list[_ItemDrawer], made: int, pairs: int, is_whole: WordTest | None
) -> str:
    """Say what is left too few, over the templates of the paradigm."""
    left = {name: len(fillers) for drawer in drawers for name, fillers in drawer.candidates.items()}
    scarce = sorted((count, name) for name, count in left.items() if count < max(12, min(left.values()) + 1))
    missing = sorted({word for drawer in drawers for word in drawer.missing})
    source = "the lexicon" if is_whole is None else "whole words of the tokenizer"
    parts = [f"{design.name}: {source} give only {made} of {pairs} pairs"]
    if scarce:
        parts.append("words left: " + ", ".join(f"{name} {count}" for count, name in scarce))
    if missing:
        parts.append("not whole words: " + ", ".join(missing))
    if is_whole is not None:
        parts.append("leave it out with --paradigms, or use a larger vocabulary")
    return "; ".join(parts)
