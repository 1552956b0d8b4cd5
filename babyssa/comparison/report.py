"""A comparison in words and in Markdown tables; every number comes from its table."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from importlib import metadata
from typing import TYPE_CHECKING

from babyssa.comparison.statistics import SEEDS_FOR_BOOTSTRAP
from babyssa.errors import printable

if TYPE_CHECKING:
    import pandas as pd

    from babyssa.comparison.comparison import Comparison

_MARKS = ((0.001, "***"), (0.01, "**"))


def escape(text: str) -> str:
    """Foreign text as Markdown shows it literally, on one line."""
    text = printable(str(text))
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"([\\`*\[\]|#~$!])", r"\\\1", text)
    text = re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", text)  # within a word, _ is literal anyway
    return re.sub(r":(?=//)|(?<=www)\.|@", lambda m: f"&#{ord(m.group())};", text)  # no autolinks


def mark(p_holm: float, alpha: float) -> str:
    """Stars of an adjusted p: none unless it is below `alpha`."""
    if math.isnan(p_holm) or p_holm >= alpha:
        return ""
    return next((stars for bound, stars in _MARKS if p_holm < min(bound, alpha)), "*")


def verdict(comparison: Comparison) -> str:
    """What the numbers say, in plain words."""
    if comparison.baseline is None:
        only = comparison.table[comparison.table.level == "mean"].iloc[0]
        alone = f"Only one variant, {escape(only.variant)}: there is nothing to compare it with."
        return alone if only.n_seeds > 1 else f"{alone} One seed: seed variance is unknown."
    base = escape(comparison.baseline)
    alpha = 1 - comparison.level
    sentences, means, without = [], [], []
    unknown = [v for v in comparison.variants[1:] if _mean_row(comparison, v).compared_seeds == 1]
    if unknown:
        about = "" if len(unknown) == len(comparison.variants) - 1 else f" for {_join(map(escape, unknown))}"
        sentences.append(
            f"With one seed, seed variance is unknown{about}: what follows holds for these trained models, "
            "and says nothing about what training them again would give."
        )
    paradigms = comparison.table[comparison.table.level == "paradigm"]
    total = paradigms.name.nunique()
    for variant in comparison.variants[1:]:
        found = paradigms[(paradigms.variant == variant) & (paradigms.p_holm < alpha)]
        parts = []
        for direction, chosen in (("more", found[found.difference > 0]), ("less", found[found.difference < 0])):
            if len(chosen):
                names = ", ".join(map(escape, chosen.name))
                parts.append(
                    f"{direction} accurate than {base} on {len(chosen)} of {_count(total, 'paradigm')} ({names})"
                )
        if parts:
            sentences.append(f"{escape(variant)} is {' and '.join(parts)} after Holm correction.")
        else:
            without.append(variant)
        mean = _mean_row(comparison, variant)
        higher = "higher" if mean.difference > 0 else "lower"
        if mean.p_holm < alpha:
            size = f"{100 * abs(mean.difference):.1f} points {higher}"
            means.append(
                f"that of {escape(variant)} is {size} {_interval(mean.difference_low, mean.difference_high)}"
            )
    if len(without) == len(comparison.variants) - 1:
        who = "No variant differs" if len(without) > 1 else f"{escape(without[0])} does not differ"
        sentences.append(f"{who} from {base} on any of {_count(total, 'paradigm')} after Holm correction.")
    elif without:
        sentences.append(f"No difference is shown for {_join(map(escape, without))} on any paradigm.")
    if means:
        sentences.append(f"Of the means over paradigms, against {base}, {_join(means)}.")
    else:
        sentences.append(
            "No mean over paradigms differs either." if not _any(paradigms, alpha) else "No mean differs."
        )
    means_of = [_mean_row(comparison, variant) for variant in comparison.variants[1:]]
    known = [row.difference_high - row.difference_low for row in means_of if row.compared_seeds > 1]
    if known and max(known) == 0:
        sentences.append(
            "Variant and baseline decided alike in every seed, so there is no variance to judge by: that is no "
            "proof that they are equal."
        )
    elif known:
        sentences.append(
            "A difference that is not shown may exist: the intervals of the mean differences reach up to "
            f"{100 * max(known) / 2:.1f} points to either side."
        )
    return " ".join(sentences)


def markdown(comparison: Comparison) -> str:
    """The whole report in Markdown."""
    table = comparison.table
    blocks = ["# Comparison of variants", f"**{verdict(comparison)}**"]
    blocks += [f"Note: {escape(note)}." for note in comparison.notes]
    paradigms = table[table.level.isin(("mean", "paradigm"))]
    blocks += [_accuracy_table(comparison, paradigms, "paradigm"), f"**Table 1.** {_caption(comparison)}"]
    phenomena = table[table.level == "phenomenon"]
    number = 2
    if phenomena.name.nunique() < table[table.level == "paradigm"].name.nunique():
        blocks += [
            _accuracy_table(comparison, phenomena, "phenomenon"),
            f"**Table {number}.** The same, as means over the paradigms of each phenomenon. Holm correction is "
            "over the phenomena, for each variant.",
        ]
        number += 1
    if (table.difference_interval == "crossed t").any():
        blocks += [
            _bootstrap_table(comparison, paradigms),
            f"**Table {number}.** For comparison, the same differences by the crossed bootstrap: percentile "
            f"intervals of {comparison.resamples} resamples of seeds and pairs, and their Holm-adjusted p. With "
            f"fewer than {SEEDS_FOR_BOOTSTRAP} seeds these intervals can be too narrow and these p too small: do "
            "not cite them alone.",
        ]
        number += 1
    blocks += [_run_table(comparison), f"**Table {number}.** The models compared."]
    return "\n\n".join(blocks) + "\n"


def _accuracy_table(comparison: Comparison, table: pd.DataFrame, what: str) -> str:
    others = comparison.variants[1:]
    head = [what, "pairs", escape(comparison.variants[0])]
    for variant in others:
        head += [escape(variant), f"{escape(variant)} − {escape(comparison.variants[0])}"]
    lines = []
    for name, rows in _in_order(table):
        first = rows[comparison.variants[0]]
        cells = [_name(name, first.level), str(first.n_pairs), _accuracy(first)]
        for variant in others:
            row = rows[variant]
            stars = mark(row.p_holm, 1 - comparison.level)
            if stars and row.compared_seeds == 1:
                stars = f"({stars})"
            cells += [
                _accuracy(row),
                f"{_points(row.difference)} {_interval(row.difference_low, row.difference_high, True)}, "
                f"{_p(row.p_holm)}{f' {stars}' if stars else ''}",
            ]
        lines.append(cells)
    return _table(head, lines, right=range(1, len(head)))


def _bootstrap_table(comparison: Comparison, table: pd.DataFrame) -> str:
    others = comparison.variants[1:]
    head = ["paradigm", *(f"{escape(v)} − {escape(comparison.variants[0])}" for v in others)]
    lines = []
    for name, rows in _in_order(table):
        cells = [_name(name, rows[comparison.variants[0]].level)]
        for row in (rows[v] for v in others):
            interval = _interval(row.bootstrap_low, row.bootstrap_high, True)
            cells.append(f"{_points(row.difference)} {interval}, {_p(row.bootstrap_p_holm)}")
        lines.append(cells)
    return _table(head, lines, right=range(1, len(head)))


def _run_table(comparison: Comparison) -> str:
    lines = [
        [
            escape(row.variant),
            row.seed,
            escape(row.model),
            escape(row.model_sha256[:12]),
            escape(row.method),
            f"{100 * row.accuracy:.1f}",
        ]
        for row in comparison.runs.itertuples()
    ]
    return _table(["variant", "seed", "model", "sha256", "method", "accuracy"], lines, right=(1, 5))


def _caption(comparison: Comparison) -> str:
    table, facts = comparison.table, comparison.facts
    percent = f"{100 * comparison.level:g}%"
    mean = table[table.level == "mean"]
    n_paradigms = table[table.level == "paradigm"].name.nunique()
    seeds = {row.variant: row.n_seeds for row in mean.itertuples()}
    if len(set(seeds.values())) == 1:
        how_many = f"{_count(next(iter(seeds.values())), 'seed')} per variant"
    else:
        how_many = "seeds: " + ", ".join(f"{escape(v)} {n}" for v, n in seeds.items())
    parts = [
        f"Accuracy in % on {int(mean.n_pairs.iloc[0])} minimal pairs in {_count(n_paradigms, 'paradigm')}, "
        f"{how_many}; mean ± standard deviation over seeds [{percent} interval]. Chance is 50, a tie counts half.",
        f"Suite: {_listed(facts['suite'])}; method: {_listed(facts['method'])}; "
        f"reduction: {_listed(facts['reduction'])}; precision: {_listed(facts['precision'])}.",
    ]
    if any(n > 1 for n in seeds.values()):
        parts.append("Intervals of accuracies: Student's t over seeds.")
    if any(n == 1 for n in seeds.values()):
        parts.append(
            "One seed (± ?): seed variance unknown; the interval is over pairs only (Wilson, or a bootstrap for "
            "means); training again may give a result outside of it."
        )
    if comparison.baseline is not None:
        parts.append(_difference_caption(comparison, mean, percent))
    own = ", ".join(f"{name} {metadata.version(name)}" for name in ("babyssa", "numpy", "scipy"))
    parts.append(f"Probed with: {'; or '.join(map(escape, facts['versions']))}. Compared with: {own}.")
    return " ".join(parts)


def _difference_caption(comparison: Comparison, mean: pd.DataFrame, percent: str) -> str:
    base, alpha = escape(comparison.baseline), 1 - comparison.level
    parts = [f"Differences to the baseline {base} in points [{percent} interval], on the same pairs"]
    compared = mean[mean.variant != comparison.baseline]
    methods = set(compared.difference_interval)
    parts[0] += " and the same seeds:" if (compared.paired_by == "seeds and pairs").all() else ":"
    resamples = comparison.resamples
    explained = {
        "crossed t": "crossed t (t with seeds − 1 degrees of freedom on the variance of seeds and of pairs), "
        f"since fewer than {SEEDS_FOR_BOOTSTRAP} seeds are too few for a bootstrap",
        "crossed bootstrap": f"percentiles of {resamples} crossed bootstrap resamples of seeds and pairs",
        "bootstrap over pairs; seed variance unknown": f"percentiles of {resamples} bootstrap resamples of pairs "
        "where a variant has one seed: they hold for these models only, so their marks stand in parentheses",
    }
    parts.append("; ".join(text for method, text in explained.items() if method in methods) + ".")
    bounds = [f"\\* p < {alpha:.3g}"]
    bounds += [f"{escape(stars)} p < {bound:g}" for bound, stars in reversed(_MARKS) if bound < alpha]
    parts.append(
        "p is two-sided and Holm-adjusted, for each variant over the paradigms, and for the mean over the "
        f"variants; {', '.join(bounds)}. Intervals are not adjusted. Bootstrap seed: {comparison.seed}."
    )
    return " ".join(parts)


def _in_order(table: pd.DataFrame) -> Iterable[tuple[str, dict]]:
    """Name and rows by variant; the mean first, then paradigms by phenomenon."""
    ordered = table.sort_values(["level", "phenomenon", "name"], kind="stable")
    for (_, _, name), rows in ordered.groupby(["level", "phenomenon", "name"], sort=False):
        yield name, {row.variant: row for row in rows.itertuples()}


def _mean_row(comparison: Comparison, variant: str):
    table = comparison.table
    return table[(table.level == "mean") & (table.variant == variant)].iloc[0]


def _any(paradigms: pd.DataFrame, alpha: float) -> bool:
    return bool((paradigms.p_holm < alpha).any())


def _name(name: str, level: str) -> str:
    return f"**{escape(name)}**" if level == "mean" else escape(name)


def _accuracy(row) -> str:
    sd = "?" if math.isnan(row.sd) else f"{100 * row.sd:.1f}"
    return f"{100 * row.accuracy:.1f} ± {sd} {_interval(row.low, row.high)}"


def _points(value: float) -> str:
    return f"{100 * value:+.1f}".replace("-", "−").replace("−0.0", "0.0").replace("+0.0", "0.0")


def _interval(low: float, high: float, signed: bool = False) -> str:
    if signed:
        return f"[{_points(low)}, {_points(high)}]"
    return f"[{100 * low:.1f}, {100 * high:.1f}]".replace("-", "−")


def _p(p: float) -> str:
    if math.isnan(p):
        return "p = ?"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def _table(head: Sequence[str], lines: Sequence[Sequence[str]], right: Iterable[int]) -> str:
    """A Markdown table with its columns aligned, so that it can be read as plain text too."""
    right = set(right)
    widths = [max(map(_width, column)) for column in zip(head, *lines, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = []
        for index, (cell, width) in enumerate(zip(cells, widths, strict=True)):
            space = " " * (width - _width(cell))
            padded.append(space + cell if index in right else cell + space)
        return f"| {' | '.join(padded)} |"

    rule = [f"{'-' * (w - 1)}:" if i in right else "-" * w for i, w in enumerate(widths)]
    return "\n".join([line(head), line(rule), *map(line, lines)])


def _width(text: str) -> int:
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _listed(values: Iterable[str]) -> str:
    return ", ".join(map(escape, values))


def _join(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
