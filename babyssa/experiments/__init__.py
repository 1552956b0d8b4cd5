"""Experiments: variants over seeds, trained, measured and compared; and the demo."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "experiment": ["Experiment", "read_experiment"],
        "grid": ["Sweep", "sweep"],
        "demo": ["Demo", "run_demo"],
    },
)
