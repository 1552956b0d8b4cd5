"""The page of results: tables, charts, learning curves, and every pair that was decided."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from babyssa.comparison.cells import CELL
from babyssa.comparison.curves import LearningCurves
from babyssa.comparison.estimates import MEAN, show_seed
from babyssa.comparison.report import (
    Comparison,
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
from babyssa.display import Shown, Table, percent
from babyssa.files import atomic_write
from babyssa.pages.charts import Mark, chart, curves
from babyssa.pages.parts import Part, libraries, pack, render
from babyssa.probing.suites import Suite
from babyssa.probing.tokens import TOKENS, TokenScores, mean_scores, read_tokens

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
    parts: Mapping[str, Comparison | ScalarComparison | LearningCurves],
    out: Path,
    title: str,
    command: str,
    suite: Suite | None = None,
    notes: Sequence[str] = (),
) -> Report:
    """Write the page of results.

    Parameters
    ----------
    parts : mapping of str to Comparison, ScalarComparison or LearningCurves
        What is shown, a section for each, by their headings.
    out : Path
        The file to write.
    title : str
        Its heading.
    command : str
        What a reader types to make it again.
    suite : Suite, optional
        Where the sentences are that results of an experiment know by number only.
    notes : sequence of str
        What a reader must know of all parts.
    """
    blobs = libraries()
    sections = []
    for number, (name, part) in enumerate(parts.items()):
        if isinstance(part, Comparison):
            section, packed = _pairs_section(part, f"p{number}", suite)
            blobs += packed
        elif isinstance(part, LearningCurves):
            section = _curves_section(part)
        else:
            section = _scalar_section(part)
        sections.append({"id": f"p{number}", "name": name, **section})
    page = render(
        "report.html.j2",
        ("page.js", "report.js"),
        {section["id"]: section.pop("facts") for section in sections},
        title=title,
        notes=notes,
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
    spans, of_tokens, unshaded = _tokens(comparison, [pairs[name] for name in paradigms], id)
    described, versions = caption(comparison)
    shown = comparison.runs.drop(columns=["versions"])
    section = {
        "kind": "pairs",
        "verdict": comparison.verdict if others else _alone(comparison, list(lines), seeds),
        "notes": comparison.notes,
        "facts": {
            "variants": list(comparison.variants),
            "models": [{"variant": r.variant, "seed": show_seed(r.seed)} for r in results],
            "members": [[m for m, r in enumerate(results) if r.variant == v] for v in comparison.variants],
            "paradigms": [{"name": name, "n": len(pairs[name])} for name in paradigms],
            "charts": charts,
            "spans": spans,
            "specials": "holistic" in comparison.facts["method"],
            "reduction": "/".join(comparison.facts["reduction"]),
        },
        "variants": comparison.variants,
        "baseline": comparison.baseline,
        "rows": [_row(comparison, key, rows) for key, rows in lines.items()],
        "caption": described,
        "difference_caption": difference_caption(comparison) if others else [],
        "method": ", ".join(comparison.facts["method"]),
        "seeds": max(rows[v].n_seeds for rows in lines.values() for v in comparison.variants),
        "shaded": bool(of_tokens),
        "unshaded": unshaded,
        "versions": versions,
        "runs": {"columns": list(shown), "rows": shown.astype(str).values.tolist()},
    }
    return section, blobs + of_tokens


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
        "verdict": comparison.verdict,
        "notes": comparison.notes,
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


def _curves_section(found: LearningCurves) -> dict[str, Any]:
    """What the template and the script read of learning curves."""
    names = list(dict.fromkeys(found.points.paradigm))
    rows = {(row.paradigm, row.variant, row.at): row for row in found.points.itertuples()}
    every = sorted({at for _, _, at in rows})

    def line(name: str, variant: str) -> list[tuple[float, Mark]]:
        here = [(at, rows[name, variant, at]) for at in every if (name, variant, at) in rows]
        return [(at, Mark(*_in_percent(row))) for at, row in here]

    along = "words seen" if found.over == "words" else "steps"
    drawn = {
        str(number): curves(
            {variant: line(name, variant) for variant in found.variants},
            along if name == MEAN else "",
            height=380 if name == MEAN else 220,
            reference=50,
            legend=name == MEAN,
            unit="%",
        )
        for number, name in enumerate(names)
    }
    ends = {variant: (line(MEAN, variant)[0], line(MEAN, variant)[-1]) for variant in found.variants}
    from_to = [
        f"{variant} goes from {first.value:.1f}% at {start:,} {along} to {last.value:.1f}% at {end:,}"
        for variant, ((start, first), (end, last)) in ends.items()
    ]
    seeds = found.points.groupby("variant", sort=False).n_seeds.max()
    level = f"{100 * found.level:g}%"
    bands = f"bands: Student's t interval ({level}) over seeds" if seeds.max() > 1 else "one seed: no intervals"
    partings = {(row.paradigm, row.variant): row for row in found.partings.itertuples()}
    return {
        "kind": "curves",
        "verdict": f"On average over paradigms, {'; '.join(from_to)}.",
        "notes": (),
        "facts": {"charts": drawn},
        "names": [name.capitalize() if name == MEAN else name for name in names],
        "variants": found.variants,
        "baseline": found.baseline,
        "over": found.over,
        "caption": f"Accuracy (%) after so many {along}, mean over seeds "
        f"({', '.join(f'{v}: {n}' for v, n in seeds.items())}); {bands}. Dashed: chance.",
        "points": [
            {
                "name": name,
                "at": at,
                "cells": [_point(rows[name, v, at]) if (name, v, at) in rows else "" for v in found.variants],
            }
            for name in names
            for at in every
        ],
        "partings": [
            {"name": name, "cells": [_parting(partings[name, variant]) for variant in found.variants[1:]]}
            for name in names
            if found.baseline is not None
        ],
        "partings_caption": f"The first of these {found.over} from which on, up to the last, the {level} interval "
        "of the difference over common seeds excludes 0; “no” where there is none. Nothing corrects for the "
        "number of paradigms.",
    }


def _in_percent(row: Any) -> tuple[float, ...]:
    known = (row.accuracy,) if math.isnan(row.low) else (row.accuracy, row.low, row.high)
    return tuple(100 * value for value in known)


def _point(row: Any) -> str:
    return " ".join([percent(row.accuracy), *([] if math.isnan(row.low) else [interval(row.low, row.high)])])


def _parting(row: Any) -> dict[str, str]:
    never = math.isnan(row.at)
    shown = "" if math.isnan(row.difference) else points(row.difference)
    return {
        "at": "no" if never else f"{row.at:,.0f}",
        "order": "1e30" if never else f"{row.at}",
        "difference": shown,
    }


def _alone(comparison: Comparison, lines: Sequence[tuple[str, str]], seeds: Mapping) -> str:
    """What a page says first where there is one variant only."""
    (variant,) = comparison.variants
    own = {name: 100 * seeds[name, variant].mean() for level, name in lines if level == "paradigm"}
    mean = seeds[MEAN, variant]
    several = f", mean over {len(mean)} seeds ± {100 * mean.std(ddof=1):.1f}" if len(mean) > 1 else ""
    best, worst = max(own, key=own.get), min(own, key=own.get)
    ends = f" Best on {best} ({own[best]:.1f}%), worst on {worst} ({own[worst]:.1f}%)." if len(own) > 1 else ""
    return (
        f"{variant} decides {100 * mean.mean():.1f}% of the pairs right, on average over paradigms{several}; "
        f"chance is 50%.{ends}"
    )


def _tokens(
    comparison: Comparison, paradigms: Sequence[Sequence[Pair]], id: str
) -> tuple[list[int | None], list[Part], str]:
    """For each variant the first one that reads the same tokens, or None; the compressed scores; why some lack."""
    results, order = comparison.results, [pair for pairs in paradigms for pair in pairs]
    found = [
        mean_scores([_tokens_of(result, order) for result in results if result.variant == variant])
        for variant in comparison.variants
    ]
    spans = [
        None
        if own is None
        else next(v for v, one in enumerate(found) if one is not None and own.has_tokens_of(one))
        for own in found
    ]
    parts, done = [], 0
    for number, pairs in enumerate(paradigms):
        texts = np.arange(2 * done, 2 * (done + len(pairs)))
        done += len(pairs)
        for variant, tokens in enumerate(found):
            if tokens is None:
                continue
            own = tokens.of(texts)
            if spans[variant] == variant:
                whole = np.concatenate([own.counts, own.starts, own.lengths])
                parts.append(pack(f"spans-{id}-{number}-{variant}", whole.astype("<u4").tobytes()))
            tenths = np.clip(np.rint(-10 * own.scores), 0, 255).astype(np.uint8)
            parts.append(pack(f"tokens-{id}-{number}-{variant}", tenths.tobytes()))
    unshaded = f"no variant has {TOKENS} of the same tokens in every result; babyssa probe writes it"
    if results[0].folder.joinpath(CELL).is_file():
        unshaded = "the small files of an experiment hold margins only"
    return spans, parts, unshaded


def _tokens_of(result: StoredResult, pairs: Sequence[Pair]) -> TokenScores | None:
    """The scores of the tokens of both sentences of some pairs of a result, if it has them."""
    stored = read_tokens(result.folder / TOKENS)
    if stored is None:
        return None
    rows = {pair: row for row, pair in enumerate(result.margins)}
    chosen = np.array([rows[pair] for pair in pairs])
    return stored.of(np.stack([2 * chosen, 2 * chosen + 1], axis=1).ravel())


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
    if row.compared_seeds == 1:
        return Mark(100 * row.difference, hollow=True)
    low, high = 100 * row.difference_low, 100 * row.difference_high
    return Mark(100 * row.difference, low, high, hollow=not mark(row, alpha))


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
    # Tokens are known by the numbers of their characters: white space stays as it is.
    sentences = "\n".join(text.replace("\n", " ") for text in texts)
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
                "interval": interval(row.low, row.high),
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
