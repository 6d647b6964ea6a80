"""Kernels compile for a GPU, also where only the interpreter can run them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_every_kernel_compiles_for_a_gpu(tmp_path):
    pytest.importorskip("triton")
    env = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    program = Path(__file__).with_name("compiled.py")
    done = subprocess.run(
        [sys.executable, program],
        env={**env, "TRITON_CACHE_DIR": str(tmp_path)},
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) >= 10
