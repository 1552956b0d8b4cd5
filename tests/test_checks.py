"""Values that do not fit an annotation, at every public door: one line that names the parameter."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest

import babyssa
from babyssa.checks import Positive, Share, at_least, check, fits, hints_of, in_words
from babyssa.cli import VERBS, find_function
from babyssa.encoder import EncoderSize
from babyssa.errors import ConfigError


@pytest.mark.parametrize(
    "hint, good, bad",
    [
        (int, [0, -3, np.int64(2)], [1.5, "1", True, None, [1]]),
        (float, [1, 0.5, np.float32(2)], ["0.5", False, None]),
        (bool, [True, False], [1, "true", None]),
        (str, ["", "a", Path("a")], [1, None, ["a"], b"a"]),
        (Path, ["a", Path("a")], [1, None]),
        (int | None, [None, 2], [2.5, "2"]),
        (Literal["sum", "mean"], ["sum"], ["max", None, 1]),
        (list[str], [[], ["a"], ("a",)], ["a", [1], None, 3, {"a": 1}]),
        (dict[str, int], [{}, {"n": 1}], [{"n": "1"}, [1]]),
        (tuple[int, int], [(1, 2), [1, 2]], [(1,), (1, 2, 3), ("1", 2)]),
        (Iterable[str], [["a"], iter("ab"), {"a": 1}], ["ab", Path("ab"), [None]]),
        (tuple[float, ...], [(1.0, 2), [3]], ["1", (1, "2"), 1.0]),
        (dict[str, Any], [{}, {"n": 1}], [None, [1]]),
        (Positive, [1], [0, 1.0]),
        (Share | None, [None, 0, 1.0], [1.1, float("nan")]),
        (Annotated[float, at_least(0)], [0], [-1, float("inf")]),
        (EncoderSize, [EncoderSize()], [3, {"layers": 2}]),
        (Any, [None, 3, "a"], []),
    ],
)
def test_what_fits_an_annotation(hint, good, bad):
    assert all(fits(value, hint) for value in good) and not any(fits(value, hint) for value in bad)


@pytest.mark.parametrize(
    "hint, words",
    [
        (int | None, "a whole number"),
        (tuple[float, ...], "a list of numbers"),
        (list[str] | None, "a list of text"),
        (Iterable[Path], "a list of paths"),
        (Literal["a", "b", "c"], "a, b or c"),
        (str | Any, "text"),
        (Positive, "a whole number"),
        (EncoderSize, "a value of class EncoderSize"),
    ],
)
def test_an_annotation_in_words(hint, words):
    assert in_words(hint) == words


def test_a_value_out_of_its_domain_is_told_from_one_of_another_type():
    with pytest.raises(ConfigError, match=r"^batch-size is 0; it is at least 1$"):
        check("batch_size", 0, Positive | None)
    with pytest.raises(ConfigError, match=r"^batch-size is '0', expected a whole number$"):
        check("batch_size", "0", Positive | None)


@pytest.mark.parametrize("name", VERBS)
def test_every_parameter_of_every_verb_refuses_what_is_no_value_of_its_kind(name):
    verb = getattr(babyssa, find_function(name).__name__)
    for key, hint in hints_of(verb).items():
        if not fits(object(), hint):
            with pytest.raises(ConfigError, match=rf"^{key.replace('_', '-')} is <object .*, expected "):
                check(key, object(), hint)
    with pytest.raises(ConfigError, match=rf"^{verb.__name__}: (missing|got an unexpected)"):
        verb(nonsense=1)


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: babyssa.score(None, ["a"]), "model is None, expected a model folder, a hub id or a pair"),
        (lambda: babyssa.score((None, None), ["a"]), "model is (None, None), expected"),
        (lambda: babyssa.score("m", "the dog ."), "sentences is 'the dog .', expected a list of text"),
        (lambda: babyssa.score(), "score: missing a required argument: 'model'"),
        (lambda: babyssa.probe("m", limit="2"), "limit is '2', expected a whole number"),
        (lambda: babyssa.probe("m", limit=True), "limit is True, expected a whole number"),
        (lambda: babyssa.probe("m", paradigms="irregular-verb"), "paradigms is 'irregular-verb', expected a list"),
        (
            lambda: babyssa.probe("m", method="pl"),
            "method is 'pl', expected pll, pll-word-l2r, holistic or",
        ),
        (lambda: babyssa.shift(["r"], out="o", lengths=3), "lengths is 3, expected a list of whole numbers"),
        (lambda: babyssa.train_encoder("small"), "settings is 'small', expected a value of class EncoderTraining"),
        (lambda: babyssa.EncoderTraining.from_recipe(3), "name is 3, expected text or a path"),
        (lambda: babyssa.EncoderTraining("c", "o", seed="3"), "seed is '3', expected a whole number"),
        (lambda: babyssa.EncoderTraining("c", "o", size=3), "size is 3, expected a value of class EncoderSize"),
        (lambda: EncoderSize(layers=2.5), "size.layers is 2.5, expected a whole number"),
    ],
)
def test_a_wrong_type_in_python_is_one_line(call, says):
    with pytest.raises(ConfigError) as error:
        call()
    assert says in str(error.value) and len(str(error.value).splitlines()) == 1
