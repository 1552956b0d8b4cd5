"""One seed, one machine, one number of threads: the same bytes; and variants that differ in the scoring only."""

import dataclasses
import hashlib

from babyssa.encoder import MaskedSentences, build_encoder, train_encoder
from babyssa.encoder.config import EncoderSize, Evaluation, Masking
from babyssa.models.run_config import read_settings
from babyssa.training.config import Optimisation
from babyssa.training.resume import own_tensors

VARIANTS = ("softmax", "ssa-1.5", "ssa-2", "ssa")


def digest(tensors):
    found = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        found.update(name.encode() + tensor.detach().numpy().tobytes())
    return found.hexdigest()


def test_two_runs_of_one_seed_have_the_same_files(settings, contents):
    runs = []
    for _ in range(2):
        train_encoder(settings, overwrite=True)
        runs.append(contents(settings.out))
    assert runs[0] == runs[1]
    train_encoder(dataclasses.replace(settings, seed=1), overwrite=True)
    assert contents(settings.out)["model.safetensors"] != runs[0]["model.safetensors"]


def test_variants_of_one_seed_start_from_the_same_common_weights(tokenizer):
    size = EncoderSize(layers=2, heads=2, hidden_size=16, feed_forward_size=24)
    models = [own_tensors(build_encoder(size, tokenizer, variant=variant, seed=4)) for variant in VARIANTS]
    common = set.intersection(*(set(tensors) for tensors in models))
    assert common == models[0].keys()
    assert len({digest({name: tensors[name] for name in common}) for tensors in models}) == 1
    other = own_tensors(build_encoder(size, tokenizer, seed=5))
    assert digest(other) != digest(models[0])


def test_variants_of_one_seed_record_the_same_start_and_see_the_same_first_100_batches(settings, monkeypatch):
    seen = {}
    fetch = MaskedSentences.__getitems__

    def record(self, items):
        batch = fetch(self, items)
        seen.setdefault(variant, []).append(digest(batch))
        return batch

    monkeypatch.setattr(MaskedSentences, "__getitems__", record)
    short = dataclasses.replace(
        settings,
        optimisation=Optimisation(batch_size=3, steps=100),
        masking=Masking(patterns=2),
        evaluation=Evaluation(held_out=0),
    )
    initial = set()
    for variant in VARIANTS:
        run = train_encoder(dataclasses.replace(short, variant=variant), overwrite=True)
        initial.add(read_settings(run.folder)["facts"]["initial_weights_sha256"])
    assert len(initial) == 1
    first = [digests[:100] for digests in seen.values()]
    assert len(set(first[0])) > 90 and all(digests == first[0] for digests in first)
