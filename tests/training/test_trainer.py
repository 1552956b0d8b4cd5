"""BatchTrainer: the optimiser's steps are those of torch's clipping and AdamW; MemoryTrimmer."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import PreTrainedConfig, PreTrainedModel

from babyssa.training import trainer as training
from babyssa.training.config import Optimisation
from babyssa.training.trainer import BatchTrainer, MemoryTrimmer, training_arguments


class Regression(PreTrainedModel):
    """Two layers."""

    config_class = PreTrainedConfig
    main_input_name = "x"

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 1))
        self.post_init()


def squared_error(model, batch):
    return (model.layers(batch["x"]).squeeze(1) - batch["y"]).square().mean()


class Numbers(Dataset):
    """Batch i is a function of i."""

    def __getitems__(self, numbers):
        generator = torch.Generator().manual_seed(numbers[0])
        return {"x": torch.randn(8, 4, generator=generator), "y": 30 * torch.randn(8, generator=generator)}


@pytest.mark.parametrize("limit, accumulation", [(1.0, 1), (1e6, 1), (0.0, 1), (2.0, 2)])
def test_steps_are_those_of_torchs_clipping_and_adamw(limit, accumulation, tmp_path):
    steps = 7
    optimisation = Optimisation(
        learning_rate=0.05, warmup_fraction=0, max_grad_norm=limit, steps=steps, log_every=1,
        gradient_accumulation=accumulation, precision="float32",
    )  # fmt: skip
    torch.manual_seed(0)
    model = Regression(PreTrainedConfig())
    start = {name: value.clone() for name, value in model.state_dict().items()}
    numbers = [[i] for i in range(steps * accumulation)]
    arguments = training_arguments(optimisation, tmp_path, 0, len(numbers))
    trainer = BatchTrainer(model, arguments, Numbers(), numbers, squared_error, lambda batch: len(batch["y"]))
    trainer.train()

    expected = Regression(PreTrainedConfig())
    expected.load_state_dict(start)
    optimizer = torch.optim.AdamW(expected.parameters(), lr=0.05, weight_decay=0.0)
    norms = []
    for step in range(steps):
        for part in numbers[step * accumulation : (step + 1) * accumulation]:
            (squared_error(expected, Numbers().__getitems__(part)) / accumulation).backward()
        norms.append(nn.utils.clip_grad_norm_(expected.parameters(), limit or torch.inf).item())
        optimizer.param_groups[0]["lr"] = 0.05 * (1 - step / steps)
        optimizer.step()
        optimizer.zero_grad()
    logged = [line["grad_norm"] for line in trainer.state.log_history if "grad_norm" in line]
    assert logged == pytest.approx(norms, rel=1e-4) and (limit == 1e6) == (max(norms) < (limit or 0))
    for name, value in expected.state_dict().items():
        assert torch.allclose(model.state_dict()[name], value, atol=1e-5), name


def resident() -> float:
    """MB of memory that this process holds."""
    return int(re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) / 2**10


def test_the_holes_of_the_heap_are_given_back(monkeypatch):
    trimmer = MemoryTrimmer()
    if trimmer._trim is None or not Path("/proc/self/status").exists():
        pytest.skip("needs glibc and Linux")
    blocks = [torch.ones(16_000) for _ in range(4000)]
    kept = blocks[::50] + blocks[-1:]
    del blocks
    before = resident()
    trimmer.on_step_end(None, None, None)
    assert resident() > before - 20, "not a minute has passed"
    monkeypatch.setattr(training, "_SECONDS_BETWEEN_TRIMS", 0)
    trimmer.on_step_end(None, None, None)
    assert resident() < before - 150 and all(block.sum() == 16_000 for block in kept)
