"""Compares variants over seeds from probe results: accuracies, differences to a baseline, and what they prove.

The order is that of the package: :mod:`results` reads and checks, :mod:`estimates` brings all results to the same
pairs and estimates every paradigm, phenomenon and the mean (:mod:`statistics` has the methods), :mod:`report` says
what was found, and :mod:`figures` draws it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from babyssa.comparison.estimates import estimate, line_up, match_seeds, show_seed
from babyssa.comparison.report import Comparison
from babyssa.comparison.results import StoredResult, check_comparable, find_results, read_result
from babyssa.errors import ConfigError, nearest
from babyssa.figures import save_figure
from babyssa.files import atomic_write, check_overwrite

if TYPE_CHECKING:
    import pandas as pd

FILES = ("comparison.csv", "comparison.md", "comparison.png", "runs.csv")

_ORDER = ("softmax", "ssa-1.5", "ssa-2", "ssa")


def compare(
    folders: Iterable[str | Path],
    out: str | Path | None = None,
    *,
    baseline: str = "softmax",
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    allow_mixed: bool = False,
    overwrite: bool = False,
    notes: Sequence[str] = (),
) -> Comparison:
    """Compare variants over seeds; :func:`babyssa.compare` explains the parameters.

    `notes` are added to the comparison's own.
    """
    if not 0.5 <= level < 1:
        raise ConfigError(f"level is {level}, not a coverage", remedy="choose one in [0.5, 1), such as 0.95")
    if resamples < 100:
        raise ConfigError(f"resamples is {resamples}, too few for an interval", remedy="choose 100 or more")
    if seed < 0:
        raise ConfigError(f"seed is {seed}", remedy="choose 0 or more")
    if out is not None:
        check_overwrite(Path(out), FILES, overwrite)
    results = [read_result(folder) for folder in find_results(folders)]
    variants = _order_variants(results, baseline)
    pairs, mixed = check_comparable(results, allow_mixed)
    results.sort(key=lambda r: (variants.index(r.variant), r.seed is None, r.seed or 0, r.folder.as_posix()))
    runs, outcomes, repeated = line_up(results, pairs)
    contrasts, unmatched = match_seeds(runs, variants)
    phenomenon_of: dict[str, str] = {}
    for result in results:  # the first that knows a paradigm decides
        phenomenon_of = result.phenomena | phenomenon_of
    table = estimate(outcomes, phenomenon_of, runs, contrasts, level=level, resamples=resamples, seed=seed)
    found = Comparison(
        table=table,
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
    if out is not None:
        _write(found, Path(out))
    return found


def _order_variants(results: Sequence[StoredResult], baseline: str) -> list[str]:
    """The baseline first, then the known variants in their order, then the others."""
    known = {result.variant for result in results}
    ordered = [name for name in _ORDER if name in known] + sorted(known - set(_ORDER))
    if len(ordered) == 1:
        return ordered
    if baseline not in known:
        raise ConfigError(
            f"no result of the baseline '{baseline}'", remedy=f"pass --baseline; {nearest(baseline, known)}"
        )
    return [baseline, *(name for name in ordered if name != baseline)]


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


def _write(comparison: Comparison, out: Path) -> None:
    from babyssa.comparison.figures import draw_comparison, provenance

    for name, frame in (("comparison.csv", comparison.table), ("runs.csv", comparison.runs)):
        with atomic_write(out / name) as file:
            frame.to_csv(file, index=False, lineterminator="\n")
    with atomic_write(out / "comparison.md") as file:
        file.write(comparison.to_markdown())
    save_figure(draw_comparison(comparison), out / "comparison.png", provenance(comparison))
