"""The small files of cells: what they keep of margins, and single numbers compared against scipy."""

import json

import numpy as np
import pytest
import scipy.stats

from babyssa import compare
from babyssa.comparison.cells import Measured, dequantize, quantize, read_cell, write_cell
from babyssa.errors import ConfigError, DataError


def test_margins_keep_their_sign_and_their_size_to_four_percent():
    rng = np.random.default_rng(0)
    margins = rng.choice([-1, 1], 2000) * 2.0 ** rng.uniform(-7.8, 7.8, 2000)
    stored = quantize(margins)
    assert stored.dtype == np.int8
    assert np.abs(dequantize(stored) / margins - 1).max() < 0.0443
    extreme = np.array([0.0, -0.0, 1e-30, -1e-30, 1e30, -1e30])
    assert np.sign(dequantize(quantize(extreme))).tolist() == [0, 0, 1, -1, 1, -1]


def cell(folder, variant, seed, values, **changes):
    described = {
        "experiment": "e",
        "condition": "",
        "variant": variant,
        "seed": seed,
        "baseline": "softmax",
        "settings": {},
        "facts": {},
        "measures": {"ppl": {"kind": "perplexity", "options": {}}},
    }
    write_cell(
        folder / f"{variant}-{seed}", described | changes, {"ppl": Measured(values, "perplexity per token")}
    )


@pytest.fixture
def perplexities(tmp_path):
    """Two texts under two variants and four seeds; n is a number of ssa's alone."""
    rng = np.random.default_rng(1)
    base, other = 20 + rng.standard_normal((2, 4, 2))
    for seed in range(4):
        cell(tmp_path, "softmax", seed, {"a": base[seed, 0], "b": base[seed, 1]})
        cell(tmp_path, "ssa", seed, {"a": other[seed, 0], "b": other[seed, 1], "n": 1.5})
    return tmp_path, base, other


def test_single_numbers_are_compared_by_the_paired_t_over_seeds(perplexities):
    folder, base, other = perplexities
    (found,) = compare([folder]).parts.values()
    table = found.table.set_index(["name", "variant"])
    for column, name in enumerate("ab"):
        row, expected = table.loc[name, "ssa"], scipy.stats.ttest_rel(other[:, column], base[:, column])
        interval = expected.confidence_interval(0.95)
        assert (row.difference_low, row.difference_high) == pytest.approx((interval.low, interval.high))
        assert row.p == pytest.approx(expected.pvalue) and row.paired_by == "seeds"
        mean = scipy.stats.ttest_1samp(other[:, column], 0).confidence_interval(0.95)
        assert (row.value, row.low, row.high) == pytest.approx((other[:, column].mean(), mean.low, mean.high))
        assert row.detectable > (row.difference_high - row.difference_low) / 2
    assert np.isnan(table.loc["n", "ssa"].difference) and table.loc["n", "ssa"].value == 1.5
    p = table.loc["a", "ssa"].p, table.loc["b", "ssa"].p
    adjusted = table.loc["a", "ssa"].p_holm, table.loc["b", "ssa"].p_holm
    assert min(adjusted) == pytest.approx(2 * min(p)) or max(adjusted) == pytest.approx(max(p))


def test_differences_that_cancel_are_0(tmp_path):
    for seed, step in enumerate((0.1, 0.2, -0.3)):
        cell(tmp_path, "softmax", seed, {"a": 0.7})
        cell(tmp_path, "ssa", seed, {"a": 0.7 + step})
    (found,) = compare([tmp_path]).parts.values()
    assert found.table.difference.dropna().tolist() == [0]


def test_one_seed_says_that_nothing_can_be_judged(tmp_path):
    cell(tmp_path, "softmax", 0, {"a": 20.0})
    cell(tmp_path, "ssa", 0, {"a": 19.0})
    (found,) = compare([tmp_path]).parts.values()
    assert "seed variance is unknown" in found.verdict and "20 ± ?" in str(found)


def test_experiments_and_conditions_are_compared_each_by_itself(tmp_path, run_babyssa):
    for experiment in "ef":
        for condition in ("long", "short"):
            for variant in ("softmax", "ssa"):
                folder = tmp_path / experiment / condition
                cell(folder, variant, 0, {"x": 1.0}, experiment=experiment, condition=condition)
    assert list(compare([tmp_path]).parts) == ["e: long: ppl", "e: short: ppl", "f: long: ppl", "f: short: ppl"]
    status, stdout, _ = run_babyssa("compare", tmp_path, "--out", tmp_path / "tables")
    assert status == 0 and "f: short: ppl" in stdout
    assert (tmp_path / "tables" / "comparison.csv").read_text().count("e: long: ppl") == 2


def test_cells_that_are_not_alike_or_damaged_are_refused(perplexities):
    folder, _, _ = perplexities
    path = folder / "ssa-2" / "cell.json"
    written = json.loads(path.read_text())

    def refused(error, match, **changes):
        path.write_text(json.dumps({**written, **changes}))
        with pytest.raises(error, match=match):
            compare([folder])

    refused(ConfigError, "ssa, seed 1, is already in", seed=1)
    refused(DataError, "'seed' is \"x\"", seed="x")
    refused(DataError, "not a cell of format 1", format=7)
    other = {**written["measures"]["ppl"], "options": {"texts": ["c"]}}
    refused(DataError, "'ppl' has the options", measures={"ppl": other})
    refused(DataError, "the values of 'ppl' are not numbers", measures={"ppl": {"values": {"a": "high"}}})
    path.write_text("{")
    with pytest.raises(DataError, match="broken JSON"):
        read_cell(path.parent)
    path.write_text(json.dumps(written))
    with pytest.raises(ConfigError, match="no result of the baseline 'nosuch'"):
        compare([folder], baseline="nosuch")


def test_what_is_not_compared_is_said(perplexities, tmp_path_factory):
    folder, *_ = perplexities
    assert not compare([folder]).notes
    probed = folder / "probed"
    probed.mkdir()
    (probed / "summary.json").write_text("{}")
    assert compare([folder]).notes == (
        "results of babyssa probe in these folders, not compared with the cells: 1",
    )
    for other in (probed, folder / "no such folder"):
        with pytest.raises(DataError, match="no results of an experiment"):
            compare([folder / "softmax-0", other])
