"""Pseudo-log-likelihood of minimal pairs: babyssa's scorer against the usual padded one.

The usual one makes a masked copy of the sentence for every token, pads batches of 32 copies to the longest,
projects every position to the vocabulary, and takes the masked token's log-probability.

    python benchmarks/scoring.py [MODEL] [--suite FOLDER --suite-order bad-first] [--limit PAIRS] [--json FILE]

Without a model a new one of BabyBERTa's size is scored with, its tokenizer trained on the packaged sample:
what it knows does not change how long it takes.
"""

from __future__ import annotations

import torch
from common import corpus_and_tokenizer, interleaved, options, peak_of, print_peak, show

from babyssa.encoder import EncoderSize, build_encoder
from babyssa.probing import as_loaded, load_suite, score
from babyssa.probing.models import LoadedModel
from babyssa.resources import resource_folder


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
        for line in range(len(batch["input_ids"])):
            found = log_probabilities[line, positions[start + line], targets[start + line]]
            scores[owners[start + line]] += found.item()
    return scores


def ours(loaded: LoadedModel, sentences: list[str]) -> list[float]:
    return [found.score for found in score(loaded, sentences, method="pll")]


SCORERS = {"padded": padded, "babyssa": ours}


def new_model() -> LoadedModel:
    _, tokenizer = corpus_and_tokenizer(None, None)
    return as_loaded((build_encoder(EncoderSize(), tokenizer).eval(), tokenizer))


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("model", nargs="?", help="a folder or hub id")
    parser.add_argument(
        "--suite", default=resource_folder("probes") / "suite", help="the packaged one if not given"
    )
    parser.add_argument("--suite-order", choices=["bad-first", "good-first"])
    parser.add_argument("--limit", type=int, default=5, help="pairs of each paradigm")
    arguments = parser.parse_args()
    loaded = as_loaded(arguments.model) if arguments.model else new_model()
    suite = load_suite(arguments.suite, arguments.suite_order).select(limit=arguments.limit)
    sentences = [s for paradigm in suite.paradigms for pair in paradigm.pairs for s in (pair.good, pair.bad)]
    if arguments.peak:
        SCORERS[arguments.peak](loaded, sentences)
        return print_peak()
    scores = {name: torch.tensor(scorer(loaded, sentences)) for name, scorer in SCORERS.items()}
    work = {name: lambda scorer=scorer: scorer(loaded, sentences) for name, scorer in SCORERS.items()}
    seconds = interleaved(work, arguments.repetitions)
    rows = [
        {
            "scorer": name,
            "sentences/s": len(sentences) / seconds[name],
            "/padded": seconds["padded"] / seconds[name],
            "largest difference": float((scores[name] - scores["padded"]).abs().max()),
            "peak MB": round(peak_of(name)),
        }
        for name in SCORERS
    ]
    show(rows, arguments.json)


if __name__ == "__main__":
    main()
