"""A number that is not finite stops the run, with the step and the likely cause."""

import dataclasses
import shutil

import pytest

from babyssa.encoder import train_encoder
from babyssa.errors import BabySSAError


def changed(settings, **values):
    return dataclasses.replace(settings, optimisation=dataclasses.replace(settings.optimisation, **values))


def test_a_learning_rate_too_high_is_named_at_its_step_and_not_saved(settings):
    wild = changed(settings, learning_rate=1e30, max_grad_norm=0.0, warmup_steps=0, resume_every=1)
    with pytest.raises(BabySSAError, match=r"the loss is nan at step 2 .*learning rate too high") as caught:
        train_encoder(wild)
    assert caught.value.path == settings.out and "learning-rate" in caught.value.remedy
    assert not (settings.out / "model.safetensors").exists()
    assert [path.name for path in (settings.out / "resume").iterdir()] == ["step-1"]


@pytest.mark.parametrize("what, value", [("loss", float("inf")), ("gradient norm", float("nan"))])
def test_what_is_not_finite_is_named(what, value, settings, monkeypatch):
    from babyssa.encoder import training

    loss_of = training.masked_lm_loss
    calls = []

    def spoilt(model, batch):
        calls.append(batch)
        loss = loss_of(model, batch)
        if len(calls) == 6:
            # A gradient can overflow though the loss is finite.
            loss = loss * value if what == "loss" else loss + (model.lm_head.bias * 0).sqrt().sum()
        return loss

    monkeypatch.setattr(training, "masked_lm_loss", spoilt)
    with pytest.raises(BabySSAError, match=rf"the {what} is (inf|nan) at step 6"):
        train_encoder(settings)
    monkeypatch.undo()
    train_encoder(settings)
    shutil.rmtree(settings.out)


def test_a_measurement_that_is_not_finite_stops_the_run(settings, monkeypatch):
    monkeypatch.setattr("babyssa.encoder.training.np.exp", lambda nats: float("inf"))
    with pytest.raises(BabySSAError, match="the pseudo_perplexity is inf at step 7"):
        train_encoder(settings)
