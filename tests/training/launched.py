"""What ``torchrun`` starts in test_processes.py: trains everything in a file of settings, one after the other.

One launch for all, since what takes its time is to import torch.
"""

import json
import os
import pickle
import signal
import sys
from pathlib import Path

from babyssa import cli, processes
from babyssa.decoder import DecoderTraining, train_decoder
from babyssa.encoder import EncoderTraining, MaskedSentences, train_encoder
from babyssa.errors import BabySSAError
from babyssa.synthetic import SyntheticTraining, train_synthetic

TRAIN = {EncoderTraining: train_encoder, DecoderTraining: train_decoder, SyntheticTraining: train_synthetic}


def ask_the_last_process_to_stop(at_batch: int) -> None:
    """Send SIGTERM to one process alone as it fetches a batch, once."""
    fetch = MaskedSentences.__getitems__
    fetched = []

    def fetch_and_signal(self, items):
        fetched.append(items)
        if len(fetched) == at_batch and not processes.is_main():
            os.kill(os.getpid(), signal.SIGTERM)
        return fetch(self, items)

    MaskedSentences.__getitems__ = fetch_and_signal


def main(folder: Path) -> None:
    came_to = {}
    for name, settings in pickle.loads((folder / "settings.pickle").read_bytes()).items():
        if name == "stopped":
            ask_the_last_process_to_stop(at_batch=20)
        try:
            came_to[name] = TRAIN[type(settings)](settings).tokens
        except BabySSAError as error:
            came_to[name] = str(error)
            if name == "stopped":
                train_encoder(settings)
    # What is there now is a finished run.
    came_to["refused"] = cli.main(["train", "encoder", "--config", str(folder / "odd" / "config.yaml")])
    (folder / f"process-{processes.rank()}.json").write_text(json.dumps(came_to))


main(Path(sys.argv[1]))
