"""Pseudo-log-likelihood of minimal pairs: babyssa's scorer against the usual padded one.

The usual one makes a masked copy of the sentence for every token, pads batches of 32 copies, in the order of the
sentences, to the longest, projects every position to the vocabulary, and takes the masked token's log-probability.

    python benchmarks/scoring.py [MODEL] [--suite FOLDER --suite-order bad-first] [--limit PAIRS]
        [--precision bfloat16] [--device DEVICE] [--minicons PYTHON] [--quick] [--json FILE]

`--minicons` takes the interpreter of another environment that has minicons, and measures that too, on the CPU.

"pairs equal %" is the share of minimal pairs that a scorer decides as babyssa's does in float32; the largest
difference is to the padded scores, which are in float32.

Without a model a new one of BabyBERTa's size is scored with, its tokenizer trained on the packaged sample:
what it knows does not change how long it takes.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np
import torch
from common import again, corpus_and_tokenizer, interleaved, options, parse, peak_memory, show

from babyssa.corpus import save_tokenizer
from babyssa.encoder import EncoderSize, build_encoder
from babyssa.files import resource_folder
from babyssa.models import as_loaded, score
from babyssa.models.loading import LoadedModel, Precision
from babyssa.probing import load_suite


@torch.no_grad()
def padded(loaded: LoadedModel, sentences: list[str]) -> list[float]:
    """Each sentence's pseudo-log-likelihood in nats, as it is usually computed."""
    tokenizer, model = loaded.tokenizer, loaded.model
    rows, owners, positions, targets = [], [], [], []
    for owner, ids in enumerate(tokenizer(sentences)["input_ids"]):
        for position in range(1, len(ids) - 1):
            rows.append([*ids[:position], tokenizer.mask_token_id, *ids[position + 1 :]])
            owners.append(owner)
            positions.append(position)
            targets.append(ids[position])
    scores = [0.0] * len(sentences)
    for start in range(0, len(rows), 32):
        batch = tokenizer.pad({"input_ids": rows[start : start + 32]}, return_tensors="pt").to(loaded.device)
        log_probabilities = model(**batch).logits.log_softmax(-1)
        batched = slice(start, start + len(log_probabilities))
        found = log_probabilities[range(len(log_probabilities)), positions[batched], targets[batched]]
        for owner, value in zip(owners[batched], found.tolist(), strict=True):
            scores[owner] += value
    return scores


def ours(loaded: LoadedModel, sentences: list[str], precision: Precision = "float32") -> list[float]:
    return [found.score for found in score(loaded, sentences, method="pll", precision=precision)]


SCORERS = {
    "padded": padded,
    "babyssa": ours,
    "babyssa, bfloat16": partial(ours, precision="bfloat16"),
}


def start_minicons(python: str, loaded: LoadedModel, sentences: list[str]) -> Callable[..., list[float]]:
    """A function that scores `sentences` with minicons in a process of its own, which ends with this one."""
    with tempfile.TemporaryDirectory() as folder:
        loaded.model.save_pretrained(folder)
        save_tokenizer(loaded.tokenizer, folder)
        worker = subprocess.Popen(
            [python, Path(__file__).with_name("minicons_worker.py"), folder, str(torch.get_num_threads())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

        def ask(line: str) -> list[float]:
            print(line, file=worker.stdin, flush=True)
            return json.loads(worker.stdout.readline())

        # It has read the folder once it answers.
        ask(json.dumps(sentences) + "\n")
    return lambda loaded, sentences: ask("")


def new_model(device: str | None) -> LoadedModel:
    _, tokenizer = corpus_and_tokenizer(None, None)
    model = build_encoder(EncoderSize(), tokenizer).eval()
    return as_loaded((model.to(device or ("cuda" if torch.cuda.is_available() else "cpu")), tokenizer))


def decisions(scores: list[float]) -> np.ndarray:
    """1 where the good member of a pair scores higher, -1 where the bad one does, else 0."""
    good, bad = np.reshape(scores, (-1, 2)).T
    return np.sign(good - bad)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("model", nargs="?", help="a folder or hub id")
    parser.add_argument(
        "--suite", default=resource_folder("probes") / "suite", help="the packaged one if not given"
    )
    parser.add_argument("--suite-order", choices=["bad-first", "good-first"])
    parser.add_argument("--limit", type=int, default=5, help="pairs of each paradigm")
    parser.add_argument("--precision", choices=get_args(Precision), default="float32", help="of one more row")
    parser.add_argument("--device", help="a GPU if there is one")
    parser.add_argument("--minicons", metavar="PYTHON", help="the interpreter of an environment with minicons")
    arguments = parse(parser)
    device = arguments.device
    loaded = as_loaded(arguments.model, device=device) if arguments.model else new_model(device)
    suite = load_suite(arguments.suite, arguments.suite_order).select(limit=arguments.limit)
    sentences = [s for paradigm in suite.paradigms for pair in paradigm.pairs for s in (pair.good, pair.bad)]
    if arguments.one:
        SCORERS[arguments.one](loaded, sentences)
        return print(peak_memory())
    # Float32 in any case: the other precision is measured against it.
    chosen = [name for name in SCORERS if "bfloat16" not in name or arguments.precision == "bfloat16"]
    work = {name: partial(SCORERS[name], loaded, sentences) for name in chosen}
    if arguments.minicons:
        work["minicons"] = partial(start_minicons(arguments.minicons, loaded, sentences), loaded, sentences)
    scores = {name: np.array(run()) for name, run in work.items()}
    seconds = interleaved(work, arguments.repetitions)
    rows = [
        {
            "scorer": name,
            "sentences/s": len(sentences) / seconds[name],
            "/padded": seconds["padded"] / seconds[name],
            **({"/minicons": seconds["minicons"] / seconds[name]} if arguments.minicons else {}),
            "largest difference": float(np.abs(scores[name] - scores["padded"]).max()),
            "pairs equal %": 100 * float((decisions(scores[name]) == decisions(scores["babyssa"])).mean()),
            "peak MB": round(float(again(name))) if name in SCORERS else "",
        }
        for name in work
    ]
    show(rows, arguments.json)


if __name__ == "__main__":
    main()
