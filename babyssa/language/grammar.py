"""A grammar of child-directed speech: constituents that agree, and templates that put them together.

A template is the text of one or more utterances (``/`` stands between them), and :mod:`babyssa.language.registers`
lists them. In it ``(a|b|)`` is a choice, and ``{S.is}`` a slot: constituent S, in the form "is". A constituent
is drawn when it is first named, and then remembered, so that all slots naming it agree: ``{S.is} {S} {A.ing} ?``
gives "are you eating a cookie ?" or "is the little dog running ?".

=============  ======================================================================================
slot           constituent
=============  ======================================================================================
S, H, P, N     a subject: any animate one; a third-person one; a person, by name or noun; a name
I, we, F       a pronoun as subject: that one; any of "I", "you" and "we"
Q, C           a quantified subject; a subject with a phrase or a relative clause behind its noun
V, A, B, R     a verb phrase: any; an action; one without any object; one with a reflexive object
G, O, Os, Op   a verb whose object stands elsewhere; that object (in either number, singular, plural)
animal, ...    a noun of that kind (``sg_``, ``pl_``: in that number); ``noun``: anything one can name;
               ``shown``: the word that a picture book shows
where, ...     phrases that agree with nothing: each ``say_`` method of :class:`Scene`
=============  ======================================================================================

A digit tells constituents of one sort apart, and binds a verb to its subject: ``{S2} {V2.s}`` is a clause of
its own. A verb without a subject of its index (an imperative, a literal "you") is said to the child.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from babyssa.language.lexicon import Name, Noun, Pronoun, Verb, indefinite_article
from babyssa.language.vocabulary import Vocabulary, ownable

NAMEABLE = ("toy", "animal", "vehicle", "thing", "clothing", "food", "text")

# Verbs that agree with a noun phrase in any slot: for a third person singular, any other, and "I".
AGREEING = {
    "is": ("is", "are", "am"),
    "was": ("was", "were", "was"),
    "has": ("has", "have", "have"),
    "does": ("does", "do", "do"),
    "wants": ("wants", "want", "want"),
    "likes": ("likes", "like", "like"),
    "thinks": ("thinks", "think", "think"),
    "looks": ("looks", "look", "look"),
    "goes": ("goes", "go", "go"),
    "lives": ("lives", "live", "live"),
}

# Phrases that agree with nothing, as choices.
PHRASES = {
    "ago": "yesterday|last night|this morning|last week|today|on Sunday|last Monday",
    "soon": "tomorrow|later|after your nap|in a minute|after lunch|soon|on Monday|tonight",
    "sound": "moo|woof|meow|quack|oink|baa|choochoo|vroom|beep|boom|roar|tweet|buzz",
    "more": "more than {number}|fewer than {number}",
    "most": "at least {number}|at most {number}|more than {number}|fewer than {number}",
}
_MOODS = "happy|sad|hungry|tired|sleepy|angry|silly|sick|scared"
_GOALS = "home|outside|away|upstairs|inside|back|over there|downstairs"
_AFTER_OBJECT = "again|again|too|first|all the time|very nicely|by the window"
_AFTER_VERB = "again|too|a lot|all day|outside|with Daddy|over there|nicely"

# Verbs that say nothing without a complement that this grammar does not build: only templates have them.
_NOT_DRAWN = {"think", "know", "live", "tell", "look"}
# What one does not tell a child to do, though it may happen.
_NOT_ASKED_FOR = {"lose", "break", "bite", "scare", "hurt", "forget", "grow", "sneeze", "fall", "cry", "kick"}
# What one can do to oneself.
_REFLEXIVE = {
    *("see", "hear", "wash", "scare", "bite", "hug", "tickle"),
    *("help", "draw", "paint", "hurt", "like", "love", "hide"),
}
# What one does in a place.
_POSTURE = {
    *("sit", "stand", "sleep", "wait", "stay", "jump", "play", "hide"),
    *("dance", "crawl", "read", "sing", "run", "swim"),
}

# What is contracted, into what, and how often; never at the end, where "is" and "are" keep their stress.
_CONTRACTIONS = [
    (re.compile(r"\b(do|does|did|is|are|was|were) not (?=(?:it|you|he|she|they|we)\b)"), r"\1n't ", 1),
    (re.compile(r"\b(it|that|there|here|he|she) is (?=\w)"), r"\1's ", 0.92),
    (re.compile(r"\b(what|where|who) is (?=\w)(?!(?:it|he|she) [.?!])"), r"\1's ", 0.45),
    (re.compile(r"\b(you|we|they) are (?=\w)"), r"\1're ", 0.8),
    (re.compile(r"\blet us (?=\w)"), "let's ", 0.97),
    (re.compile(r"\bI am (?=\w)"), "I'm ", 0.95),
    (re.compile(r"\bwill not\b"), "won't", 0.97),
    (re.compile(r"\b(I|you|he|she|it|we|they) will (?=\w)"), r"\1'll ", 0.7),
    (re.compile(r"\b(do|does|did|is|are|was|were|would|could|should|have|has|had) not\b"), r"\1n't", 0.97),
    (re.compile(r"\bcan not (?=you\b)"), "can't ", 1),
    (re.compile(r"\bcan not\b"), "can't", 0.97),
    (re.compile(r"\bgoing to (?=[a-z]+ )(?!the |a |my |your |our )"), "gonna ", 0.5),
    (re.compile(r"\bwant to (?=[a-z])"), "wanna ", 0.35),
]

TYPE_OF_MARK = {".": "declarative", "?": "question", "!": "imperative_emphatic", "+": "trail off"}


class Utterance(NamedTuple):
    """One utterance: its words, and its type by the names that childes-db uses."""

    words: tuple[str, ...]
    type: str


@dataclass(frozen=True)
class Phrase:
    """A noun phrase: its text as a subject, and the pronoun that stands for it and says how it agrees.

    `noun` is None for names and pronouns; `bare` is the noun with its adjectives and without a determiner.
    """

    text: str
    pronoun: Pronoun
    noun: Noun | None = None
    bare: str = ""

    @property
    def kinds(self) -> frozenset[str]:
        """What a verb may list to accept this phrase: its kind and its noun."""
        return frozenset({"person"} if self.noun is None else {self.noun.kind, self.noun.singular})

    @property
    def plural(self) -> bool:
        return self.pronoun.number == "plural"

    @property
    def third_singular(self) -> bool:
        return self.pronoun.person == 3 and not self.plural

    def inflect(self, third: str, other: str, first: str) -> str:
        """The form of a verb for this subject."""
        if self.third_singular:
            return third
        return first if self.pronoun.person == 1 and not self.plural else other


@dataclass(frozen=True)
class VerbPhrase:
    """A verb, the text that follows it, and the subject that it agrees with (None: the child)."""

    verb: Verb
    rest: str = ""
    subject: Phrase | None = None

    def form(self, name: str) -> str:
        """In the form ``base``, ``s`` (the present, agreeing), ``past``, ``en`` (participle) or ``ing``."""
        verb = self.verb
        agreeing = verb.third if self.subject is not None and self.subject.third_singular else verb.base
        forms = {
            "base": verb.base,
            "s": agreeing,
            "past": verb.past,
            "en": verb.participle,
            "ing": verb.progressive,
        }
        return f"{forms[name]} {self.rest}".strip()


@dataclass(frozen=True)
class Session:
    """Who speaks with whom about what: the things a recording is about come up again and again in it.

    Parameters
    ----------
    child, gender : str
        The target child's name, and ``male`` or ``female``.
    friends : tuple of Name
        Who else is talked about.
    salient : frozenset of str
        Singulars of the nouns the session is about.
    maturity : float
        0 at the youngest age, 1 at the oldest; complex constructions become more frequent with it.
    """

    child: str
    gender: str
    friends: tuple[Name, ...]
    salient: frozenset[str]
    maturity: float


class Scene:
    """Draws the constituents of one template at a time, and fills it."""

    def __init__(self, vocabulary: Vocabulary, session: Session, rng: random.Random):
        self.words = vocabulary
        self.session = session
        self.rng = rng
        self._drawn: dict[str, Phrase | VerbPhrase] = {}
        self._slots: list[tuple[str, str]] = []
        self._named: set[str] = set()
        self._shown: Noun | Verb | None = None
        self._cumulative: dict[int, tuple[Sequence, list[float]]] = {}
        self._subjects = {
            "S": self.subject,
            "H": self.third_person,
            "P": self.person,
            "N": self.name,
            "I": lambda: self.pronoun("I"),
            "we": lambda: self.pronoun("we"),
            "F": lambda: self.pronoun(self.one_of("I|you|we")),
            "Q": self.quantified,
            "C": self.complex_subject,
        }

    # Filling templates

    def utter(self, template: str, shown: Noun | Verb | None = None) -> list[Utterance]:
        """Fill one template; its utterances, in order. `shown` is drawn wherever it is possible."""
        self._shown = shown
        self._drawn, self._named = {}, set()
        while "(" in template:
            template = re.sub(r"\(([^()]*)\)", lambda match: self.one_of(match.group(1)), template)
        self._slots = re.findall(r"\{(\w+?)(\d?)(?:\.\w+)?\}", template)
        return [self._finish(part) for part in self._filled(template).split("/")]

    def _filled(self, text: str) -> str:
        return re.sub(r"\{(\w+?)(\d?)(?:\.(\w+))?\}", lambda match: self._fill(*match.groups()), text)

    def _fill(self, sort: str, digit: str, form: str | None) -> str:
        if sort in PHRASES:
            return self._filled(self.one_of(PHRASES[sort]))
        if hasattr(self, f"say_{sort}"):
            return getattr(self, f"say_{sort}")()
        part = self._part(sort, digit)
        if isinstance(part, VerbPhrase):
            return part.form(form or "base")
        if form is None:
            return part.text
        return part.inflect(*AGREEING[form]) if form in AGREEING else getattr(self, f"np_{form}")(part)

    def _finish(self, text: str) -> Utterance:
        text = " ".join(text.split())
        for pattern, short, share in _CONTRACTIONS:
            text = pattern.sub(lambda m, s=short, p=share: m.expand(s) if self.chance(p) else m.group(), text)
        text = re.sub(r"\ba (?=[aeiou])", "an ", text)  # a template's own "a", before whatever was drawn
        *words, mark = text.split(" ")
        return Utterance(tuple(words), TYPE_OF_MARK[mark])

    def _part(self, sort: str, digit: str) -> Phrase | VerbPhrase:
        if sort + digit not in self._drawn:
            self._drawn[sort + digit] = self._draw(sort, digit)
        return self._drawn[sort + digit]

    def _draw(self, sort: str, digit: str) -> Phrase | VerbPhrase:
        if sort in self._subjects:
            return self._subjects[sort]()
        if sort in ("V", "A", "B", "G", "R"):
            return self.verb_phrase(sort, self._subject_of(digit))
        if sort in ("O", "Os", "Op"):
            number = {"O": None, "Os": "singular", "Op": "plural"}[sort]
            return self.noun_phrase(self._part("G", digit).verb.objects, number)
        number = {"sg_": "singular", "pl_": "plural"}.get(sort[:3])
        kind = sort[3:] if number else sort
        return self.noun_phrase({"noun": NAMEABLE, "shown": self.words.lexicon.kinds}.get(kind, (kind,)), number)

    def _subject_of(self, digit: str) -> Phrase | None:
        """The first phrase of that index that can be a subject, or else the first without an index."""
        for sort, index in self._slots:
            if index == digit and (sort in self._subjects or sort.endswith(("animal", "person"))):
                return self._part(sort, digit)
        return self._subject_of("") if digit else None

    # Choosing

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def one_of(self, choices: str) -> str:
        return self.rng.choice(choices.split("|"))

    def pick(self, pool: Sequence):
        """One of a pool of nouns or verbs, by frequency, and by what the session is about."""
        if self._shown is not None and self._shown in pool:
            return self._shown
        if id(pool) not in self._cumulative:
            self._cumulative[id(pool)] = (pool, list(accumulate(map(self._weight, pool))))
        return self.rng.choices(pool, cum_weights=self._cumulative[id(pool)][1])[0]

    def _weight(self, word: Noun | Verb) -> float:
        if isinstance(word, Verb):
            return self.words.verb_weight[word.base]
        return self.words.noun_weight[word.singular] * (8 if word.singular in self.session.salient else 1)

    def adjective(self, pool: Sequence[str]) -> str:
        return self.rng.choices(pool, [self.words.adjective_weight[word] for word in pool])[0]

    # Noun phrases

    def subject(self) -> Phrase:
        """Mostly a pronoun, "you" before all, as in real child-directed speech."""
        if self.chance(0.7):
            return self.pronoun(
                self.rng.choices(("I", "you", "he", "she", "we", "they"), (24, 46, 10, 8, 9, 6))[0]
            )
        return self.third_person()

    def third_person(self) -> Phrase:
        young = 1 - self.session.maturity
        draw = self.rng.choices(
            ("pronoun", "animal", "person", "name"), (34, 12 + 12 * young, 14, 40 - 12 * young)
        )[0]
        if draw == "pronoun":
            return self.pronoun(self.rng.choices(("he", "she", "they"), (5, 4, 3))[0])
        return self.name() if draw == "name" else self.noun_phrase((draw,))

    def person(self) -> Phrase:
        return self.name() if self.chance(0.45) else self.noun_phrase(("person",), "singular")

    def name(self) -> Phrase:
        name = self.rng.choice([n for n in self.session.friends if n.name not in self._named])
        self._named.add(name.name)
        return Phrase(name.name, self.words.pronouns["he" if name.gender == "male" else "she"], bare=name.name)

    def pronoun(self, subject: str) -> Phrase:
        return Phrase(subject, self.words.pronouns[subject.lower()])

    def noun_phrase(self, of: Sequence[str], number: str | None = None) -> Phrase:
        """A noun with a likely determiner, perhaps an adjective."""
        pool = self.words.select(of, None if number is None else True)
        noun = self.pick(pool)
        if noun.singular in self._named and noun is not self._shown:
            noun = self.pick(pool)
        self._named.add(noun.singular)
        if number is None:
            number = "plural" if noun.countable and self.chance(0.3) else "singular"
        phrase = Phrase("", self._pronoun_for(noun, number), noun=noun, bare=self.modified(noun, number))
        return Phrase(self.np_det(phrase), phrase.pronoun, noun=noun, bare=phrase.bare)

    def _pronoun_for(self, noun: Noun, number: str) -> Pronoun:
        if number == "plural":
            return self.words.pronouns["they"]
        if noun.kind == "person" or (noun.kind == "animal" and self.chance(0.7)):
            gender = noun.gender or self.one_of("male|male|female")
            return self.words.pronouns["he" if gender == "male" else "she"]
        return self.words.pronouns["it"]

    def modified(self, noun: Noun, number: str) -> str:
        """The noun, at times with an adjective or two."""
        head = noun.form(number)
        adjectives = self.words.adjectives_of[noun.singular]
        if not adjectives or not self.chance(0.18):
            return head
        if "little" in adjectives and self.chance(0.05):
            colors = [word for word in adjectives if word in self._colors]
            return f"{self.one_of('little|big')} {self.adjective(colors or ['nice'])} {head}"
        return f"{self.adjective(adjectives)} {head}"

    @property
    def _colors(self) -> set[str]:
        return {adjective.word for adjective in self.words.lexicon.adjectives if adjective.type == "color"}

    def quantified(self) -> Phrase:
        """A quantified subject; it agrees as its quantifier says."""
        of = (self.one_of("animal|person"),)
        if self.chance(0.4):
            phrase = self.noun_phrase(of, "singular")
            quantifier = self.one_of("every|every|each|no|only one")
        else:
            phrase = self.noun_phrase(of, "plural")
            quantifier = self.one_of("all the|all the|most of the|two of the|both|many|some|most|several|no")
        return Phrase(f"{quantifier} {phrase.bare}", phrase.pronoun, noun=phrase.noun, bare=phrase.bare)

    def complex_subject(self) -> Phrase:
        """A noun with a preposition phrase or a relative clause behind it.

        The noun inside that has its own number, so it is the head that the verb is seen to agree with.
        """
        of = NAMEABLE if self.chance(0.55) else ("animal", "person")
        phrase = self.noun_phrase(of, self.one_of("singular|plural"))
        behind = self.behind(phrase.noun) if self.chance(0.55) else self.relative(phrase)
        return Phrase(f"{self.np_the(phrase)} {behind}", phrase.pronoun, noun=phrase.noun, bare=phrase.bare)

    def behind(self, noun: Noun | None = None) -> str:
        """Where something is: "in the box"."""
        preposition = self.rng.choices(self.words.lexicon.prepositions, self.words.preposition_weights)[0]
        ground = self.pick(self.words.select(preposition.of))
        if ground == noun:
            return self.behind(noun)
        plural = ground.countable and ground.kind != "place" and self.chance(0.35)
        determiner = self.one_of("the|the|the|your|my|those" if plural else "the|the|the|a|a|your|my|that")
        if determiner in ("your", "my") and not ownable(ground):
            determiner = "the"
        bare = self.modified(ground, "plural" if plural else "singular")
        if determiner == "a":
            determiner = indefinite_article(bare) if ground.countable else "some"
        return f"{preposition.word} {determiner} {bare}"

    def relative(self, phrase: Phrase) -> str:
        """A relative clause about `phrase`, with its gap in object or subject place."""
        verbs = self.words.takers_of[phrase.noun.singular]
        animate = phrase.noun.kind in ("person", "animal")
        if verbs and not (animate and self.chance(0.5)):
            subject, verb = self.subject(), self.pick(verbs)
            if not subject.kinds & set(verb.subjects):
                subject = self.pronoun("you")
            tense = "past" if self.chance(0.6) or not verb.state else "s"
            return f"that {subject.text} {VerbPhrase(verb, subject=subject).form(tense)}"
        if not animate:
            return f"that {phrase.inflect(*AGREEING['is'])} {self.behind(phrase.noun)}"
        action = self.verb_phrase("A", phrase)
        if self.chance(0.4):
            return f"that {action.form('past')}"
        return f"that {phrase.inflect(*AGREEING[self.one_of('is|was')])} {action.form('ing')}"

    # Forms of a noun phrase

    def np_det(self, p: Phrase) -> str:
        """With any determiner that a new or a known thing may have."""
        return self.np_a(p) if self.chance(0.28) else self.np_the(p)

    def np_the(self, p: Phrase) -> str:
        """Definite: mostly with "the"."""
        if p.noun is None:
            return p.text
        if p.noun.singular in ("brother", "sister", "friend"):
            return f"{self.one_of('my|your|your|his|her|the')} {p.bare}"
        words = ("the", "that", "this", "your", "my", "his", "her", "our", "their", "name")
        word = self.rng.choices(words, (48, 9, 7, 14, 6, 2, 2, 2, 1, 4))[0]
        if word == "that":
            return self.np_that(p)
        if word == "this":
            return self.np_this(p)
        if not ownable(p.noun):
            return f"the {p.bare}"
        if word == "name":
            word = f"{self.rng.choice([self.session.child, *(friend.name for friend in self.session.friends)])}'s"
        return f"{word} {p.bare}"

    def np_a(self, p: Phrase) -> str:
        """Indefinite."""
        if p.noun is None:
            return p.text
        if p.plural:
            return self._filled(self.one_of(f"some {p.bare}|some {p.bare}|{p.bare}|{{number}} {p.bare}"))
        return f"{indefinite_article(p.bare)} {p.bare}" if p.noun.countable else f"some {p.bare}"

    def np_some(self, p: Phrase) -> str:
        return self.np_a(p) if p.noun.countable and not p.plural else f"some {p.bare}"

    def np_any(self, p: Phrase) -> str:
        return self.np_a(p) if p.noun.countable and not p.plural else f"any {p.bare}"

    def np_weak(self, p: Phrase) -> str:
        """With a quantifier that can follow "there is"."""
        if not p.plural:
            return self.np_a(p) if self.chance(0.8) else f"no {p.bare}"
        return f"{self._filled(self.one_of('some|many|several|no|lots of|{number}'))} {p.bare}"

    def np_this(self, p: Phrase) -> str:
        return f"{self.np_these(p)} {p.bare}"

    def np_that(self, p: Phrase) -> str:
        return f"{self.np_those(p)} {p.bare}"

    def np_these(self, p: Phrase) -> str:
        return "these" if p.plural else "this"

    def np_those(self, p: Phrase) -> str:
        return "those" if p.plural else "that"

    def np_your(self, p: Phrase) -> str:
        return f"{'your' if ownable(p.noun) else 'the'} {p.bare}"

    def np_my(self, p: Phrase) -> str:
        return f"{'my' if ownable(p.noun) else 'the'} {p.bare}"

    def np_bare(self, p: Phrase) -> str:
        return p.bare

    def np_head(self, p: Phrase) -> str:
        """The noun without its adjectives."""
        return p.noun.form("plural" if p.plural else "singular")

    def np_one(self, p: Phrase) -> str:
        return "ones" if p.plural else "one"

    def np_adj(self, p: Phrase) -> str:
        """An adjective that fits the noun, for after "is"; names and pronouns have moods."""
        if p.noun is None:
            return self.one_of(_MOODS)
        words = [word for word in self.words.adjectives_of[p.noun.singular] if word not in p.bare.split()]
        return self.adjective(words or ["nice"])

    def np_attr(self, p: Phrase) -> str:
        """A colour, or else another adjective that tells two things of one sort apart."""
        fitting = self.words.adjectives_of[p.noun.singular]
        return self.rng.choice([word for word in fitting if word in self._colors] or fitting or ("big", "little"))

    def np_obj(self, p: Phrase) -> str:
        """As an object: a pronoun in its object case."""
        return p.text if p.bare else p.pronoun.object

    def np_he(self, p: Phrase) -> str:
        return p.text if p.pronoun.person < 3 else p.pronoun.subject

    def np_him(self, p: Phrase) -> str:
        return p.pronoun.object

    def np_his(self, p: Phrase) -> str:
        return p.pronoun.possessive

    def np_himself(self, p: Phrase) -> str:
        return p.pronoun.reflexive

    # Verb phrases

    def verb_phrase(self, sort: str, subject: Phrase | None) -> VerbPhrase:
        """A verb that the subject can do, with what follows it (nothing for G, whose object is elsewhere)."""
        asked = sort == "A" and subject is None
        kinds = frozenset({"person"}) if subject is None else subject.kinds
        verb = self.pick(self.words.verbs(_SORTS["ask" if asked else sort], kinds))
        if sort in ("G", "B"):
            return VerbPhrase(verb, "", subject)
        if sort == "R":
            pronoun = self.words.pronouns["you"] if subject is None else subject.pronoun
            return VerbPhrase(verb, pronoun.reflexive, subject)
        return VerbPhrase(verb, self.complement(verb, subject), subject)

    def complement(self, verb: Verb, subject: Phrase | None) -> str:
        """What follows a verb: by its frame, objects and an adverbial."""
        if verb.frame == "intransitive":
            return self.adverbial(verb) if self.chance(0.55) else ""
        if verb.frame == "optional" and self.chance(0.3):
            return self.adverbial(verb) if self.chance(0.3) else ""
        if verb.frame == "locative":
            where = self.behind() if self.chance(0.65) else self.one_of("here|there|down|away|back")
            return f"{self.object(verb, subject)} {where}"
        if verb.frame == "ditransitive" or (verb.recipient and self.chance(0.25)):
            recipient, thing = self.recipient(subject), self.noun_phrase(verb.objects).text
            takes_to = verb.frame == "ditransitive" or verb.base in ("throw", "read")
            return f"{thing} to {recipient}" if takes_to and self.chance(0.35) else f"{recipient} {thing}"
        after = self.one_of(_AFTER_OBJECT) if not verb.state and self.chance(0.12) else ""
        return f"{self.object(verb, subject)} {after}"

    def object(self, verb: Verb, subject: Phrase | None) -> str:
        """A noun phrase, or a pronoun in its object case that cannot be taken for the subject."""
        if self.chance(0.5) and verb.base not in ("ride", "drive", "fly", "grow"):
            if not self.words.select(verb.objects, True):
                return self.one_of("it|it|that|this")
            if not {"person", "animal"} & set(verb.objects) or self.chance(0.5):
                return self.rng.choices(("it", "them", "this", "that"), (14, 3, 2, 4))[0]
            return self._other(subject)
        if "person" in verb.objects and self.chance(0.3):
            return self.name().text
        return self.noun_phrase(verb.objects).text

    def recipient(self, subject: Phrase | None) -> str:
        return self._other(subject) if self.chance(0.6) else self.person().text

    def _other(self, subject: Phrase | None) -> str:
        """A pronoun for someone who is not the subject."""
        person = 2 if subject is None else subject.pronoun.person
        return self.one_of({1: "you|you|him|her", 2: "me|me|him|her|them", 3: "me|you|us"}[person])

    def adverbial(self, verb: Verb) -> str:
        if verb.motion and verb.base != "swim":
            return self.say_goal()
        if verb.base in ("talk", "listen"):
            return f"to {self.np_obj(self.third_person())}"
        return self.behind() if verb.base in _POSTURE and self.chance(0.6) else self.one_of(_AFTER_VERB)

    # Slots that agree with nothing

    def say_child(self) -> str:
        return self.session.child

    def say_honey(self) -> str:
        return self.one_of(f"{self.session.child}|{self.session.child}|honey|sweetie|sweetheart|darling")

    def say_boy(self) -> str:
        return "boy" if self.session.gender == "male" else "girl"

    def say_name(self) -> str:
        return self.name().text

    def say_where(self) -> str:
        return self.behind()

    def say_goal(self) -> str:
        """Where one goes."""
        return (
            self.one_of(_GOALS)
            if self.chance(0.4)
            else f"to the {self.pick(self.words.select(('place',))).singular}"
        )

    def say_number(self) -> str:
        """From "two" on; small numbers more often."""
        return self.rng.choices(self.words.lexicon.numbers[1:], (9, 8, 5, 5, 3, 3, 3, 3, 4))[0].word


def _takes_any_number(verb: Verb) -> bool:
    """An action on an object that can be one or many (not "drink")."""
    return verb.frame in ("transitive", "optional") and not verb.state and verb.objects != ("drink",)


_SORTS = {
    "V": lambda verb: verb.base not in _NOT_DRAWN,
    "A": lambda verb: verb.base not in _NOT_DRAWN and not verb.state,
    "ask": lambda verb: verb.base not in _NOT_DRAWN | _NOT_ASKED_FOR and not verb.state,
    "B": lambda verb: verb.frame in ("intransitive", "optional") and not verb.clause and verb.base != "live",
    "G": _takes_any_number,
    "R": lambda verb: verb.base in _REFLEXIVE,
}
