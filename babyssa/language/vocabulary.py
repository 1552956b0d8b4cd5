"""How often the sample corpus says which word: the lexicon, ranked, and a tail of rare nouns."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from functools import cached_property

from babyssa.language.lexicon import Lexicon, Noun, Verb

# Nouns beside the lexicon's, with their plurals where these are irregular: the long tail that real speech has.
# The minimal-pair suite uses none of them.
RARE_NOUNS = {
    "person": """
        nurse fireman:firemen policeman:policemen mailman:mailmen neighbor pirate princess cowboy witch
        giant fairy baker dentist grandson painter dancer driver cousin uncle aunt
    """,
    "animal": """
        owl zebra camel squirrel lamb whale dinosaur kitten butterfly ant worm crab penguin seal fox rooster
        donkey parrot kangaroo hippo snail dragon raccoon beetle pony crocodile gorilla skunk deer:deer
        moose:moose ladybug caterpillar octopus turkey hamster swan peacock rhino leopard lizard lobster
        walrus otter eagle hawk pigeon robin bat
    """,
    "food": """
        pear peach lemon melon muffin noodle pickle onion pea raisin pretzel waffle doughnut cherry nut
        olive meatball blueberry hamburger lollipop popsicle marshmallow cupcake plum pepper cucumber
        mushroom radish coconut pineapple apricot biscuit bagel burger nugget taco tart
    """,
    "toy": """
        rattle whistle trumpet kite marble teddy swing slide top tambourine xylophone ring guitar dollhouse
        domino frisbee yoyo trampoline seesaw sandbox keyboard violin flute
    """,
    "vehicle": """
        jeep helicopter rocket scooter van taxi sled canoe tricycle stroller bulldozer ambulance trailer
        submarine ship plane motorcycle spaceship
    """,
    "clothing": """
        glove scarf:scarves belt bib apron slipper pocket sleeve diaper vest skirt sandal sneaker pajama
        bonnet necklace bracelet raincoat swimsuit bathrobe
    """,
    "furniture": """
        desk bench stool rug drawer cabinet cradle lamp sofa bathtub playpen dresser closet bookcase
        highchair counter
    """,
    "text": """
        card poem magazine newspaper sign number map rhyme page note calendar
    """,
    "thing": """
        napkin straw pan pot lid hammer shovel ladder rope string ribbon mirror camera comb toothbrush
        sponge mop broom feather shell stone branch flag cushion tissue envelope sticker stamp penny:pennies
        zipper sink flashlight umbrella battery bubble tail wing wheel nest fence ladle pin needle tent cage
        hose teapot saucer jar jug kettle iron lock hook nail screw wire wheelbarrow pebble acorn cloud
        rainbow puddle bandage pill thermometer suitcase purse wallet pocketbook curtain faucet carpet bead
        chain eraser marker paintbrush scarecrow snowman:snowmen chimney elevator escalator radio television
    """,
    "place": """
        forest bridge castle library church playground office hospital bakery pond hill porch attic tunnel
        garage basement cave jungle island museum restaurant circus airport station pool valley desert
    """,
}

FREQUENT_VERBS = frozenset(
    {
        "go",
        "come",
        "get",
        "put",
        "want",
        "have",
        "eat",
        "play",
        "see",
        "make",
        "find",
        "take",
        "like",
        "read",
        "give",
    }
)
FREQUENT_ADJECTIVES = frozenset({"big", "little", "nice", "good", "red", "blue", "pretty"})
PREPOSITION_WEIGHTS = {"in": 8.0, "on": 8.0, "under": 3.0}

# Nouns of persons and animals that one says "your" to.
OWNED = frozenset(
    {"dog", "cat", "kitty", "puppy", "bunny", "baby", "friend", "brother", "sister", "doctor", "teacher"}
)


class Vocabulary:
    """The lexicon and the rare nouns, with a weight for each word.

    Weights fall with the rank within a kind of noun and within the verbs, as in Zipf's law with an offset
    (Mandelbrot 1953) that keeps the lexicon's last words learnable. Ranks are drawn from `rng`.
    """

    def __init__(self, lexicon: Lexicon, rng: random.Random):
        self.lexicon = lexicon
        known = {noun.singular for noun in lexicon.nouns}
        rare = [_rare_noun(entry, kind) for kind, text in RARE_NOUNS.items() for entry in text.split()]
        rare = [noun for noun in rare if noun.singular not in known]
        self.nouns = (*lexicon.nouns, *rare)
        self.noun_weight = {noun.singular: 0.0012 * min(rng.paretovariate(0.8), 15) for noun in rare}
        for kind in lexicon.kinds:
            nouns = lexicon.nouns_of(kind)
            for rank, noun in enumerate(rng.sample(nouns, len(nouns))):
                self.noun_weight[noun.singular] = 1 / (rank + 20)
        verbs = rng.sample(lexicon.verbs, len(lexicon.verbs))
        verbs.sort(key=lambda verb: verb.base not in FREQUENT_VERBS)
        self.verb_weight = {verb.base: 1 / (rank + 50) for rank, verb in enumerate(verbs)}
        self.adjective_weight = {
            adjective.word: 5.0 if adjective.word in FREQUENT_ADJECTIVES else rng.uniform(1, 3)
            for adjective in lexicon.adjectives
        }
        self.preposition_weights = [PREPOSITION_WEIGHTS.get(p.word, 1.4) for p in lexicon.prepositions]
        self.pronouns = {pronoun.subject: pronoun for pronoun in lexicon.pronouns}
        self._selected: dict[tuple, tuple[Noun, ...]] = {}
        self._verbs: dict[tuple, tuple[Verb, ...]] = {}

    def select(self, of: Sequence[str], countable: bool | None = None) -> tuple[Noun, ...]:
        """Like :meth:`Lexicon.select`, with the rare nouns; the same request gives the same object."""
        key = (tuple(of), countable)
        if key not in self._selected:
            kinds = self.lexicon.kinds
            self._selected[key] = tuple(
                noun
                for noun in self.nouns
                if (noun.kind in of or (noun.singular in of and noun.singular not in kinds))
                and countable in (None, noun.countable)
            )
        return self._selected[key]

    def verbs(self, fits: Callable[[Verb], bool], subject_kinds: frozenset[str]) -> tuple[Verb, ...]:
        """The verbs that `fits` accepts and that a subject of one of the kinds can do (one object each)."""
        key = (fits, subject_kinds)
        if key not in self._verbs:
            able = (verb for verb in self.lexicon.verbs if subject_kinds & set(verb.subjects))
            self._verbs[key] = tuple(filter(fits, able))
        return self._verbs[key]

    @cached_property
    def adjectives_of(self) -> dict[str, tuple[str, ...]]:
        """The adjectives that fit a noun, by its singular."""
        found: dict[str, list[str]] = {noun.singular: [] for noun in self.nouns}
        for adjective in self.lexicon.adjectives:
            for noun in self.select(adjective.of):
                if noun.singular != adjective.word:
                    found[noun.singular].append(adjective.word)
        return {noun: tuple(words) for noun, words in found.items()}

    @cached_property
    def takers_of(self) -> dict[str, tuple[Verb, ...]]:
        """The verbs that can have a noun as their only object, by its singular."""
        found: dict[str, list[Verb]] = {noun.singular: [] for noun in self.nouns}
        for verb in self.lexicon.verbs_of("transitive", "optional"):
            for noun in self.select(verb.objects):
                found[noun.singular].append(verb)
        return {noun: tuple(verbs) for noun, verbs in found.items()}


def ownable(noun: Noun) -> bool:
    """Whether one says "your" before it."""
    return noun.kind not in ("person", "animal", "place") or noun.singular in OWNED


def _rare_noun(entry: str, kind: str) -> Noun:
    """Read ``deer:deer``, or give a noun its regular plural."""
    singular, _, plural = entry.partition(":")
    if not plural and re.search(r"[^aeiou]y$", singular):
        plural = f"{singular[:-1]}ies"
    elif not plural:
        plural = singular + ("es" if re.search(r"(s|x|z|ch|sh)$", singular) else "s")
    return Noun(singular, kind, plural)
