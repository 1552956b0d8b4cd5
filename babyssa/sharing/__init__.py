"""Models for others: checkpoints that load without this package. Read :mod:`babyssa.sharing.export` first."""
