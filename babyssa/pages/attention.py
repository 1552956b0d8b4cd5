"""The page of attention: choose a text, a layer and a head, and see every weight between words."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from babyssa.display import Shown, Table
from babyssa.files import atomic_write
from babyssa.pages.charts import Mark, curves
from babyssa.pages.parts import pack, plotly, render
from babyssa.probing.attention import AttentionMaps, words_of
from babyssa.probing.heads import LearnedNumbers

_LARGEST = np.iinfo(np.int16).max


@dataclass(frozen=True)
class AttentionPage(Shown):
    """A page of attention that was written: where, how large, and what is in it."""

    path: Path
    megabytes: float
    texts: int
    heads: int

    def tables(self) -> Iterator[Table]:
        texts = f"{self.texts} text{'s' * (self.texts > 1)}"
        yield Table((), (), f"{self.path}: {self.heads} heads over {texts}, {self.megabytes:.1f} MB")


def write_attention_page(
    maps: Sequence[AttentionMaps], numbers: LearnedNumbers | None, out: Path, command: str
) -> AttentionPage:
    """Write the page of a model's attention over some texts.

    Parameters
    ----------
    maps : sequence of AttentionMaps
        Of one model and the same heads, one for each text.
    numbers : LearnedNumbers, optional
        What its scoring learned along training, drawn where there is a history.
    out : Path
        The file to write.
    command : str
        What a reader types to make it again.
    """
    places = range(len(maps[0].heads))
    names = sorted({name for head in maps[0].heads for name in head.numbers}, reverse=True)
    history = _history(numbers) if numbers is not None else {}
    blobs = [plotly()] if history else []
    texts = []
    for number, found in enumerate(maps):
        weights = np.concatenate([layer.reshape(-1) for layer in found.weights])
        largest = float(np.abs(weights).max()) or 1.0
        blobs.append(pack(f"weights-{number}", np.rint(weights / largest * _LARGEST).astype("<i2").tobytes()))
        texts.append({"words": words_of(found.tokens), "largest": largest, "signed": bool((weights < 0).any())})
    page = render(
        "attention.html.j2",
        ("page.js", "attention.js"),
        {
            "texts": texts,
            "heads": [{"layer": head.layer, "head": head.head} for head in maps[0].heads],
            "charts": history,
        },
        title=f"Attention of {maps[0].model}",
        maps=maps,
        names=names,
        layers=[list(own) for _, own in itertools.groupby(places, lambda place: maps[0].heads[place].layer)],
        history=list(history),
        command=command,
        blobs=blobs,
    )
    with atomic_write(out) as file:
        file.write(page)
    return AttentionPage(out, len(page.encode()) / 1e6, len(maps), len(maps[0].heads))


def _history(numbers: LearnedNumbers) -> dict[str, Any]:
    """A chart for each learned number: a line for each head over the steps of training."""
    lines: dict[str, dict[str, list[tuple[float, Mark]]]] = {}
    for at in numbers.history:
        for name, value in at.numbers.items():
            of_head = lines.setdefault(name, {}).setdefault(f"layer {at.layer}, head {at.head}", [])
            of_head.append((at.step, Mark(value)))
    few = len(numbers.heads) <= 8
    return {name: curves(of, "steps", height=340, digits=3, legend=few) for name, of in lines.items()}
