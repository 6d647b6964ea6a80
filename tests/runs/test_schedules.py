"""The learning rate of every step against torch's schedulers."""

from __future__ import annotations

import pytest
import torch
from torch.optim import lr_scheduler

from noiseproof import UsageError
from noiseproof.runs import Run

EPOCHS, STEPS = 5, 7


def rates(run: Run) -> list[float]:
    resolved = run.resolve()
    return [
        resolved.lr_at(epoch, step, steps=STEPS) for epoch in range(EPOCHS) for step in range(STEPS)
    ]


def torch_s(scheduler, lr: float = 0.05) -> list[float]:
    """What a scheduler that is stepped after every step gives."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    schedule, found = scheduler(optimizer), []
    for _ in range(EPOCHS * STEPS):
        found.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return found


@pytest.mark.parametrize("floor", [0.0, 1e-3])
def test_the_cosine_by_step_is_torch_s(floor):
    run = Run(epochs=EPOCHS, lr=0.05, lr_floor=floor, schedule_by="step")
    expected = torch_s(lambda o: lr_scheduler.CosineAnnealingLR(o, EPOCHS * STEPS, eta_min=floor))
    assert rates(run) == pytest.approx(expected, rel=1e-6)


def test_the_exponential_by_step_is_torch_s():
    run = Run(epochs=EPOCHS, lr=0.05, schedule="exponential", schedule_by="step")
    expected = torch_s(lambda o: lr_scheduler.ExponentialLR(o, 0.97 ** (1 / STEPS)))
    assert rates(run) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("warmup", [1, 2.0, 1.5, 1 / 7, 0.3])
def test_warm_up_and_cosine_are_torch_s(warmup):
    run = Run(epochs=EPOCHS, lr=0.05, lr_floor=1e-3, schedule_by="step", warmup=warmup)
    steps = round(warmup * STEPS)

    linear = torch_s(lambda o: lr_scheduler.LinearLR(o, 1 / steps, total_iters=max(1, steps - 1)))
    rest = EPOCHS * STEPS - steps
    cosine = torch_s(lambda o: lr_scheduler.CosineAnnealingLR(o, rest, eta_min=1e-3))
    expected = linear[:steps] + cosine[:rest]
    found = rates(run)
    assert found == pytest.approx(expected, rel=1e-6)
    assert found[0] == pytest.approx(0.05 / steps)
    assert found[steps - 1] == found[steps] == 0.05


def test_warm_up_and_a_schedule_by_epoch():
    run = Run(epochs=EPOCHS, lr=0.05, warmup=1.5)
    found = rates(run)
    steps = round(1.5 * STEPS)
    assert found[:steps] == pytest.approx([0.05 * (i + 1) / steps for i in range(steps)])
    assert found[steps : 2 * STEPS] == [0.05] * (2 * STEPS - steps)  # to the end of the epoch
    for epoch in range(2, EPOCHS):
        (rate,) = set(found[epoch * STEPS : (epoch + 1) * STEPS])
        assert rate < found[(epoch - 1) * STEPS + STEPS - 1]


def test_by_epoch_without_warm_up_steps_do_not_matter():
    resolved = Run(epochs=EPOCHS, lr=0.05).resolve()
    assert not resolved.lr_varies
    for epoch in range(EPOCHS):
        assert {resolved.lr_at(epoch, step, steps=STEPS) for step in range(STEPS)} == {
            resolved.lr_at(epoch)
        }


def test_a_warm_up_as_long_as_the_run_is_refused():
    with pytest.raises(UsageError, match="warmup=5 epochs leaves none of epochs=5"):
        Run(epochs=5, warmup=5).resolve()
    assert Run(epochs=5, warmup=4.5).resolve().warmup == 4.5


def test_what_changes_nothing_is_no_part_of_the_run():
    constant = {"schedule": "constant"}
    assert Run(**constant, schedule_by="step").resolve() == Run(**constant).resolve()
    assert Run(weight_decay=0, decay_on="matrices").resolve() == Run(weight_decay=0).resolve()
    assert Run(decay_on="matrices").resolve().decay_on == "matrices"
