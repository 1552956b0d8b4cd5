"""``babyssa saturation`` and ``babyssa attention``."""

from __future__ import annotations

from pathlib import Path

from babyssa.console import table


def saturation(
    *,
    scorings: list[str] = (),
    keys: int = 16,
    out: Path | None = None,
    overwrite: bool = False,
) -> None:
    """Measure how scoring functions saturate, and compare with theory.

    Two conditions: one logit leads the others by D, and all logits are magnified by a factor c. Prints, for
    each scoring and condition, what theory says of the weight that is left to the other keys, and the same
    measured in float64: the slope of its logarithm, the point from which on it is exactly 0, or what is left
    of it for ever. With --out, writes saturation.csv (the table), curves.csv (the curves) and saturation.png.

    Parameters
    ----------
    scorings
        names of scoring functions (default: all variants)
    keys
        number of keys, the leading one included
    out
        folder to write to
    overwrite
        replace an earlier result in --out

    Examples
    --------
    babyssa saturation
    babyssa saturation --scorings softmax ssa-1.5 ssa-2 sparsemax --out saturation
    """
    from babyssa.files import atomic_write, check_overwrite

    if out is not None:
        check_overwrite(out, ["saturation.csv", "curves.csv", "saturation.png"], overwrite)

    import csv

    from babyssa.console import say
    from babyssa.probing.figures import draw_saturation
    from babyssa.probing.saturation import saturation as measure

    result = measure(list(dict.fromkeys(scorings)) or None, keys=keys)
    rows = [
        (
            curve.scoring,
            curve.condition,
            _QUANTITIES[curve.law.kind],
            f"{curve.law.value:.4f}",
            f"{curve.measured:.4f}",
            f"{curve.deviation_percent + 0.0:.3f}",
            _range(curve.fitted_from, curve.fitted_to),
            "" if curve.holds_from is None else f"{curve.holds_from:.3g}",
        )
        for curve in result.curves
    ]
    header = (
        "scoring",
        "x is",
        "of the weight left",
        "theory",
        "measured",
        "deviation %",
        "at x",
        "within 2% from x",
    )
    print(f"weight left to the other {keys - 1} of {keys} keys; x is a lead D, or a factor c of magnification")
    print(table(header, rows, right={3, 4, 5, 6, 7}))
    if out is None:
        return
    with atomic_write(out / "curves.csv") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["scoring", "condition", "x", "weight_of_others"])
        for curve in result.curves:
            points = zip(curve.x, curve.mass, strict=True)
            writer.writerows([curve.scoring, curve.condition, x, weight] for x, weight in points)
    with atomic_write(out / "saturation.png", "wb") as file:
        draw_saturation(result).savefig(file, format="png")
    with atomic_write(out / "saturation.csv") as file:
        writer = csv.writer(file, lineterminator="\n")
        names = ["deviation_percent", "fitted_from", "fitted_to", "holds_from"]
        writer.writerow(["scoring", "condition", "law", "theory", "measured", *names])
        for curve in result.curves:
            law = (curve.law.kind, curve.law.value, curve.measured)
            writer.writerow([curve.scoring, curve.condition, *law, *(getattr(curve, name) for name in names)])
    say(f"wrote saturation.csv, curves.csv, saturation.png to {out}")


_QUANTITIES = {
    "exponential": "slope of log against x",
    "power": "slope of log against log x",
    "threshold": "x where it is exactly 0",
    "limit": "what stays for ever",
}


def _range(low: float, high: float) -> str:
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def attention(
    model: str,
    text: str,
    *,
    out: Path | None = None,
    json: bool = False,
    device: str | None = None,
    overwrite: bool = False,
) -> None:
    """Show where each head of a model looks while it reads a text.

    Prints, for every head, the entropy of a query's weights (nats) and its largest weight, both averaged over
    the queries, and the numbers of its scoring function (n and b, or tau). Layers and heads count from 1. With
    --out, writes attention.png (the maps), weights.csv (every weight), heads.csv and attention.json.

    Parameters
    ----------
    model
        a model folder or hub id, masked or causal
    text
        what it reads
    out
        folder to write to
    json
        print JSON instead of a table
    device
        cpu, cuda, cuda:1, ... (default: a GPU if there is one)
    overwrite
        replace an earlier result in --out

    Examples
    --------
    babyssa attention runs/ssa "where does the dog sleep ?"
    babyssa attention gpt2 "The dogs in the garden bark." --out maps
    """
    from babyssa.console import say
    from babyssa.probing.attention import FILES, attention_maps

    found = attention_maps(model, text, out=out, overwrite=overwrite, device=device)
    if json:
        from json import dumps

        print(dumps(found.summary(), indent=2, ensure_ascii=False))
    else:
        names = sorted({key for head in found.heads for key in head.numbers}, reverse=True)
        rows = [
            (
                str(head.layer),
                str(head.head),
                head.scoring or "model's own",
                f"{head.entropy:.3f}",
                f"{head.max_weight:.3f}",
                *(f"{head.numbers[name]:.3f}" if name in head.numbers else "" for name in names),
            )
            for head in found.heads
        ]
        header = ("layer", "head", "scoring", "entropy", "largest weight", *names)
        print(f"{found.model} ({found.kind}), {len(found.tokens)} tokens: {' '.join(found.tokens)}")
        print(table(header, rows, right={0, 1, *range(3, len(header))}))
    if out is not None:
        say(f"wrote {', '.join(FILES)} to {out}")
