"""Checkpoints: what is written is what is read, and any other file is refused with the reason."""

from __future__ import annotations

import dataclasses
import os
import pickle
import re
from pathlib import Path

import pytest
import torch

from noiseproof.train import Run
from noiseproof.train._checkpoint import FORMAT, Checkpoint, read

RUN = Run(loss="nce")
HISTORY = [{"epoch": 1, "train_loss": 0.1 + 0.2, "memorised": 1 / 3}]
REMEDY = "; delete it to start anew: "


@pytest.fixture
def path(tmp_path: Path) -> Path:
    where = tmp_path / "run" / "checkpoint.pt"
    tensors = {"weights": torch.randn(1000), "buffer.count": torch.tensor(7)}
    Checkpoint(RUN.resolve().settings(), "labels", 1, HISTORY, tensors).write(where)
    return where


def opened(path: Path, run: Run = RUN, fingerprint: str = "labels") -> Checkpoint | None:
    return read(path, run.resolve(), fingerprint)


def refused(path: Path, reason: str) -> None:
    with pytest.raises(
        ValueError, match=f"^the checkpoint {reason}{re.escape(REMEDY + str(path))}"
    ):
        opened(path)


def test_what_is_written_is_read(path):
    found = opened(path)
    torch.manual_seed(0)
    assert found.epoch == 1
    assert found.history == HISTORY  # to the bit
    assert torch.equal(found.tensors["weights"], torch.randn(1000))
    assert found.tensors["buffer.count"].item() == 7
    assert found.tensors["buffer.count"].dtype == torch.int64
    assert os.listdir(path.parent) == ["checkpoint.pt"]


def test_none_is_none(tmp_path):
    assert opened(tmp_path / "checkpoint.pt") is None


def test_other_settings_are_named(path):
    with pytest.raises(ValueError, match="other settings") as error:
        opened(path, Run(loss="ce", lr=0.5))
    message = str(error.value)
    assert "loss is 'nce' there and 'ce' here; lr is 0.01 there and 0.5 here" in message
    assert "seed" not in message
    assert message.endswith(REMEDY + str(path))
    assert opened(path, Run(loss="nce", device="cuda")) is not None


def test_another_kind_of_device_is_named(path):
    kept = opened(path)
    dataclasses.replace(kept, device="cuda").write(path)
    assert read(path, RUN.resolve(), kept.fingerprint, "cuda") is not None
    with pytest.raises(ValueError, match=r"of a run on cuda, .* on cpu: give --device cuda to go"):
        read(path, RUN.resolve(), kept.fingerprint, "cpu")


def test_other_labels_are_refused(path):
    with pytest.raises(ValueError, match="began from other labels, data, loss or network, or"):
        opened(path, fingerprint="others")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_file_that_was_cut_is_refused(path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    refused(path, "is damaged")


def test_a_flipped_bit_anywhere_in_the_tensors_is_found(path):
    content = path.read_bytes()
    values = opened(path).tensors["weights"].numpy().tobytes()
    start = content.index(values)
    for place in (0, 1, 1234, len(values) - 1):
        broken = bytearray(content)
        broken[start + place] ^= 0x10
        path.write_bytes(broken)
        refused(path, "is damaged")


def test_a_flipped_bit_anywhere_is_refused_or_without_effect(path):
    content, whole, reasons = path.read_bytes(), opened(path), []
    for place in range(0, len(content), 41):
        broken = bytearray(content)
        broken[place] ^= 0x04
        path.write_bytes(broken)
        try:
            found = opened(path)
        except ValueError as error:
            reasons.append(str(error))
        else:
            assert found.history == whole.history
            assert torch.equal(found.tensors["weights"], whole.tensors["weights"])
    assert len(reasons) > 50
    assert all(reason.endswith(REMEDY + str(path)) for reason in reasons)


class Code:
    """Runs when it is unpickled."""

    def __init__(self, sentinel: Path) -> None:
        self.sentinel = sentinel

    def __reduce__(self):
        return Path.touch, (self.sentinel,)


@pytest.mark.parametrize("form", ["torch", "pickle", "old torch"])
def test_code_is_not_run(path, tmp_path, form):
    sentinel = tmp_path / "it ran"
    content = {"format": FORMAT, "tensors": Code(sentinel)}
    if form == "pickle":
        path.write_bytes(pickle.dumps(content))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=form == "torch")
    refused(path, "holds more than tensors and is not opened" if form == "torch" else "is damaged")
    assert not sentinel.exists()
    pickle.loads(pickle.dumps(Code(sentinel)))
    assert sentinel.exists()  # so the test could have failed


@pytest.mark.parametrize(
    "change",
    [
        {"format": FORMAT + 1},
        {"epoch": 2},
        {"settings": "{"},
        {"settings": "[]"},
        {"history": "7"},
        {"tensors": [1]},
        {"tensors": None},
    ],
    ids=str,
)
def test_another_version_is_refused(path, change):
    content = torch.load(path)
    torch.save(content, path)
    assert opened(path) is not None
    torch.save(content | change, path)
    refused(path, "is not one of this version")


@pytest.mark.parametrize("content", [[1, 2], torch.zeros(3), {}, {"format": FORMAT}], ids=str)
def test_what_is_no_checkpoint_is_refused(path, content):
    torch.save(content, path)
    refused(path, "is not one of this version")


def test_what_cannot_be_read_is_named(path):
    path.unlink()
    path.mkdir()
    refused(path, r"cannot be read \(Is a directory\)")
