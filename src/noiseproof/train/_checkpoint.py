"""What is kept of a run that has not ended: tensors and plain values, read without running code."""

from __future__ import annotations

import contextlib
import io
import json
import threading
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .._errors import UsageError
from ..results import Folder, write_atomically
from ..runs import ResolvedRun

FORMAT = 2


@dataclass(frozen=True)
class Checkpoint:
    """A run after an epoch: its settings, its history so far, its state dict on the CPU."""

    settings: Mapping[str, Any]
    fingerprint: str  # of the labels and of what overrides the settings
    epoch: int  # how many are done
    history: list[dict[str, float]]
    tensors: Mapping[str, Tensor]
    device: str = ""  # the kind of device that it was trained on, where that is known
    extra: Mapping[str, Any] = field(default_factory=dict)  # what modules keep beside tensors

    def write(self, path: Path) -> None:
        out = io.BytesIO()
        torch.save(
            {
                "format": FORMAT,
                "settings": json.dumps(self.settings, sort_keys=True),
                "fingerprint": self.fingerprint,
                "epoch": self.epoch,
                "history": json.dumps(self.history),
                "tensors": dict(self.tensors),
                "device": self.device,
                "extra": dict(self.extra),
            },
            out,
        )
        write_atomically(path, out.getvalue())


def check_readable(extra: Mapping[str, Any]) -> None:
    """Refuse to keep what modules keep beside tensors, if reading it would run code."""
    for name, state in extra.items():
        out = io.BytesIO()
        try:
            torch.save(state, out)
            out.seek(0)
            torch.load(out, weights_only=True)
        except Exception:
            raise UsageError(
                f"get_extra_state of the {name} gives what only code could read again: a run that "
                "is kept needs tensors and plain values; give those, or leave out=... out"
            ) from None


def differing_settings(saved: Mapping[str, Any], run: ResolvedRun) -> list[str]:
    """In what saved settings are not those of a run; what is missing is at its default."""
    with contextlib.suppress(UsageError):
        saved = ResolvedRun.from_settings(saved).settings()
    wanted = run.settings()
    return [
        f"{name} is {saved.get(name)!r} there and {wanted.get(name)!r} here"
        for name in sorted(saved.keys() | wanted.keys())
        if saved.get(name) != wanted.get(name)
    ]


def read(path: Path, run: ResolvedRun, fingerprint: str, device: str = "") -> Checkpoint | None:
    """The checkpoint of this very run, or None where there is none; any other is an error."""
    if not path.exists():
        return None
    remedy = f"; delete it to start anew: {path}"
    content = _content(path, remedy)
    if content.get("format") == 1:
        content = _upgraded(content, path)
    try:
        saved = json.loads(content["settings"])
        found = Checkpoint(
            saved, content["fingerprint"], content["epoch"], json.loads(content["history"]),
            content["tensors"], content.get("device", ""), content.get("extra", {}),
        )  # fmt: skip
        parts = (saved, found.tensors, found.extra)
        if (
            not all(isinstance(part, dict) for part in parts)
            or content["format"] != FORMAT
            or len(found.history) != found.epoch
        ):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise UsageError(f"the checkpoint is not one of this version{remedy}") from None
    differing = differing_settings(saved, run)
    if differing:
        raise UsageError(f"the checkpoint is of other settings ({'; '.join(differing)}){remedy}")
    if device and found.device not in ("", device):
        raise UsageError(
            f"the checkpoint is of a run on {found.device}, which would come to other numbers on "
            f"{device}: give --device {found.device} to go on{remedy}"
        )
    if found.fingerprint != fingerprint:
        raise UsageError(
            "the checkpoint began from other labels, data, loss or network, or in an older version"
            f"{remedy}"
        )
    return found


def _upgraded(content: dict[str, Any], path: Path) -> dict[str, Any]:
    """A checkpoint of the first format, in a folder that `noiseproof.results.upgrade` renamed."""
    described = Folder(path.parent).read_json("run.json") or {}
    names = {"momenta": "momentum_buffer", "average": "ema"}
    tensors = {
        names.get(name, name.replace("average.", "ema.", 1)): tensor
        for name, tensor in content["tensors"].items()
    }
    history = [
        {"lr" if k == "learning_rate" else k: v for k, v in row.items()}
        for row in json.loads(content["history"])
    ]
    return content | {
        "format": FORMAT, "tensors": tensors, "history": json.dumps(history),
        "settings": json.dumps(described.get("settings")),
    }  # fmt: skip


def _content(path: Path, remedy: str) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(path) as archive:  # torch does not look at the checksums in it
            if archive.testzip() is not None:
                raise zipfile.BadZipFile
        content = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise UsageError(f"the checkpoint cannot be read ({error.strerror}){remedy}") from None
    except Exception as error:  # whatever damage makes of the archive and the pickle in it
        code = "weights_only" in str(error).lower() or "unsupported" in str(error).lower()
        what = "holds more than tensors and is not opened" if code else "is damaged"
        raise UsageError(f"the checkpoint {what}{remedy}") from None
    if not isinstance(content, dict):
        raise UsageError(f"the checkpoint is not one of this version{remedy}")
    return content


class Writer:
    """Writes in the background, so that training does not wait for the disk.

    Of several writes for one path that wait, the last is the one that counts. Where epochs are
    shorter than it takes to write them down, writing each would take the cores that train: after a
    round of writes it rests for nine times as long, a second at most, which a kill may then cost.
    """

    REST = 9.0  # times what the round took
    LONGEST = 1.0  # seconds

    def __init__(self) -> None:
        self._jobs: dict[Path, Callable[[], None]] = {}
        self._change = threading.Condition()
        self._busy = False
        self._closed = False
        self._awaited = 0  # how many wait in flush
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="writer", daemon=True)
        self._thread.start()

    def submit(self, path: Path, job: Callable[[], None]) -> None:
        with self._change:
            self._raise()
            self._jobs[path] = job
            self._change.notify_all()

    def flush(self) -> None:
        """Wait until all is on the disk."""
        with self._change:
            self._awaited += 1
            self._change.notify_all()
            self._change.wait_for(lambda: not self._jobs and not self._busy)
            self._awaited -= 1
            self._raise()

    def close(self) -> None:
        with self._change:
            self._closed = True
            self._change.notify_all()
        self._thread.join()
        with self._change:
            self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _work(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._jobs or self._closed)
                if not self._jobs:
                    return
                jobs, self._jobs = self._jobs, {}
                self._busy = True
            began = time.monotonic()
            try:
                for job in jobs.values():
                    job()
            except BaseException as error:
                with self._change:
                    self._error = error
                    self._jobs.clear()
            rest = min(self.REST * (time.monotonic() - began), self.LONGEST)
            with self._change:
                self._busy = False
                self._change.notify_all()
                self._change.wait_for(lambda: self._closed or self._awaited, timeout=rest)
