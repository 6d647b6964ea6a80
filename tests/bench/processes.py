"""What the tests need to start, watch and kill real processes, each by its own id."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from noiseproof import results

PATIENCE = 300  # seconds, after which a test that waits has failed, on a slow machine as well
COMMAND = [sys.executable, "-m", "noiseproof", "bench"]


def write_grid(path: Path, **settings: object) -> Path:
    """A grid on digits as a file."""
    lines = {"dataset": "digits", "device": "cpu", "batch_size": 128} | settings
    path.write_text("".join(f"{k} = {v!r}\n" for k, v in lines.items()))
    return path


def start(grid: Path, out: Path, *options: str, **keywords: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, str(grid), "--out", str(out), *options],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **keywords,
    )  # fmt: skip


def until(process: subprocess.Popen[str], text: str) -> list[str]:
    """The lines up to the first that has this text in it."""
    lines = []
    for line in process.stdout:
        lines.append(line)
        if text in line:
            return lines
    raise AssertionError(f"{text!r} never came:\n{''.join(lines)}")


def finish(process: subprocess.Popen[str]) -> str:
    """The rest of what it says."""
    text, _ = process.communicate(timeout=PATIENCE)
    return text


def descendants(pid: int) -> list[int]:
    """Every process that this one started, and those that they did."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                after = (entry / "stat").read_text().rpartition(")")[2].split()
                parents.setdefault(int(after[1]), []).append(int(entry.name))
    found = list(parents.get(pid, []))
    for child in found:  # grows while it is read
        found += parents.get(child, [])
    return found


def workers(pid: int) -> list[int]:
    """Those of them that train."""
    return [child for child in descendants(pid) if "_worker import main" in title(child)]


def title(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def gone(pids: list[int], seconds: float = PATIENCE) -> bool:
    """Whether they all end by themselves in this time."""
    end = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    return not any(map(alive, pids))


def end(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def stop(process: subprocess.Popen[str]) -> None:
    """Whatever happened, it does not outlive the test."""
    if process.poll() is None:
        process.kill()
        process.communicate()


def histories(out: Path) -> dict[str, list[dict[str, float]]]:
    """What was measured in each run, less the time that it took."""
    reading = results.read(out)
    assert reading.problems == []
    return {
        record.hash: [{k: v for k, v in row.items() if k != "seconds"} for row in record.history]
        for record in reading.records
    }


def same(one: object, two: object) -> bool:
    return repr(one) == repr(two)  # NaN is NaN here
