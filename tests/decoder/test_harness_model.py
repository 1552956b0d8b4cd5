"""A masked model run by lm-evaluation-harness decides BLiMP's pairs as ``probe`` does."""

import pytest

from babyssa import load_suite, probe

pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed: pip install 'babyssa[harness]'")

TASK = """
task: {name}
dataset_path: json
dataset_kwargs:
  data_files:
    test: {file}
test_split: test
output_type: multiple_choice
doc_to_text: ""
doc_to_target: 0
doc_to_choice: "{{{{[sentence_good, sentence_bad]}}}}"
target_delimiter: ""
num_fewshot: 0
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
"""


def test_the_harness_agrees_with_probe_on_blimp(make, shared, tmp_path):
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    from babyssa.decoder.harness_model import NAME

    files = sorted((shared / "data" / "blimp").glob("*.jsonl"))
    for file in files:
        (tmp_path / f"{file.stem}.yaml").write_text(TASK.format(name=file.stem, file=file))
    tokenizer = make.tokenizer()
    folder = make.save(make.masked(tokenizer, max_position_embeddings=130), tokenizer, tmp_path / "model")
    found = simple_evaluate(
        model=NAME,
        model_args={"pretrained": str(folder)},
        tasks=[file.stem for file in files],
        task_manager=TaskManager(include_path=str(tmp_path), include_defaults=False),
        limit=40,
        bootstrap_iters=0,
    )
    expected = probe(folder, load_suite(shared / "data" / "blimp").select(limit=40))
    for paradigm in expected.paradigms:
        assert not paradigm.ties
        assert found["results"][paradigm.name]["acc,none"] == pytest.approx(paradigm.accuracy)
