"""Turns an utterance into a sentence of the corpus, or into the one reason why it is left out.

Case is kept: lower-casing is the tokenizer's job. A spoken utterance gets one end mark as its last token, chosen
by its type and first words. Running text keeps its own end marks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from babyssa.checks import AboveZero, Positive, Settings
from babyssa.corpus.utterances import DAYS_PER_UNIT, Utterance

CHILD_ROLES = frozenset({"Target_Child", "Child"})
"""The CHAT roles of children. A Brother or a Playmate may be of any age and is not included."""

EXCLAMATION_TYPES = frozenset(
    {"imperative", "imperatives", "imperative_emphatic", "imperative emphatic", "question exclamation"}
)
QUESTION_TYPES = frozenset(
    {"question", "interruption question", "self interruption question", "trail off question"}
)

UNINTELLIGIBLE = ("xxx", "yyy", "www")
"""CHAT's codes for unintelligible, phonologically coded and untranscribed speech.

In a transcript they count anywhere in a word (``Mr_xxx``, ``xxx's``), in running text only as whole words (so not
in ``www.example.org``).
"""

_TIER = re.compile(r"@(?:UTF8|Begin|End)$|(?:@[A-Z][\w ]*|%[a-z]\w*):(?:\t|$)")
_COMPOUND = re.compile("[+_]")
_QUESTION_WORDS = frozenset({"what", "where", "how", "who", "when"})
_QUESTION_STARTS = (("you", "wanna"), ("do", "you"), ("can", "you"))

WORD_LIMIT = 10_000
"""Longest word, in characters. No real word is this long, and one of 300,000 takes a tokenizer two minutes."""

CHILD = "speaker is a child"
HEADING = "heading, no sentence"
COLLECTION = "another collection"
AGE_UNKNOWN = "age unknown"
TOO_OLD = "child too old"
EMPTY = "no words"
LONG_WORD = f"a word over {WORD_LIMIT:,} characters"
INTELLIGIBILITY = "xxx, yyy, www or U+FFFD"
TOO_SHORT = "too few words"

REASONS = (CHILD, HEADING, COLLECTION, AGE_UNKNOWN, TOO_OLD, EMPTY, LONG_WORD, INTELLIGIBILITY, TOO_SHORT)
"""Why an utterance is left out, in the order of the rules; only the first that applies is counted."""


@dataclass(frozen=True)
class CleaningRules(Settings):
    """Which utterances become sentences.

    Parameters
    ----------
    min_words : int
        Minimum number of words in a sentence, including the end mark.
    max_age : float
        Maximum age of the target child, in years.
    keep_unknown_age : bool
        Keep transcripts that do not state the target child's age. Most of these have no target child: they are
        conversations among adults.
    collection : str
        The CHILDES collection to keep, or "any". Applies to sources that name their collections.
    keep_child : bool
        Keep children's utterances.
    """

    min_words: Positive = 3
    max_age: AboveZero = 6.0
    keep_unknown_age: bool = False
    collection: str = "Eng-NA"
    keep_child: bool = False


def clean(utterance: Utterance, rules: CleaningRules) -> tuple[str, None] | tuple[None, str]:
    """Return (sentence, None), or (None, reason) if the utterance is left out."""
    if utterance.role in CHILD_ROLES and not rules.keep_child:
        return None, CHILD
    if utterance.is_transcribed:
        if rules.collection != "any" and utterance.collection not in (None, rules.collection):
            return None, COLLECTION
        if utterance.age is None and not rules.keep_unknown_age:
            return None, AGE_UNKNOWN
        if utterance.age is not None and utterance.age > rules.max_age * DAYS_PER_UNIT["years"]:
            return None, TOO_OLD
        words = _COMPOUND.sub(" ", utterance.text).split()
    elif is_heading(utterance.text):
        return None, HEADING
    else:
        words = utterance.text.split()
    if not words:
        return None, EMPTY
    if len(utterance.text) > WORD_LIMIT and max(map(len, words)) > WORD_LIMIT:
        return None, LONG_WORD
    searched = utterance.text if utterance.is_transcribed else words
    if "\ufffd" in utterance.text or any(code in searched for code in UNINTELLIGIBLE):
        return None, INTELLIGIBILITY
    if utterance.is_transcribed:
        words.append(end_mark(words, utterance.type))
    if len(words) < rules.min_words:
        return None, TOO_SHORT
    return " ".join(words), None


def is_heading(line: str) -> bool:
    r"""Whether a line of running text is a heading between equals signs, or a CHAT header or tier.

    >>> [is_heading(line) for line in ("= = = adam01.cha = = =", "== See also ==", "%mor:\tn|dog .", "a = b")]
    [True, True, True, False]
    """
    line = line.strip()
    left, right = line[: len(line) - len(line.lstrip("= "))], line[len(line.rstrip("= ")) :]
    if line.startswith(("= ", "==")) and (left.count("=") == right.count("=") or left == line):
        return True
    return _TIER.match(line) is not None


def end_mark(words: list[str], utterance_type: str) -> str:
    """The end mark of a spoken utterance, ``.``, ``?`` or ``!``.

    Transcribers end many questions with a full stop, so the first words outweigh the type. A question word counts
    together with a contraction (*what's*, *who'll*), but not as part of another word (*whoops*).

    >>> end_mark("what's that".split(), "declarative")
    '?'
    >>> end_mark("what a mess".split(), "imperative_emphatic")
    '!'
    """
    start = [word.lower() for word in words[:2]]
    opener = re.split("['\u2019]", start[0], maxsplit=1)[0]
    exclamative = start == ["what", "a"] and len(words) > 2
    if (opener in _QUESTION_WORDS and not exclamative) or tuple(start) in _QUESTION_STARTS:
        return "?"
    if utterance_type in EXCLAMATION_TYPES:
        return "!"
    return "?" if utterance_type in QUESTION_TYPES else "."
