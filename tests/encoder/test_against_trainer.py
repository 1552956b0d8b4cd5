"""Training is that of transformers' own Trainer on the same batches: what is left out changes no result."""

import json

import pytest
import torch
from torch.utils.data import IterableDataset
from transformers import PrinterCallback, RobertaForMaskedLM, Trainer, TrainingArguments

from babyssa.encoder import EncoderSize, LengthBatches, MaskedSentences, Masking, Vocabulary, build_encoder
from babyssa.encoder.model import masked_lm_loss
from babyssa.training.config import Optimisation
from babyssa.training.loop import Loop, Objective
from babyssa.training.stopping import StopRequest

SIZE = EncoderSize(layers=2, heads=4, hidden_size=32, feed_forward_size=48, max_length=40, dropout=0.0)
STEPS = 40


class Padded(IterableDataset):
    """The same batches as transformers' models take them: padded, with a label of -100 where none is predicted."""

    def __init__(self, data, batches):
        self.data = data
        self.batches = batches

    def __iter__(self):
        for items in self.batches:
            batch = self.data.__getitems__(items)
            labels = torch.full_like(batch["input_ids"], -100)
            labels.view(-1)[batch["positions"]] = batch["labels"]
            mask = batch.get("attention_mask", torch.ones_like(labels))
            yield {"input_ids": batch["input_ids"], "attention_mask": mask, "labels": labels}


def losses_of_trainer(model, batches, folder):
    arguments = TrainingArguments(
        folder,
        # One of its rows is a batch already.
        per_device_train_batch_size=1,
        max_steps=STEPS,
        learning_rate=3e-3,
        warmup_steps=STEPS // 10,
        weight_decay=0.01,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        remove_unused_columns=False,
        use_cpu=not torch.cuda.is_available(),
    )
    trainer = Trainer(model, arguments, train_dataset=batches, data_collator=lambda batch: batch[0])
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return [(line["loss"], line["grad_norm"]) for line in trainer.state.log_history if "loss" in line]


def test_losses_gradients_and_weights_are_those_of_trainer_with_the_whole_model(
    tokenizer, some_sentences, tmp_path
):
    data = MaskedSentences(some_sentences([3, 9, 5, 17] * 30), Vocabulary.of(tokenizer), Masking(), 1, seed=0)
    batches = LengthBatches(data.sentences.lengths, 7, 10, "shuffled", seed=0)
    optimisation = Optimisation(batch_size=7, steps=STEPS, log_every=1, learning_rate=3e-3, weight_decay=0.01)
    ours = build_encoder(SIZE, tokenizer)
    stock = RobertaForMaskedLM(ours.config)
    stock.load_state_dict(ours.state_dict())
    stock.set_attn_implementation("eager")
    expected = losses_of_trainer(stock, Padded(data, batches), tmp_path)
    count = lambda batch: batch["labels"].numel()  # noqa: E731
    Loop(ours, Objective(data, batches, masked_lm_loss, count, lambda model: {}), optimisation, tmp_path).run(
        StopRequest()
    )
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    found = [(line["loss"], line["grad_norm"]) for line in log]
    assert len(found) == STEPS and found[-1][0] < found[0][0] - 0.3
    for step in range(STEPS):
        assert found[step] == pytest.approx(expected[step], rel=1e-4), step
    for name, value in stock.state_dict().items():
        assert torch.allclose(ours.state_dict()[name], value, atol=1e-4), name
