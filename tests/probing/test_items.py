"""Published tasks in their layouts, from file to prediction file."""

import json

import pandas as pd
import pytest
from scipy.stats import spearmanr

from babyssa import load_suite, probe
from babyssa.errors import ConfigError, DataError
from babyssa.models import score
from babyssa.probing import Item, MinimalPair

EWOK = [
    {
        "Domain": domain,
        "Context1": "the dog is big .",
        "Context2": "the dog is on the mat .",
        "Target1": "look at this big dog .",
        "Target2": "look at this mat .",
    }
    for domain in ("size", "size", "place")
]
COMPS = [{"prefix_acceptable": "a dog", "prefix_unacceptable": "a mat", "property_phrase": "is big ."}] * 2
ENTITY = [
    {
        "input_prefix": "the mat is in the box . look at the",
        "options": [" mat .", " dog .", " nothing ."],
        "numops": n,
    }
    for n in (0, 1)
] + [{"input_prefix": "the", "options": [" mat", " dog", " horse"], "numops": 1}]
WUG = [
    {"sentences": f"a {one}\ta {two}", "ratio": ratio}
    for one, two, ratio in (
        ("dog", "mat", 0.9),
        ("big", "thing", 0.2),
        ("cookie", "x", 0.4),
        ("don't", "you", 0.7),
    )
]


def write(folder, **files):
    for name, rows in files.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_every_layout_ends_in_the_prediction_file(masked_folder, tmp_path, run_babyssa):
    out = tmp_path / "all_preds.json"
    tasks = {
        "ewok": {"ewok": EWOK},
        "comps": {"comps_base": COMPS, "comps_wugs_dist-before": COMPS},
        "entity_tracking": {"regular": ENTITY},
        "wug_past": {"wug_past_tense": WUG},
    }
    for task, files in tasks.items():
        (tmp_path / task).mkdir()
        arguments = ("probe", masked_folder, "--suite", write(tmp_path / task, **files), "--predictions", out)
        status, shown, err = run_babyssa(*arguments)
        assert status == 0, err
        assert ("correlation" in shown) == (task == "wug_past")
        assert run_babyssa(*arguments)[0] == 1  # the task is there
    predictions = json.loads(out.read_text())
    assert {
        task: {name: len(part["predictions"]) for name, part in predictions[task].items()} for task in tasks
    } == {
        "ewok": {"size": 2, "place": 1},
        "comps": {"base": 2, "wugs_dist_before": 2},
        "entity_tracking": {"regular_0_ops": 1, "regular_1_ops": 2},
        "wug_past": {"wug_past_tense": 4},
    }
    assert predictions["ewok"]["size"]["predictions"][1]["id"] == "size_1"
    assert predictions["ewok"]["size"]["predictions"][0]["pred"].strip() in (
        EWOK[0]["Target1"],
        EWOK[0]["Target2"],
    )
    assert predictions["comps"]["base"]["predictions"][0]["pred"] in ("a dog is big .", "a mat is big .")
    assert all(0 < one["prob"] < 1 for one in predictions["wug_past"]["wug_past_tense"]["predictions"])


def test_the_preferred_option_is_the_one_with_the_highest_conditional_score(causal, tmp_path):
    suite = load_suite(write(tmp_path, regular=ENTITY))
    result = probe(causal, suite)
    for row, name, number in zip(ENTITY, ("regular_0_ops", *["regular_1_ops"] * 2), (0, 0, 1), strict=True):
        scores = [one.score for one in score(causal, row["options"], given=row["input_prefix"], separator="none")]
        right, best_wrong = result.scores[name][number]
        assert right == pytest.approx(scores[0], abs=1e-4)
        assert best_wrong == pytest.approx(max(scores[1:]), abs=1e-4)
        assert result.rivals[name][number] == scores.index(max(scores[1:]))
    right = [sum(pair[0] > pair[1] for pair in result.scores[p.name]) / p.n_pairs for p in result.paradigms]
    assert [p.accuracy for p in result.paradigms] == right


def test_what_is_compared_depends_on_the_definition(tmp_path):
    write(tmp_path, ewok=EWOK[:1])
    contexts, targets = (EWOK[0]["Context1"], EWOK[0]["Context2"]), (EWOK[0]["Target1"], EWOK[0]["Target2"])

    def compared(definition):
        (paradigm,) = load_suite(tmp_path, definition=definition).paradigms
        return [
            [(contexts.index(o.given), targets.index(o.text.strip())) for o in i.options] for i in paradigm.pairs
        ]

    assert compared("babylm-2025") == [[(0, 0), (0, 1)]]
    assert compared("babylm-2026") == [[(0, 0), (1, 0)]]
    assert compared("original") == [[(0, 0), (1, 0)], [(1, 1), (0, 1)]]
    (tmp_path / "ewok.jsonl").unlink()
    write(tmp_path, regular=ENTITY)
    assert load_suite(tmp_path, definition="babylm-2026").n_pairs == 1
    with pytest.raises(ConfigError, match="unknown definition"):
        load_suite(tmp_path, definition="2025")


def test_correlation_with_human_choices_is_spearmans(masked, tmp_path):
    result = probe(masked, load_suite(write(tmp_path, wug_adj_nominalization=WUG)))
    sentences = [one.score for row in WUG for one in score(masked, row["sentences"].split("\t"))]
    margins = [a - b for a, b in zip(sentences[::2], sentences[1::2], strict=True)]
    expected = spearmanr(margins, [row["ratio"] for row in WUG]).statistic
    assert result.paradigms[0].correlation == pytest.approx(expected)


def test_options_that_the_tokenizer_reads_alike_tie(masked):
    suite = load_suite([{"options": ["The dog", "a", "the dog"], "label": 2, "given": ""}])
    (item,) = suite.paradigms[0].pairs
    assert isinstance(item, Item) and item.options[0].text == "the dog"
    result = probe(masked, suite)
    scores = {text: score(masked, [text])[0].score for text in ("the dog", "a")}
    assert result.paradigms[0].accuracy == (0.5 if scores["the dog"] > scores["a"] else 0)


@pytest.mark.parametrize("frame", [False, True])
def test_pairs_in_memory_are_a_suite(masked, tmp_path, frame):
    datasets = pytest.importorskip("datasets")
    pairs = [("the dog is big .", "the dogs is big ."), ("a mat", "mat a")]
    table = pd.DataFrame(pairs, columns=["sentence_good", "sentence_bad"])
    table.to_csv(tmp_path / "pairs.csv", index=False)
    source = (table, datasets.Dataset.from_pandas(table)) if frame else (pairs, [MinimalPair(*p) for p in pairs])
    expected = load_suite(tmp_path / "pairs.csv").paradigms[0].pairs
    for one in source:
        assert load_suite(one).paradigms[0].pairs == expected
        assert probe(masked, load_suite(one)).n_pairs == 2


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (EWOK[0] | {"Target2": None}, "'Target2' is not a string"),
        ({k: v for k, v in EWOK[0].items() if k != "Domain"}, "no key 'Domain'"),
        ({"options": ["a"]}, "nothing to choose from"),
        ({"options": ["a", 3]}, "option 2 is not a text"),
        ({"options": ["a", "b"], "label": 2}, "it is from 0 to 1"),
        ({"sentences": "a\tb", "ratio": "much"}, "'ratio' is not a number"),
    ],
)
def test_a_broken_item_is_one_line_with_its_place(tmp_path, row, message):
    with pytest.raises(DataError, match=message) as caught:
        load_suite(write(tmp_path, items=[row]))
    assert "items.jsonl:1" in str(caught.value)


def test_holistic_scores_no_items_with_contexts(masked, tmp_path):
    with pytest.raises(ConfigError, match="whole sentences only"):
        probe(masked, load_suite(write(tmp_path, ewok=EWOK)), method="holistic")
