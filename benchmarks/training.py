"""Training an encoder: real (non-padding) tokens per second, against transformers' own Trainer.

The baseline is Trainer with RobertaForMaskedLM (eager attention) and DataCollatorForLanguageModeling (dynamic
padding): the same sentences, model, batch size and optimiser settings, and the same 80/10/10 masking, but that
babyssa masks at least one token of every sentence. Each repetition has a seed of its own, the first steps of a run
are not counted, and each run is a process of its own: what babyssa sets for its process (the heap, the library of
float32 products) would otherwise speed up Trainer too.

The loss is that of held-out sentences after the run, under the same masks for all: its mean over the repetitions,
and the standard deviation of their difference to the baseline's.

    python benchmarks/training.py [--corpus DIR --tokenizer DIR] [--batch-size 16 128] [--steps 60]
        [--precision float32] [--bound] [--quick] [--json FILE]

With `--bound`, the row "products" is a loop whose steps have nothing but the matrix products of the layers and of
the head, the gradient norm and AdamW: no other arrangement of the same arithmetic is faster than that.

"faults/step" are the minor page faults of a step: pages that the C library gave back and takes anew.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from statistics import mean, median, stdev

import numpy as np
import torch
from common import again, corpus_and_tokenizer, options, parse, peak_memory, show, tell
from torch import nn
from transformers import (
    DataCollatorForLanguageModeling,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from babyssa.console import quiet_transformers
from babyssa.corpus import Sentences, encode_sentences
from babyssa.encoder import EncoderSize, LengthBatches, MaskedSentences, Masking, Vocabulary, build_encoder
from babyssa.encoder.model import masked_lm_loss
from babyssa.models.products import multiplying
from babyssa.training.config import Optimisation
from babyssa.training.loop import Loop, Objective
from babyssa.training.run_folder import LOG
from babyssa.training.stopping import StopRequest

NOT_COUNTED = 5
HELD_OUT = 1000
MASKING = Masking(probability=0.15, random=0.1, unchanged=0.1, patterns=0)
BASELINE, BOUND = "Trainer", "products"


@dataclass(frozen=True)
class Run:
    """Real tokens per second, minor page faults per step, the loss on held-out sentences, peak memory in MB."""

    rate: float
    faults: float
    loss: float = 0.0
    peak: float = 0.0


def page_faults() -> int:
    """Minor page faults of this process so far."""
    return getrusage(RUSAGE_SELF).ru_minflt


class Clock(TrainerCallback):
    """Seconds, tokens and page faults of Trainer's run after its first steps."""

    def __init__(self, tokens: Callable[[], int]):
        self.tokens = tokens

    def on_step_end(self, args, state, control, **kwargs):
        now = time.perf_counter(), self.tokens(), page_faults(), state.global_step
        if state.global_step == NOT_COUNTED:
            self.start = now
        self.end = now

    @property
    def run(self) -> Run:
        """What was measured."""
        seconds, tokens, faults, steps = (b - a for a, b in zip(self.start, self.end, strict=True))
        return Run(tokens / seconds, faults / steps)


def baseline(model, sequences: list[list[int]], tokenizer, settings: Optimisation, seed: int, out: Path) -> Run:
    """Train with transformers' Trainer."""
    collate = DataCollatorForLanguageModeling(tokenizer, mlm_probability=MASKING.probability)
    seen = 0

    def counting(rows):
        nonlocal seen
        batch = collate(rows)
        seen += int(batch["attention_mask"].sum())
        return batch

    model.set_attn_implementation("eager")
    arguments = TrainingArguments(
        str(out),
        per_device_train_batch_size=settings.batch_size,
        max_steps=settings.steps,
        learning_rate=settings.learning_rate,
        warmup_steps=round(settings.steps * settings.warmup_fraction),
        bf16=settings.precision == "bfloat16",
        use_cpu=not torch.cuda.is_available(),
        logging_steps=settings.log_every,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        remove_unused_columns=False,
        seed=seed,
    )
    rows = [{"input_ids": ids} for ids in sequences]
    trainer = Trainer(model, arguments, train_dataset=rows, data_collator=counting)
    trainer.remove_callback(PrinterCallback)
    clock = Clock(lambda: seen)
    trainer.add_callback(clock)
    trainer.train()
    return clock.run


def masked(sequences: list[list[int]], tokenizer, seed: int) -> MaskedSentences:
    sentences = Sentences.of(sequences)
    return MaskedSentences(sentences, Vocabulary.of(tokenizer), MASKING, tokenizer.pad_token_id, seed)


def products_only(model, batch) -> torch.Tensor:
    """In place of the loss: the matrix products of a step, of its sizes, and next to nothing else."""
    tokens = int(batch["attention_mask"].sum()) if "attention_mask" in batch else batch["input_ids"].numel()
    asked = len(batch["labels"])
    hidden = torch.randn(tokens, model.config.hidden_size, requires_grad=True)
    *layers, last = model.roberta.encoder.layer
    for layer in (*layers, last):
        attention = layer.attention.self
        queried = hidden[:asked] if layer is last else hidden
        mixed = attention.query(queried) + (attention.key(hidden) + attention.value(hidden))[: len(queried)]
        hidden = layer.output.dense(layer.intermediate.dense(layer.attention.output.dense(mixed)))
    return model.lm_head.decoder(model.lm_head.dense(hidden)).sum()


def ours(
    model,
    sequences: list[list[int]],
    tokenizer,
    settings: Optimisation,
    seed: int,
    out: Path,
    objective: Callable[..., torch.Tensor] = masked_lm_loss,
) -> Run:
    """Train with babyssa's loop."""
    data = masked(sequences, tokenizer, seed)
    batches = LengthBatches(data.sentences.lengths, settings.batch_size, MASKING.patterns, "shuffled", seed)
    count = lambda batch: batch["labels"].numel()  # noqa: E731
    faults: list[int] = []

    def loss(model, batch):
        faults.append(page_faults())
        return objective(model, batch)

    torch.manual_seed(seed)
    loop = Loop(model, Objective(data, batches, loss, count, lambda model: {}), settings, out)
    with multiplying() if not torch.cuda.is_available() else nullcontext():
        loop.run(StopRequest())
    log = [json.loads(line) for line in (out / LOG).read_text().splitlines()]
    start = next(line for line in log if line["step"] == NOT_COUNTED)
    rate = (log[-1]["tokens"] - start["tokens"]) / (log[-1]["seconds"] - start["seconds"])
    return Run(rate, (faults[-1] - faults[NOT_COUNTED]) / (len(faults) - 1 - NOT_COUNTED))


@torch.no_grad()
def held_out_loss(model, sequences: list[list[int]], tokenizer) -> float:
    """Nats per masked token, by the model's own forward pass."""
    data = masked(sequences, tokenizer, seed=0)
    total = count = 0
    for start in range(0, len(data), 100):
        batch = data.__getitems__(range(start, min(start + 100, len(data))))
        batch = {key: value.to(model.device) for key, value in batch.items()}
        logits = model.eval()(batch["input_ids"], batch.get("attention_mask")).logits.flatten(0, 1)
        total += nn.functional.cross_entropy(logits[batch["positions"]], batch["labels"], reduction="sum").item()
        count += len(batch["labels"])
    return total / count


def run(kind: str, sequences: list[list[int]], tokenizer, settings: Optimisation, seed: int) -> Run:
    """Train a new model on all but the first sentences, which are held out."""
    held_out, training = sequences[:HELD_OUT], sequences[HELD_OUT:]
    train = {BASELINE: baseline, BOUND: partial(ours, objective=products_only)}.get(kind, ours)
    variant = "softmax" if kind in (BASELINE, BOUND) else kind
    model = build_encoder(EncoderSize(), tokenizer, variant=variant, seed=seed)
    with tempfile.TemporaryDirectory() as folder, quiet_transformers():
        found = train(model, training, tokenizer, settings, seed, Path(folder))
    return replace(found, peak=peak_memory(), loss=held_out_loss(model, held_out, tokenizer))


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--corpus", type=Path, help="a prepared corpus; the packaged sample if not given")
    parser.add_argument("--tokenizer", type=Path, help="one is trained on the corpus if not given")
    parser.add_argument("--variants", nargs="+", default=["softmax", "ssa"])
    parser.add_argument("--batch-size", type=int, nargs="+", default=[16, 128])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--bound", action="store_true", help="one more row: the products of a step and AdamW only")
    parser.add_argument("--precision", nargs="+", choices=["float32", "bfloat16"], default=["float32"])
    arguments = parse(parser)
    if arguments.quick:
        arguments.steps = min(arguments.steps, 4 * NOT_COUNTED)
    text, tokenizer = corpus_and_tokenizer(arguments.corpus, arguments.tokenizer)
    sequences = [ids for ids in encode_sentences(tokenizer, text) if len(ids) <= EncoderSize().max_length]
    # In age order, the first sentences would be those to the youngest.
    order = np.random.default_rng(0).permutation(len(sequences))
    sequences = [sequences[i] for i in order]

    if arguments.one:
        kind, batch_size, precision, seed = arguments.one.split("@")
        settings = Optimisation(
            batch_size=int(batch_size), steps=arguments.steps, log_every=NOT_COUNTED, precision=precision
        )
        return print(json.dumps(asdict(run(kind, sequences, tokenizer, settings, int(seed)))))
    rows = []
    for batch_size in arguments.batch_size:
        kinds = [(kind, p) for p in arguments.precision for kind in (BASELINE, *arguments.variants)]
        kinds += [(BOUND, p) for p in arguments.precision if arguments.bound]
        found: dict[tuple[str, str], list[Run]] = {kind: [] for kind in kinds}
        for seed in range(arguments.repetitions):
            for kind, precision in kinds:
                one = Run(**json.loads(again(f"{kind}@{batch_size}@{precision}@{seed}")))
                found[kind, precision].append(one)
                tell(
                    f"{seed + 1}/{arguments.repetitions}: batch {batch_size}, {kind}, {precision}: "
                    f"{one.rate:,.0f} tokens/s, {one.faults:,.0f} page faults a step, loss {one.loss:.4f}"
                )
        rates = {kind: median(one.rate for one in runs) for kind, runs in found.items()}
        losses = {kind: [one.loss for one in runs] for kind, runs in found.items()}
        # Of the baseline in float32, if that is run, also where ours is in bfloat16.
        reference = (BASELINE, arguments.precision[0])
        for kind, precision in kinds:
            differences = [a - b for a, b in zip(losses[kind, precision], losses[reference], strict=True)]
            rows.append(
                {
                    "batch": batch_size,
                    "training": kind,
                    "precision": precision,
                    "tokens/s": rates[kind, precision],
                    "/Trainer": rates[kind, precision] / rates[reference],
                    "step, /first variant": rates[arguments.variants[0], precision] / rates[kind, precision],
                    "faults/step": round(median(one.faults for one in found[kind, precision])),
                    "loss": round(mean(losses[kind, precision]), 4),
                    "- Trainer's": f"{mean(differences):+.4f}",
                    "s.d.": f"{stdev(differences):.4f}" if len(differences) > 1 else "",
                    "peak MB": round(max(one.peak for one in found[kind, precision])),
                }
            )
    show(rows, arguments.json)


if __name__ == "__main__":
    main()
