"""Comparing probe results: the numbers against scipy, the words against the numbers, and every bad input."""

import csv
import hashlib
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from babyssa.comparison.comparison import FILES, compare
from babyssa.comparison.report import mark
from babyssa.comparison.statistics import crossed_bootstrap, crossed_t, holm, resample_pairs
from babyssa.errors import ConfigError, DamageError, DataError, OutputExistsError

PARADIGMS = {"agreement-near": "agreement", "agreement-far": "agreement", "binding": "binding"}


def write_result(folder, outcomes, *, variant="softmax", seed=0, phenomena=PARADIGMS, **changes):
    """A probe result in which `outcomes[paradigm]` lists 1 for right, 0.5 for a tie, 0 for wrong."""
    folder.mkdir(parents=True)
    rows, paradigms = [], []
    for name, right in outcomes.items():
        for index, outcome in enumerate(right):
            bad = {1: -2.0, 0.5: -1.0, 0: -0.5}[outcome]
            rows.append([name, index, f'the good, "{name}" {index} .', f"the bad {name} {index} .", -1.0, bad])
        paradigms.append(
            {
                "name": name,
                "phenomenon": phenomena.get(name, name),
                "n_pairs": len(right),
                "accuracy": float(np.mean(right)),
                "ties": list(right).count(0.5),
            }
        )
    summary = {
        "model": f"runs/{variant}-{seed}",
        "variant": variant,
        "seed": seed,
        "suite": "toy",
        "suite_sha256": "a" * 64,
        "model_sha256": f"{variant}-{seed}-{folder.name}".ljust(64, "0"),
        "tokenizer_sha256": "c" * 64,
        "method": "pll",
        "reduction": "sum",
        "n_pairs": len(rows),
        "accuracy": float(np.mean([p["accuracy"] for p in paradigms])),
        "paradigms": paradigms,
        "versions": {"babyssa": "0.1.0", "torch": "2.13"},
    }
    (folder / "summary.json").write_text(json.dumps(summary | changes), encoding="utf-8")
    with open(folder / "pairs.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["paradigm", "pair", "good", "bad", "score_good", "score_bad"])
        writer.writerows(rows)
    return folder


def draw(p, seed, pairs=40, paradigms=PARADIGMS):
    rng = np.random.default_rng(seed)
    return {name: (rng.random(pairs) < p).astype(int).tolist() for name in paradigms}


@pytest.fixture
def runs(tmp_path):
    """Two variants x three seeds, ssa clearly better on one paradigm."""
    root = tmp_path / "runs"
    for seed in range(3):
        half = np.random.default_rng(seed).permutation([0, 1] * 20).tolist()
        write_result(root / f"softmax-{seed}" / "probe", draw(0.6, seed) | {"binding": half}, seed=seed)
        better = draw(0.6, 10 + seed) | {"binding": [1] * 39 + [0]}
        write_result(root / f"ssa-{seed}" / "probe", better, variant="ssa", seed=seed)
    return root


def row(comparison, name, variant):
    table = comparison.table
    return table[(table.name == name) & (table.variant == variant)].iloc[0]


def stored(runs, variant, paradigm):
    """Outcomes of a variant, (seeds, pairs), straight from its files."""
    tables = [pd.read_csv(f / "pairs.csv") for f in sorted(runs.glob(f"{variant}-*/probe"))]
    tables = [t[t.paradigm == paradigm] for t in tables]
    return np.array([(t.score_good > t.score_bad) + 0.5 * (t.score_good == t.score_bad) for t in tables], float)


def test_a_paradigm_has_mean_deviation_and_t_interval_over_seeds(runs):
    found = row(compare([runs]), "agreement-far", "ssa")
    accuracies = stored(runs, "ssa", "agreement-far").mean(axis=1)
    expected = scipy.stats.ttest_1samp(accuracies, 0).confidence_interval(0.95)
    assert found.accuracy == pytest.approx(accuracies.mean())
    assert found.sd == pytest.approx(accuracies.std(ddof=1))
    assert (found.low, found.high) == pytest.approx((max(0, expected.low), min(1, expected.high)))
    assert (found.n_seeds, found.n_pairs, found.seeds) == (3, 40, "0, 1, 2")


def test_differences_are_those_of_the_public_statistics(runs):
    found = compare([runs], resamples=4000)
    a, b = ({p: stored(runs, v, p) for p in PARADIGMS} for v in ("ssa", "softmax"))
    rng = np.random.default_rng(7)
    means = {name: resample_pairs(np.concatenate([a[name], b[name]]), 4000, rng) for name in PARADIGMS}

    def agrees(here, t, means):
        assert (here.difference, here.t_low, here.t_high, here.t_p) == pytest.approx(t)
        bootstrap = crossed_bootstrap(means, [0, 1, 2], [3, 4, 5], value=t.value, seed=7)
        assert (here.bootstrap_low, here.bootstrap_high) == pytest.approx(bootstrap[1:3], abs=0.02)

    for name in PARADIGMS:
        agrees(row(found, name, "ssa"), crossed_t(a[name], b[name]), means[name])
    a, b = ([x[p] for p in PARADIGMS] for x in (a, b))
    agrees(row(found, "mean over paradigms", "ssa"), crossed_t(a, b), np.mean(list(means.values()), axis=0))


def test_few_seeds_are_judged_by_t_and_many_by_the_bootstrap(tmp_path, runs):
    few = row(compare([runs]), "binding", "ssa")
    assert few.difference_interval == "crossed t"
    assert (few.difference_low, few.p) == (few.t_low, few.t_p)
    for seed in range(20):
        for variant in ("softmax", "ssa"):
            write_result(tmp_path / f"{variant}{seed}", draw(0.6, seed, 10), variant=variant, seed=seed)
    folders = [p for p in tmp_path.iterdir() if p != runs]
    many = row(compare(folders, resamples=200), "binding", "ssa")
    assert many.difference_interval == "crossed bootstrap"
    assert many.p == many.bootstrap_p


def test_holm_is_over_the_paradigms_of_a_variant(runs):
    table = compare([runs]).table
    chosen = table[(table.level == "paradigm") & (table.variant == "ssa")]
    assert chosen.p_holm.tolist() == pytest.approx(holm(chosen.p))
    assert table[table.variant == "softmax"].p_holm.isna().all()


def test_seeds_are_matched_by_number_not_by_order(tmp_path):
    """Each seed of ssa is right where that seed of softmax is, whatever its folder is called."""
    for seed in range(3):
        same = draw(0.5, seed)
        write_result(tmp_path / f"a{seed}", same, seed=seed)
        write_result(tmp_path / f"b{2 - seed}", same, variant="ssa", seed=seed)
    found = row(compare([tmp_path]), "binding", "ssa")
    assert (found.t_low, found.t_high, found.p) == (0, 0, 1)
    assert found.paired_by == "seeds and pairs"


def test_seeds_that_do_not_match_are_not_paired_and_the_report_says_so(tmp_path):
    for seed in range(3):
        write_result(tmp_path / f"a{seed}", draw(0.5, seed), seed=seed)
        write_result(tmp_path / f"b{seed}", draw(0.5, seed), variant="ssa", seed=seed + 10)
    found = compare([tmp_path])
    assert row(found, "binding", "ssa").paired_by == "pairs"
    assert "do not match" in found.to_markdown()
    a, b = stored_folders(tmp_path, "b"), stored_folders(tmp_path, "a")
    assert row(found, "binding", "ssa").t_p == pytest.approx(crossed_t(a, b, paired=False).p)


def stored_folders(root, prefix):
    tables = [pd.read_csv(f / "pairs.csv") for f in sorted(root.glob(f"{prefix}*"))]
    return np.array([(t.score_good > t.score_bad)[t.paradigm == "binding"] for t in tables], float)


def test_where_some_seeds_match_the_difference_is_over_those(tmp_path):
    for seed in range(4):
        write_result(tmp_path / f"a{seed}", draw(0.5, seed), seed=seed)
        if seed < 2:
            write_result(tmp_path / f"b{seed}", draw(0.9, seed), variant="ssa", seed=seed)
    found = compare([tmp_path])
    assert row(found, "binding", "ssa").compared_seeds == 2
    assert row(found, "binding", "softmax").n_seeds == 4
    assert "on their common seeds only (0, 1)" in found.to_markdown()


def test_one_seed_says_by_itself_that_seed_variance_is_unknown(tmp_path):
    write_result(tmp_path / "a", draw(0.5, 1, 200))
    write_result(tmp_path / "b", draw(0.95, 2, 200), variant="ssa")
    found = compare([tmp_path])
    here = row(found, "binding", "ssa")
    right = round(200 * here.accuracy)
    wilson = scipy.stats.binomtest(right, 200).proportion_ci(method="wilson")
    assert (here.low, here.high) == pytest.approx(tuple(wilson))
    assert np.isnan(here.sd) and "seed variance unknown" in here.interval
    assert np.isnan(here.t_p) and here.p == here.bootstrap_p < 0.01
    assert found.verdict.startswith("With one seed, seed variance is unknown")
    markdown = found.to_markdown()
    assert " ±    ? [" in markdown and r"(\*\*\*)" in markdown
    assert "crossed bootstrap" not in markdown


def test_ties_count_one_half(tmp_path):
    write_result(tmp_path / "a", {"binding": [0.5, 1, 0, 0.5]})
    assert row(compare([tmp_path]), "binding", "softmax").accuracy == 0.5


def test_one_variant_gives_a_table_without_differences(tmp_path):
    for seed in range(2):
        write_result(tmp_path / f"{seed}", draw(0.8, seed), variant="ssa-2", seed=seed)
    found = compare([tmp_path])
    assert found.baseline is None
    assert found.table.difference.isna().all()
    assert "nothing to compare" in found.verdict
    assert "Holm" not in found.to_markdown().split("Table 1.")[1].split("Table 2.")[0]


def test_the_verdict_names_what_differs_and_in_which_direction(runs):
    assert "ssa is more accurate than softmax on 1 of 3 paradigms (binding) after Holm" in compare([runs]).verdict
    turned = compare([runs], baseline="ssa").verdict
    assert "softmax is less accurate than ssa on 1 of 3 paradigms (binding) after Holm" in turned


def test_the_verdict_says_so_when_nothing_differs(tmp_path):
    for seed in range(3):
        for number, variant in enumerate(("softmax", "ssa-2", "ssa")):
            write_result(tmp_path / f"{variant}{seed}", draw(0.6, 10 * number + seed), variant=variant, seed=seed)
    verdict = compare([tmp_path]).verdict
    assert verdict.startswith("No variant differs from softmax on any of 3 paradigms after Holm correction.")
    assert "may exist" in verdict


def test_equal_decisions_are_not_called_equal_variants(tmp_path):
    for variant in ("softmax", "ssa"):
        for seed in (0, 1):
            write_result(tmp_path / f"{variant}-{seed}", draw(0.5, 0), variant=variant, seed=seed)
    assert "no proof that they are equal" in compare([tmp_path], resamples=100).verdict


def test_the_baseline_comes_first_and_the_others_in_their_known_order(tmp_path):
    for variant in ("zeta", "ssa", "ssa-1.5", "softmax", "alpha"):
        write_result(tmp_path / variant, draw(0.6, 0), variant=variant)
    assert compare([tmp_path], baseline="ssa").variants == ("ssa", "softmax", "ssa-1.5", "alpha", "zeta")


def test_phenomena_are_means_over_their_paradigms(runs):
    found = compare([runs])
    near, far = (row(found, name, "ssa") for name in ("agreement-near", "agreement-far"))
    both = row(found, "agreement", "ssa")
    assert both.accuracy == pytest.approx((near.accuracy + far.accuracy) / 2)
    assert both.difference == pytest.approx((near.difference + far.difference) / 2)
    assert both.n_pairs == 80


def test_the_same_results_give_the_same_comparison(runs, tmp_path):
    folders = sorted(runs.iterdir())
    compare(folders, tmp_path / "one", resamples=200)
    compare(folders[::-1], tmp_path / "two", resamples=200)
    for name in FILES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_the_order_of_pairs_in_a_file_does_not_matter(runs):
    before = compare([runs]).table
    path = runs / "ssa-1" / "probe" / "pairs.csv"
    head, *lines = path.read_text().splitlines()
    path.write_text("\n".join([head, *lines[::-1]]) + "\n")
    pd.testing.assert_frame_equal(before, compare([runs]).table)


def test_a_result_named_twice_counts_once(runs):
    assert len(compare([runs, runs / "ssa-1", runs / "ssa-1" / "probe"]).runs) == 6


def test_the_caption_says_what_was_compared_and_how(runs):
    markdown = compare([runs], resamples=500).to_markdown()
    for fact in (
        "120 minimal pairs in 3 paradigms",
        "3 seeds per variant",
        "toy (sha256 aaaaaaaaaaaa)",
        "method: pll",
        "reduction: sum",
        "precision: float32",
        "baseline softmax",
        "Holm-adjusted",
        "500 resamples",
        "torch 2.13",
        "numpy",
    ):
        assert fact in markdown


def test_every_markdown_table_is_rectangular_whatever_the_names(tmp_path):
    hostile = {"a|b": [1, 0], "<script>": [1, 1], "*x*\n# y": [0, 1], "[l](http://e.org)": [1, 0], "`$\\": [1, 0]}
    for variant in ("softmax", "s|s_a_"):
        for seed in range(2):
            write_result(tmp_path / f"{variant[0]}{variant[-1]}{seed}", hostile, variant=variant, seed=seed)
    found = compare([tmp_path], tmp_path / "out")
    markdown = (tmp_path / "out" / "comparison.md").read_text()
    assert "<script>" not in markdown and "[l](" not in markdown and "http://" not in markdown
    blocks = [b.splitlines() for b in markdown.split("\n\n") if b.startswith("|")]
    assert len(blocks) == 4
    for block in blocks:
        assert len({line.replace("\\\\", "").replace("\\|", "").count("|") for line in block}) == 1
    assert found.table.name.isin(hostile).sum() == len(hostile) * 2 * 2  # as paradigm and as phenomenon


def test_marks_need_a_p_below_the_level():
    def marked(p, alpha=0.05, seeds=3):
        return mark(SimpleNamespace(p_holm=p, compared_seeds=seeds), alpha)

    assert [marked(p) for p in (0.0001, 0.005, 0.02, 0.05, float("nan"))] == ["***", "**", "*", "", ""]
    assert marked(0.03, 0.02) == "" and marked(0.03, seeds=1) == "(*)"


# Results that must not be mixed


def other(tmp_path, runs, **changes):
    write_result(tmp_path / "other", changes.pop("outcomes", draw(0.6, 9)), variant="ssa-2", **changes)
    return [runs, tmp_path / "other"]


@pytest.mark.parametrize(
    "key, value",
    [
        ("suite_sha256", "b" * 64),
        ("method", "holistic"),
        ("reduction", "mean"),
        ("precision", "bfloat16"),
        ("tokenizer_sha256", "d" * 64),
    ],
)
def test_results_of_different_kinds_are_refused_unless_allowed(runs, tmp_path, key, value):
    folders = other(tmp_path, runs, **{key: value})
    with pytest.raises(DataError, match="--allow-mixed") as caught:
        compare(folders)
    assert caught.value.path == tmp_path / "other"
    assert "mix" in compare(folders, allow_mixed=True).to_markdown()


def test_training_in_different_precisions_is_pointed_out(runs, tmp_path):
    folders = other(tmp_path, runs, training_precision="bfloat16")
    assert "training precision: bfloat16, unknown; scoring precision: float32" in compare(folders).to_markdown()
    write_result(tmp_path / "more", draw(0.6, 9), variant="zeta", training_precision="float32")
    found = compare([*folders, tmp_path / "more"], resamples=100)
    (note,) = (note for note in found.notes if "precision" in note)
    assert note.startswith("the models were trained in different precisions: bfloat16 (ssa-2); float32 (zeta)")
    assert note in found.to_markdown()
    assert dict(zip(found.runs.variant, found.runs.training_precision, strict=True)) == {
        "softmax": "unknown",
        "ssa": "unknown",
        "ssa-2": "bfloat16",
        "zeta": "float32",
    }


@pytest.mark.parametrize("width", [80, 200])
def test_a_comparison_fits_its_terminal_with_names_in_full(tmp_path, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    names = ["agreement-subject_verb-across_prepositional_phrase", "binding"]
    for number in range(7):
        for seed in range(2):
            outcomes = dict(zip(names, draw(0.6, seed).values(), strict=False))
            folder = tmp_path / f"{number}-{seed}"
            write_result(
                folder, outcomes, variant=f"{'softmax' if not number else f'scoring-{number}'}", seed=seed
            )
    found = compare([tmp_path], resamples=100)
    lines = str(found).splitlines()
    assert max(map(len, lines)) <= width
    assert names[0] in "".join(line.split("  ")[0].strip() for line in lines)
    assert found.to_frame() is found.table
    assert "<table>" in found._repr_html_() and names[0] in found._repr_html_()
    assert max(map(len, found.to_markdown().splitlines())) < 700


def test_results_without_a_tokenizers_hash_can_be_compared_with_others(runs, tmp_path):
    found = compare(other(tmp_path, runs, tokenizer_sha256=None))
    assert "the tokenizer of 1 result is unknown" in found.notes


def test_every_number_can_be_traced_to_what_made_it(runs, tmp_path):
    from PIL import Image

    compare(runs, tmp_path / "out")
    with open(tmp_path / "out" / "runs.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    hashes = ("model_sha256", "tokenizer_sha256", "suite_sha256")
    made_of = (*hashes, "method", "reduction", "precision", "seed", "versions")
    assert rows and all(row[key] for row in rows for key in made_of)
    text = Image.open(tmp_path / "out" / "comparison.png").text["Description"]
    assert all(row["model_sha256"][:12] in text for row in rows) and "method: pll" in text


def test_a_damaged_result_is_named(runs, tmp_path):
    folder = write_result(tmp_path / "damaged", draw(0.6, 9), variant="ssa-2")
    sums = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in ("pairs.csv", "summary.json")
    }
    (folder / "checksums.json").write_text(json.dumps({"sha256": sums}))
    compare([runs, folder])
    for name in sums:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content.replace(b"1", b"2", 1))
        with pytest.raises(DamageError, match=f"{name}: is damaged"):
            compare([runs, folder])
        (folder / name).write_bytes(content)


def test_different_pairs_are_refused_unless_only_the_common_ones_are_wanted(runs, tmp_path):
    folders = other(tmp_path, runs, outcomes={k: v[:30] for k, v in draw(0.6, 9).items() if k != "binding"})
    with pytest.raises(DataError, match="60 missing, 0 more"):
        compare(folders)
    found = compare(folders, allow_mixed=True)
    assert "only the 60 pairs of 2 paradigms that all results have are compared" in found.to_markdown()
    assert set(found.table[found.table.level == "paradigm"].n_pairs) == {30}


def test_results_without_a_common_pair_cannot_be_compared(runs, tmp_path):
    folders = other(tmp_path, runs, outcomes={"else": [1, 0]})
    with pytest.raises(DataError, match="no pair in common"):
        compare(folders, allow_mixed=True)


def test_a_seed_twice_is_refused_and_averaged_if_allowed(runs, tmp_path):
    write_result(tmp_path / "again", {name: [1] * 40 for name in PARADIGMS}, seed=0)
    with pytest.raises(DataError, match="'softmax' seed 0 is already in"):
        compare([runs, tmp_path / "again"])
    before, after = compare([runs]), compare([runs, tmp_path / "again"], allow_mixed=True)
    assert row(after, "binding", "softmax").n_seeds == 3
    zero = stored(runs, "softmax", "binding")[0].mean()
    gained = (1 - zero) / 2 / 3
    assert row(after, "binding", "softmax").accuracy == pytest.approx(
        row(before, "binding", "softmax").accuracy + gained
    )
    assert "averaged" in after.to_markdown()


def test_one_model_under_two_seeds_is_pointed_out(tmp_path):
    for seed in range(2):
        write_result(tmp_path / f"{seed}", draw(0.6, 1), seed=seed, model_sha256="c" * 64)
    assert "the same model stands for softmax seed 0, softmax seed 1" in compare([tmp_path]).to_markdown()


def test_models_without_a_seed_are_compared_unpaired(tmp_path):
    for variant in ("softmax", "ssa"):
        for number in range(2):
            write_result(tmp_path / f"{variant}{number}", draw(0.6, number), variant=variant, seed=None)
    found = compare([tmp_path], allow_mixed=True)
    assert row(found, "binding", "ssa").n_seeds == 2
    assert row(found, "binding", "ssa").paired_by == "pairs"


def test_a_missing_baseline_lists_the_variants(runs):
    with pytest.raises(ConfigError, match=r"did you mean 'softmax'\? known: softmax, ssa"):
        compare([runs], baseline="sofmax")


# Bad input


@pytest.mark.parametrize("option", [{"level": 1.0}, {"level": 0.1}, {"resamples": 10}, {"seed": -1}])
def test_options_out_of_their_domain_are_refused(runs, option):
    with pytest.raises(ConfigError, match=next(iter(option))):
        compare([runs], **option)


def test_folders_without_results_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="no folder"):
        compare([])
    with pytest.raises(DataError, match=r"no summary\.json"):
        compare([tmp_path])
    with pytest.raises(DataError, match="no such folder"):
        compare([tmp_path / "nowhere"])
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="is a file"):
        compare([tmp_path / "file"])


def test_broken_json_is_named_with_its_line(runs):
    path = runs / "ssa-0" / "probe" / "summary.json"
    path.write_text('{\n"model": \n')
    with pytest.raises(DataError, match=r"ssa-0.*summary\.json:3: broken JSON"):
        compare([runs])


@pytest.mark.parametrize(
    "change, message",
    [
        ({"variant": None}, "'variant' has the wrong kind of value: null"),
        ({"seed": "0"}, "'seed' has the wrong kind"),
        ({"seed": True}, "'seed' has the wrong kind"),
        ({"accuracy": float("nan")}, "'accuracy' has the wrong kind"),
        ({"paradigms": []}, "lists no paradigm"),
        ({"paradigms": [1]}, r"paradigms\[0\]\. ?is not a JSON object"),
        ({"paradigms": [{"name": "x"}]}, r"lacks 'paradigms\[0\]\.phenomenon'"),
        ({"accuracy": 0.123}, "accuracy over all paradigms of 0.123, but its pairs give"),
    ],
)
def test_a_summary_that_cannot_be_right_is_refused(tmp_path, change, message):
    write_result(tmp_path / "a", draw(0.6, 0), **change)
    with pytest.raises(DataError, match=message):
        compare([tmp_path])


def test_missing_keys_are_named(tmp_path):
    path = write_result(tmp_path / "a", draw(0.6, 0)) / "summary.json"
    summary = json.loads(path.read_text())
    del summary["method"], summary["seed"]
    path.write_text(json.dumps(summary))
    with pytest.raises(DataError, match="lacks 'seed', 'method'"):
        compare([tmp_path])
    path.write_text("[]")
    with pytest.raises(DataError, match="not a JSON object"):
        compare([tmp_path])


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda t: t.replace("score_good", "good_score", 1), "pairs.csv:1: lacks the columns score_good"),
        (lambda t: "", "pairs.csv:1: lacks the columns"),
        (lambda t: t.replace(",-1.0,", ",nan,", 1), "pairs.csv:2: the score 'nan' is not a finite number"),
        (lambda t: t.replace(",-1.0,", ",much,", 1), "pairs.csv:2: the score 'much' is not a finite number"),
        (lambda t: t + "binding,1\n", r"pairs.csv:\d+: 2 fields where the header has 6"),
        (lambda t: t + '"binding,1\n', r"pairs.csv:\d+: broken CSV"),
        (lambda t: "\n".join(t.splitlines()[:-1]) + "\n", "summary.json has 40 pairs of 'binding', pairs.csv 39"),
        (lambda t: t + "else,0,a,b,-1.0,-2.0\n", "pairs.csv has the paradigm 'else', summary.json not"),
        (lambda t: "\n".join([*t.splitlines()[:-1], "binding,39,a,b,-1.0,-1.0"]), "accuracy of 'binding' of"),
    ],
)
def test_damaged_pairs_are_refused_with_their_line(tmp_path, damage, message):
    path = write_result(tmp_path / "a", draw(0.6, 0)) / "pairs.csv"
    path.write_text(damage(path.read_text()))
    with pytest.raises(DataError, match=message) as caught:
        compare([tmp_path])
    assert "probe this model again" in str(caught.value)


def test_missing_or_undecodable_pairs_are_refused(tmp_path):
    path = write_result(tmp_path / "a", draw(0.6, 0)) / "pairs.csv"
    path.write_bytes(b"paradigm,pair,good,bad,score_good,score_bad\nx,0,\xff,b,1,2\n")
    with pytest.raises(DataError, match="not UTF-8"):
        compare([tmp_path])
    path.unlink()
    with pytest.raises(DataError, match=r"pairs\.csv: no such file beside summary\.json"):
        compare([tmp_path])


def test_an_earlier_comparison_is_kept_unless_overwritten(runs, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "comparison.md").write_text("precious")
    with pytest.raises(OutputExistsError):
        compare([runs], out)
    assert (out / "comparison.md").read_text() == "precious"
    assert [p.name for p in out.iterdir()] == ["comparison.md"]
    compare([runs], out, overwrite=True)
    assert sorted(p.name for p in out.iterdir()) == sorted([*FILES, "comparison.png"])


# The command


def test_the_command_prints_the_report_and_writes_its_files(runs, tmp_path, run_babyssa):
    out = tmp_path / "out"
    status, stdout, stderr = run_babyssa("compare", runs, "--out", out, "--resamples", 200)
    assert status == 0
    verdict = compare([runs], resamples=200).verdict
    assert " ".join(stdout.split()).startswith(verdict) and "paradigm" in stdout
    assert f"wrote {out}" in stderr
    table = pd.read_csv(out / "comparison.csv")
    assert len(table) == (3 + 2 + 1) * 2
    assert (out / "comparison.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_fails_on_one_line(runs, tmp_path, run_babyssa):
    status, stdout, stderr = run_babyssa("compare", runs, "--out", tmp_path / "out", "--baseline", "ssaa")
    assert (status, stdout) == (2, "")
    assert stderr.count("\n") == 1 and "did you mean 'ssa'?" in stderr
    assert not (tmp_path / "out").exists()
    status, _, stderr = run_babyssa("compare", tmp_path / "none", "--out", tmp_path / "out")
    assert status == 1 and stderr.count("\n") == 1
    assert run_babyssa("compare", "--out", tmp_path / "out")[0] == 2


def test_help_has_examples(run_babyssa):
    status, stdout, _ = run_babyssa("compare", "--help")
    assert status == 0 and "babyssa compare runs --out comparison" in stdout
