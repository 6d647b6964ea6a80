"""A loss in the Trainer: what it computes of a model's outputs, and steps of the real Trainer."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import noiseproof
from noiseproof.integrations.transformers import compute_loss

from .alone import run


class CausalLMOutputWithPast(dict):
    """The type of the outputs, of which only the name is looked at."""


class TokenClassifierOutput(dict):
    pass


@pytest.mark.slow
def test_a_step_is_the_same_however_it_is_cut_into_batches(tmp_path):
    results = json.loads(run(Path(__file__).parent / "steps.py", tmp_path).splitlines()[-1])
    assert len(results) == 10
    for kind, result in results.items():
        assert result["accumulated"] < 1e-12, kind
        assert result.get("weighted", 0) < 1e-12, kind
        assert result.get("cross entropy", 0) < 1e-6, kind  # transformers' own is of float32


@pytest.mark.long
def test_a_step_is_the_same_on_two_ranks(tmp_path):
    pytest.importorskip("transformers")
    script = Path(__file__).parent / "ranks.py"
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    for ranks in ("1", "2"):
        done = subprocess.run(
            [*launch, ranks, script], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    one, two = (torch.load(tmp_path / f"{ranks}.pt", weights_only=True) for ranks in (1, 2))
    torch.testing.assert_close(two, one, rtol=0, atol=1e-12)


def test_a_causal_language_model_is_shifted_and_classes_of_tokens_are_not():
    logits, labels = torch.randn(2, 5, 7), torch.randint(7, (2, 5))
    labels[0, :3] = -100
    loss, mean = compute_loss("nce + rce"), noiseproof.parse("nce + rce")
    shifted = loss(CausalLMOutputWithPast(logits=logits), labels)
    kept = labels[:, 1:].ne(-100)
    torch.testing.assert_close(shifted, mean(logits[:, :-1][kept], labels[:, 1:][kept]))
    plain = loss(TokenClassifierOutput(logits=logits), labels)
    torch.testing.assert_close(plain, mean(logits.flatten(0, 1), labels.flatten()))
    told = compute_loss("nce + rce", shift=True)((logits,), labels)
    torch.testing.assert_close(told, shifted)


def test_the_number_of_labels_divides_the_sum():
    logits, labels = torch.randn(4, 3), torch.tensor([0, 2, -100, 1])
    total = noiseproof.parse("gce", reduction="sum")(logits, labels)
    loss = compute_loss(noiseproof.parse("gce"))
    for outputs in ({"logits": logits}, (logits,), (torch.tensor(0.3), logits), logits):
        torch.testing.assert_close(loss(outputs, labels, num_items_in_batch=6), total / 6)
    torch.testing.assert_close(loss((logits,), labels), total / 3)
    # what the Trainer gives under DataParallel: two devices, and it multiplies the loss by two
    repeated = torch.tensor(6).unsqueeze(0).expand(2, -1)
    torch.testing.assert_close(loss((logits,), labels, repeated) * 2, total / 6)


def test_a_step_without_labels_is_zero():
    logits = torch.randn(2, 3, requires_grad=True)
    value = compute_loss("nce + rce")((logits,), torch.tensor([-100, -100]), torch.tensor(0))
    value.backward()
    assert value == 0
    assert torch.equal(logits.grad, torch.zeros(2, 3))


def test_keywords_of_the_loss_hold():
    logits, labels = torch.randn(6, 3), torch.tensor([0, 1, 2, 9, 1, 0])
    given = noiseproof.parse(
        "nce + rce", weight=[1.0, 2.0, 3.0], ignore_index=9, label_smoothing=0.1
    )
    summed = noiseproof.losses.Loss.of(given.expression, **given.keywords | {"reduction": "sum"})
    value = compute_loss(given)((logits,), labels, num_items_in_batch=5)
    torch.testing.assert_close(value, summed(logits, labels) / 5)
    assert given.reduction == "mean"  # the user's own is left as it was


def test_class_probabilities_count_once_a_sample():
    logits, q = torch.randn(4, 3), torch.rand(4, 3).softmax(1)
    expected = noiseproof.parse("nce + rce")(logits, q)
    loss = compute_loss("nce + rce")
    torch.testing.assert_close(loss((logits,), q), expected)
    torch.testing.assert_close(loss((logits,), q, num_items_in_batch=torch.tensor(12)), expected)


def test_a_module_is_there_by_its_name():
    assert noiseproof.integrations.transformers.compute_loss is compute_loss
    assert "transformers" in dir(noiseproof.integrations)
    with pytest.raises(AttributeError, match="no attribute 'tensorflow'"):
        noiseproof.integrations.tensorflow  # noqa: B018


def test_it_can_be_pickled():
    outputs, labels = (torch.randn(4, 3),), torch.tensor([0, 2, 1, 1])
    loss = compute_loss("nce + rce")
    assert pickle.loads(pickle.dumps(loss))(outputs, labels) == loss(outputs, labels)


@pytest.mark.parametrize(
    ("outputs", "labels", "message"),
    [
        ((torch.randn(2, 5, 7),), torch.zeros(2, 5).long(), "type tuple do not tell .* shift=True"),
        ({"logits": torch.randn(2, 5, 7)}, torch.zeros(2, 5).long(), "type dict do not tell"),
        ({"logits": torch.randn(2, 5)}, None, "no labels; name their column 'labels'"),
        ({"loss": torch.tensor(1.0)}, torch.tensor([0]), "must have 'logits'.*the keys loss"),
        ({"logits": torch.randn(2, 5)}, torch.zeros(2, 3), r"\[2, 5\] the labels are \[2\]"),
        (
            CausalLMOutputWithPast(logits=torch.randn(2, 5, 7)),
            torch.rand(2, 5, 7).softmax(-1),
            "class indices, not probabilities",
        ),
    ],
)
def test_what_cannot_be_computed_says_what_to_do(outputs, labels, message):
    with pytest.raises(noiseproof.UsageError, match=message):
        compute_loss("nce + rce")(outputs, labels)


def test_what_is_no_loss_is_refused():
    with pytest.raises(noiseproof.UsageError, match=r"a text or a noiseproof\.Loss"):
        compute_loss(torch.nn.CrossEntropyLoss())
    with pytest.raises(noiseproof.UsageError, match="leave it at 'mean'"):
        compute_loss(noiseproof.parse("ce", reduction="sum"))
