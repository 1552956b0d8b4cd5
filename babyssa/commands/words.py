"""Options that take words of the form role=NAME."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def mapping(words: Iterable[str] | Mapping[str, str]) -> dict[str, str]:
    """``["good=a", "bad=b"]`` as a dict; a mapping as it is."""
    from babyssa.errors import ConfigError

    if isinstance(words, Mapping):
        return dict(words)
    pairs = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not (key and equals and value):
            raise ConfigError(f"--columns takes words like good=NAME, not '{word}'")
        pairs[key] = value
    return pairs
