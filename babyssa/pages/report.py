"""The page of a comparison: tables, charts, and every pair that was decided."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from babyssa.comparison.estimates import MEAN, show_seed
from babyssa.comparison.report import (
    Comparison,
    Comparisons,
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
from babyssa.comparison.scalars import ScalarComparison, signed_number, value_with_interval
from babyssa.display import Shown, Table
from babyssa.files import atomic_write
from babyssa.pages.charts import Mark, chart
from babyssa.pages.parts import Part, libraries, pack, render
from babyssa.probing.suites import Suite

_LARGEST = np.iinfo(np.int16).max


@dataclass(frozen=True)
class Report(Shown):
    """A page that was written: where, how large, and what is in it."""

    path: Path
    megabytes: float
    parts: int
    pairs: int
    models: int

    def tables(self) -> Iterator[Table]:
        what = (
            f"{self.pairs:,} pairs as {self.models} models decided them"
            if self.pairs
            else f"{self.parts} measures"
        )
        yield Table((), (), f"{self.path}: {what}, {self.megabytes:.1f} MB")


def write_report(
    found: Comparison | Comparisons, out: Path, title: str, command: str, suite: Suite | None = None
) -> Report:
    """Write the page of a comparison.

    Parameters
    ----------
    found : Comparison or Comparisons
        What is shown; each part of several has a section.
    out : Path
        The file to write.
    title : str
        Its heading.
    command : str
        What a reader types to make it again.
    suite : Suite, optional
        Where the sentences are that results of an experiment know by number only.
    """
    parts = found.parts if isinstance(found, Comparisons) else {"": found}
    blobs = libraries()
    sections = []
    for number, (name, part) in enumerate(parts.items()):
        if isinstance(part, Comparison):
            section, packed = _pairs_section(part, f"p{number}", suite)
            blobs += packed
        else:
            section = _scalar_section(part)
        sections.append(
            {"id": f"p{number}", "name": name, "verdict": part.verdict, "notes": part.notes, **section}
        )
    page = render(
        "report.html.j2",
        ("page.js", "report.js"),
        {section["id"]: section.pop("facts") for section in sections},
        title=title,
        notes=found.notes if isinstance(found, Comparisons) else (),
        sections=sections,
        command=command,
        blobs=blobs,
    )
    with atomic_write(out) as file:
        file.write(page)
    of_pairs = [part for part in parts.values() if isinstance(part, Comparison)]
    n_pairs = sum(sum(p["n_pairs"] for p in part.results[0].summary["paradigms"]) for part in of_pairs)
    models = max((len(part.results) for part in of_pairs), default=0)
    return Report(out, len(page.encode()) / 1e6, len(parts), n_pairs, models)


def _pairs_section(comparison: Comparison, id: str, suite: Suite | None) -> tuple[dict[str, Any], list[Part]]:
    """What the template and the script read of a comparison of pairs, and its compressed parts."""
    results = comparison.results
    common, _ = check_comparable(results, allow_mixed=True)
    pairs: dict[str, list[Pair]] = defaultdict(list)
    for pair in common:
        pairs[pair[0]].append(pair)
    lines = {key: rows for key, rows in in_order(comparison.table).items() if key[0] != "phenomenon"}
    names = [f"<b>{name}</b>" if level == "mean" else name for level, name in lines]
    seeds = _accuracies(comparison, pairs)
    charts = {
        "accuracy": chart(
            names,
            {
                v: [_accuracy_mark(rows[v], seeds[name, v]) for (_, name), rows in lines.items()]
                for v in comparison.variants
            },
            "accuracy (%); dashed: chance",
            unit="%",
            reference=50,
        )
    }
    paradigms = [name for level, name in lines if level == "paradigm"]
    others = comparison.variants[1:]
    if others:
        alpha = 1 - comparison.level
        charts["differences"] = chart(
            names,
            {
                f"{v} − {comparison.baseline}": [_difference_mark(rows[v], alpha) for rows in lines.values()]
                for v in others
            },
            f"difference to {comparison.baseline} (points); filled: shown after Holm correction",
            unit=" points",
            reference=0,
            first_colour=1,
        )
        largest = {n: max(abs(lines["paradigm", n][v].difference) for v in others) for n in paradigms}
        paradigms.sort(key=lambda name: -largest[name])
    blobs = [
        part
        for number, name in enumerate(paradigms)
        for part in _pack_paradigm(f"{id}-{number}", pairs[name], results, suite)
    ]
    described, versions = caption(comparison)
    shown = comparison.runs.drop(columns=["versions"])
    section = {
        "kind": "pairs",
        "facts": {
            "variants": list(comparison.variants),
            "models": [{"variant": r.variant, "seed": show_seed(r.seed)} for r in results],
            "members": [[m for m, r in enumerate(results) if r.variant == v] for v in comparison.variants],
            "paradigms": [{"name": name, "n": len(pairs[name])} for name in paradigms],
            "charts": charts,
        },
        "variants": comparison.variants,
        "baseline": comparison.baseline,
        "rows": [_row(comparison, key, rows) for key, rows in lines.items()],
        "caption": described,
        "difference_caption": difference_caption(comparison) if others else [],
        "method": ", ".join(comparison.facts["method"]),
        "versions": versions,
        "runs": {"columns": list(shown), "rows": shown.astype(str).values.tolist()},
    }
    return section, blobs


def _scalar_section(comparison: ScalarComparison) -> dict[str, Any]:
    """What the template and the script read of a comparison of single numbers."""
    lines: dict[str, dict[str, Any]] = defaultdict(dict)
    for row in comparison.table.itertuples(index=False):
        lines[row.name][row.variant] = row
    seeds = comparison.runs.groupby(["name", "variant"]).value.apply(list).to_dict()
    marks = {
        v: [
            Mark(
                of[v].value,
                *((None, None) if math.isnan(of[v].low) else (of[v].low, of[v].high)),
                seeds[name, v] if of[v].n_seeds > 1 else (),
            )
            if v in of
            else None
            for name, of in lines.items()
        ]
        for v in comparison.variants
    }
    having = [v for v in comparison.variants if any(marks[v])]
    compared = [v for v in having if comparison.table[comparison.table.variant == v].difference.notna().any()]
    return {
        "kind": "scalars",
        "facts": {"charts": {"values": chart(list(lines), marks, comparison.unit, digits=3)}},
        "variants": having,
        "compared": compared,
        "baseline": comparison.variants[0],
        "caption": f"{comparison.unit}: mean ± standard deviation over seeds, and Student's t interval "
        f"({100 * comparison.level:g}%) where there are several.",
        "rows": [
            {
                "name": name,
                "values": [value_with_interval(of[v]) if v in of else "" for v in having],
                "differences": [signed_number(of[v]) if v in of else "" for v in compared],
            }
            for name, of in lines.items()
        ],
    }


def _accuracies(comparison: Comparison, pairs: Mapping[str, Sequence[Pair]]) -> dict[tuple[str, str], np.ndarray]:
    """Accuracies ``(models,)`` of each paradigm, and of the mean over them, for each variant."""
    found: dict[tuple[str, str], np.ndarray] = {}
    for variant in comparison.variants:
        own = [result.outcomes for result in comparison.results if result.variant == variant]
        for name, members in pairs.items():
            found[name, variant] = np.array([np.mean([outcomes[pair] for pair in members]) for outcomes in own])
        found[MEAN, variant] = np.mean([found[name, variant] for name in pairs], axis=0)
    return found


def _accuracy_mark(row: Any, seeds: np.ndarray) -> Mark:
    if row.n_seeds == 1:
        return Mark(100 * row.accuracy)
    return Mark(100 * row.accuracy, 100 * row.low, 100 * row.high, (100 * seeds).tolist())


def _difference_mark(row: Any, alpha: float) -> Mark:
    hollow = not mark(row, alpha)
    if row.compared_seeds == 1:
        return Mark(100 * row.difference, hollow=hollow)
    return Mark(100 * row.difference, 100 * row.difference_low, 100 * row.difference_high, hollow=hollow)


def pack_margins(margins: np.ndarray) -> bytes:
    """Margins in nats as 16-bit hundredths, little-endian; a margin that is not 0 does not become 0."""
    rounded = np.clip(np.rint(margins * 100), -_LARGEST, _LARGEST)
    return np.where(rounded == 0, np.sign(margins), rounded).astype("<i2").tobytes()


def _pack_paradigm(
    id: str, pairs: Sequence[Pair], results: Sequence[StoredResult], suite: Suite | None
) -> list[Part]:
    """The sentences of one paradigm, and the margins ``(models, pairs)``."""
    # Results without sentences number the pairs of all paradigms in one row.
    name, *_, start = pairs[0]
    written = next((p.pairs for p in suite.paradigms if p.name == name), ()) if suite else ()
    texts = []
    for _, good, bad, number in pairs:
        place = number - start
        if not good and place < len(written):
            good, bad = written[place].good, written[place].bad
        texts += [good or f"grammatical sentence of pair {place + 1}", bad or "ungrammatical sentence"]
    margins = np.array([[result.margins[pair] for pair in pairs] for result in results])
    sentences = "\n".join(" ".join(text.split()) for text in texts)
    return [pack(f"sentences-{id}", sentences), pack(f"margins-{id}", pack_margins(margins))]


def _row(comparison: Comparison, key: tuple[str, str], rows: Mapping[str, Any]) -> dict[str, Any]:
    """One line of both tables, as text and as what it sorts by."""
    first, alpha = rows[comparison.variants[0]], 1 - comparison.level
    return {
        "name": key[1],
        "mean": key[0] == "mean",
        "phenomenon": first.phenomenon,
        "pairs": f"{first.n_pairs:,}",
        "accuracies": [
            {
                "text": accuracy(row),
                "interval": interval(row.low, row.high) if row.n_seeds > 1 else "",
                "order": f"{row.accuracy:.6f}",
            }
            for row in (rows[v] for v in comparison.variants)
        ],
        "differences": [
            {
                "text": f"{points(row.difference)} {mark(row, alpha)}".strip(),
                "interval": interval(row.difference_low, row.difference_high, points),
                "order": f"{row.difference:.6f}",
                "marked": bool(mark(row, alpha)),
                "p": p_value(row.p_holm),
                "p_order": f"{row.p_holm:.6f}",
                "shows": "?" if math.isnan(row.detectable) else f"{100 * row.detectable:.1f}",
            }
            for row in (rows[v] for v in comparison.variants[1:])
        ],
    }
