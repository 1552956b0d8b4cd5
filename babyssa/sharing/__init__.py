"""Models for others: exports, and the hub. Read :mod:`babyssa.sharing.export` first."""
