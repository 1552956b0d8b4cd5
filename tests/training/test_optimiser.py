"""Steps are those of torch's clipping and AdamW, at the learning rates of transformers' schedules."""

import json

import pytest
import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import PreTrainedConfig, PreTrainedModel

from babyssa.errors import ConfigError
from babyssa.training.config import Optimisation
from babyssa.training.loop import Loop, Objective
from babyssa.training.optimiser import build_optimizer, build_schedule
from babyssa.training.stopping import StopRequest


class Regression(PreTrainedModel):
    """Two layers."""

    config_class = PreTrainedConfig
    main_input_name = "x"

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 1))
        self.post_init()


class Numbers(Dataset):
    """Batch i is a function of i."""

    def __getitems__(self, numbers):
        generator = torch.Generator().manual_seed(numbers[0])
        return {"x": torch.randn(8, 4, generator=generator), "y": 30 * torch.randn(8, generator=generator)}


def squared_error(model, batch):
    return (model.layers(batch["x"]).squeeze(1) - batch["y"]).square().mean()


@pytest.mark.parametrize("limit, accumulation", [(1.0, 1), (1e6, 1), (0.0, 1), (2.0, 2)])
def test_steps_are_those_of_torchs_clipping_and_adamw(limit, accumulation, tmp_path):
    steps = 7
    optimisation = Optimisation(
        learning_rate=0.05, warmup_fraction=0, max_grad_norm=limit, steps=steps, log_every=1,
        gradient_accumulation=accumulation,
    )  # fmt: skip
    torch.manual_seed(0)
    model = Regression(PreTrainedConfig())
    expected = Regression(PreTrainedConfig())
    expected.load_state_dict(model.state_dict())
    numbers = [[i] for i in range(steps * accumulation)]
    objective = Objective(Numbers(), numbers, squared_error, lambda batch: len(batch["y"]), lambda model: {})
    Loop(model, objective, optimisation, tmp_path).run(StopRequest())

    optimizer = torch.optim.AdamW(expected.parameters(), lr=0.05, weight_decay=0.0)
    norms = []
    for step in range(steps):
        for part in numbers[step * accumulation : (step + 1) * accumulation]:
            (squared_error(expected, Numbers().__getitems__(part)) / accumulation).backward()
        norms.append(nn.utils.clip_grad_norm_(expected.parameters(), limit or torch.inf).item())
        optimizer.param_groups[0]["lr"] = 0.05 * (1 - step / steps)
        optimizer.step()
        optimizer.zero_grad()
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["grad_norm"] for line in log] == pytest.approx(norms, rel=1e-4)
    assert (limit == 1e6) == (max(norms) < (limit or 0))
    for name, value in expected.state_dict().items():
        assert torch.allclose(model.state_dict()[name], value, atol=1e-5), name


@pytest.mark.parametrize(
    "schedule, rates",
    [
        ("linear", [0, 0.5, 1, 0.75, 0.5, 0.25]),
        ("constant", [0, 0.5, 1, 1, 1, 1]),
        ("cosine", [0, 0.5, 1, 0.8535534, 0.5, 0.1464466]),
    ],
)
def test_a_schedule_warms_up_and_then_does_what_its_name_says(schedule, rates):
    optimisation = Optimisation(schedule=schedule, learning_rate=2.0, warmup_steps=2)
    optimizer = build_optimizer(Regression(PreTrainedConfig()), optimisation)
    learning_rate = build_schedule(optimizer, optimisation, steps=6)
    found = []
    for _ in rates:
        found += learning_rate.get_last_lr()[:1]
        optimizer.step()
        learning_rate.step()
    assert found == pytest.approx([2 * rate for rate in rates])
    assert learning_rate.get_last_lr() == pytest.approx([2.0 if schedule == "constant" else 0.0] * 2)


def test_a_warm_up_as_long_as_the_run_is_warned_of(capsys):
    optimisation = Optimisation(warmup_steps=6)
    build_schedule(build_optimizer(Regression(PreTrainedConfig()), optimisation), optimisation, steps=6)
    assert "6 warm-up steps of 6 in all: the learning rate never reaches its peak" in capsys.readouterr().err


def test_only_weight_matrices_decay():
    optimizer = build_optimizer(Regression(PreTrainedConfig()), Optimisation(weight_decay=0.1))
    decay = {(len(p.shape), group["weight_decay"]) for group in optimizer.param_groups for p in group["params"]}
    assert decay == {(2, 0.1), (1, 0.0)}


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch_size": 0},
        {"gradient_accumulation": 0},
        {"epochs": 0.0},
        {"steps": 0},
        {"learning_rate": float("nan")},
        {"warmup_fraction": 1.5},
        {"warmup_steps": -1},
        {"schedule": "linaer"},
        {"weight_decay": -1.0},
        {"beta1": 1.5},
        {"beta2": -0.1},
        {"max_grad_norm": -1.0},
        {"log_every": 0},
        {"checkpoint_every": -1},
        {"precision": "float16"},
        {"resume_every": 0},
    ],
)
def test_a_setting_out_of_its_domain_is_refused_with_its_name(wrong):
    ((key, value),) = wrong.items()
    name = key.replace("_", "-")
    with pytest.raises(ConfigError, match=rf"optimisation\.{name} is '?{value}'?(; it is|, expected) "):
        Optimisation(**wrong)
