"""What the pieces are for: sweeps over variants and seeds, and the demo."""

from babyssa.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "babyssa.experiments.grid": ["Probing", "sweep"],
        "babyssa.experiments.demo": ["run_demo"],
    },
)
