"""The part that the learning curves of encoders and decoders share: accuracy on a suite of minimal pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from babyssa.models import LoadedModel


def suite_accuracy(
    loaded: LoadedModel, suite: str | None, order: str | None, method: str | None, limit: int | None
) -> Callable[[Any], dict[str, float]]:
    """A function that gives a model's accuracy on a suite, or nothing without a suite.

    Parameters
    ----------
    loaded : LoadedModel
        The untrained model and its tokenizer.
    suite, order, method, limit
        The suite, the order within its pairs, the scoring method, and pairs of each paradigm.

    Raises
    ------
    ConfigError, DataError, ModelError
        What the first measurement would raise: now, before any training.
    """
    from babyssa.models import choose_method
    from babyssa.probing import check_suite, load_suite, probe

    method, _ = choose_method(loaded, method, None)
    if suite is None:
        return lambda model: {}
    pairs = load_suite(suite, order).select(limit=limit)
    check_suite(loaded, pairs, method)
    return lambda model: {"accuracy": probe((model, loaded.tokenizer), pairs, method=method).accuracy}
