"""The sample corpus: recordings of families that do not exist, spoken by the grammar of this package.

:func:`generate_sample` writes it as a childes-db export, so that it is read by the same reader as real corpora.
The packaged ``data/sample.csv.gz`` is what the default seed makes.
"""

from __future__ import annotations

import csv
import gzip
import io
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from babyssa.data.grammar import Scene, Session, Utterance
from babyssa.data.lexicon import Noun, Verb, load_lexicon
from babyssa.data.registers import Register, registers
from babyssa.data.vocabulary import Vocabulary
from babyssa.errors import ConfigError
from babyssa.files import atomic_write, refuse_to_overwrite

COLUMNS = [
    "id",
    "speaker_id",
    "utterance_order",
    "transcript_id",
    "corpus_id",
    "gloss",
    "num_tokens",
    "stem",
    "part_of_speech",
    "speaker_code",
    "speaker_name",
    "speaker_role",
    "target_child_id",
    "target_child_age",
    "target_child_name",
    "target_child_sex",
    "type",
    "media_end",
    "media_start",
    "media_unit",
    "collection_id",
    "collection_name",
    "num_morphemes",
    "language",
]

SESSIONS = 60
YOUNGEST, OLDEST = 180, 1800  # days
CHILDREN = (("Molly", "female"), ("Ben", "male"), ("Nina", "female"), ("Sam", "male"), ("Lucy", "female"))
SPEAKERS = (("MOT", "Mother", 70), ("FAT", "Father", 17), ("GRA", "Grandmother", 6), ("INV", "Investigator", 7))

_PREFIXES = [
    "oh",
    "well",
    "okay",
    "now",
    "and",
    "yeah",
    "no",
    "so",
    "look",
    "alright",
    "but",
    "then",
    "see",
    "uhoh",
    "hey",
]
_PREFIX_WEIGHTS = [9, 5, 7, 6, 8, 5, 4, 4, 2, 2, 3, 2, 1, 1, 1]
_JOINED = ("ongoing", "states", "past", "future", "transfer", "labelling")
_UNINTELLIGIBLE = ("xxx", "xxx", "yyy")


@dataclass(frozen=True)
class SampleStats:
    """What a generated sample holds.

    Parameters
    ----------
    utterances : int
        Utterances by adults.
    child_utterances : int
        Utterances by the target children.
    tokens : int
        Words in the adults' utterances (no end marks).
    types : int
        Different lower-cased words among them.
    transcripts : int
        Recordings.
    youngest, oldest : int
        Age of the target child in the first and in the last recording, in days.
    """

    utterances: int
    child_utterances: int
    tokens: int
    types: int
    transcripts: int
    youngest: int
    oldest: int


@dataclass(frozen=True)
class Turn:
    """One row of the export, before its numbers are given."""

    utterance: Utterance
    code: str
    role: str


def generate_sample(
    out: str | Path, *, utterances: int = 30000, seed: int = 0, overwrite: bool = False
) -> SampleStats:
    """Write a sample corpus of child-directed speech in the form of a childes-db export.

    The same `utterances` and `seed` give the same bytes.

    Parameters
    ----------
    out : path-like
        The file to write; gzip-compressed if it ends in ``.gz``.
    utterances : int
        How many utterances the adults say in all; those of the children come on top.
    seed : int
        Seed of everything that is drawn.
    overwrite : bool
        Whether an existing file is replaced.

    Returns
    -------
    SampleStats

    Raises
    ------
    OutputExistsError
        If `out` exists and `overwrite` is false.
    ConfigError
        If `utterances` is too small for the recordings to have one each.
    """
    out = Path(out)
    refuse_to_overwrite(out.parent, [out.name], overwrite)
    if utterances < SESSIONS:
        raise ConfigError(f"utterances is {utterances}", remedy=f"ask for at least {SESSIONS}, one a recording")
    text, stats = _render(utterances, seed)
    data = text.encode("utf-8")
    if out.suffix == ".gz":
        data = gzip.compress(data, 9, mtime=0)
    with atomic_write(out, "wb") as file:
        file.write(data)
    return stats


def _render(utterances: int, seed: int) -> tuple[str, SampleStats]:
    """The export as text, and its statistics."""
    rng = random.Random(seed)
    vocabulary = Vocabulary(load_lexicon(), rng)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    row, adult, child, tokens, types = 0, 0, 0, 0, set()
    ages = _ages(rng)
    for number, age in enumerate(ages):
        name, gender = CHILDREN[number % len(CHILDREN)]
        session = _session(vocabulary, name, gender, age, rng)
        share = utterances * (number + 1) // SESSIONS - utterances * number // SESSIONS
        for order, turn in enumerate(_conversation(vocabulary, session, share, rng), 1):
            row += 1
            if turn.code == "CHI":
                child += 1
            else:
                adult += 1
                tokens += len(turn.utterance.words)
                types.update(word.lower() for word in turn.utterance.words)
            fields = {
                "id": row,
                "speaker_id": number * 10 + [*_CODES, "CHI"].index(turn.code),
                "utterance_order": order,
                "transcript_id": number + 1,
                "corpus_id": 1,
                "gloss": " ".join(turn.utterance.words),
                "num_tokens": len(turn.utterance.words),
                "speaker_code": turn.code,
                "speaker_role": turn.role,
                "target_child_id": CHILDREN.index((name, gender)) + 1,
                "target_child_age": age,
                "target_child_name": name,
                "target_child_sex": gender,
                "type": turn.utterance.type,
                "collection_id": 1,
                "collection_name": "Eng-NA",
                "language": "eng",
            }
            writer.writerow([fields.get(column, "NA") for column in COLUMNS])
    stats = SampleStats(adult, child, tokens, len(types), SESSIONS, ages[0], ages[-1])
    return buffer.getvalue(), stats


_CODES = [code for code, _, _ in SPEAKERS]


def _ages(rng: random.Random) -> list[int]:
    """The target child's age in each recording, in days, strictly increasing."""
    step = (OLDEST - YOUNGEST) / (SESSIONS - 1)
    inner = [round(YOUNGEST + step * (i + rng.uniform(-0.4, 0.4))) for i in range(1, SESSIONS - 1)]
    return [YOUNGEST, *inner, OLDEST]


def _session(vocabulary: Vocabulary, child: str, gender: str, age: int, rng: random.Random) -> Session:
    """A recording: who is talked about in it, and which things lie around."""
    names = vocabulary.lexicon.names
    kin = tuple(name for name in names if name.kin)
    others = [name for name in names if not name.kin and name.name != child]
    salient = set()
    for kind in vocabulary.lexicon.kinds:
        pool = vocabulary.lexicon.nouns_of(kind)
        salient.update(rng.choices(pool, [vocabulary.noun_weight[n.singular] for n in pool], k=2))
    return Session(
        child=child,
        gender=gender,
        friends=(*kin, *rng.sample(others, 7)),
        salient=frozenset(noun.singular for noun in salient),
        maturity=(age - YOUNGEST) / (OLDEST - YOUNGEST),
    )


def _conversation(vocabulary: Vocabulary, session: Session, utterances: int, rng: random.Random) -> Iterator[Turn]:
    """The turns of one recording, in which the adults say `utterances` utterances."""
    scene = Scene(vocabulary, session, rng)
    table = registers()
    weights = [r.young + (r.old - r.young) * session.maturity for r in table.values()]
    book = _picture_book(vocabulary, rng)
    said = 0
    while said < utterances:
        code, role, _ = rng.choices(SPEAKERS, [weight for _, _, weight in SPEAKERS])[0]
        reading = book and rng.random() < 0.15
        for _ in range(rng.randint(1, 6)):
            if reading and book:
                shown = book.pop()
                register = table["page_of_things" if isinstance(shown, Noun) else "page_of_actions"]
            else:
                shown, register = None, rng.choices(tuple(table.values()), weights)[0]
            for utterance in _speak(scene, register, shown, session, rng):
                yield Turn(utterance, code, role)
                said += 1
                if said == utterances:
                    return
        if rng.random() < 0.2 + 0.5 * session.maturity:
            yield Turn(_child_utterance(scene, session, rng), "CHI", "Target_Child")


def _picture_book(vocabulary: Vocabulary, rng: random.Random) -> list[Noun | Verb]:
    """The pages of a picture book: words of the lexicon, so that over all books even rare ones are learned."""
    lexicon = vocabulary.lexicon
    pages = [
        *rng.sample(lexicon.nouns, len(lexicon.nouns) // 5),
        *rng.sample(lexicon.verbs, len(lexicon.verbs) // 3),
    ]
    rng.shuffle(pages)
    return pages


def _speak(
    scene: Scene, register: Register, shown: Noun | Verb | None, session: Session, rng: random.Random
) -> Iterator[Utterance]:
    """One template of a register, with what speech adds to it."""

    def draw() -> list[Utterance]:
        template = rng.choices(register.templates, cum_weights=register.cumulative_weights)[0]
        return scene.utter(template, shown)

    group = draw()
    if register.name in _JOINED and rng.random() < 0.02 + 0.1 * session.maturity:
        group = _join(group, draw(), rng)
    for utterance in _variations(group, session, rng):
        plain = register.name in ("backchannel", "two_words", "routines")
        yield utterance if plain else _spoken(utterance, session, rng)


def _join(first: list[Utterance], second: list[Utterance], rng: random.Random) -> list[Utterance]:
    """Two statements in one breath; anything but two statements stays apart."""
    alone = len(first) == len(second) == 1 and first[0].type == second[0].type == "declarative"
    if alone and second[0].words[0] not in _PREFIXES:
        words = (*first[0].words, rng.choice(["and", "and", "but", "so", "and then"]), *second[0].words)
        return [first[0]._replace(words=tuple(" ".join(words).split()))]
    return first


def _variations(group: list[Utterance], session: Session, rng: random.Random) -> Iterator[Utterance]:
    """Adults repeat themselves to small children, often word for word."""
    for utterance in group:
        yield utterance
        if len(utterance.words) <= 6 and rng.random() < 0.06 - 0.04 * session.maturity:
            yield utterance


def _spoken(utterance: Utterance, session: Session, rng: random.Random) -> Utterance:
    """The utterance with what comes before and after it in speech; at times a word is not understood."""
    words = list(utterance.words)
    if len(words) > 1 and utterance.type != "trail off":
        if rng.random() < 0.11 and words[0] not in _PREFIXES:
            prefix = rng.choices(_PREFIXES, _PREFIX_WEIGHTS)[0]
            if utterance.type == "declarative" or prefix not in ("look", "see", "uhoh", "no", "yeah"):
                words.insert(0, prefix)
        if rng.random() < 0.035 and session.child not in words and words[-1] not in ("honey", "okay", "huh"):
            words.append(session.child)
    if rng.random() < 0.035:
        words[rng.randrange(len(words))] = rng.choice(_UNINTELLIGIBLE)
    return utterance._replace(words=tuple(words))


def _child_utterance(scene: Scene, session: Session, rng: random.Random) -> Utterance:
    """What a child of that age makes of it: babble, one word, a telegraphic few."""
    if rng.random() < 0.3 - 0.2 * session.maturity:
        return Utterance(tuple(rng.choices(("xxx", "yyy", "yyy"), k=rng.randint(1, 2))), "declarative")
    if rng.random() > session.maturity + 0.15:
        template = "(no|yeah|uhoh|mama|dada|more|hi|{sg_noun.head}|{sg_animal.head}|{sound}) ."
    else:
        template = rng.choice(
            [
                "{noun.head} {noun.adj} .",
                "want {noun.head} .",
                "{N} {A.ing} .",
                "no {sg_noun.head} .",
                "my {noun.head} .",
                "{noun.head} xxx .",
                "more {food.head} .",
                "where {noun.head} ?",
                "I (goed|comed|falled) down .",
                "I want {noun.a} .",
                "(what|who) that ?",
            ]
        )
    return scene.utter(template)[0]
