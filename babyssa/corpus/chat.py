"""Reader of CHAT transcripts (.cha, alone or in a zip), which sees the words that childes-db sees.

pylangacq parses the file, not strictly, since over half of the transcripts in circulation are older than
today's grammar of CHAT. It gives participants, ages and the main tier of each utterance. Its tokens follow the
``%mor`` tier (no retraced words, no fillers; nothing at all where that tier is out of step), so the words are
taken from the main tier here, by these rules. Each is what childes-db did, as found by comparing the two forms
of the same transcripts utterance by utterance:

=================================  ====================  =================================================
in CHAT                            childes-db's gloss    rule
=================================  ====================  =================================================
``<put that> [//] put that``       put that put that     repeated and retraced words are kept
``cha [: you]``                    cha                   the spoken form of a replacement
``&um``, ``&-um``, ``&tr``         um, um, tr            fillers and fragments are kept
``hmm``, ``&hmm``                  hm                    one spelling
``&=laughs``                                             events are not speech
``wan(t)``, ``(be)cause``          want, because         shortened words in full
``dog:gie``, ``o:h``               doggie, oh            lengthening marks dropped
``woof+(woof)``, ``thank_you``     woof+woof, thank_you  compounds kept here, split by the cleaning
``moink@o``, ``toys@q``            moink, toys           form markers dropped
``0they``, ``0``                                         omitted words and actions are not speech
``(.)`` ``,`` ``;`` ``“`` ``+"``                        pauses, punctuation, linkers dropped
``xxx``                            xxx                   kept here, and the utterance dropped when cleaned
``+...``                           type "trail off"      the terminator becomes the utterance type
=================================  ====================  =================================================

What stays different is what was edited after the export: the case of a name (``marie``), and letters that the
export lost (``garæmmi`` is ``gar�mmi`` in childes-db).

The child's age is that of the participant whose role is Target_Child, as in childes-db; a transcript without
one has no age, even if it tells the age of a participant coded CHI. A month is 30.4375 days.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from babyssa.corpus.lines import read_transcript, read_zip_members
from babyssa.corpus.utterances import Utterance
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
"""CHAT's terminators and the utterance types that childes-db calls them by."""

_TERMINATOR = re.compile(
    rf"({'|'.join(re.escape(mark) for mark in sorted(TYPE_OF_TERMINATOR, key=len, reverse=True))})\s*$"
)
_NOT_SPOKEN = re.compile(
    r"\x15[^\x15]*\x15"  # time marks
    r"|\[[^\]]*\]"  # annotations: [//], [: you], [=! laughs], [+ imit]
    r"|[<>]"  # their scope, whose words stay
    r"|\((?:\.+|\d+(?:\.\d*)?)\)"  # pauses
)
_NOT_WORD = re.compile(r"&[=*{}]|0|[^\w]*$")
_MARKS = re.compile(r"@.*$|^&[-+~]?|[^\w'’+_\-\ufffd]")
_ONE_SPELLING = {"hmm": "hm"}

_DAYS_PER_MONTH = 30.4375


def read_chat(path: Path) -> Iterator[Utterance]:
    """Yield the utterances of one CHAT transcript, or of every one in a zip archive, in order.

    Raises
    ------
    DataError
        If the file is missing, too large, not UTF-8, or no transcript.
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
    """Yield the utterances of one transcript's text; `name` says which transcript of `path` it is."""
    import pylangacq

    if not re.search(r"^@Begin\s*$", text, re.MULTILINE):
        raise DataError("is no CHAT transcript: it has no line '@Begin'", path=Path(name))
    # Without %mor there is nothing for the main tier to be out of step with.
    file = pylangacq.CHAT.from_strs([text], ids=[name], strict=False, parallel=False, mor_tier=None)
    participants = file.headers()[0].participants
    roles = {participant.code: participant.role for participant in participants}
    age = next((_days(p.age) for p in participants if p.role == "Target_Child" and p.age is not None), None)
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


def parse_main_tier(tier: str) -> tuple[str, str]:
    """Return the spoken words of a main tier, and the utterance type that its terminator means.

    >>> parse_main_tier("&um <put that> [//] put tha(t) there (.) wontcha [: won't you] ?")
    ('um put that put that there wontcha', 'question')
    """
    tier = _NOT_SPOKEN.sub(" ", tier).strip()
    terminator = _TERMINATOR.search(tier)
    kind = TYPE_OF_TERMINATOR["."]
    if terminator:
        kind = TYPE_OF_TERMINATOR[terminator.group(1)]
        tier = tier[: terminator.start()]
    words = (_MARKS.sub("", word) for word in tier.split() if not _NOT_WORD.match(word))
    return " ".join(_ONE_SPELLING.get(word.lower(), word) for word in words if word), kind


def _days(age) -> float:
    return (12 * age.years + (age.months or 0)) * _DAYS_PER_MONTH + (age.days or 0)
