"""Training an encoder: real (non-padding) tokens per second, against transformers' own Trainer.

The baseline is Trainer with RobertaForMaskedLM (eager attention) and DataCollatorForLanguageModeling (dynamic
padding): the same sentences, model, batch size and optimiser settings. The first steps of a run are not
counted. The loss is the mean over a run.

    python benchmarks/training.py [--corpus DIR --tokenizer DIR] [--batch-size 16 128] [--steps 60] [--json FILE]
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from common import corpus_and_tokenizer, options, peak_of, print_peak, show
from transformers import (
    DataCollatorForLanguageModeling,
    PrinterCallback,
    ProgressCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from babyssa.console import quiet_transformers
from babyssa.data import encode_sentences
from babyssa.encoder import (
    EncoderSize,
    LengthBatches,
    MaskedSentences,
    Masking,
    Sentences,
    Vocabulary,
    build_encoder,
)
from babyssa.encoder.model import masked_lm_loss
from babyssa.training.config import Optimisation
from babyssa.training.trainer import BatchTrainer, training_arguments

NOT_COUNTED = 5
KINDS = ("Trainer", "softmax", "ssa-1.5", "ssa")


class Clock(TrainerCallback):
    """Seconds and tokens of a run after its first steps."""

    def __init__(self, tokens: Callable[[], int]):
        self.tokens = tokens

    def on_step_end(self, args, state, control, **kwargs):
        now = time.perf_counter(), self.tokens()
        if state.global_step == NOT_COUNTED:
            self.start = now
        self.end = now

    @property
    def rate(self) -> float:
        """Tokens per second."""
        return (self.end[1] - self.start[1]) / (self.end[0] - self.start[0])


def baseline(sequences: list[list[int]], tokenizer, arguments: TrainingArguments) -> tuple[Trainer, Clock]:
    collate = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
    seen = 0

    def counting(rows):
        nonlocal seen
        batch = collate(rows)
        seen += int(batch["attention_mask"].sum())
        return batch

    model = build_encoder(EncoderSize(), tokenizer)
    model.set_attn_implementation("eager")
    rows = [{"input_ids": ids} for ids in sequences]
    return Trainer(model, arguments, train_dataset=rows, data_collator=counting), Clock(lambda: seen)


def ours(variant: str, sequences: list[list[int]], tokenizer, arguments) -> tuple[Trainer, Clock]:
    model = build_encoder(EncoderSize(), tokenizer, variant=variant)
    sentences, masking = Sentences.of(sequences), Masking()
    data = MaskedSentences(sentences, Vocabulary.of(tokenizer), masking, tokenizer.pad_token_id, seed=0)
    batch_size = arguments.per_device_train_batch_size
    batches = LengthBatches(sentences.lengths, batch_size, masking.patterns, "shuffled", seed=0)
    trainer = BatchTrainer(model, arguments, data, batches, masked_lm_loss, lambda batch: batch["labels"].numel())
    return trainer, Clock(lambda: trainer.tokens)


def run(kind: str, sequences: list[list[int]], tokenizer, batch_size: int, steps: int) -> tuple[float, float]:
    """Train a new model; real tokens per second, and the mean loss."""
    settings = Optimisation(batch_size=batch_size, steps=steps, log_every=steps)
    with tempfile.TemporaryDirectory() as folder, quiet_transformers():
        arguments = training_arguments(settings, Path(folder), seed=0, batches_per_epoch=steps)
        make = baseline if kind == "Trainer" else partial(ours, kind)
        trainer, clock = make(sequences, tokenizer, arguments)
        for printing in (PrinterCallback, ProgressCallback):
            trainer.remove_callback(printing)
        trainer.add_callback(clock)
        trainer.train()
    return clock.rate, trainer.state.log_history[0]["loss"]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--corpus", type=Path, help="a prepared corpus; the packaged sample if not given")
    parser.add_argument("--tokenizer", type=Path, help="one is trained on the corpus if not given")
    parser.add_argument("--batch-size", type=int, nargs="+", default=[16, 128])
    parser.add_argument("--steps", type=int, default=60)
    arguments = parser.parse_args()
    text, tokenizer = corpus_and_tokenizer(arguments.corpus, arguments.tokenizer)
    sequences = [ids for ids in encode_sentences(tokenizer, text) if len(ids) <= EncoderSize().max_length]
    if arguments.peak:
        kind, batch_size = arguments.peak.split("@")
        run(kind, sequences, tokenizer, int(batch_size), arguments.steps)
        return print_peak()
    rows = []
    for batch_size in arguments.batch_size:
        found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
        for _ in range(arguments.repetitions):
            for kind in KINDS:
                found[kind].append(run(kind, sequences, tokenizer, batch_size, arguments.steps))
        rates = {kind: median(rate for rate, _ in runs) for kind, runs in found.items()}
        rows += [
            {
                "batch": batch_size,
                "training": kind,
                "tokens/s": rates[kind],
                "/Trainer": rates[kind] / rates["Trainer"],
                "step, /softmax": rates["softmax"] / rates[kind],
                "loss": found[kind][0][1],
                "peak MB": round(peak_of(f"{kind}@{batch_size}")),
            }
            for kind in KINDS
        ]
    show(rows, arguments.json)


if __name__ == "__main__":
    main()
