"""Learning curves: checkpoints lined up over steps or words, intervals over seeds, and where variants part."""

import csv
import json
import math

import numpy as np
import pytest
from scipy.stats import t

from babyssa import compare, probe
from babyssa.errors import ConfigError, DataError, ModelError


def write(folder, variant, seed, step, right, words=None, of=20):
    """A probe result of two paradigms, with so many pairs right in the first one and half of them in the other."""
    folder.mkdir(parents=True)
    counts = {"agreement": right, "binding": of // 2}
    with open(folder / "pairs.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["paradigm", "pair", "good", "bad", "score_good", "score_bad"])
        for name, count in counts.items():
            writer.writerows([name, i, f"g{i}", f"b{i}", 1.0 if i < count else 0.0, 0.5] for i in range(of))
    paradigms = [
        {"name": name, "phenomenon": name, "n_pairs": of, "accuracy": count / of, "ties": 0, "unknown": 0}
        for name, count in counts.items()
    ]
    keys = ("suite", "suite_sha256", "method", "reduction", "tokenizer_sha256", "training_precision")
    summary = {
        "model": folder.name,
        "variant": variant,
        "seed": seed,
        "step": step,
        "words": words,
        "model_sha256": f"{variant}{seed}{step}",
        "precision": "float32",
        "n_pairs": 2 * of,
        "accuracy": sum(counts.values()) / of / 2,
        "paradigms": paradigms,
        "versions": {},
        **dict.fromkeys(keys, "x"),
    }
    (folder / "summary.json").write_text(json.dumps(summary))


# Right answers of three seeds at steps 10, 20 and 30.
RIGHT = {"softmax": [(10, 10, 9), (11, 12, 10), (12, 13, 11)], "ssa": [(10, 9, 10), (14, 16, 14), (17, 18, 15)]}


@pytest.fixture
def results(tmp_path):
    for variant, curve in RIGHT.items():
        for step, seeds in zip((10, 20, 30), curve, strict=True):
            for seed, right in enumerate(seeds):
                write(
                    tmp_path / "r" / f"{variant}-{seed}" / str(step), variant, seed, step, right, 101 * step + seed
                )
    return tmp_path / "r"


def test_points_are_means_with_t_intervals_and_paired_differences_over_seeds(results):
    table = compare([results], over="steps").points.set_index(["paradigm", "variant", "at"])
    row = table.loc["agreement", "ssa", 20]
    values = np.array(RIGHT["ssa"][1]) / 20
    half = t.ppf(0.975, 2) * values.std(ddof=1) / math.sqrt(3)
    assert row.accuracy == pytest.approx(values.mean()) and row.n_seeds == 3
    assert (row.low, row.high) == pytest.approx((values.mean() - half, values.mean() + half))
    differences = values - np.array(RIGHT["softmax"][1]) / 20
    half = t.ppf(0.975, 2) * differences.std(ddof=1) / math.sqrt(3)
    assert (row.difference_low, row.difference_high) == pytest.approx(
        (differences.mean() - half, differences.mean() + half)
    )
    assert math.isnan(table.loc["agreement", "softmax", 20].difference)


def test_variants_part_where_their_difference_stays_on_one_side(results):
    partings = compare([results], over="steps").partings.set_index(["paradigm", "variant"])
    assert partings.loc["agreement", "ssa"]["at"] == 20
    assert math.isnan(partings.loc["binding", "ssa"]["at"])


def test_a_difference_that_vanishes_again_is_no_parting(results):
    for seed in range(3):
        write(results / f"ssa-{seed}" / "40", "ssa", seed, 40, 10 + seed)
        write(results / f"softmax-{seed}" / "40", "softmax", seed, 40, 11 - seed)
    assert math.isnan(compare([results], over="steps").partings.set_index("paradigm")["at"]["agreement"])


def test_words_are_lined_up_by_two_digits(results):
    assert sorted(set(compare([results], over="words").points["at"])) == [1000, 2000, 3000]


def test_a_run_that_ends_soon_after_a_mark_is_a_point_of_its_own(results):
    for variant in RIGHT:
        for seed in range(3):
            write(results / f"{variant}-{seed}" / "final", variant, seed, 31, 10, words=3070)
    assert sorted(set(compare([results], over="words").points["at"])) == [1000, 2000, 3000, 3070]


def test_one_seed_has_no_interval_and_no_parting(results):
    found = compare([results / "ssa-0", results / "softmax-0"], over="steps")
    assert found.points.low.isna().all() and found.partings["at"].isna().all()
    assert "1 seed" in str(found)


def test_files_are_written_and_kept(results, tmp_path, run_babyssa):
    out = tmp_path / "curves"
    status, stdout, stderr = run_babyssa("compare", results, "--over", "steps", "--out", out)
    assert status == 0, stderr
    assert sorted(path.name for path in out.iterdir()) == ["curves.csv", "curves.md", "curves.png"]
    assert "where variants part from softmax" in stdout and "20 (+" in stdout
    assert run_babyssa("compare", results, "--over", "steps", "--out", out)[0] == 1


def test_a_result_without_steps_is_named(results):
    write(results / "other", "ssa", 9, None, 10)
    with pytest.raises(DataError, match="does not say how many steps its model has seen; probe checkpoints"):
        compare([results], over="steps")


def test_results_of_other_pairs_are_named(results):
    write(results / "other", "ssa", 9, 50, 5, of=10)
    with pytest.raises(DataError, match="its pairs are not those of"):
        compare([results], over="steps")


def test_all_checkpoints_need_a_run_and_a_place(masked_folder, tmp_path):
    with pytest.raises(ConfigError, match="--all-checkpoints writes a result for each; give --out"):
        probe(masked_folder, all_checkpoints=True)
    with pytest.raises(ModelError, match="no checkpoints in this folder"):
        probe(tmp_path, all_checkpoints=True, out=tmp_path / "out")
