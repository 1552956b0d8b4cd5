"""The figure of a comparison shows the numbers of its table, and shows foreign names as they are."""

import importlib.util
from pathlib import Path

import matplotlib.colors
import numpy as np
import pytest

from babyssa.comparison.comparison import compare
from babyssa.comparison.figures import draw_comparison

_spec = importlib.util.spec_from_file_location("results", Path(__file__).with_name("test_comparison.py"))
results = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(results)


@pytest.fixture
def comparison(tmp_path):
    for variant in ("softmax", "ssa"):
        for seed in range(3):
            right = results.draw(0.6, seed) | {
                "binding": [1] * 39 + [seed % 2] if variant == "ssa" else [0, 1] * 20
            }
            results.write_result(tmp_path / f"{variant}{seed}", right, variant=variant, seed=seed)
    return compare([tmp_path], resamples=200)


def test_dots_and_intervals_are_those_of_the_table(comparison):
    axes = draw_comparison(comparison).axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names[0] == "mean over paradigms" and len(names) == 4
    for number, variant in enumerate(comparison.variants):
        dots, _, (bars,) = axes.containers[number]
        for name, x, segment in zip(names, dots.get_xdata(), bars.get_segments(), strict=True):
            row = results.row(comparison, name, variant) if name != "binding" else _paradigm(comparison, variant)
            assert x == pytest.approx(100 * row.accuracy)
            assert segment[:, 0] == pytest.approx([100 * row.low, 100 * row.high])


def _paradigm(comparison, variant):
    table = comparison.table
    return table[(table.level == "paradigm") & (table.name == "binding") & (table.variant == variant)].iloc[0]


def test_no_dot_lies_outside_of_the_axes_or_on_another(comparison):
    axes = draw_comparison(comparison).axes[0]
    points = np.concatenate([c[0].get_xydata() for c in axes.containers])
    low, high = axes.get_xlim()
    assert (points[:, 0] >= low).all() and (points[:, 0] <= high).all()
    assert len(set(points[:, 1])) == len(points)


def test_variants_differ_in_colour_and_in_marker(comparison):
    dots = [c[0] for c in draw_comparison(comparison).axes[0].containers]
    assert len({matplotlib.colors.to_hex(d.get_color()) for d in dots}) == 2
    assert len({d.get_marker() for d in dots}) == 2


def test_stars_stand_where_the_table_has_them(comparison):
    texts = [t.get_text() for t in draw_comparison(comparison).axes[0].texts]
    marked = comparison.table[(comparison.table.level != "phenomenon") & (comparison.table.p_holm < 0.05)]
    assert len(marked) and sum("*" in t for t in texts) == len(marked)


def test_there_is_a_line_at_chance(comparison):
    lines = draw_comparison(comparison).axes[0].lines
    assert any(list(line.get_xdata()) == [50, 50] for line in lines)


def test_names_are_text_never_mathematics(tmp_path, recwarn):
    for variant in ("softmax", "$x_{"):
        name = {"$\\frac{1}": [1, 0, 1], "日本語": [1, 1, 0]}
        results.write_result(tmp_path / variant[0], name, variant=variant)
    compare([tmp_path], tmp_path / "out", resamples=100)
    assert (tmp_path / "out" / "comparison.png").stat().st_size > 1000
    assert not [w for w in recwarn if "Glyph" in str(w.message)]


def test_many_variants_still_make_a_figure(tmp_path):
    for number in range(10):
        results.write_result(tmp_path / str(number), {"binding": [1, 0, 1]}, variant=f"v{number}")
    figure = draw_comparison(compare([tmp_path], baseline="v0", resamples=100))
    assert len(figure.axes[0].containers) == 10
