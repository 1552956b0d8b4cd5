"""A grammar of child-directed speech: it draws phrases that agree, and fills templates with them.

:mod:`babyssa.language.templates` explains the notation; ``data/registers.yaml`` has the templates and defines the
slots. A phrase is drawn at its first mention and then remembered, so that all slots that name it agree:
``{S.is} {S} {A.progressive} ?`` gives "are you eating a cookie ?" or "is the little dog running ?".

==================  =================================================================================
form                of a noun phrase
==================  =================================================================================
is, wants, ...      a verb form that agrees with it (``agreement`` in the file)
a, this, your, ...  with that determiner (``determiners`` in the file); ``the``: with any definite one
bare, head          without a determiner; without adjectives either
adj, attr           a predicative adjective, and one that tells two things of a kind apart
pronoun, object     the pronoun that stands for it; as an object, a pronoun in its object case
possessive          "his"
reflexive           "himself"
==================  =================================================================================

A verb phrase has the forms present (which agrees with its subject), past, participle and progressive. ``{child}``
is the child's name, ``{boy}`` "boy" or "girl", ``{friend}`` someone's name, ``{where}`` a place: "in the box".
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from babyssa.language.lexicon import Adjective, Name, Noun, Pronoun, Verb
from babyssa.language.slots import SlotDefinition, form
from babyssa.language.source import Weights
from babyssa.language.speech import Registers, Usage
from babyssa.language.templates import Piece, Slot, Template, choose, realise, tidy

TYPE_OF_MARK = {".": "declarative", "?": "question", "!": "imperative_emphatic", "+": "trail off"}


class Spoken(NamedTuple):
    """One utterance: its words, and its type in childes-db's terms."""

    words: tuple[str, ...]
    type: str


@dataclass(frozen=True)
class NounPhrase:
    """A noun phrase: its text as a subject, and the pronoun that replaces it and determines its agreement.

    `noun` is None for names and pronouns; `bare` is the noun with its adjectives but without a determiner.
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
    def number(self) -> str:
        return self.pronoun.number

    def inflect(self, third: str, other: str, first: str) -> str:
        """The verb form that agrees with this phrase as its subject."""
        if self.number == "plural" or self.pronoun.person == 2:
            return other
        return third if self.pronoun.person == 3 else first


@dataclass(frozen=True)
class VerbPhrase:
    """A verb, the text that follows it, and the subject that it agrees with (None: the child)."""

    verb: Verb
    rest: str = ""
    subject: NounPhrase | None = None

    def form(self, name: str | None) -> str:
        """The phrase in the past, participle, progressive, present (agreeing) or, by default, base form."""
        base = self.verb.base
        if name == "present":
            agreeing = base if self.subject is None else self.subject.inflect(self.verb.third, base, base)
            return f"{agreeing} {self.rest}"
        return f"{form(self.verb, name)} {self.rest}"


@dataclass(frozen=True)
class Session:
    """Who takes part in a recording, and what it is about: its topics recur throughout.

    Parameters
    ----------
    child, gender : str
        The target child's name, and ``male`` or ``female``.
    friends : tuple of Name
        Other people who are mentioned.
    salient : frozenset of Noun
        The topics; these nouns are more frequent.
    maturity : float
        0 at the youngest age, 1 at the oldest; complex constructions become more frequent with it.
    """

    child: str
    gender: str
    friends: tuple[Name, ...]
    salient: frozenset[Noun]
    maturity: float


class Scene:
    """Fills templates for one recording, and remembers the phrases of the current template.

    Parameters
    ----------
    registers : Registers
        The slots, determiners and pieces of templates.
    usage : Usage
        The words and how often each is said.
    session : Session
        The recording.
    rng : random.Random
        Source of all random choices.
    """

    def __init__(self, registers: Registers, usage: Usage, session: Session, rng: random.Random):
        self.registers = registers
        self.usage = usage
        self.lexicon = usage.lexicon
        self.session = session
        self.rng = rng
        self._possessives = {pronoun.possessive for pronoun in self.lexicon.pronouns}
        self._drawn: dict[str, NounPhrase | VerbPhrase | Noun] = {}
        self._slots: list[Slot] = []
        self._named: set[str | Noun] = set()
        self._shown: Noun | Verb | None = None
        self._cumulative: dict[int, tuple[Sequence, list[float]]] = {}

    # Filling templates

    def utter(self, template: Template, shown: Noun | Verb | None = None) -> Iterator[Spoken]:
        """Yield the utterances of one filled template, in order; `shown` is drawn wherever it fits."""
        self._shown = shown
        self._drawn, self._named = {}, set()
        chosen = choose(template, self.rng)
        self._slots = [part for part in chosen if isinstance(part, Slot)]
        for text in realise(chosen, self.fill).split("/"):
            *words, mark = self.contracted(tidy(text)).split(" ")
            yield Spoken(tuple(words), TYPE_OF_MARK[mark])

    def contracted(self, text: str) -> str:
        for pattern, short, share in self.usage.habits.contractions:
            text = pattern.sub(
                lambda match, short=short, share=share: match.expand(short) if self.chance(share) else match[0],
                text,
            )
        return text

    def fill(self, part: Slot | Piece) -> str:
        """The text of a slot or of a piece; a piece draws its slots independently."""
        if isinstance(part, Piece):
            return self.piece(part.name)
        if part.name == "where":
            return self.where()
        if part.name == "child":
            return self.session.child
        if part.name == "boy":
            return "boy" if self.session.gender == "male" else "girl"
        if part.name == "friend":
            return self.rng.choice([self.session.child, *(friend.name for friend in self.session.friends)])
        filler = self.filler(part.name, part.digit)
        if isinstance(filler, VerbPhrase):
            return filler.form(part.form)
        return self.form(filler, part.form) if isinstance(filler, NounPhrase) else form(filler, part.form)

    def piece(self, name: str) -> str:
        drawn, self._drawn = self._drawn, {}
        text = realise(choose(self.registers.pieces[name], self.rng), self.fill)
        self._drawn = drawn
        return text

    def filler(self, name: str, digit: str) -> NounPhrase | VerbPhrase | Noun:
        if name + digit not in self._drawn:
            self._drawn[name + digit] = self.draw(name, digit)
        return self._drawn[name + digit]

    def draw(self, name: str, digit: str) -> NounPhrase | VerbPhrase | Noun:
        """Draw a new filler for a slot."""
        slot = self.registers.slots[name]
        if slot.either:
            return self.draw(self.one_of(slot.either), digit)
        if slot.pronoun:
            return self.pronoun(self.one_of(slot.pronoun))
        if slot.name:
            return self.name()
        if slot.action:
            return self.verb_phrase(slot, self.subject_of(digit))
        if slot.phrase:
            verbs = [self.filler(verb, digit).verb for verb in slot.object_of]
            return self.noun_phrase(verbs[0].objects if verbs else self.kinds(slot), slot)
        return self.pick(self.usage.candidates(slot))

    def kinds(self, slot: SlotDefinition) -> Sequence[str]:
        return self.lexicon.kinds if slot.phrase == ("any",) else slot.phrase

    def subject_of(self, digit: str) -> NounPhrase | None:
        """The template's first subject with that digit, or else its first without a digit."""
        for slot in self._slots:
            definition = self.registers.slots.get(slot.name)
            if slot.digit == digit and definition is not None and definition.subject:
                return self.filler(slot.name, digit)
        return self.subject_of("") if digit else None

    # Choosing

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def one_of(self, options: Weights) -> str:
        """Draw one of several words, uniformly or by weight; a weight may depend on the child's age."""
        if not isinstance(options, Mapping):
            return options[0] if len(options) == 1 else self.rng.choice(options)
        ages = [weight if isinstance(weight, list) else [weight, weight] for weight in options.values()]
        weights = [young + (old - young) * self.session.maturity for young, old in ages]
        return self.rng.choices(tuple(options), weights)[0]

    def pick(self, pool: Sequence):
        """Draw one of a pool of nouns or verbs, by frequency and salience."""
        if self._shown is not None and self._shown in pool:
            return self._shown
        if id(pool) not in self._cumulative:
            weights = (self.usage.weight[word] * (8 if word in self.session.salient else 1) for word in pool)
            self._cumulative[id(pool)] = (pool, list(accumulate(weights)))
        return self.rng.choices(pool, cum_weights=self._cumulative[id(pool)][1])[0]

    # Noun phrases

    def pronoun(self, subject: str) -> NounPhrase:
        return NounPhrase("I" if subject == "i" else subject, self.lexicon.pronoun(subject))

    def name(self) -> NounPhrase:
        """Draw a person who has not been named in this template yet."""
        name = self.rng.choice([n for n in self.session.friends if n.name not in self._named])
        self._named.add(name.name)
        return NounPhrase(name.name, self.pronoun_for(name.gender), bare=name.name)

    def pronoun_for(self, gender: str) -> Pronoun:
        return self.lexicon.pronoun("he" if gender == "male" else "she")

    def noun_phrase(self, of: Collection[str], slot: SlotDefinition | None = None) -> NounPhrase:
        """Draw a noun with a determiner and perhaps an adjective."""
        number = self.one_of(slot.number) if slot is not None and slot.number else None
        pool = self.lexicon.select(of) if number is None else self.lexicon.select(of, countable=True)
        noun = self.pick(pool)
        if noun in self._named and noun is not self._shown:
            noun = self.pick(pool)
        self._named.add(noun)
        if number is None:
            number = "plural" if noun.countable and self.chance(0.3) else "singular"
        pronoun = self.lexicon.pronoun("they" if number == "plural" else "it")
        if number == "singular" and (noun.kind == "person" or (noun.kind == "animal" and self.chance(0.7))):
            pronoun = self.pronoun_for(noun.gender or self.piece("gender"))
        phrase = NounPhrase("", pronoun, noun, self.modified(noun, number))
        phrase = replace(phrase, text=self.form(phrase, "any_determiner"))
        if slot is not None and slot.determiner:
            return replace(phrase, text=self.form(phrase, slot.determiner))
        if slot is not None and slot.modified:
            behind = self.where(noun) if self.chance(0.55) else self.relative(phrase)
            return replace(phrase, text=f"{self.form(phrase, 'the')} {behind}")
        return phrase

    def modified(self, noun: Noun, number: str) -> str:
        """The noun, sometimes with one or two adjectives."""
        adjectives = self.adjectives(noun)
        if not adjectives or not self.chance(0.18):
            return noun.form(number)
        if any(adjective.word == "little" for adjective in adjectives) and self.chance(0.05):
            size = self.piece("size")
            colors = [adjective for adjective in adjectives if adjective.type == "color"]
            return f"{size} {self.adjective(colors)} {noun.form(number)}"
        return f"{self.adjective(adjectives)} {noun.form(number)}"

    def adjectives(self, noun: Noun) -> list[Adjective]:
        return [a for a in self.lexicon.adjectives_of(noun) if a.word != noun.singular]

    def adjective(self, pool: Sequence[Adjective]) -> str:
        """Draw an adjective by frequency; from an empty pool, "nice", which fits everything."""
        pool = pool or [a for a in self.lexicon.adjectives if a.word == "nice"]
        return self.rng.choices(pool, [self.usage.weight[adjective] for adjective in pool])[0].word

    def where(self, other_than: Noun | None = None) -> str:
        """Draw a place: "in the box"."""
        prepositions = self.lexicon.prepositions
        preposition = self.rng.choices(prepositions, [self.usage.weight[p] for p in prepositions])[0]
        ground = self.pick(self.lexicon.select(preposition.of))
        if ground is other_than:
            return self.where(other_than)
        plural = ground.countable and ground.kind != "place" and self.chance(0.35)
        number = "plural" if plural else "singular"
        determiner = self.determiner("place", ground, number)
        return f"{preposition.word} {determiner} {self.modified(ground, number)}"

    def relative(self, phrase: NounPhrase) -> str:
        """A relative clause that modifies `phrase`, with an object or subject gap."""
        verbs = self.lexicon.takers_of(phrase.noun)
        animate = phrase.noun.kind in ("person", "animal")
        if verbs and not (animate and self.chance(0.5)):
            subject, verb = self.draw("S", ""), self.pick(verbs)
            if not subject.kinds & set(verb.subjects):
                subject = self.pronoun("you")
            tense = "past" if self.chance(0.6) or not verb.state else "present"
            return f"that {subject.text} {VerbPhrase(verb, subject=subject).form(tense)}"
        if not animate:
            return f"that {self.form(phrase, 'is')} {self.where(phrase.noun)}"
        action = self.verb_phrase(self.registers.slots["A"], phrase)
        if self.chance(0.4):
            return f"that {action.form('past')}"
        return f"that {self.form(phrase, self.rng.choice(('is', 'was')))} {action.form('progressive')}"

    # Forms of a noun phrase

    def form(self, phrase: NounPhrase, name: str | None) -> str:
        """A noun phrase in one of the forms listed above; by default, as a subject."""
        noun, pronoun = phrase.noun, phrase.pronoun
        if name in self.registers.agreement:
            return phrase.inflect(*self.registers.agreement[name])
        if name == "pronoun":
            return phrase.text if pronoun.person < 3 else pronoun.subject
        if name == "object":
            return phrase.text if phrase.bare else pronoun.object
        if name in ("possessive", "reflexive"):
            return form(pronoun, name)
        if noun is None:
            return self.piece("mood") if name == "adj" else phrase.text
        if name == "adj":
            said = phrase.bare.split()
            return self.adjective([a for a in self.adjectives(noun) if a.word not in said])
        if name == "attr":
            fitting = self.adjectives(noun)
            distinctive = [a.word for a in fitting if a.type == "color"] or [a.word for a in fitting]
            return self.rng.choice(distinctive or ["big", "little"])
        if name in ("bare", "head"):
            return phrase.bare if name == "bare" else noun.form(phrase.number)
        return phrase.text if name is None else f"{self.determiner(name, noun, phrase.number)} {phrase.bare}"

    def determiner(self, name: str, noun: Noun, number: str) -> str:
        """A determiner for a noun; "the" instead of a possessive where the noun cannot be owned."""
        determiners = self.registers.determiners
        if name in ("the", "definite"):
            name = "relational" if noun.relational else "definite" if self.usage.ownable(noun) else "unowned"

        def fill(part: Slot | Piece) -> str:
            nested = isinstance(part, Piece) and part.name in determiners
            return self.determiner(part.name, noun, number) if nested else self.fill(part)

        column = "mass" if not noun.countable else number
        word = realise(choose(determiners[name][column], self.rng), fill)
        return "the" if word in self._possessives and not self.usage.ownable(noun) else word

    # Verb phrases

    def verb_phrase(self, slot: SlotDefinition, subject: NounPhrase | None) -> VerbPhrase:
        """Draw a verb that fits the subject, with its complement."""
        kinds = frozenset({"person"}) if subject is None else subject.kinds
        verb = self.pick(self.usage.verbs(slot, kinds, asked=subject is None))
        if slot.complement == "none":
            return VerbPhrase(verb, "", subject)
        if slot.complement == "reflexive":
            pronoun = self.lexicon.pronoun("you") if subject is None else subject.pronoun
            return VerbPhrase(verb, pronoun.reflexive, subject)
        return VerbPhrase(verb, self.complement(verb, subject), subject)

    def complement(self, verb: Verb, subject: NounPhrase | None) -> str:
        """What follows a verb, by its frame: objects and an adverbial."""
        if verb.frame == "intransitive":
            return self.adverbial(verb) if self.chance(0.55) else ""
        if verb.frame == "optional" and self.chance(0.3):
            return self.adverbial(verb) if self.chance(0.3) else ""
        if verb.frame == "locative":
            place = self.where() if self.chance(0.65) else self.piece("here")
            return f"{self.object(verb, subject)} {place}"
        if verb.frame == "ditransitive" or (verb.recipient and self.chance(0.25)):
            recipient = self.other_than(subject) if self.chance(0.6) else self.draw("P", "").text
            gift = self.noun_phrase(verb.objects).text
            to = verb.frame == "ditransitive" or verb.base in self.usage.habits.dative_verbs
            return f"{gift} to {recipient}" if to and self.chance(0.35) else f"{recipient} {gift}"
        after = self.piece("after_object") if not verb.state and self.chance(0.12) else ""
        return f"{self.object(verb, subject)} {after}"

    def object(self, verb: Verb, subject: NounPhrase | None) -> str:
        """A noun phrase, or an object pronoun that cannot refer to the subject."""
        if self.chance(0.5) and verb.base not in self.usage.habits.full_object_verbs:
            if not self.lexicon.select(verb.objects, countable=True):
                return self.piece("mass_pronoun")
            if not {"person", "animal"} & set(verb.objects) or self.chance(0.5):
                return self.piece("thing_pronoun")
            return self.other_than(subject)
        if "person" in verb.objects and self.chance(0.3):
            return self.name().text
        return self.noun_phrase(verb.objects).text

    def other_than(self, subject: NounPhrase | None) -> str:
        """A pronoun that does not refer to the subject."""
        return self.piece(f"other_than_{2 if subject is None else subject.pronoun.person}")

    def adverbial(self, verb: Verb) -> str:
        habits = self.usage.habits
        if verb.motion and verb.base not in habits.goalless_verbs:
            return self.piece("goal")
        if verb.base in habits.addressing_verbs:
            return f"to {self.form(self.draw('H', ''), 'object')}"
        return self.where() if verb.base in habits.posture_verbs and self.chance(0.6) else self.piece("after_verb")
