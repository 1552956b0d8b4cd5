"""Synthetic in-context-learning tasks: quantifiers and linear functions, and what a shift does to them.

Read :mod:`babyssa.synthetic.tasks` first.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "config": ["Curriculum", "InContextSize", "Shifts", "SyntheticTraining"],
        "model": ["InContextTransformer", "build_transformer"],
        "tasks": ["TASKS", "Sample", "Shift", "Task", "task_named"],
        "shifts": ["load_run", "measure_shifts"],
        "shift_report": ["ShiftResults", "write_shifts"],
        "training": ["predict", "train_synthetic"],
    },
)
