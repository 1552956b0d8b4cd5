"""The command that generates the minimal-pair suite."""

from __future__ import annotations

from babyssa.console import say


def suite(
    *,
    out: str,
    pairs: int = 1000,
    seed: int = 0,
    tokenizer: str | None = None,
    paradigms: list[str] = (),
    overwrite: bool = False,
) -> None:
    """Generate the minimal-pair suite from the packaged templates and word lists.

    Every paradigm is counterbalanced: its good and its bad sentences have the same words equally often. The
    packaged suite is what the default options make.

    Parameters
    ----------
    out
        The folder to write: manifest.yaml and one text file per paradigm, bad sentence first.
    pairs
        Pairs per paradigm, a multiple of 4.
    seed
        Seed of the random choice of words.
    tokenizer
        A tokenizer folder; only words that it keeps whole are used.
    paradigms
        Names of paradigms; all by default.
    overwrite
        Replace a suite that is there.

    Examples
    --------
    babyssa suite --out suite
    babyssa suite --out suite --pairs 2000 --seed 1
    babyssa suite --out suite --tokenizer tokenizer
    babyssa suite --out suite --paradigms binding-principle_a quantifiers-superlative
    """
    from babyssa.language.suite import generate_suite

    made = generate_suite(
        out, pairs=pairs, seed=seed, tokenizer=tokenizer, paradigms=paradigms or None, overwrite=overwrite
    )
    width = max(len(paradigm.name) for paradigm in made)
    for paradigm in made:
        print(f"{paradigm.name:<{width}}  {paradigm.pairs}")
    say(f"wrote {len(made)} paradigms to {out}; try: babyssa probe MODEL --suite {out} --out results")
