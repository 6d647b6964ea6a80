"""Runs Python by itself, in a process that other libraries may fill with threads and warnings.

python alone.py FILE.py
python alone.py PAGE.md    # its ```python blocks, one after another, each as pasted
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

MISSING = 77  # the exit status if a library is not installed


def run(path: Path, cwd: Path) -> str:
    """What the file or page prints. Skips the test if it needs a library that is not there."""
    done = subprocess.run(
        [sys.executable, Path(__file__), path],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "CUDA_VISIBLE_DEVICES": "",
        },
    )
    if done.returncode == MISSING:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def blocks(path: Path) -> list[str]:
    if path.suffix == ".py":
        return [path.read_text()]
    return re.findall(r"```python\n(.*?)```", path.read_text(), flags=re.DOTALL)


def _no_network(*_: object) -> None:
    raise OSError("a page must not need the network")


def main(path: Path) -> None:
    socket.socket.connect = socket.create_connection = _no_network  # type: ignore[assignment]
    mend_torchvision()
    warnings.filterwarnings("error", module="__main__")  # what a user would see of his own lines
    for block in blocks(path):
        try:
            exec(compile(block, str(path), "exec"), {"__name__": "__main__"})
        except ModuleNotFoundError as error:
            if not error.name or error.name.startswith("noiseproof"):
                raise
            print(f"{path.name} needs {error.name}", file=sys.stderr)
            sys.exit(MISSING)


_kept: list[torch.library.Library] = []


def mend_torchvision() -> None:
    """Makes torchvision importable, as the fixture ``vision`` does."""
    try:
        import torchvision  # noqa: F401  # others import it because it is there
    except ImportError:
        pass
    except RuntimeError:  # a torch without CUDA lacks these, and the import wants them
        library = torch.library.Library("torchvision", "DEF")
        _kept.append(library)  # what it defines ends with it
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
