"""Synthetic in-context-learning tasks: quantifiers and linear functions, and what a shift does to them.

Read :mod:`babyssa.synthetic.tasks` first.
"""

from babyssa.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "babyssa.synthetic.config": ["TASKS", "InContextSize", "Shifts", "SyntheticTraining"],
        "babyssa.synthetic.model": ["InContextTransformer", "build_transformer"],
        "babyssa.synthetic.tasks": ["Sample", "Shift", "Task", "task_named"],
        "babyssa.synthetic.shifts": ["ShiftResults", "load_run", "measure_shifts"],
        "babyssa.synthetic.shift_report": ["write_shifts"],
        "babyssa.synthetic.training": ["predict", "train_synthetic"],
    },
)
