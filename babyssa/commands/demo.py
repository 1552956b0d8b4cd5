"""``babyssa demo``."""

from __future__ import annotations

from pathlib import Path


def demo(*, out: Path = Path("babyssa-demo"), overwrite: bool = False) -> None:
    """Train Softmax and SSA encoders on the packaged sample corpus, probe and compare them.

    Takes a few minutes on two CPU cores. The models are small and see little: the demo shows what the
    package does, not what the scoring functions are worth.

    Parameters
    ----------
    out
        folder to write
    overwrite
        replace an earlier demo

    Examples
    --------
    babyssa demo
    babyssa demo --out /tmp/demo
    """
    from babyssa.commands.settings import read_recipe
    from babyssa.encoder.config import EncoderTraining
    from babyssa.experiments.demo import run_demo

    made = run_demo(out, read_recipe("demo", EncoderTraining, corpus=out, out=out), overwrite=overwrite)
    print(made.comparison.to_markdown())
    print(f"{made.seconds / 60:.1f} minutes. Figure: {out}/comparison/comparison.png\n")
    print("next:")
    print(f'  babyssa score {out}/ssa-0 "the dogs bark ." "the dogs barks ."')
    print("  babyssa prepare YOUR_CHILDES_FILES --out corpus")
    print("  babyssa sweep --config small --corpus corpus --variants softmax ssa-1.5 --seeds 0 1 2 --out runs")
