"""Reads CHAT transcripts (.cha, single or zipped) into the same words that childes-db has.

pylangacq parses the file, not strictly, since over half of the transcripts in circulation predate today's
grammar of CHAT. It yields participants, ages and the main tier of each utterance. Its tokens follow the
``%mor`` tier (no retraced words, no fillers; nothing at all where that tier is misaligned), so the words are
taken from the main tier here. docs/formats.md lists how each mark is handled. The rules follow childes-db, found
by comparing the same transcripts in both forms utterance by utterance, and the CHAT manual where childes-db
leaves it open.

The child's age is that of the participant whose role is Target_Child, as in childes-db. A transcript without a
target child, with two of them, or with the age ``0;00.00`` has no age. A month is 30.4375 days.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from babyssa.corpus.interruptible import interruptible
from babyssa.corpus.lines import read_transcript, read_zip_members
from babyssa.corpus.utterances import DAYS_PER_UNIT, Utterance
from babyssa.errors import DataError

TYPE_OF_TERMINATOR = {
    ".": "declarative",
    "?": "question",
    "!": "imperative_emphatic",
    "+...": "trail off",
    "+..?": "trail off question",
    "+!?": "question exclamation",
    "+/.": "interruption",
    "+/?": "interruption question",
    "+//.": "self interruption",
    "+//?": "self interruption question",
    '+"/.': "quotation next line",
    '+".': "quotation precedes",
    "+.": "broken for coding",
}
"""CHAT's terminators, and childes-db's names for the utterance types that they mark."""

_QUOTES = "'\u2018\u2019\u201a\u201b`\u00b4"
_CLOSING = "'\u2018\u2019`\u00b4"
_TERMINATOR = re.compile(
    rf"({'|'.join(re.escape(mark) for mark in sorted(TYPE_OF_TERMINATOR, key=len, reverse=True))})"
    rf"(?=[\s\"\u201d{_CLOSING}]*$)"
)
_NOT_SPOKEN = re.compile(
    r"\x15[^\x15]*\x15"  # time marks, and below the same without their control characters
    r"|(?<![\w'])[\u2022\u00b7\u2415\ufffd]?(?:%\w+:\"[^\"]*\")?_?\d+_\d+-?[\u2022\u00b7\u2415\ufffd]?(?!\w)"
    r"|\[[^\]]*\]"  # annotations: [//], [: you], [=! laughs], [+ imit]
    r"|[<>]"  # their scope, whose words stay
    r"|\([\s\d.:,]*\)"  # pauses: (.), (1.5), (1:30.5)
    r"|[\u2308-\u230b]\d*"  # overlaps, with their index
)
_NOT_WORD = re.compile(rf"&[=*{{}}]|0|#|[^\w{_QUOTES}]*$")
_MARKS = re.compile(
    r"@.*$|(?<=.)\$.*$"  # form markers, moink@o, and parts of speech, fun$n
    r"|^&[-+~]?"
    r"|[\u02c8\u02cc\u02d0\u02d1]"  # stress and length, which are letters in Unicode
    # The signs of a yawn and a laugh; in a Greek word they are letters.
    r"|(?<![\u0370-\u03ff\u1f00-\u1fff])[\u03ab\u1f29](?![\u0370-\u03ff\u1f00-\u1fff])"
    # Some signs inside a word are part of its spelling, as in Catalan and Hebrew.
    rf"|(?!(?<=\w)[\u00b7\u05f3\u05f4](?=\w))[^\w+_\-\ufffd\u200c\u200d{_QUOTES}]"
)
_ELIDED = re.compile(
    r".(?:bout|cause|cos|cuz|cept|em|kay|member|n|neath|nother|nough|round|scuse|spose|til|till|tis|twas|s|d|ll|m|re"
    r"|t|ve)(?!\w)",
    re.IGNORECASE,
)
_MAY_END_IN_APOSTROPHE = re.compile(r"(?:[sxz]|in|an|o|ol|lil|th)['\u2019]$", re.IGNORECASE)
_ONE_SPELLING = {"hmm": "hm"}


def read_chat(path: Path) -> Iterator[Utterance]:
    """Yield the utterances of a CHAT transcript, or of all transcripts in a zip archive, in order.

    Raises
    ------
    DataError
        If the file is missing, too large, not UTF-8, or not a transcript.
    """
    if path.suffix.lower() != ".zip":
        yield from parse_transcript(read_transcript(path), path, path.as_posix())
        return
    transcripts = 0
    for member, text in read_zip_members(path, ".cha"):
        transcripts += 1
        yield from parse_transcript(text, path, f"{path.as_posix()}!{member}")
    if not transcripts:
        raise DataError("the archive holds no CHAT transcript (.cha)", path=path)


def parse_transcript(text: str, path: Path, name: str) -> Iterator[Utterance]:
    """Yield the utterances in the text of a transcript; `name` identifies the transcript within `path`."""
    import pylangacq

    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not re.search(r"^@Begin\s*$", text, re.MULTILINE):
        raise DataError("is no CHAT transcript: it has no line '@Begin'", path=Path(name))
    # Without %mor, the main tier cannot be misaligned with it.
    file = interruptible(
        partial(pylangacq.CHAT.from_strs, [text], ids=[name], strict=False, parallel=False, mor_tier=None)
    )
    participants = file.headers()[0].participants
    roles = {participant.code: participant.role for participant in participants}
    targets = {participant.code for participant in participants if participant.role == "Target_Child"}
    targets |= {fields[2] for fields in _ids(text) if fields[7] == "Target_Child"}
    ages = [_days(participant.age) for participant in participants if participant.code in targets]
    age = ages[0] if len(targets) == len(ages) == 1 else None
    for order, utterance in enumerate((u for u in file.utterances() if u.participant), start=1):
        code = utterance.participant
        words, kind = parse_main_tier(utterance.tiers[code])
        yield Utterance(
            text=words,
            source=str(path),
            order=order,
            type=kind,
            role=roles.get(code, "Target_Child" if code == "CHI" else "Unidentified"),
            age=age,
            transcript=name,
        )


def _ids(text: str) -> Iterator[list[str]]:
    """The fields of each @ID header: language, corpus, code, age, sex, group, social class, role."""
    for header in re.findall(r"^@ID:(.*)", text, re.MULTILINE):
        fields = [field.strip() for field in header.split("|")]
        if len(fields) > 7:
            yield fields


def parse_main_tier(tier: str) -> tuple[str, str]:
    """Return the spoken words of a main tier, and the utterance type that its terminator marks.

    >>> parse_main_tier("&um <put that> [//] put tha(t) there (.) wontcha [: won't you] ?")
    ('um put that put that there wontcha', 'question')
    """
    tier = _NOT_SPOKEN.sub(" ", tier).strip()
    terminator = _TERMINATOR.search(tier)
    kind = TYPE_OF_TERMINATOR["."]
    if terminator:
        kind = TYPE_OF_TERMINATOR[terminator.group()]
        tier = f"{tier[: terminator.start()]} {tier[terminator.end() :]}"
    words = [_MARKS.sub(_kept, word) for word in tier.split() if not _NOT_WORD.match(word)]
    spoken = (word for word in _unquoted(words) if re.search(r"\w|\ufffd", word))
    return " ".join(_ONE_SPELLING.get(word.lower(), word) for word in spoken), kind


def _kept(mark: re.Match) -> str:
    """Keep a combining mark, which belongs to its word; drop any other mark."""
    first = mark.group()[0]
    is_combining = unicodedata.category(first)[0] == "M" and not "\ufe00" <= first <= "\ufe0f"
    return first if is_combining and mark.start() > 0 else ""


def _unquoted(words: list[str]) -> list[str]:
    """Strip paired single quotes from words and phrases; apostrophes stay."""
    begin = 0
    while begin < len(words):
        end = _end_of_quotation(words, begin)
        if end is not None:
            words[begin] = words[begin][1:]
            words[end] = words[end][:-1]
        begin += 1
    # Unpaired ones; none of these characters is ever an apostrophe.
    return [re.sub("[\u2018\u201a\u201b`\u00b4]", "", word) for word in words]


def _end_of_quotation(words: list[str], begin: int) -> int | None:
    """The last word of the quotation that starts at word `begin`; None if none starts there."""
    first = words[begin]
    if first[:1] not in tuple(_QUOTES) or first.lower() in ("'n'", "\u2019n\u2019"):
        return None
    is_elided = _ELIDED.match(first) is not None
    doubtful = None
    for place in range(begin, len(words)):
        word = words[place]
        if place > begin and len(word) > 1 and word[0] in _QUOTES and not _ELIDED.match(word):
            break  # another quotation starts
        if word[-1:] not in tuple(_CLOSING) or (place == begin and len(word) == 1):
            continue
        if place == begin or not _MAY_END_IN_APOSTROPHE.search(word):
            return place
        doubtful = place
    return None if is_elided else doubtful


def _days(age) -> float | None:
    if age is None:
        return None
    # No child is recorded on the day of birth: 0;00.00 means an unknown age.
    return ((12 * age.years + (age.months or 0)) * DAYS_PER_UNIT["months"] + (age.days or 0)) or None
