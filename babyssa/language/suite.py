"""Generation of minimal-pair suites from the templates in ``probes/templates.yaml``.

A paradigm is a factorial design, as in a psycholinguistic experiment. An *item* is one draw of words for the
slots of one template; it yields one pair for every *cell* of the design. The cells are chosen so that over one
item the good and the bad sentences have exactly the same words: "this dog" against "these dog", and "these dogs"
against "this dogs". Neither words nor length tell good from bad. This counterbalance is checked for every item.
``docs/suite.md`` describes the paradigms, :mod:`babyssa.language.templates` the notation.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from babyssa.console import progress
from babyssa.errors import ConfigError, DataError, ModelError, nearest
from babyssa.files import atomic_write, check_overwrite, resource
from babyssa.language.lexicon import Lexicon, load_lexicon
from babyssa.language.pairs import MANIFEST, MinimalPair
from babyssa.language.slots import SlotDefinition, TemplateFile, Word, candidates, form
from babyssa.language.templates import Choice, Contrast, Piece, Slot, Template, insert, parts_of, realise, tidy

WordTest = Callable[[str], bool]

# A template that repeats itself this often in a row is considered exhausted.
_MOST_REPEATS = 300


@dataclass(frozen=True)
class ParadigmDesign:
    """What one paradigm tests, and its templates, each with a sentence for every cell."""

    name: str
    description: str
    contrast: str
    counterbalance: str
    slots: Mapping[str, SlotDefinition]
    templates: tuple[tuple[Template, ...], ...]

    @property
    def phenomenon(self) -> str:
        return self.name.rpartition("-")[0]

    @property
    def pairs_per_item(self) -> int:
        return len(self.templates[0])


@dataclass(frozen=True)
class SuiteDesign:
    """The templates file: the suite's name and version, and its paradigms by name."""

    name: str
    version: int
    paradigms: Mapping[str, ParadigmDesign]


@dataclass(frozen=True)
class ParadigmSummary:
    """One generated paradigm: its name, phenomenon, file and number of pairs."""

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
    """Write a suite's text files and manifest.yaml; :func:`babyssa.generate_suite` explains the parameters."""
    out = Path(out)
    lexicon = load_lexicon()
    design = load_templates(lexicon)
    wanted = set(design.paradigms if paradigms is None else paradigms)
    for name in wanted - design.paradigms.keys():
        raise ConfigError(f"unknown paradigm '{name}'", remedy=nearest(name, design.paradigms))
    chosen = [d for name, d in design.paradigms.items() if name in wanted]
    if not chosen:
        raise ConfigError("no paradigm asked for", remedy="name one, or leave --paradigms out for all")
    files = {d.name: f"{d.name}.txt" for d in chosen}
    check_overwrite(out, [MANIFEST, *files.values()], overwrite)
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
        For example ``"binding-principle_a"``.
    lexicon : Lexicon
        Source of the words.
    pairs : int
        Number of pairs; a multiple of the number of cells in the design (1, 2 or 4).
    seed : int
        Seed of the random choice of words.

    Raises
    ------
    ConfigError
        If the paradigm is unknown or `pairs` does not fit its design.
    DataError
        If the lexicon has too few words for that many pairs.
    """
    designs = load_templates(lexicon).paradigms
    if name not in designs:
        raise ConfigError(f"unknown paradigm '{name}'", remedy=nearest(name, designs))
    return fill(designs[name], lexicon, pairs, seed)


def fill(
    design: ParadigmDesign, lexicon: Lexicon, pairs: int, seed: int, is_whole: WordTest | None = None
) -> list[MinimalPair]:
    """Fill the templates of a design, in turn, until there are `pairs` distinct pairs.

    Parameters and errors are those of :func:`generate_paradigm`; `is_whole` decides which words can be used.
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
    """A test of whether a word after a space is a single token, both as written and lower-cased; end marks pass.

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
        for written in {word, word.lower()}:
            encoded = loaded.encode(f" {written}", add_special_tokens=False)
            # The end of the token is compared because a vocabulary without bytes drops unknown letters.
            if len(encoded) != 1 or encoded.ids[0] == unknown or encoded.offsets[0][1] != len(written) + 1:
                return False
        return True

    return is_whole


def load_templates(lexicon: Lexicon, path: str | Path | None = None) -> SuiteDesign:
    """Read and check a templates file, by default the packaged ``probes/templates.yaml``.

    Parameters
    ----------
    lexicon : Lexicon
        The words that slots may name.
    path : path-like, optional
        Another file.

    Raises
    ------
    DataError
        If a paradigm lacks a field, a template is malformed, or either names a slot, form, cell or word that does
        not exist. Names the line, and the nearest name that does.
    """
    file = TemplateFile(resource("probes", "templates.yaml") if path is None else path, lexicon)
    common = file.slots("slots")
    designs = [_design(file, common, "paradigms", i) for i in file.items("paradigms")]
    version = int(file.number("version"))
    return SuiteDesign(str(file.get("name")), version, {design.name: design for design in designs})


def _design(file: TemplateFile, common: Mapping[str, SlotDefinition], *place: str | int) -> ParadigmDesign:
    texts = {key: str(file.get(*place, key)) for key in ("name", "description", "contrast", "counterbalance")}
    slots = file.slots(*place, "slots", common=common)
    for name, slot in slots.items():
        if slot.is_phrase:
            raise file.error(f"slot '{name}' is a phrase; slots of a suite are words", *place, "slots", name)
    cells = [file.pieces(*place, "cells", i) for i in range(len(file.get(*place, "cells", default=[])))] or [{}]
    templates = []
    for i in file.items(*place, "templates"):
        where = (*place, "templates", i)
        if isinstance(file.get(*where), list):
            sentences = [file.template(file.get(*where, j), *where, j) for j in file.items(*where)]
        else:
            sentences = []
            for cell in cells:
                template = file.template(file.get(*where), *where)
                for piece in [part for part in parts_of(template) if isinstance(part, Piece)]:
                    file.check_name("cell", piece.name, cell, *where)
                sentences.append(insert(template, cell))
        for sentence in sentences:
            parts = list(parts_of(sentence))
            if not any(isinstance(part, Contrast) for part in parts):
                raise file.error("the template has no contrast [good|bad]", *where)
            if any(isinstance(part, Choice) for part in parts):
                raise file.error("the template has a choice (a|b)", *where, remedy="make it a slot of words")
            for slot in (part for part in parts if isinstance(part, Slot)):
                file.check_slot(slot, slots, slots[slot.name].forms if slot.name in slots else (), *where)
                if slot.digit:
                    what = f"slot '{slot.key}' ends in a digit"
                    raise file.error(what, *where, remedy="give each word a slot of its own")
        templates.append(tuple(sentences))
        if len(sentences) != len(templates[0]):
            raise file.error(f"the template has {len(sentences)} cells, the first has {len(templates[0])}", *where)
    return ParadigmDesign(slots=slots, templates=tuple(templates), **texts)


class _ItemDrawer:
    """Draws items of one template, from the words that fit its slots and each other."""

    def __init__(
        self, cells: tuple[Template, ...], design: ParadigmDesign, lexicon: Lexicon, is_whole: WordTest | None
    ):
        self.cells = cells
        self.paradigm = design.name
        self.slots = design.slots
        self.lexicon = lexicon
        self.is_whole = is_whole or (lambda word: True)
        parts = [part for cell in cells for part in parts_of(cell)]
        literals = dict.fromkeys(word for part in parts if isinstance(part, str) for word in part.split())
        self.missing = [word for word in literals if not self.is_whole(word)]
        self.forms: dict[str, set[str | None]] = {}
        for part in parts:
            if isinstance(part, Slot):
                self.forms.setdefault(part.name, set()).add(part.form)
        self.candidates: dict[str, list[Word]] = {}
        for name in tuple(self.forms):
            self._collect(name)
        self._fitting = cache(self._find_fitting)

    @property
    def usable(self) -> bool:
        return not self.missing and all(self.candidates.values())

    def draw(self, rng: random.Random) -> list[MinimalPair] | None:
        """Draw one item; None if the words drawn leave a slot without a filler."""
        fillers: dict[str, Word] = {}
        for name in self.candidates:
            if name not in fillers and not self._fill(name, fillers, rng):
                return None

        def sentence(cell: Template, side: int) -> str:
            return tidy(realise(cell, lambda slot: form(fillers[slot.name], slot.form), side))

        item = [MinimalPair(sentence(cell, 0), sentence(cell, 1)) for cell in self.cells]
        self._check_balance(item)
        words = {word for pair in item for word in pair.good.split()}
        return item if all(map(self.is_whole, words)) else None

    def _check_balance(self, item: list[MinimalPair]) -> None:
        """Check that over one item, good and bad sentences have the same words equally often."""
        good = Counter(word for pair in item for word in pair.good.split())
        bad = Counter(word for pair in item for word in pair.bad.split())
        if good != bad or any(pair.good == pair.bad for pair in item):
            raise DataError(
                f"{self.paradigm}: template is not counterbalanced: '{item[0].good}' against '{item[0].bad}'",
                remedy="let every word of a contrast be right in one cell and wrong in another",
            )

    def _collect(self, name: str) -> None:
        """List the candidates of a slot, and of the slots it depends on."""
        forms = self.forms.get(name, set())
        fillers = candidates(self.slots[name], self.lexicon)
        if "plural" in forms:
            fillers = tuple(noun for noun in fillers if noun.distinct_plural)
        self.candidates[name] = [
            filler
            for filler in fillers
            if all(self.is_whole(word) for name in forms for word in form(filler, name).split())
        ]
        for other in self.slots[name].depends_on:
            if other not in self.candidates:
                self._collect(other)

    def _fill(self, name: str, fillers: dict[str, Word], rng: random.Random) -> bool:
        """Draw a filler that fits those drawn before and is not used in another slot."""
        depends_on = self.slots[name].depends_on
        for other in depends_on:
            if other not in fillers and not self._fill(other, fillers, rng):
                return False
        used = [filler for filler in fillers.values() if not isinstance(filler, str)]
        options = [filler for filler in self._fitting(name, *map(fillers.get, depends_on)) if filler not in used]
        if not options:
            return False
        # random() is the one method whose values Python promises never to change.
        fillers[name] = options[int(rng.random() * len(options))]
        return True

    def _find_fitting(self, name: str, *others: Word) -> list[Word]:
        """The candidates of a slot that fit the fillers of the slots it depends on, in order."""
        slot, lexicon = self.slots[name], self.lexicon
        filler_of = dict(zip(slot.depends_on, others, strict=True))
        fitting = set(self.candidates[name])
        for verb in slot.object_of:
            fitting &= set(lexicon.select(filler_of[verb].objects))
        for verb in slot.subject_of:
            fitting &= set(lexicon.select(filler_of[verb].subjects))
        for preposition in slot.place_of:
            fitting &= set(lexicon.select(filler_of[preposition].of))
        if slot.adjective_of is not None:
            fitting &= set(lexicon.adjectives_of(filler_of[slot.adjective_of]))
        return [filler for filler in self.candidates[name] if filler in fitting]


def _too_few(
    design: ParadigmDesign, drawers: list[_ItemDrawer], made: int, pairs: int, is_whole: WordTest | None
) -> str:
    """Explain which words are scarce or missing in the templates of the paradigm."""
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
