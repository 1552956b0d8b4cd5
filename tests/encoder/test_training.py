"""Training an encoder from the command line: what is written, what decides it, what is refused."""

import hashlib
import json

import pytest
import torch
import yaml
from transformers import AutoModelForMaskedLM, AutoTokenizer

from babyssa.attention import scoring_parameters
from babyssa.encoder import EncoderTraining, MaskedSentences, train_encoder
from babyssa.encoder.config import EncoderSize, Evaluation, Masking
from babyssa.encoder.training import split
from babyssa.errors import ConfigError, DamageError, DataError, ModelError, OutputExistsError
from babyssa.models import score
from babyssa.training.config import Optimisation

TINY = [
    *("--size.layers", 1, "--size.heads", 2, "--size.hidden_size", 16, "--size.feed_forward_size", 24),
    *("--optimisation.batch_size", 8, "--optimisation.steps", 6, "--optimisation.log_every", 2),
    *("--optimisation.learning_rate", 0.01, "--evaluation.held_out", 5),
]


def settings(corpus, tokenizer, out, **changes):
    values = {
        "corpus": corpus,
        "tokenizer": tokenizer,
        "out": out,
        "size": EncoderSize(layers=1, heads=2, hidden_size=16, feed_forward_size=24),
        "optimisation": Optimisation(batch_size=8, steps=6, log_every=2, learning_rate=0.01),
        "evaluation": Evaluation(held_out=5),
    }
    return EncoderTraining(**{**values, **changes})


def _rounded(learned):
    return {key: [round(value, 5) for value in values] for key, values in learned.items()}


def fingerprint(folder):
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


@pytest.mark.parametrize("variant", ["softmax", "ssa", "mixed", "entmax", "cosformer"])
def test_the_command_writes_a_run_folder_that_transformers_loads(
    variant, corpus, tokenizer_folder, tmp_path, run_babyssa
):
    out = tmp_path / "run"
    status, stdout, stderr = run_babyssa(
        *("train", "encoder", "--corpus", corpus, "--tokenizer", tokenizer_folder, "--out", out),
        *("--variant", variant, *TINY),
    )
    assert status == 0, stderr
    assert str(out) in stdout and "pseudo_perplexity" in stdout
    model, tokenizer = AutoModelForMaskedLM.from_pretrained(out), AutoTokenizer.from_pretrained(out)
    assert model.config.vocab_size == len(tokenizer)
    written = yaml.safe_load((out / "config.yaml").read_text())
    assert written["variant"] == variant and written["seed"] == 0
    assert written["scoring"].get("learn_n") == (True if variant == "ssa" else None)
    assert written["optimisation"]["steps"] == 6 and written["size"]["layers"] == 1
    assert not (out / "checkpoints").exists()
    assert written["versions"]["transformers"] and written["facts"]["held_out_sentences"] == 5
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in log] == [2, 4, 6, 6]
    assert {"loss", "learning_rate", "tokens", "tokens_per_second"} <= log[0].keys()
    assert log[-1]["pseudo_perplexity"] > 1
    if variant in ("ssa", "mixed"):
        (learned,) = log[-1]["scoring"].values()
        assert learned == next(iter(scoring_parameters(model).values()))
        n = learned["n" if variant == "ssa" else "1.n"]
        assert len(n) == (2 if variant == "ssa" else 1) and 1.5 not in n


def test_without_a_tokenizer_one_is_trained_into_the_run_folder(corpus, tmp_path):
    run = train_encoder(settings(corpus, None, tmp_path / "run", vocab_size=300))
    assert len(AutoTokenizer.from_pretrained(run.folder)) == 300


@pytest.mark.slow
def test_the_loss_falls(corpus, tokenizer_folder, tmp_path):
    optimisation = Optimisation(batch_size=16, steps=150, log_every=10, learning_rate=0.01)
    size = EncoderSize(layers=1, heads=2, hidden_size=32, feed_forward_size=64)
    train_encoder(
        settings(corpus, tokenizer_folder, tmp_path / "run", optimisation=optimisation, size=size, variant="ssa")
    )
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in log if "loss" in line]
    assert losses[-1] < 0.6 * losses[0]


def test_one_seed_gives_the_same_bytes_and_another_gives_others(corpus, tokenizer_folder, tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        torch.manual_seed(len(name) + seed)
        train_encoder(settings(corpus, tokenizer_folder, tmp_path / name, variant="ssa", seed=seed))
    assert fingerprint(tmp_path / "a") == fingerprint(tmp_path / "b") != fingerprint(tmp_path / "c")


def test_a_learning_curve_measures_perplexity_and_accuracy_without_changing_the_run(
    corpus, tokenizer_folder, tmp_path
):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("good,bad\nthe dogs are big .,the dogs is big .\nhe sees him .,him sees he .\n")
    evaluation = Evaluation(held_out=5, every=2, suite=str(pairs))
    train_encoder(settings(corpus, tokenizer_folder, tmp_path / "measured", evaluation=evaluation))
    train_encoder(settings(corpus, tokenizer_folder, tmp_path / "plain"))
    log = [json.loads(line) for line in (tmp_path / "measured" / "log.jsonl").read_text().splitlines()]
    curve = [(line["step"], line["accuracy"]) for line in log if "accuracy" in line]
    assert [step for step, _ in curve] == [2, 4, 6] and all(a in (0, 0.25, 0.5, 0.75, 1) for _, a in curve)
    assert fingerprint(tmp_path / "measured") == fingerprint(tmp_path / "plain")


@pytest.mark.parametrize("variant", ["ssa", "mixed"])
def test_scoring_parameters_are_not_decayed(variant, corpus, tokenizer_folder, tmp_path):
    """Without a learning rate to speak of, only weight decay could move them."""
    optimisation = Optimisation(batch_size=8, steps=3, learning_rate=1e-12, weight_decay=0.9 / 1e-12)
    train_encoder(settings(corpus, tokenizer_folder, tmp_path / "run", variant=variant, optimisation=optimisation))
    model = AutoModelForMaskedLM.from_pretrained(tmp_path / "run")
    (learned,) = scoring_parameters(model).values()
    initial = {"n": 1.5, "b": 0.8}
    assert learned and all(set(values) == {initial[key[-1]]} for key, values in _rounded(learned).items())
    assert model.roberta.embeddings.word_embeddings.weight.abs().max() < 0.02


def test_the_groups_of_a_mixed_scoring_can_be_set(corpus, tokenizer_folder, tmp_path, run_babyssa):
    arguments = ["train", "encoder", "--corpus", corpus, "--tokenizer", tokenizer_folder, "--variant", "mixed"]
    groups = "[[linear, 0.5], [{name: ssa, n: 2.5}, 0.5]]"
    status, _, stderr = run_babyssa(*arguments, "--scoring.groups", groups, "--out", tmp_path / "run", *TINY)
    assert status == 0, stderr
    model = AutoModelForMaskedLM.from_pretrained(tmp_path / "run")
    written = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["scoring"]
    assert {"name": "mixed", **written} == model.config.attention_scoring
    assert [scoring["name"] for scoring, _ in written["groups"]] == ["linear", "ssa"]
    groups = "[[linear, 0.5]]"
    status, _, stderr = run_babyssa(*arguments, "--scoring.groups", groups, "--out", tmp_path / "other", *TINY)
    assert status == 2 and "shares that sum to 1" in stderr and stderr.count("\n") == 1
    assert not (tmp_path / "other").exists()


def test_a_scorings_parameters_can_be_set(corpus, tokenizer_folder, tmp_path, run_babyssa):
    status, _, stderr = run_babyssa(
        *("train", "encoder", "--corpus", corpus, "--tokenizer", tokenizer_folder, "--out", tmp_path / "run"),
        *("--variant", "ssa", "--scoring.n", 2.5, "--scoring.learn_n", "false", *TINY),
    )
    assert status == 0, stderr
    written = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["scoring"]
    assert written["n"] == 2.5 and written["learn_n"] is False and written["b"] == 0.8


def test_a_written_config_trains_the_same_run_again(corpus, tokenizer_folder, tmp_path, run_babyssa):
    start = ("train", "encoder", "--corpus", corpus, "--tokenizer", tokenizer_folder)
    run_babyssa(*start, "--out", tmp_path / "a", "--variant", "ssa-2", "--seed", 3, *TINY)
    recipe_and_out = ("--config", tmp_path / "a" / "config.yaml", "--out", tmp_path / "b")
    status, _, stderr = run_babyssa("train", "encoder", *recipe_and_out)
    assert status == 0, stderr
    assert fingerprint(tmp_path / "a") == fingerprint(tmp_path / "b")


def test_checkpoints_can_be_probed(corpus, tokenizer_folder, tmp_path):
    optimisation = Optimisation(batch_size=8, steps=6, checkpoint_every=2)
    train_encoder(settings(corpus, tokenizer_folder, tmp_path / "run", variant="ssa", optimisation=optimisation))
    folder = tmp_path / "run" / "checkpoints"
    assert sorted(path.name for path in folder.iterdir()) == ["step-2", "step-4", "step-6"]
    sentences = ["the dog sees a cat ."]
    last, finished = (score(f, sentences)[0].score for f in (folder / "step-6", tmp_path / "run"))
    assert last == finished != score(folder / "step-2", sentences)[0].score


@pytest.mark.parametrize("variant", ["softmax", "ssa"])
def test_bfloat16_trains_float32_weights_to_nearly_the_same_loss(variant, corpus, tokenizer_folder, tmp_path):
    losses = {}
    for precision in ("float32", "bfloat16"):
        out = tmp_path / precision
        optimisation = Optimisation(batch_size=8, steps=6, log_every=2, learning_rate=0.01, precision=precision)
        train_encoder(settings(corpus, tokenizer_folder, out, variant=variant, optimisation=optimisation))
        assert yaml.safe_load((out / "config.yaml").read_text())["facts"]["precision"] == precision
        assert AutoModelForMaskedLM.from_pretrained(out).dtype == torch.float32
        lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
        losses[precision] = [line["loss"] for line in lines if "loss" in line]
    assert losses["bfloat16"] == pytest.approx(losses["float32"], rel=0.01)
    assert losses["bfloat16"] != losses["float32"]


def test_the_last_step_is_always_logged(corpus, tokenizer_folder, tmp_path):
    optimisation = Optimisation(batch_size=8, steps=5, log_every=4)
    train_encoder(settings(corpus, tokenizer_folder, tmp_path / "run", optimisation=optimisation))
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in log if "loss" in line] == [4, 5]


def test_variants_see_the_same_batches_and_each_epoch_its_own_masks(
    corpus, tokenizer_folder, tmp_path, monkeypatch
):
    seen = {}
    fetch = MaskedSentences.__getitems__

    def record(self, items):
        batch = fetch(self, items)
        digest = hashlib.sha256(b"".join(batch[k].numpy().tobytes() for k in sorted(batch))).hexdigest()
        seen.setdefault(variant, []).append(([i // len(self.sentences) for i in items], digest))
        return batch

    monkeypatch.setattr(MaskedSentences, "__getitems__", record)
    for variant in ("softmax", "ssa", "ssa-2"):
        optimisation = Optimisation(batch_size=40, epochs=3)
        chosen = {"optimisation": optimisation, "masking": Masking(patterns=0), "variant": variant}
        train_encoder(settings(corpus, tokenizer_folder, tmp_path / variant, **chosen))
    assert seen["softmax"] == seen["ssa"] == seen["ssa-2"]
    assert [set(patterns) for patterns, _ in seen["ssa"]] == [{0}] * 3 + [{1}] * 3 + [{2}] * 3


def test_a_length_beyond_the_tokenizers_default_can_be_trained_and_probed(tokenizer_folder, tmp_path):
    long = "dog " * 150 + "."
    (tmp_path / "corpus.txt").write_text("\n".join([long, "the dog sees a cat ."] * 10) + "\n")
    size = EncoderSize(layers=1, heads=2, hidden_size=16, feed_forward_size=24, max_length=256)
    run = train_encoder(settings(tmp_path / "corpus.txt", tokenizer_folder, tmp_path / "run", size=size))
    assert score(run.folder, [long])[0].score < 0


def test_held_out_sentences_that_are_too_long_are_left_out(tokenizer_folder, tmp_path):
    lines = ["dog " * 150 + "."] * 3 + ["the dog sees a cat ."] * 20
    (tmp_path / "corpus.txt").write_text("\n".join(lines) + "\n")
    train_encoder(settings(tmp_path / "corpus.txt", tokenizer_folder, tmp_path / "run"))
    facts = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["facts"]
    assert (facts["held_out_sentences"], facts["too_long_sentences"]) == (4, 2)


@pytest.mark.parametrize("here, gpus, says", [(1, 2, "1 process for 2 GPUs"), (2, 1, "2 processes for 1 GPU;")])
def test_a_process_has_one_gpu_of_its_own(here, gpus, says, corpus, tokenizer_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(here))
    monkeypatch.setattr("torch.cuda.device_count", lambda: gpus)
    with pytest.raises(ConfigError, match=f"{says}.*torchrun --nproc-per-node {gpus}"):
        train_encoder(settings(corpus, tokenizer_folder, tmp_path / "run"))


@pytest.mark.slow
def test_tensorboard_gets_the_run(corpus, tokenizer_folder, tmp_path):
    pytest.importorskip("tensorboard", reason="the tensorboard extra is not installed")
    optimisation = Optimisation(batch_size=8, steps=4, log_every=2, report_to=["tensorboard"])
    train_encoder(settings(corpus, tokenizer_folder, tmp_path / "run", optimisation=optimisation))
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (events,) = (tmp_path / "run" / "runs").rglob("events.out.tfevents.*")
    reported = EventAccumulator(str(events.parent))
    reported.Reload()
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    for key, steps in (("loss", [2, 4]), ("pseudo_perplexity", [4])):
        scalars = [(event.step, event.value) for event in reported.Scalars(key)]
        assert [step for step, _ in scalars] == steps
        assert [value for _, value in scalars] == pytest.approx([line[key] for line in log if key in line])


@pytest.mark.parametrize(
    "tracker, says",
    [
        ("tensorbord", "unknown tracker 'tensorbord'; did you mean 'tensorboard'"),
        ("comet_ml", "comet_ml is not installed; pip install comet_ml"),
    ],
)
def test_a_tracker_that_cannot_be_used_is_refused_before_anything_is_written(
    tracker, says, corpus, tokenizer_folder, tmp_path
):
    optimisation = Optimisation(steps=1, report_to=[tracker])
    with pytest.raises(ConfigError, match=says):
        train_encoder(settings(corpus, tokenizer_folder, tmp_path / "run", optimisation=optimisation))
    assert not (tmp_path / "run").exists()


def test_a_run_folder_that_exists_is_refused_and_left_alone(corpus, tokenizer_folder, tmp_path, run_babyssa):
    train_encoder(settings(corpus, tokenizer_folder, tmp_path / "run"))
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
    with pytest.raises(OutputExistsError, match="already exists"):
        train_encoder(settings(corpus, tokenizer_folder, tmp_path / "run"))
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")} == before
    again = train_encoder(settings(corpus, tokenizer_folder, tmp_path / "run", seed=1), overwrite=True)
    assert again.seed == 1


BAD = [
    (["--variant", "sofmax"], 2, "unknown variant 'sofmax'; did you mean 'softmax'"),
    (["--variant", "ssa", "--scoring.n", "0.5"], 2, "n = 0.5 is out of its domain"),
    (["--variant", "ssa", "--scoring.b", "0"], 2, "b = 0 is out of its domain; b is greater than 0"),
    (["--variant", "ssa", "--scoring.q", "1"], 2, "no parameter 'q'"),
    (["--sise.layers", "2"], 2, "did you mean '--size.layers'"),
    (["--size.layers", "two"], 2, "size.layers"),
    (["--size.hidden_size", "30", "--size.heads", "4"], 2, "not a multiple"),
    (["--optimisation.batch_size", "0"], 2, "batch-size is 0"),
    (["--order", "agee"], 2, "order"),
    (["--tokenizer", "/nowhere"], 1, "/nowhere: no such tokenizer folder"),
    (["--corpus", "/nowhere.txt"], 1, "/nowhere.txt"),
    (["--evaluation.held_out", "5000"], 1, "cannot hold out 5000 sentences from a corpus of 120"),
    (["--size.max_length", "3"], 1, "no sentence has"),
    (["--config", "smal"], 2, "no packaged encoder recipe 'smal'; did you mean 'small'"),
    (["--evaluation.suite", "/nowhere"], 1, "/nowhere"),
    (["--evaluation.method", "pl"], 2, "pl"),
    (["--evaluation.held_out", "-1"], 2, "held-out is -1"),
    (["--seed", "-1"], 2, "seed is -1"),
    (["--optimisation.steps", "-5"], 2, "steps is -5"),
]


@pytest.mark.parametrize("arguments, code, says", BAD, ids=[" ".join(bad[0]) for bad in BAD])
def test_bad_input_gets_one_line_and_writes_nothing(
    arguments, code, says, corpus, tokenizer_folder, tmp_path, run_babyssa
):
    given = ["--corpus", corpus, "--tokenizer", tokenizer_folder, "--out", tmp_path / "run"]
    status, stdout, stderr = run_babyssa("train", "encoder", *given, *TINY, *arguments)
    assert status == code
    last = stderr.strip().splitlines()[-1]
    assert last.startswith("babyssa: error: ") and says in last and "Traceback" not in stderr
    assert not stdout and not (tmp_path / "run").exists()


@pytest.mark.parametrize("arguments, code, says", BAD, ids=[" ".join(bad[0]) for bad in BAD])
def test_bad_input_with_overwrite_leaves_the_earlier_run_alone(
    arguments, code, says, corpus, tokenizer_folder, tmp_path, run_babyssa
):
    earlier = tmp_path / "run" / "model.safetensors"
    earlier.parent.mkdir()
    earlier.write_text("an earlier model")
    given = ["--corpus", corpus, "--out", tmp_path / "run", "--overwrite"]
    status, _, _ = run_babyssa("train", "encoder", *given, *TINY, *arguments)
    assert status == code
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["model.safetensors"]
    assert earlier.read_text() == "an earlier model"


@pytest.mark.parametrize(
    "text, says",
    [
        ("seed: 1\nsize:\n  layer: 3\n", "recipe.yaml:3: unknown key 'size.layer'; did you mean 'size.layers'"),
        ("varant: ssa\n", "recipe.yaml:1: unknown key 'varant'; did you mean 'variant'"),
        ("variant: [1\n", "recipe.yaml:2: broken YAML"),
        ("just words\n", "recipe.yaml: is not a mapping"),
        ("seed: 1\norder: age\nseed: 2\n", "recipe.yaml:3: duplicate key 'seed'"),
        ("seed: 1\nsize: 4\n", "recipe.yaml:2: size is 4, expected a mapping"),
        (
            "optimisation:\n  steps: many\n",
            "optimisation.steps is 'many', expected a whole number",
        ),
        ("size:\n  heads: 0\n", "size.heads is 0"),
    ],
)
def test_a_bad_recipe_is_named(text, says, corpus, tmp_path, run_babyssa):
    (tmp_path / "recipe.yaml").write_text(text)
    status, _, stderr = run_babyssa(
        "train", "encoder", "--config", tmp_path / "recipe.yaml", "--corpus", corpus, "--out", tmp_path / "run"
    )
    assert status == 2 and says in stderr and len(stderr.splitlines()) == 1


def test_a_bad_option_is_not_blamed_on_the_recipe(corpus, tmp_path, run_babyssa):
    given = ("--config", "demo", "--corpus", corpus, "--out", tmp_path / "run", "--optimisation.steps", "many")
    status, _, stderr = run_babyssa("train", "encoder", *given)
    assert status == 2 and "optimisation.steps is 'many'" in stderr and "demo.yaml" not in stderr


def test_the_later_of_two_recipes_wins(corpus, tmp_path, tokenizer_folder, run_babyssa):
    (tmp_path / "mine.yaml").write_text("seed: 5\nsize: {layers: 1, heads: 2, hidden_size: 16}\n")
    given = ("--corpus", corpus, "--tokenizer", tokenizer_folder, "--out", tmp_path / "run")
    budget = ("--optimisation.steps", 1, "--evaluation.held_out", 2)
    status, _, stderr = run_babyssa(
        "train", "encoder", "--config", "demo", "--config", tmp_path / "mine.yaml", *given, *budget
    )
    assert status == 0, stderr
    written = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert (written["seed"], written["size"]["layers"], written["optimisation"]["batch_size"]) == (5, 1, 64)


def test_an_unfinished_run_is_started_again(corpus, tokenizer_folder, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text("variant: softmax\n")
    (tmp_path / "run" / "log.jsonl").write_text("{}\n")
    train_encoder(settings(corpus, tokenizer_folder, tmp_path / "run"))
    assert (tmp_path / "run" / "log.jsonl").read_text().count("\n") == 4


def test_the_files_of_a_run_have_the_modes_of_any_new_file(corpus, tokenizer_folder, tmp_path):
    run = train_encoder(settings(corpus, tokenizer_folder, tmp_path / "run"))
    (tmp_path / "new").touch()
    modes = {path.name: path.stat().st_mode for path in (*run.folder.iterdir(), tmp_path / "new")}
    assert set(modes.values()) == {modes["new"]}, modes


def test_a_run_folder_with_another_tokenizer_is_refused(corpus, tokenizer_folder, tmp_path):
    from babyssa.corpus import train_tokenizer

    run = train_encoder(settings(corpus, tokenizer_folder, tmp_path / "run"))
    train_tokenizer(corpus, run.folder, vocab_size=300, overwrite=True)
    with pytest.raises(DamageError, match=r"tokenizer.*json: is damaged"):
        score(run.folder, ["the dog sees a cat ."])
    (run.folder / "checksums.json").unlink()
    with pytest.raises(ModelError, match="not the tokenizer that the model was trained with"):
        score(run.folder, ["the dog sees a cat ."])


def test_a_loss_that_is_not_finite_stops_the_run(corpus, tokenizer_folder, tmp_path, run_babyssa):
    status, _, stderr = run_babyssa(
        *("train", "encoder", "--corpus", corpus, "--tokenizer", tokenizer_folder, "--out", tmp_path / "run"),
        *(*TINY, "--optimisation.learning_rate", 1e30, "--optimisation.max_grad_norm", 0),
    )
    assert status == 1 and "the loss is nan at step" in stderr and "learning-rate" in stderr


def test_held_out_sentences_are_spread_through_the_corpus():
    corpus = [str(i) for i in range(1000)]
    training, held_out = split(corpus, 5)
    assert held_out == ["0", "249", "499", "749", "999"] and len(training) == 995
    assert not {corpus[row] for row in training} & set(held_out)
    everything, nothing = split(corpus, 0)
    assert everything.tolist() == list(range(1000)) and nothing == []
    with pytest.raises(DataError, match="cannot hold out"):
        split(corpus, 1000)
