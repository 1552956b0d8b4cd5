"""The figure of a comparison shows the numbers of its table, and shows foreign names as they are."""

import importlib.util
from pathlib import Path

import matplotlib.colors
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from babyssa.comparison.comparison import compare
from babyssa.comparison.figures import draw_comparison, figure_caption
from babyssa.errors import ConfigError
from babyssa.figures import WIDTHS, save_figure

_spec = importlib.util.spec_from_file_location("results", Path(__file__).with_name("test_comparison.py"))
results = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(results)

SEEDS = 3


def write_results(folder, seeds):
    """Two paradigms of one phenomenon and one of another, in which the variants differ."""
    for variant in ("softmax", "ssa"):
        for seed in range(seeds):
            right = results.draw(0.6, seed) | {
                "binding": [1] * 39 + [seed % 2] if variant == "ssa" else [0, 1] * 20
            }
            results.write_result(folder / f"{variant}{seed}", right, variant=variant, seed=seed)
    return folder


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    return compare([write_results(tmp_path_factory.mktemp("three"), SEEDS)], resamples=200)


@pytest.fixture(scope="module")
def one_seed(tmp_path_factory):
    return compare([write_results(tmp_path_factory.mktemp("one"), 1)], resamples=200)


@pytest.fixture(scope="module")
def figure(comparison):
    return draw_comparison(comparison)


def lines_of(comparison):
    """The rows that the figure draws, from the top: the mean, then paradigms by phenomenon, best known first."""
    table = comparison.table[comparison.table.level != "phenomenon"]
    for name in ("mean over paradigms", "agreement-near", "agreement-far", "binding"):
        yield name, table[table.name == name].set_index("variant")


def drawn(axes):
    """Of each variant the marks and the ends of the intervals, by the label in the legend."""
    found = {}
    for container in axes.containers:
        dots, _, (bars,) = container
        found[container.get_label()] = dots.get_xydata(), [s[:, 0] if len(s) else () for s in bars.get_segments()]
    return found


def test_paradigms_stand_under_their_phenomenon_those_that_the_baseline_knows_best_first(comparison, figure):
    names = [label.get_text().strip() for label in figure.axes[0].get_yticklabels()]
    base = {name: rows.accuracy["softmax"] for name, rows in lines_of(comparison)}
    near_first = base["agreement-near"] >= base["agreement-far"]
    agreement = ["agreement", *(("near", "far") if near_first else ("far", "near"))]
    binding_first = base["binding"] > (base["agreement-near"] + base["agreement-far"]) / 2
    expected = ["binding", *agreement] if binding_first else [*agreement, "binding"]
    assert names == ["mean over paradigms", *expected]


def test_marks_intervals_and_seeds_are_those_of_the_table(comparison, figure):
    left, right = figure.axes
    rows = dict(lines_of(comparison))
    accuracies, differences = drawn(left), drawn(right)
    assert list(accuracies) == ["softmax", "ssa"] and list(differences) == ["ssa"]
    for variant, (points, intervals) in accuracies.items():
        shown = sorted((x, *ends) for (x, _), ends in zip(points, intervals, strict=True))
        columns = ["accuracy", "low", "high"]
        assert np.allclose(shown, sorted((100 * own.loc[variant, columns]).tolist() for own in rows.values()))
    points, intervals = differences["ssa"]
    shown = sorted((x, *ends) for (x, _), ends in zip(points, intervals, strict=True))
    columns = ["difference", "difference_low", "difference_high"]
    assert np.allclose(shown, sorted((100 * own.loc["ssa", columns]).tolist() for own in rows.values()))
    seeds = comparison.seeds[comparison.seeds.level != "phenomenon"]
    for axes, column in ((left, "accuracy"), (right, "difference")):
        dots = [x for line in axes.lines if line.get_markersize() < 2 for x in line.get_xdata()]
        assert sorted(dots) == pytest.approx(sorted(100 * seeds[column].dropna()))


def test_the_seeds_are_the_accuracies_of_the_runs_and_their_paired_differences(comparison):
    seeds = comparison.seeds.set_index(["level", "name", "variant", "seed"])
    right = {seed: np.mean(results.draw(0.6, seed)["agreement-near"]) for seed in range(SEEDS)}
    binding = {0: 39 / 40, 1: 1.0, 2: 39 / 40}
    for seed in range(SEEDS):
        assert seeds.accuracy["paradigm", "agreement-near", "ssa", str(seed)] == pytest.approx(right[seed])
        assert seeds.difference["paradigm", "agreement-near", "ssa", str(seed)] == 0
        assert seeds.difference["paradigm", "binding", "ssa", str(seed)] == pytest.approx(binding[seed] - 0.5)
        mean = seeds.difference["mean", "mean over paradigms", "ssa", str(seed)]
        assert mean == pytest.approx((binding[seed] - 0.5) / 3)
    assert np.isnan(seeds.difference["paradigm", "binding", "softmax", "0"])
    means = comparison.seeds.groupby(["level", "name", "variant"]).accuracy.mean()
    table = comparison.table.set_index(["level", "name", "variant"]).accuracy
    assert np.allclose(means, table.loc[means.index])


def test_stars_stand_beside_the_differences_where_the_table_has_them(comparison, figure):
    left, right = figure.axes
    marked = comparison.table[(comparison.table.level != "phenomenon") & (comparison.table.p_holm < 0.05)]
    assert len(marked) and sum("*" in t.get_text() for t in right.texts) == len(marked)
    assert not any("*" in t.get_text() for t in left.texts)
    assert "3 seeds" in figure_caption(comparison) and "* p < 0.05" in figure_caption(comparison)


def test_one_seed_has_no_interval_no_star_and_a_caption_that_says_so(one_seed):
    figure = draw_comparison(one_seed)
    for axes in figure.axes[:2]:
        assert not any(len(ends) for _, intervals in drawn(axes).values() for ends in intervals)
        assert not any("*" in text.get_text() for text in axes.texts)
        assert not [line for line in axes.lines if line.get_markersize() < 2]
    assert (one_seed.table.p_holm < 0.05).any(), "or the stars would be missing anyway"
    assert "One seed per variant" in " ".join(figure._supxlabel.get_text().split())


@pytest.mark.parametrize("width", WIDTHS)
def test_no_text_stands_on_another_or_beyond_the_figure(comparison, one_seed, width):
    for shown in (comparison, one_seed):
        figure = draw_comparison(shown, width)
        figure.draw_without_rendering()
        assert figure.get_figwidth() == WIDTHS[width]
        texts = [figure._supxlabel, *figure.legends[0].get_texts(), *figure.axes[0].get_yticklabels()]
        for axes in figure.axes:
            low, high = axes.get_xlim()
            ticks = [label for label in axes.get_xticklabels() if low <= label.get_position()[0] <= high]
            texts += [*axes.texts, axes.xaxis.label, *ticks]
        boxes = [(t.get_text(), t.get_window_extent()) for t in texts if t.get_text()]
        edge = figure.bbox.padded(1)
        for number, (name, box) in enumerate(boxes):
            assert edge.x0 <= box.x0 and box.x1 <= edge.x1 and edge.y0 <= box.y0 and box.y1 <= edge.y1, name
            assert not [other for other, there in boxes[:number] if box.padded(-1).overlaps(there)], name


def test_no_mark_lies_outside_of_the_axes_or_on_another(figure):
    for axes in figure.axes:
        points = np.concatenate([points for points, _ in drawn(axes).values()])
        low, high = axes.get_xlim()
        assert (points[:, 0] >= low).all() and (points[:, 0] <= high).all()
        assert len(set(points[:, 1])) == len(points)


def test_variants_differ_in_colour_and_in_marker(figure):
    dots = [c[0] for c in figure.axes[0].containers]
    assert len({matplotlib.colors.to_hex(d.get_color()) for d in dots}) == 2
    assert len({d.get_marker() for d in dots}) == 2


def test_there_are_lines_at_chance_and_at_no_difference(figure):
    for axes, at in zip(figure.axes, (50, 0), strict=True):
        assert any(list(line.get_xdata()) == [at, at] for line in axes.lines)


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
    assert len(figure.axes[0].containers) == 10 and len(figure.axes[1].containers) == 9


def test_one_variant_has_no_differences(tmp_path):
    results.write_result(tmp_path / "only", {"binding": [1, 0, 1]})
    figure = draw_comparison(compare([tmp_path], resamples=100))
    assert len(figure.axes) == 1 and "One seed:" in " ".join(figure._supxlabel.get_text().split())


def test_the_format_replaces_an_earlier_one_and_seeds_have_a_file(tmp_path):
    write_results(tmp_path / "in", 1)
    compare([tmp_path / "in"], tmp_path / "out", resamples=100, figures="svg", width="column")
    svg = (tmp_path / "out" / "comparison.svg").read_text()
    assert "sha256 softmax-0" in svg and "dc:date" not in svg
    compare([tmp_path / "in"], tmp_path / "out", resamples=100, overwrite=True)
    assert (tmp_path / "out" / "comparison.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "out" / "comparison.svg").exists()
    assert len(pd.read_csv(tmp_path / "out" / "seeds.csv")) == 2 * (1 + 2 + 3)


def test_a_figure_has_the_format_that_its_name_ends_in(tmp_path):
    figure = Figure()
    with pytest.raises(ConfigError, match=r"'figure.jpeg' is no name of a figure; .* \.png, \.pdf, \.svg"):
        save_figure(figure, tmp_path / "figure.jpeg")
    assert not list(tmp_path.iterdir())
    assert save_figure(figure, tmp_path / "figure.PDF", "what it is").read_bytes().startswith(b"%PDF")
