"""What this machine has, found without waiting for torch."""

from __future__ import annotations

import functools
import os
import platform
import shutil
import subprocess


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def gpus() -> tuple[str, ...]:
    """The names of the GPUs, as torch has them; empty where there are none."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "all") in ("", "-1"):
        return ()
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    command = [tool, "--query-gpu=name", "--format=csv,noheader"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(line.strip() for line in found.stdout.splitlines() if line.strip())


def processor() -> str:
    """The name under which runs on this machine's cores are recorded."""
    return platform.processor() or platform.machine()
