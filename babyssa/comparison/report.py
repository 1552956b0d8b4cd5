"""What a comparison found, in words and tables; every number comes from its estimates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Any

from babyssa.comparison.estimates import CROSSED_BOOTSTRAP, CROSSED_T, MEAN, OVER_PAIRS
from babyssa.comparison.power import POWER
from babyssa.comparison.scalars import ScalarComparison
from babyssa.comparison.statistics import SEEDS_FOR_BOOTSTRAP
from babyssa.display import Column, Shown, Table, escape_markdown, percent

if TYPE_CHECKING:
    import pandas as pd

    from babyssa.comparison.results import StoredResult

_MARKS = ((0.001, "***"), (0.01, "**"))


@dataclass(frozen=True, eq=False)
class Comparison(Shown):
    """What :func:`babyssa.comparison.compare` found.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per paradigm, phenomenon (``level``) or mean over paradigms, and variant. Accuracies and
        differences are in 0..1. ``difference_low``, ``difference_high``, ``p`` and ``p_holm`` come from what
        ``difference_interval`` names; ``t_*`` and ``bootstrap_*`` give both methods always. NaN is unknown.
    seeds : pandas.DataFrame
        One row per paradigm, phenomenon or mean, variant and seed: accuracy, and the difference to the baseline's
        model of the same seed, NaN if there is none.
    runs : pandas.DataFrame
        One row per probed model.
    variants : tuple of str
        The baseline first.
    baseline : str or None
        None if there is one variant only.
    level : float
        Coverage of the intervals.
    resamples, seed : int
        Of the bootstrap.
    facts : dict
        Suite, method, reduction, precisions and versions, each a list of the different values found.
    notes : tuple of str
        What a reader must know: mixed results, unmatched seeds, doubtful runs.
    results : tuple of StoredResult
        What was compared, by variant and seed.
    """

    table: pd.DataFrame
    seeds: pd.DataFrame
    runs: pd.DataFrame
    variants: tuple[str, ...]
    baseline: str | None
    level: float
    resamples: int
    seed: int
    facts: dict[str, list[str]]
    notes: tuple[str, ...]
    results: tuple[StoredResult, ...] = field(repr=False)

    @property
    def verdict(self) -> str:
        """What the numbers say, in plain words."""
        if self.baseline is None:
            only = self.table[self.table.level == "mean"].iloc[0]
            alone = f"Only one variant, {only.variant}: there is nothing to compare it with."
            return alone if only.n_seeds > 1 else f"{alone} One seed: seed variance is unknown."
        return " ".join(_verdict(self))

    def tables(self) -> Iterator[Table]:
        """The verdict, and the accuracies and differences by paradigm."""
        yield Table((), (), title=self.verdict, notes=[f"Note: {note}." for note in self.notes])
        title = "Accuracy in %, mean ± standard deviation over seeds"
        yield _accuracies(self, "paradigm", accuracy, title, caption(self)[:1])
        if self.baseline is not None:
            yield _differences(self, "paradigm", self._differences_title, [self._marks])
        yield Table((), (), notes=["comparison.md has all intervals, the phenomena and the models compared."])

    def report(self) -> Iterator[Table]:
        """All tables of comparison.md, with their captions."""
        title = f"Accuracy in %, mean ± standard deviation over seeds [{self._percent} interval]"
        by_phenomenon = ", means over the paradigms of each phenomenon"
        levels = self.table.groupby("level").name.nunique()
        has_phenomena = levels["phenomenon"] < levels["paradigm"]
        yield _accuracies(self, "paradigm", accuracy_with_interval, title, caption(self))
        if has_phenomena:
            yield _accuracies(self, "phenomenon", accuracy_with_interval, title + by_phenomenon)
        if self.baseline is not None:
            yield _differences(self, "paradigm", self._differences_title, difference_caption(self))
            if has_phenomena:
                holm = "Holm correction is over the phenomena, for each variant."
                yield _differences(self, "phenomenon", self._differences_title + by_phenomenon, [holm])
        if (self.table.difference_interval == CROSSED_T).any():
            caution = (
                f"Percentile intervals of {self.resamples} resamples of seeds and pairs, and their Holm-adjusted "
                f"p. With fewer than {SEEDS_FOR_BOOTSTRAP} seeds these intervals can be too narrow and these p "
                "too small: do not cite them alone."
            )
            title = "For comparison, the same differences by the crossed bootstrap"
            yield _differences(self, "paradigm", title, [caution], prefix="bootstrap_")
        yield _runs(self)

    def to_frame(self) -> pd.DataFrame:
        """The estimates, as in comparison.csv."""
        return self.table

    def to_markdown(self) -> str:
        """The verdict, the tables with their captions, and the runs they come from, in Markdown."""
        blocks = ["# Comparison of variants", f"**{escape_markdown(self.verdict)}**"]
        blocks += [escape_markdown(f"Note: {note}.") for note in self.notes]
        return "\n\n".join([*blocks, *_numbered(self.report())]) + "\n"

    @property
    def _percent(self) -> str:
        return f"{100 * self.level:g}%"

    @property
    def _differences_title(self) -> str:
        return f"Differences to {self.baseline} in points [{self._percent} interval]"

    @property
    def _marks(self) -> str:
        alpha = 1 - self.level
        bounds = [f"* p < {alpha:.3g}", *(f"{m} p < {bound:g}" for bound, m in reversed(_MARKS) if bound < alpha)]
        shows = (
            f"'shows' is the smallest true difference that these seeds would have shown in a single test at "
            f"{alpha:.2g} with a probability of {POWER:.0%}."
        )
        return f"p is Holm-adjusted; {', '.join(bounds)}. {shows}"


@dataclass(frozen=True, eq=False)
class Comparisons(Shown):
    """The comparisons of an experiment's measures, or of several experiments'.

    Attributes
    ----------
    parts : dict of str to Comparison or ScalarComparison
        By experiment, condition where there are several, and measure.
    notes : tuple of str
        What a reader must know of all of them.
    """

    parts: dict[str, Comparison | ScalarComparison]
    notes: tuple[str, ...] = ()

    @property
    def table(self) -> pd.DataFrame:
        """The estimates of all parts; ``measure`` says of which."""
        return _concatenated({title: part.table for title, part in self.parts.items()})

    @property
    def runs(self) -> pd.DataFrame:
        """What was measured of each model."""
        return _concatenated({title: part.runs for title, part in self.parts.items()})

    def tables(self) -> Iterator[Table]:
        """The tables of each part under its title."""
        if self.notes:
            yield Table((), (), notes=[f"Note: {note}." for note in self.notes])
        for title, part in self.parts.items():
            yield Table((), (), title=title)
            yield from part.tables()

    def to_frame(self) -> pd.DataFrame:
        """The estimates, as in comparison.csv."""
        return self.table

    def to_markdown(self) -> str:
        """A section with verdict and tables for each part, in Markdown."""
        blocks = ["# Comparison of variants", *(escape_markdown(f"Note: {note}.") for note in self.notes)]
        for title, part in self.parts.items():
            blocks += [f"## {escape_markdown(title)}", f"**{escape_markdown(part.verdict)}**"]
            blocks += [*(escape_markdown(f"Note: {note}.") for note in part.notes), *_numbered(part.report())]
        return "\n\n".join(blocks) + "\n"


def mark(row: Any, alpha: float) -> str:
    """Stars of a row's adjusted p, none unless it is below `alpha`; in parentheses if about one model only."""
    if math.isnan(row.p_holm) or row.p_holm >= alpha:
        return ""
    stars = next((stars for bound, stars in _MARKS if row.p_holm < min(bound, alpha)), "*")
    return f"({stars})" if row.compared_seeds == 1 else stars


def in_order(table: pd.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    """Rows by (level, name) and variant; the mean first, then paradigms by phenomenon."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in table.sort_values(["level", "phenomenon", "name"], kind="stable").itertuples(index=False):
        found.setdefault((row.level, row.name), {})[row.variant] = row
    return found


def _numbered(tables: Iterable[Table]) -> Iterator[str]:
    """Tables in Markdown, numbered from 1."""
    for number, table in enumerate(tables, start=1):
        yield f"**Table {number}.** {table.to_markdown()}"


def _concatenated(frames: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Frames below each other, with their names in a first column."""
    import pandas as pd

    return pd.concat([frame.assign(measure=title) for title, frame in frames.items()], ignore_index=True)[
        ["measure", *dict.fromkeys(column for frame in frames.values() for column in frame)]
    ]


def _verdict(found: Comparison) -> Iterator[str]:
    """The verdict's sentences."""
    base, alpha, others = found.baseline, 1 - found.level, found.variants[1:]
    means = {row.variant: row for row in found.table[found.table.level == "mean"].itertuples()}
    one_seed = [variant for variant in others if means[variant].compared_seeds == 1]
    if one_seed:
        about = "" if len(one_seed) == len(others) else f" for {_join(one_seed)}"
        yield (
            f"With one seed, seed variance is unknown{about}: what follows holds for these trained models, "
            "and says nothing about what training them again would give."
        )
    paradigms = found.table[found.table.level == "paradigm"]
    total = _count(paradigms.name.nunique(), "paradigm")
    different = paradigms[paradigms.p_holm < alpha]
    alike = [variant for variant in others if variant not in set(different.variant)]
    for variant in (variant for variant in others if variant not in alike):
        rows, parts = different[different.variant == variant], []
        for direction, names in (
            ("more", rows.name[rows.difference > 0]),
            ("less", rows.name[rows.difference < 0]),
        ):
            if len(names):
                parts.append(f"{direction} accurate than {base} on {len(names)} of {total} ({', '.join(names)})")
        yield f"{variant} is {' and '.join(parts)} after Holm correction."
    if len(alike) == len(others):
        who = "No variant differs" if len(alike) > 1 else f"{alike[0]} does not differ"
        yield f"{who} from {base} on any of {total} after Holm correction."
    elif alike:
        yield f"No difference is shown for {_join(alike)} on any paradigm."
    shown = [
        f"that of {row.variant} is {100 * abs(row.difference):.1f} points "
        f"{'higher' if row.difference > 0 else 'lower'} {interval(row.difference_low, row.difference_high)}"
        for row in means.values()
        if row.p_holm < alpha
    ]
    if shown:
        yield f"Of the means over paradigms, against {base}, {_join(shown)}."
    else:
        yield "No mean differs." if len(different) else "No mean over paradigms differs either."
    compared = [row for row in means.values() if row.compared_seeds > 1]
    widths = [row.difference_high - row.difference_low for row in compared]
    if widths and max(widths) == 0:
        yield (
            "Variant and baseline decided alike in every seed, so there is no variance to judge by: that is no "
            "proof that they are equal."
        )
    elif widths:
        yield (
            "A difference that is not shown may exist: the intervals of the mean differences reach up to "
            f"{100 * max(widths) / 2:.1f} points to either side, and with a probability of 80% these seeds would "
            f"have shown one of {_join(_shows(row) for row in compared)}."
        )


def _accuracies(
    found: Comparison, level: str, cell: Callable[[Any], str], title: str, notes: Iterable[str] = ()
) -> Table:
    columns = [Column(variant, cell, right=True) for variant in found.variants]
    return _by_variant(
        found,
        level,
        [Column("pairs"), *columns],
        lambda rows: [rows[found.variants[0]].n_pairs, *(rows[variant] for variant in found.variants)],
        title,
        notes,
    )


def _differences(found: Comparison, level: str, title: str, notes: Iterable[str], prefix: str = "") -> Table:
    """Differences to the baseline; `prefix` chooses the method, the reported one if not given."""
    marks = 5 if (found.table.compared_seeds == 1).any() else 3

    def difference(row) -> str:
        low, high = (getattr(row, f"{prefix or 'difference_'}{end}") for end in ("low", "high"))
        stars = "" if prefix else mark(row, 1 - found.level)
        p = p_value(getattr(row, f"{prefix}p_holm"))
        return f"{points(row.difference)} {interval(low, high, points)} {stars:>{marks}} {p:>6}"

    repeats = 1 if prefix else 2
    columns = []
    for variant in found.variants[1:]:
        columns.append(Column(variant, difference, f"{variant} − {found.baseline}, p", right=True))
        if not prefix:
            columns.append(Column(f"{variant} detectable", _detectable, "shows", right=True))
    return _by_variant(
        found,
        level,
        columns,
        lambda rows: [rows[variant] for variant in found.variants[1:] for _ in range(repeats)],
        title,
        notes,
    )


def _by_variant(found, level, columns, cells, title, notes) -> Table:
    """A table with a row for each name of a level, and the mean in a last one if they are paradigms."""
    rows = {key: [key[1], *cells(of_key)] for key, of_key in in_order(found.table).items()}
    return Table(
        [Column(level), *columns],
        [row for key, row in rows.items() if key[0] == level],
        title=title,
        notes=list(notes),
        total=rows["mean", MEAN] if level == "paradigm" else None,
    )


def _runs(found: Comparison) -> Table:
    columns = (
        Column("variant"),
        Column("seed", right=True),
        Column("model"),
        Column("sha256"),
        Column("method"),
        Column("training_precision", heading="trained in"),
        Column("precision", heading="scored in"),
        Column("accuracy", percent, "accuracy %"),
    )
    rows = found.runs.assign(sha256=found.runs.model_sha256.str[:12])[[column.name for column in columns]]
    return Table(columns, rows.values.tolist(), title="The models compared")


def caption(found: Comparison) -> list[str]:
    """What the accuracies are of, and the versions that made them: two paragraphs."""
    facts = {key: ", ".join(values) for key, values in found.facts.items()}
    mean = found.table[found.table.level == "mean"]
    n_paradigms = found.table[found.table.level == "paradigm"].name.nunique()
    seeds = dict(zip(mean.variant, mean.n_seeds, strict=True))
    if len(set(seeds.values())) == 1:
        how_many = f"{_count(mean.n_seeds.iloc[0], 'seed')} per variant"
    else:
        how_many = "seeds: " + ", ".join(f"{variant} {n}" for variant, n in seeds.items())
    parts = [
        f"{mean.n_pairs.iloc[0]} minimal pairs in {_count(n_paradigms, 'paradigm')}, {how_many}. "
        "Chance is 50, a tie counts half.",
        f"Suite: {facts['suite']}; method: {facts['method']}; reduction: {facts['reduction']}; "
        f"training precision: {facts['training precision']}; scoring precision: {facts['precision']}.",
    ]
    if max(seeds.values()) > 1:
        parts.append("Intervals of accuracies: Student's t over seeds.")
    if min(seeds.values()) == 1:
        parts.append(
            "One seed (± ?): seed variance unknown; the interval is over pairs only (Wilson, or a bootstrap for "
            "means); training again may give a result outside it."
        )
    own = ", ".join(f"{name} {metadata.version(name)}" for name in ("babyssa", "numpy", "scipy"))
    return [" ".join(parts), f"Probed with: {'; or '.join(found.facts['versions'])}. Compared with: {own}."]


def difference_caption(found: Comparison) -> list[str]:
    """What the differences and their marks are, in one paragraph."""
    compared = found.table[(found.table.level == "mean") & (found.table.variant != found.baseline)]
    by_seed = " and the same seeds" if (compared.paired_by == "seeds and pairs").all() else ""
    explained = {
        CROSSED_T: "crossed t (t with seeds − 1 degrees of freedom on the variance of seeds and of pairs), "
        f"since fewer than {SEEDS_FOR_BOOTSTRAP} seeds are too few for a bootstrap",
        CROSSED_BOOTSTRAP: f"percentiles of {found.resamples} crossed bootstrap resamples of seeds and pairs",
        OVER_PAIRS: f"percentiles of {found.resamples} bootstrap resamples of pairs where a variant has one seed: "
        "they hold for these models only, so their marks are in parentheses",
    }
    methods = "; ".join(text for method, text in explained.items() if method in set(compared.difference_interval))
    return [
        f"To the baseline {found.baseline}, on the same pairs{by_seed}: {methods}. p is two-sided, and adjusted "
        f"for each variant over the paradigms, and for the mean over the variants. {found._marks} Intervals are "
        f"not adjusted. Bootstrap seed: {found.seed}."
    ]


def accuracy(row: Any) -> str:
    """Mean and standard deviation in per cent."""
    return f"{100 * row.accuracy:.1f} ± {'?' if math.isnan(row.sd) else f'{100 * row.sd:.1f}':>4}"


def accuracy_with_interval(row: Any) -> str:
    return f"{accuracy(row)} {interval(row.low, row.high)}"


def points(value: float) -> str:
    """A difference in percentage points, with its sign."""
    return f"{100 * value:+.1f}".replace("-", "−").replace("−0.0", "0.0").replace("+0.0", "0.0")


def interval(low: float, high: float, show: Callable[[float], str] = percent) -> str:
    """Both ends in brackets."""
    return f"[{show(low)}, {show(high)}]".replace("-", "−")


def _detectable(row: Any) -> str:
    return "?" if math.isnan(row.detectable) else percent(row.detectable)


def _shows(row: Any) -> str:
    return f"{_detectable(row)} points for {row.variant}"


def p_value(p: float) -> str:
    """To three digits; a question mark if it is unknown."""
    return "?" if math.isnan(p) else "<0.001" if p < 0.001 else f"{p:.3f}"


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _join(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
