"""Whatever a reader is given, it ends well or in an error that users may see.

The input is sound input, changed. It follows from the seed that a failure names:
``python -m tests.fuzz.attempt PART SEED 1 FOLDER`` reads it again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COUNTS = {
    "bundle": 1200, "record": 1000, "loss": 5000, "grid": 2000, "file": 2500, "own": 2500,
    "model": 1500,
}  # fmt: skip
SHOWN = 8  # failures, one of each error

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="memory can be limited on Linux alone"),
]


@pytest.mark.parametrize("part", COUNTS)
def test_changed_input_ends_in_an_error_for_users(part, tmp_path):
    command = [sys.executable, "-m", "tests.fuzz.attempt", part, "0", str(COUNTS[part]), tmp_path]
    limited = ["timeout", "600", *command]  # for what waits; what computes has a limit of its own
    done = subprocess.run(limited, cwd=ROOT, capture_output=True, text=True, check=False)
    failures = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode:
        seed = (tmp_path / "seed").read_text()
        pytest.fail(
            f"seed {seed} ended the process ({done.returncode}), its files are in {tmp_path}:\n"
            f"{done.stderr[-2000:]}"
        )
    different = {(f["error"].split(":")[0], *f["where"][-1:]): f for f in reversed(failures)}
    shown = [
        f"seed {f['seed']}: {f['error']}\n{''.join(f['where'])}  input: {f['input']}"
        for f in list(different.values())[:SHOWN]
    ]
    assert not failures, f"{len(failures)} of {COUNTS[part]} inputs:\n" + "\n\n".join(shown)
