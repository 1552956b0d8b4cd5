"""What every corpus reader yields: one utterance as transcribed, with its metadata."""

from __future__ import annotations

from dataclasses import dataclass

DAYS_PER_UNIT = {"days": 1.0, "months": 30.4375, "years": 365.25}
"""Units of age, in days; childes-db uses the same month."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """One utterance of a transcript, or one line of running text.

    Parameters
    ----------
    text : str
        The words, in their original case, without an end mark if `type` is known.
    source : str
        The file or dataset it was read from.
    order : int
        Its position in the transcript or the source.
    type : str, optional
        The utterance type in childes-db's terms ("question", "trail off", ...). None for running text, which
        contains its own end marks.
    role : str, optional
        The speaker's CHAT role ("Mother", "Target_Child", ...); in running text, the speaker's label, if the
        line had one ("MOT"; "Target_Child" if it was a child's).
    age : float, optional
        The target child's age in days; None if unknown or zero.
    transcript : str
        The transcript within the source.
    collection : str, optional
        The CHILDES collection ("Eng-NA", ...), if known.
    """

    text: str
    source: str
    order: int
    type: str | None = None
    role: str | None = None
    age: float | None = None
    transcript: str = ""
    collection: str | None = None

    @property
    def is_transcribed(self) -> bool:
        """Whether it comes from a transcript of speech rather than from running text."""
        return self.type is not None
