"""torch.compile, torch.export, torch.func, and the corners of autograd."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
import torch
from torch.func import functional_call, grad, hessian, jacrev, vmap

import noiseproof
from noiseproof import functional
from noiseproof.losses import _prediction

from .subjects import MAPPED, NAMES, SUBJECTS, WRAPPED

RANDOM = torch.Generator().manual_seed(0)
LOGITS = torch.randn(6, 5, dtype=torch.float64, generator=RANDOM)
TARGET = torch.randint(5, (6,), generator=RANDOM)


def value_and_gradient(function, logits, *rest):
    logits = logits.clone().requires_grad_()
    value = function(logits, *rest)
    (gradient,) = torch.autograd.grad(value.sum(), logits)
    return value.detach(), gradient


def agree(ours, theirs, **tolerance):
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, **tolerance)


_OFTEN = [*NAMES, *WRAPPED[:3], *MAPPED[:3], "10*nce + 0.1*rce"]  # compiling takes a second each
_SELDOM = [pytest.param(t, marks=pytest.mark.long) for t in (*WRAPPED[3:], *MAPPED[3:])]


@pytest.mark.parametrize("text", [*_OFTEN, *_SELDOM])
def test_compiles_to_one_graph(text, device):
    torch._dynamo.reset()
    loss = noiseproof.parse(text, weight=torch.rand(5), label_smoothing=0.1).to(device)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    ignored = TARGET.clone()
    ignored[0] = -100
    for target in (ignored, LOGITS.softmax(1)):
        given = LOGITS.to(device), target.to(device)
        agree(value_and_gradient(compiled, *given), value_and_gradient(loss, *given))


def test_functions_compile_to_one_graph():
    torch._dynamo.reset()

    def step(z, y, weight):
        return functional.normalized_focal_loss(z, y, gamma=2.0, weight=weight)

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    weight = torch.rand(5)
    agree(
        value_and_gradient(compiled, LOGITS, TARGET, weight),
        value_and_gradient(step, LOGITS, TARGET, weight),
    )


def test_compiles_with_shapes_that_change():
    torch._dynamo.reset()
    loss = noiseproof.parse("nce + rce")
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager", dynamic=True)
    for rows, classes in ((6, 5), (9, 5), (4, 7), (3, 2)):
        logits, target = torch.randn(rows, classes), torch.randint(classes, (rows,))
        agree(
            value_and_gradient(compiled, logits, target), value_and_gradient(loss, logits, target)
        )


# Inductor says when it gives up fusing a softmax over few classes; that is no news here.
@pytest.mark.filterwarnings("ignore:(?s).*Online softmax:UserWarning")
@pytest.mark.filterwarnings("ignore:Skipping serialization:UserWarning")  # torch 2.6
@pytest.mark.slow
def test_inductor(device, monkeypatch):
    if device.type == "cpu" and shutil.which(os.environ.get("CXX", "g++")) is None:
        pytest.skip("Inductor needs a C++ compiler")
    # What was compiled for other instructions is of no use, and Inductor would not notice.
    built_for = f"{os.getuid()}-{torch.__version__}-{torch.backends.cpu.get_cpu_capability()}"
    folder = Path(tempfile.gettempdir()) / f"noiseproof-inductor-{built_for}"
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder))
    torch._dynamo.reset()
    monkeypatch.setattr(_prediction, "MIN_SIZE_CUSTOM_BACKWARD", 0)  # not when compiled
    loss = noiseproof.parse("nce + rce")
    compiled = torch.compile(loss, fullgraph=True)
    logits, target = LOGITS.float().to(device), TARGET.to(device)
    agree(value_and_gradient(compiled, logits, target), value_and_gradient(loss, logits, target))


def test_exports():
    loss = noiseproof.parse("nce + rce")
    program = torch.export.export(loss, (LOGITS, TARGET))
    torch.testing.assert_close(program.module()(LOGITS, TARGET), loss(LOGITS, TARGET))


@pytest.mark.parametrize("text", [*SUBJECTS, *MAPPED])
def test_vmap_over_samples_and_over_models(text, backward):
    loss = noiseproof.parse(text)
    each = noiseproof.parse(text, reduction="none")
    torch.testing.assert_close(vmap(loss)(LOGITS, TARGET), each(LOGITS, TARGET))
    ensemble = torch.randn(3, 6, 5, dtype=torch.float64)
    expected = torch.stack([loss(member, TARGET) for member in ensemble])
    torch.testing.assert_close(vmap(loss, in_dims=(0, None))(ensemble, TARGET), expected)


@pytest.mark.parametrize("text", [*SUBJECTS, *MAPPED])
def test_gradients_by_sample(text, backward):
    """torch.func.grad under vmap, the way per-sample gradients are had."""
    loss = noiseproof.parse(text)
    _, expected = value_and_gradient(noiseproof.parse(text, reduction="none"), LOGITS, TARGET)
    torch.testing.assert_close(grad(loss)(LOGITS, TARGET) * 6, expected)
    torch.testing.assert_close(vmap(grad(loss))(LOGITS, TARGET), expected)


@pytest.mark.parametrize("text", ["ce", "nce + rce", "nfl + mae", "brier"])
def test_second_derivatives_every_way(text, backward):
    loss = noiseproof.parse(text)
    logits, target = LOGITS[0], TARGET[0]
    reverse = torch.autograd.functional.hessian(lambda z: loss(z, target), logits)
    torch.testing.assert_close(hessian(loss)(logits, target), reverse)  # forward over reverse
    torch.testing.assert_close(jacrev(jacrev(loss))(logits, target), reverse)


@pytest.mark.parametrize("text", ["ce", "nce + rce", "nfl + mae", "brier"])
def test_a_batch_of_gradients_at_once(text, backward):
    loss = noiseproof.parse(text, reduction="none")
    logits = LOGITS.clone().requires_grad_()
    value = loss(logits, TARGET)
    (rows,) = torch.autograd.grad(
        value, logits, torch.eye(6, dtype=torch.float64), is_grads_batched=True, retain_graph=True
    )
    for i in range(6):
        (one,) = torch.autograd.grad(value[i], logits, retain_graph=True)
        torch.testing.assert_close(rows[i], one)


def test_custom_backward_is_used_and_shares_nothing(backward):
    """Twice through the same graph, and the incoming gradients untouched."""
    loss = noiseproof.parse("nce + rce", reduction="none")
    logits = LOGITS.clone().requires_grad_()
    value = loss(logits, TARGET)
    upstream = torch.rand(6, dtype=torch.float64)
    kept = upstream.clone()
    first = torch.autograd.grad(value, logits, upstream, retain_graph=True)[0].clone()
    second = torch.autograd.grad(value, logits, upstream)[0]
    torch.testing.assert_close(first, second, rtol=0, atol=0)
    torch.testing.assert_close(upstream, kept, rtol=0, atol=0)
    names, queue = set(), [value.grad_fn]
    while queue:
        node = queue.pop()
        names.add(type(node).__name__)
        queue += [parent for parent, _ in node.next_functions if parent is not None]
    assert ("LabelAndSumBackward" in names) == (backward == "custom")


def test_large_batches_use_the_custom_backward():
    logits, target = torch.randn(1024, 128), torch.randint(128, (1024,))
    loss = noiseproof.parse("nce + 0.1*rce + nfl", label_smoothing=0.1)
    double = value_and_gradient(loss, logits.double(), target)
    agree(value_and_gradient(loss, logits, target), [t.float() for t in double])


def test_works_with_functional_call():
    loss = noiseproof.parse("nce", weight=torch.ones(5, dtype=torch.float64))
    weight = torch.rand(5, dtype=torch.float64)
    value = functional_call(loss, {"weight": weight}, (LOGITS, TARGET))
    torch.testing.assert_close(value, noiseproof.parse("nce", weight=weight)(LOGITS, TARGET))


def test_trains_where_cross_entropy_stood():
    model = torch.nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    inputs = torch.randn(64, 4)
    labels = inputs[:, :3].argmax(1)
    criterion = noiseproof.parse("nce + rce")
    before = criterion(model(inputs), labels).item()
    for _ in range(20):
        optimizer.zero_grad()
        criterion(model(inputs), labels).backward()
        optimizer.step()
    assert criterion(model(inputs), labels).item() < 0.7 * before
