"""The page of a comparison: tables, charts, and every pair that was decided."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from babyssa.comparison.estimates import MEAN, show_seed
from babyssa.comparison.report import (
    accuracy,
    caption,
    difference_caption,
    in_order,
    interval,
    mark,
    p_value,
    points,
)
from babyssa.comparison.results import Pair, StoredResult, check_comparable
from babyssa.display import Shown, Table
from babyssa.files import atomic_write
from babyssa.pages.charts import accuracy_chart, difference_chart
from babyssa.pages.parts import Part, libraries, pack, render

if TYPE_CHECKING:
    from babyssa.comparison.report import Comparison

_LARGEST = np.iinfo(np.int16).max


@dataclass(frozen=True)
class Report(Shown):
    """A page that was written: where, how large, and what is in it."""

    path: Path
    megabytes: float
    pairs: int
    models: int

    def tables(self) -> Iterator[Table]:
        yield Table(
            (),
            (),
            f"{self.path}: {self.pairs:,} pairs as {self.models} models decided them, {self.megabytes:.1f} MB",
        )


def write_report(comparison: Comparison, out: Path, title: str, command: str) -> Report:
    """Write the page of a comparison.

    Parameters
    ----------
    comparison : Comparison
        With the results that it compares.
    out : Path
        The file to write.
    title : str
        Its heading.
    command : str
        What a reader types to make it again.
    """
    results = comparison.results
    common, _ = check_comparable(results, allow_mixed=True)
    pairs: dict[str, list[Pair]] = defaultdict(list)
    for pair in common:
        pairs[pair[0]].append(pair)
    lines = in_order(comparison.table)
    paradigms = [name for level, name in lines if level == "paradigm"]
    charts = {"accuracy": accuracy_chart(comparison, _accuracies(comparison, pairs))}
    if comparison.baseline is not None:
        charts["differences"] = difference_chart(comparison)
        largest = {n: max(abs(r.difference) for r in _others(comparison, lines["paradigm", n])) for n in paradigms}
        paradigms.sort(key=lambda name: -largest[name])
    facts = {
        "variants": list(comparison.variants),
        "models": [{"variant": result.variant, "seed": show_seed(result.seed)} for result in results],
        "members": [[m for m, r in enumerate(results) if r.variant == v] for v in comparison.variants],
        "paradigms": [{"name": name, "n": len(pairs[name])} for name in paradigms],
        "token_models": [],
        "charts": charts,
    }
    blobs = libraries()
    for number, name in enumerate(paradigms):
        blobs += _pack_paradigm(number, pairs[name], results)
    described, versions = caption(comparison)
    page = render(
        "report.html.j2",
        ("page.js", "report.js"),
        facts,
        title=title,
        verdict=comparison.verdict,
        notes=comparison.notes,
        variants=comparison.variants,
        baseline=comparison.baseline,
        estimates=[_estimates(comparison, key, rows) for key, rows in lines.items() if key[0] != "phenomenon"],
        accuracy_caption=described,
        difference_caption=difference_caption(comparison) if comparison.baseline else [],
        method=", ".join(comparison.facts["method"]),
        has_tokens=False,
        learned=[],
        learned_caption="",
        provenance=[versions],
        runs=_runs(comparison),
        command=command,
        blobs=blobs,
    )
    with atomic_write(out) as file:
        file.write(page)
    return Report(out, len(page.encode()) / 1e6, len(common), len(results))


def _accuracies(comparison: Comparison, pairs: Mapping[str, Sequence[Pair]]) -> dict[tuple[str, str], np.ndarray]:
    """Accuracies ``(models,)`` of each paradigm, and of the mean over them, for each variant."""
    found: dict[tuple[str, str], np.ndarray] = {}
    for variant in comparison.variants:
        own = [result.outcomes for result in comparison.results if result.variant == variant]
        for name, members in pairs.items():
            found[name, variant] = np.array([np.mean([outcomes[pair] for pair in members]) for outcomes in own])
        found[MEAN, variant] = np.mean([found[name, variant] for name in pairs], axis=0)
    return found


def pack_margins(margins: np.ndarray) -> bytes:
    """Margins in nats as 16-bit hundredths, little-endian; a margin that is not 0 does not become 0."""
    rounded = np.clip(np.rint(margins * 100), -_LARGEST, _LARGEST)
    return np.where(rounded == 0, np.sign(margins), rounded).astype("<i2").tobytes()


def _pack_paradigm(number: int, pairs: Sequence[Pair], results: Sequence[StoredResult]) -> list[Part]:
    """The sentences of one paradigm, and the margins ``(models, pairs)``."""
    sentences = "\n".join(" ".join(text.split()) for _, good, bad, _ in pairs for text in (good, bad))
    margins = np.array([[result.margins[pair] for pair in pairs] for result in results])
    return [pack(f"sentences-{number}", sentences), pack(f"margins-{number}", pack_margins(margins))]


def _others(comparison: Comparison, rows: Mapping[str, Any]) -> list[Any]:
    return [rows[variant] for variant in comparison.variants[1:]]


def _estimates(comparison: Comparison, key: tuple[str, str], rows: Mapping[str, Any]) -> dict[str, Any]:
    """One line of both tables, as text and as what it sorts by."""
    first = rows[comparison.variants[0]]
    return {
        "name": key[1],
        "mean": key[0] == "mean",
        "phenomenon": first.phenomenon,
        "pairs": f"{first.n_pairs:,}",
        "accuracies": [
            {"text": accuracy(row), "interval": interval(row.low, row.high), "order": f"{row.accuracy:.6f}"}
            for row in rows.values()
        ],
        "differences": [
            {
                "text": f"{points(row.difference)} {mark(row, 1 - comparison.level)}".strip(),
                "interval": interval(row.difference_low, row.difference_high, points),
                "order": f"{row.difference:.6f}",
                "marked": bool(mark(row, 1 - comparison.level)),
                "p": p_value(row.p_holm),
                "p_order": f"{row.p_holm:.6f}",
            }
            for row in _others(comparison, rows)
        ],
    }


def _runs(comparison: Comparison) -> dict[str, Any]:
    """The models that were compared, a row for each."""
    shown = comparison.runs.drop(columns=["versions"])
    return {"columns": list(shown), "rows": shown.astype(str).values.tolist()}
