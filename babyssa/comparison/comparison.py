"""Compares variants over seeds: what was measured, differences to a baseline, and what they prove.

The order is that of the package: :mod:`results` reads probe results and checks them, :mod:`cells` the small files
of experiments; :mod:`estimates` brings all results to the same pairs and estimates every paradigm, phenomenon and
the mean (:mod:`statistics` has the methods), :mod:`scalars` does so for single numbers such as a perplexity;
:mod:`report` says what was found, and :mod:`figures` draws it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from babyssa.comparison.cells import StoredCell, check_one_variant_each, find_cells
from babyssa.comparison.estimates import by_seed, estimate, line_up, match_seeds, show_seed
from babyssa.comparison.report import Comparison, Comparisons
from babyssa.comparison.results import StoredResult, check_comparable, find_results, read_result
from babyssa.comparison.scalars import ScalarComparison, compare_scalars
from babyssa.errors import ConfigError, DataError, nearest
from babyssa.figures import Format, Width, replace_figure
from babyssa.files import atomic_write, check_overwrite

if TYPE_CHECKING:
    import pandas as pd

FILES = ("comparison.csv", "comparison.md", "runs.csv", "seeds.csv")

_ORDER = ("softmax", "ssa-1.5", "ssa-2", "ssa")


def compare(
    folders: Iterable[str | Path],
    out: str | Path | None = None,
    *,
    baseline: str | None = None,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    allow_mixed: bool = False,
    figures: Format = "png",
    width: Width = "page",
    overwrite: bool = False,
    notes: Sequence[str] = (),
) -> Comparison | Comparisons:
    """Compare variants over seeds; :func:`babyssa.compare` explains the parameters.

    `notes` are added to the comparison's own.
    """
    folders = [folders] if isinstance(folders, str | Path) else list(folders)
    if not 0.5 <= level < 1:
        raise ConfigError(f"level is {level}, not a coverage", remedy="choose one in [0.5, 1), such as 0.95")
    if resamples < 100:
        raise ConfigError(f"resamples is {resamples}, too few for an interval", remedy="choose 100 or more")
    if seed < 0:
        raise ConfigError(f"seed is {seed}", remedy="choose 0 or more")
    if out is not None:
        check_overwrite(Path(out), (*FILES, f"comparison.{figures}"), overwrite)
    how = {"level": level, "resamples": resamples, "seed": seed}
    cells = find_cells(folders)
    if cells:
        probed = sum(1 for folder in folders for _ in Path(folder).rglob("summary.json"))
        if probed:
            notes = [*notes, f"results of babyssa probe in these folders, not compared with the cells: {probed}"]
        found = compare_cells(cells, baseline, notes, **how)
    else:
        results = [read_result(folder) for folder in find_results(folders)]
        found = compare_results(results, baseline or "softmax", allow_mixed, notes, **how)
    if out is not None:
        _write(found, Path(out), figures, width)
    return found


def compare_cells(
    cells: Sequence[StoredCell], baseline: str | None, notes: Sequence[str] = (), **how: Any
) -> Comparisons:
    """Compare the cells of one or more experiments, each measure of each condition by itself."""
    check_one_variant_each(cells)
    groups: dict[tuple[str, str], list[StoredCell]] = defaultdict(list)
    for cell in cells:
        groups[cell.values["experiment"], cell.values["condition"]].append(cell)
    parts: dict[str, Comparison | ScalarComparison] = {}
    for (experiment, condition), own in groups.items():
        chosen = baseline or own[0].values["baseline"]
        known = {cell.values["variant"] for cell in own}
        if baseline is None and chosen not in known:
            notes, chosen = (*notes, f"{experiment} has no result of the baseline {chosen} yet"), min(known)
        for measure in dict.fromkeys(name for cell in own for name in cell.measures):
            having = [cell for cell in own if measure in cell.measures]
            _check_same_measure(having, measure)
            title = ": ".join(filter(None, [experiment, condition, measure]))
            missing = len(own) - len(having)
            lacking = [f"{missing} cells have no '{measure}'"] if missing else []
            if "suite" in having[0].measures[measure]:
                results = [cell.result(measure) for cell in having]
                parts[title] = compare_results(results, chosen, False, lacking, **how)
            elif any(cell.measures[measure]["values"] for cell in having):
                variants = order_variants({cell.values["variant"] for cell in having}, chosen)
                parts[title] = compare_scalars(having, measure, variants, lacking, how["level"])
    return Comparisons(parts, tuple(notes))


def compare_results(
    results: list[StoredResult],
    baseline: str,
    allow_mixed: bool,
    notes: Sequence[str] = (),
    *,
    level: float,
    resamples: int,
    seed: int,
) -> Comparison:
    """Compare probe results."""
    variants = order_variants({result.variant for result in results}, baseline)
    pairs, mixed = check_comparable(results, allow_mixed)
    results.sort(key=lambda r: (variants.index(r.variant), r.seed is None, r.seed or 0, r.folder.as_posix()))
    runs, outcomes, repeated = line_up(results, pairs)
    contrasts, unmatched = match_seeds(runs, variants)
    phenomenon_of: dict[str, str] = {}
    for result in results:  # the first that knows a paradigm decides
        phenomenon_of = result.phenomena | phenomenon_of
    table = estimate(outcomes, phenomenon_of, runs, contrasts, level=level, resamples=resamples, seed=seed)
    return Comparison(
        table=table,
        seeds=by_seed(outcomes, phenomenon_of, runs, contrasts),
        runs=_list_runs(results),
        variants=tuple(variants),
        baseline=variants[0] if len(variants) > 1 else None,
        level=level,
        resamples=resamples,
        seed=seed,
        facts=_facts(results),
        notes=(*notes, *mixed, *_training_precisions(results), *repeated, *unmatched),
        results=tuple(results),
    )


def order_variants(known: set[str], baseline: str) -> list[str]:
    """The baseline first, then the known variants in their order, then the others."""
    ordered = [name for name in _ORDER if name in known] + sorted(known - set(_ORDER))
    if len(ordered) == 1:
        return ordered
    if baseline not in known:
        raise ConfigError(
            f"no result of the baseline '{baseline}'", remedy=f"pass --baseline; {nearest(baseline, known)}"
        )
    return [baseline, *(name for name in ordered if name != baseline)]


def _check_same_measure(cells: Sequence[StoredCell], measure: str) -> None:
    """Raise DataError if a measure of this name is another one in some of the cells."""
    for cell in cells[1:]:
        for key in ("kind", "options", "unit"):
            here, there = (c.measures[measure].get(key) for c in (cell, cells[0]))
            if here != there:
                raise DataError(
                    f"'{measure}' has the {key} {here}, but {there} in {cells[0].folder}",
                    path=cell.folder,
                    remedy="measure all cells in the same way",
                )


def _training_precisions(results: Sequence[StoredResult]) -> list[str]:
    """A note where models were trained in different precisions."""
    variants: dict[str, set[str]] = defaultdict(set)
    for result in results:
        if result.summary["training_precision"] is not None:
            variants[result.summary["training_precision"]].add(result.variant)
    if len(variants) < 2:
        return []
    listed = "; ".join(f"{precision} ({', '.join(sorted(variants[precision]))})" for precision in sorted(variants))
    return [f"the models were trained in different precisions: {listed}; runs.csv has that of each"]


def _list_runs(results: Sequence[StoredResult]) -> pd.DataFrame:
    import pandas as pd

    rows = [
        {
            "variant": result.variant,
            "seed": show_seed(result.seed),
            "model": result.summary["model"],
            "model_sha256": result.model_sha256 or "",
            "tokenizer_sha256": result.summary["tokenizer_sha256"] or "",
            "suite": result.summary["suite"],
            "suite_sha256": result.summary["suite_sha256"],
            "method": result.summary["method"],
            "reduction": result.summary["reduction"] or "",
            "precision": result.summary["precision"],
            "training_precision": result.summary["training_precision"] or "unknown",
            "accuracy": float(result.summary["accuracy"]),
            "versions": _show_versions(result),
            "folder": str(result.folder),
        }
        for result in results
    ]
    return pd.DataFrame(rows)


def _facts(results: Sequence[StoredResult]) -> dict[str, list[str]]:
    def different(key: str, unknown: str = "unknown") -> list[str]:
        return sorted({result.summary[key] or unknown for result in results})

    suites = {(result.summary["suite"], result.summary["suite_sha256"]) for result in results}
    return {
        "suite": [f"{name} (sha256 {digest[:12]})" for name, digest in sorted(suites)],
        "method": different("method"),
        "reduction": different("reduction", "none"),
        "precision": different("precision"),
        "training precision": different("training_precision"),
        "versions": sorted(set(map(_show_versions, results))),
    }


def _show_versions(result: StoredResult) -> str:
    return ", ".join(f"{name} {version}" for name, version in result.summary["versions"].items())


def _write(found: Comparison | Comparisons, out: Path, figures: Format, width: Width) -> None:
    import pandas as pd

    from babyssa.comparison.figures import draw_comparison, provenance

    parts = found.parts if isinstance(found, Comparisons) else {"": found}
    drawn = {title: part for title, part in parts.items() if isinstance(part, Comparison)}
    frames = {"comparison.csv": found.table, "runs.csv": found.runs}
    if drawn:
        seeds = [part.seeds.assign(**({"measure": title} if title else {})) for title, part in drawn.items()]
        frames["seeds.csv"] = pd.concat(seeds, ignore_index=True)
    for name, frame in frames.items():
        with atomic_write(out / name) as file:
            frame.to_csv(file, index=False, lineterminator="\n")
    with atomic_write(out / "comparison.md") as file:
        file.write(found.to_markdown())
    for title, part in drawn.items():
        words = re.findall(r"[\w.-]+", title) if len(drawn) > 1 else []
        stem = out / "-".join(["comparison", *words])
        replace_figure(draw_comparison(part, width), stem, figures, provenance(part))
