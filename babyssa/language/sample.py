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

from babyssa.errors import ConfigError
from babyssa.files import atomic_write, check_overwrite
from babyssa.language.grammar import Scene, Session, Utterance
from babyssa.language.lexicon import Noun, Verb, load_lexicon
from babyssa.language.registers import Register, registers
from babyssa.language.vocabulary import Vocabulary

# The columns of a childes-db export, with the value of those that are the same in every row.
COLUMNS = {
    **dict.fromkeys(("id", "speaker_id", "utterance_order", "transcript_id")),
    "corpus_id": 1,
    **dict.fromkeys(("gloss", "num_tokens")),
    **dict.fromkeys(("stem", "part_of_speech"), "NA"),
    "speaker_code": None,
    "speaker_name": "NA",
    **dict.fromkeys(("speaker_role", "target_child_id", "target_child_age", "target_child_name")),
    **dict.fromkeys(("target_child_sex", "type")),
    **dict.fromkeys(("media_end", "media_start", "media_unit"), "NA"),
    "collection_id": 1,
    "collection_name": "Eng-NA",
    "num_morphemes": "NA",
    "language": "eng",
}

SESSIONS = 60
YOUNGEST, OLDEST = 180, 1800  # days
CHILDREN = (("Molly", "female"), ("Ben", "male"), ("Nina", "female"), ("Sam", "male"), ("Lucy", "female"))
SPEAKERS = (("MOT", "Mother", 70), ("FAT", "Father", 17), ("GRA", "Grandmother", 6), ("INV", "Investigator", 7))

# What an utterance may begin with, and how often.
_OPENINGS = {
    **{"oh": 9, "well": 5, "okay": 7, "now": 6, "and": 8, "yeah": 5, "no": 4, "so": 4, "look": 2, "alright": 2},
    **{"but": 3, "then": 2, "see": 1, "uhoh": 1, "hey": 1},
}
# Those that do not go with a question or an order.
_STATEMENT_OPENINGS = {"look", "see", "uhoh", "no", "yeah"}
# Registers whose statements may be joined by "and".
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
    if not out.name.endswith((".csv", ".csv.gz")):
        raise ConfigError(f"'{out.name}' is no name of a childes-db export", remedy="end it in .csv or .csv.gz")
    check_overwrite(out.parent, [out.name], overwrite)
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
    ages = _ages(rng)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
    writer.writeheader()
    rows, adult, tokens, types = 0, 0, 0, set()
    for number, age in enumerate(ages):
        name, gender = CHILDREN[number % len(CHILDREN)]
        session = _session(vocabulary, name, gender, age, rng)
        share = utterances * (number + 1) // SESSIONS - utterances * number // SESSIONS
        for order, turn in enumerate(_conversation(vocabulary, session, share, rng), 1):
            rows += 1
            words = turn.utterance.words
            if turn.code != "CHI":
                adult += 1
                tokens += len(words)
                types.update(word.lower() for word in words)
            row = {
                "id": rows,
                "speaker_id": number * 10 + _CODES.index(turn.code),
                "utterance_order": order,
                "transcript_id": number + 1,
                "gloss": " ".join(words),
                "num_tokens": len(words),
                "speaker_code": turn.code,
                "speaker_role": turn.role,
                "target_child_id": number % len(CHILDREN) + 1,
                "target_child_age": age,
                "target_child_name": name,
                "target_child_sex": gender,
                "type": turn.utterance.type,
            }
            writer.writerow({**COLUMNS, **row})
    return buffer.getvalue(), SampleStats(adult, rows - adult, tokens, len(types), SESSIONS, ages[0], ages[-1])


_CODES = [*(code for code, _, _ in SPEAKERS), "CHI"]


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
    if alone and second[0].words[0] not in _OPENINGS:
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
        if rng.random() < 0.11 and words[0] not in _OPENINGS:
            opening = rng.choices(tuple(_OPENINGS), tuple(_OPENINGS.values()))[0]
            if utterance.type == "declarative" or opening not in _STATEMENT_OPENINGS:
                words.insert(0, opening)
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
