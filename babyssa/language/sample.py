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

from babyssa.display import Column, Shown, Table
from babyssa.errors import ConfigError
from babyssa.files import atomic_write, check_overwrite
from babyssa.language.grammar import Scene, Session, Spoken
from babyssa.language.lexicon import Noun, Verb, load_lexicon
from babyssa.language.speech import Register, Registers, Usage, load_habits, load_registers

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
# How often who speaks, and the CHAT roles.
SPEAKERS = {"MOT": 70, "FAT": 17, "GRA": 6, "INV": 7}
ROLES = {
    "MOT": "Mother",
    "FAT": "Father",
    "GRA": "Grandmother",
    "INV": "Investigator",
    "CHI": "Target_Child",
}

_UNINTELLIGIBLE = ("xxx", "xxx", "yyy")


@dataclass(frozen=True)
class SampleStats(Shown):
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

    def tables(self) -> Iterator[Table]:
        rows = [
            (self.utterances, "utterances by adults"),
            (self.tokens, "words in them"),
            (self.types, "different words"),
            (self.child_utterances, "utterances by children"),
            (self.transcripts, f"transcripts, at {self.youngest} to {self.oldest:,} days"),
        ]
        yield Table((Column("count", ","), Column("what")), rows, header=False)


def generate_sample(
    out: str | Path, *, utterances: int = 30000, seed: int = 0, overwrite: bool = False
) -> SampleStats:
    """Write a sample corpus as a childes-db export; :func:`babyssa.generate_sample` explains the parameters."""
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
    lexicon = load_lexicon()
    registers = load_registers(lexicon)
    usage = Usage(lexicon, load_habits(lexicon), rng)
    ages = _ages(rng)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
    writer.writeheader()
    rows, adult, tokens, types = 0, 0, 0, set()
    for number, age in enumerate(ages):
        name, gender = CHILDREN[number % len(CHILDREN)]
        recording = _Recording(registers, usage, _session(usage, name, gender, age, rng), rng)
        share = utterances * (number + 1) // SESSIONS - utterances * number // SESSIONS
        for order, (code, spoken) in enumerate(recording.turns(share), 1):
            rows += 1
            if code != "CHI":
                adult += 1
                tokens += len(spoken.words)
                types.update(word.lower() for word in spoken.words)
            row = {
                "id": rows,
                "speaker_id": number * 10 + list(ROLES).index(code),
                "utterance_order": order,
                "transcript_id": number + 1,
                "gloss": " ".join(spoken.words),
                "num_tokens": len(spoken.words),
                "speaker_code": code,
                "speaker_role": ROLES[code],
                "target_child_id": number % len(CHILDREN) + 1,
                "target_child_age": age,
                "target_child_name": name,
                "target_child_sex": gender,
                "type": spoken.type,
            }
            writer.writerow({**COLUMNS, **row})
    return buffer.getvalue(), SampleStats(adult, rows - adult, tokens, len(types), SESSIONS, ages[0], ages[-1])


def _ages(rng: random.Random) -> list[int]:
    """The target child's age in each recording, in days, strictly increasing."""
    step = (OLDEST - YOUNGEST) / (SESSIONS - 1)
    inner = [round(YOUNGEST + step * (i + rng.uniform(-0.4, 0.4))) for i in range(1, SESSIONS - 1)]
    return [YOUNGEST, *inner, OLDEST]


def _session(usage: Usage, child: str, gender: str, age: int, rng: random.Random) -> Session:
    """A recording: who is talked about in it, and which things lie around."""
    kin = tuple(name for name in usage.common.names if name.kin)
    others = [name for name in usage.common.names if not name.kin and name.name != child]
    salient = set()
    for kind in usage.common.kinds:
        pool = usage.common.select((kind,))
        salient.update(rng.choices(pool, [usage.weight[noun] for noun in pool], k=2))
    return Session(
        child=child,
        gender=gender,
        friends=(*kin, *rng.sample(others, 7)),
        salient=frozenset(salient),
        maturity=(age - YOUNGEST) / (OLDEST - YOUNGEST),
    )


class _Recording:
    """One recording: what the speakers say in it, turn by turn."""

    def __init__(self, registers: Registers, usage: Usage, session: Session, rng: random.Random):
        self.registers = registers.registers
        self.pieces = registers.pieces
        self.habits = usage.habits
        self.maturity = session.maturity
        self.child = session.child
        self.rng = rng
        self.scene = Scene(registers, usage, session, rng)
        # The pages of a picture book: words of the lexicon, so that over all books even rare ones are learned.
        nouns, verbs = usage.common.nouns, usage.common.verbs
        self.book: list[Noun | Verb] = [
            *rng.sample(nouns, len(nouns) // 5),
            *rng.sample(verbs, len(verbs) // 3),
        ]
        rng.shuffle(self.book)

    def turns(self, utterances: int) -> Iterator[tuple[str, Spoken]]:
        """The speaker's code and what is said; the adults say `utterances` utterances."""
        rng = self.rng
        weights = [r.young + (r.old - r.young) * self.maturity for r in self.registers.values()]
        said = 0
        while said < utterances:
            code = rng.choices(tuple(SPEAKERS), tuple(SPEAKERS.values()))[0]
            reading = self.book and rng.random() < 0.15
            for _ in range(rng.randint(1, 6)):
                if reading and self.book:
                    shown = self.book.pop()
                    register = self.registers["page_of_things" if isinstance(shown, Noun) else "page_of_actions"]
                else:
                    shown, register = None, rng.choices(tuple(self.registers.values()), weights)[0]
                for spoken in self.speak(register, shown):
                    yield code, spoken
                    said += 1
                    if said == utterances:
                        return
            if rng.random() < 0.2 + 0.5 * self.maturity:
                yield "CHI", self.child_speaks()

    def speak(self, register: Register, shown: Noun | Verb | None) -> Iterator[Spoken]:
        """One template of a register, with what speech adds to it."""
        group = self.draw(register, shown)
        if register.joined and self.rng.random() < 0.02 + 0.1 * self.maturity:
            group = self.join(group, self.draw(register, shown))
        for spoken in group:
            yield spoken if register.plain else self.embellished(spoken)
            # Adults repeat themselves to small children, often word for word.
            if len(spoken.words) <= 6 and self.rng.random() < 0.06 - 0.04 * self.maturity:
                yield spoken if register.plain else self.embellished(spoken)

    def draw(self, register: Register, shown: Noun | Verb | None) -> list[Spoken]:
        return list(self.scene.utter((register.templates,), shown))

    def join(self, first: list[Spoken], second: list[Spoken]) -> list[Spoken]:
        """Two statements in one breath; anything but two statements stays apart."""
        alone = len(first) == len(second) == 1 and first[0].type == second[0].type == "declarative"
        if alone and second[0].words[0] not in self.habits.openings:
            words = (*first[0].words, *self.scene.piece("joining").split(), *second[0].words)
            return [first[0]._replace(words=words)]
        return first

    def embellished(self, spoken: Spoken) -> Spoken:
        """What is said with what comes before and after it in speech; at times a word is not understood."""
        rng, words = self.rng, list(spoken.words)
        openings = self.habits.openings
        if len(words) > 1 and spoken.type != "trail off":
            if rng.random() < 0.11 and words[0] not in openings:
                opening = rng.choices(tuple(openings), tuple(openings.values()))[0]
                if spoken.type == "declarative" or opening not in self.habits.statement_openings:
                    words.insert(0, opening)
            if rng.random() < 0.035 and self.child not in words and words[-1] not in ("honey", "okay", "huh"):
                words.append(self.child)
        if rng.random() < 0.035:
            words[rng.randrange(len(words))] = rng.choice(_UNINTELLIGIBLE)
        return spoken._replace(words=tuple(words))

    def child_speaks(self) -> Spoken:
        """What a child of that age makes of it: babble, one word, a telegraphic few."""
        rng = self.rng
        if rng.random() < 0.3 - 0.2 * self.maturity:
            return Spoken(tuple(rng.choices(("xxx", "yyy", "yyy"), k=rng.randint(1, 2))), "declarative")
        few = rng.random() <= self.maturity + 0.15
        return next(self.scene.utter(self.pieces["telegraphic" if few else "one_word"]))
