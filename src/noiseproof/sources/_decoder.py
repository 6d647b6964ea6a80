"""A process that decodes image files for another.

On 16 cores processes decoded four times as many images as threads (benchmarks/decoders.py). The
likely reason is Python's lock: Pillow releases it while it decodes, but takes it again several
times for each image, and a process has a lock of its own. Started as a program it imports neither
torch nor the user's script.

It reads a line of JSON for each task, [shape, files], writes the pixels of one image after the
other to a file that both have in their memory, and answers with a line: [position, problem] of each
file that cannot be read. It ends with its input.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

import numpy as np
from numpy.typing import NDArray

from ._decode import UnreadableError, read_image

SPACE = 1 << 23  # bytes of pixels that a task may have
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    f"from {__name__} import main; main(sys.argv[2])"
)


class Decoder:
    """Such a process, as the other one has it."""

    def __init__(self) -> None:
        with tempfile.NamedTemporaryFile(prefix="noiseproof-", dir=_folder(), delete=False) as file:
            file.truncate(SPACE)
            self._space = mmap.mmap(file.fileno(), SPACE)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-c", _PROGRAM, json.dumps(sys.path), file.name],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )  # fmt: skip
            _answer(self._process.stdout)  # it has opened the file
        finally:
            with suppress(OSError):  # elsewhere than on POSIX it has to stay
                os.unlink(file.name)

    def decode(
        self, files: Sequence[str], shape: Sequence[int]
    ) -> tuple[NDArray[np.uint8], list[str | None]]:
        """Images [N, H, W, C], and of each what is wrong with it, if it cannot be read.

        The memory of the images is that of the next ones, too.

        Raises:
            OSError: the process has ended.
        """
        channels, height, width = shape
        _say(self._process.stdin, [[channels, height, width], list(files)])
        problems: list[str | None] = [None] * len(files)
        for position, problem in _answer(self._process.stdout):
            problems[position] = problem
        return _pixels(self._space, len(files), (height, width, channels)), problems

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def _folder() -> str | None:
    """One that is memory, if it has room for all; containers may have little of it."""
    with suppress(OSError, AttributeError):
        found = os.statvfs("/dev/shm")
        if found.f_bavail * found.f_frsize > 2 * SPACE * (os.cpu_count() or 1):
            return "/dev/shm"
    return None


def _pixels(space: mmap.mmap, count: int, shape: Sequence[int]) -> NDArray[np.uint8]:
    size = count * int(np.prod(shape))
    return np.frombuffer(space, np.uint8, size).reshape(count, *shape)


def _say(pipe: IO[bytes] | None, what: object) -> None:
    assert pipe is not None
    pipe.write(json.dumps(what).encode() + b"\n")
    pipe.flush()


def _answer(pipe: IO[bytes] | None) -> list[tuple[int, str]]:
    assert pipe is not None
    line = pipe.readline()
    if not line.endswith(b"\n"):
        raise OSError("a process that decodes images has ended")
    return json.loads(line)  # type: ignore[no-any-return]


def main(path: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other one gets it too, and ends this one
    with open(path, "r+b") as file:
        space = mmap.mmap(file.fileno(), SPACE)
    _say(sys.stdout.buffer, [])
    for line in sys.stdin.buffer:
        (channels, height, width), files = json.loads(line)
        pixels = _pixels(space, len(files), (height, width, channels))
        problems = []
        for position, file in enumerate(files):
            try:
                pixels[position] = read_image(file, (channels, height, width))
            except UnreadableError as error:
                pixels[position] = 0
                problems.append((position, str(error)))
        _say(sys.stdout.buffer, problems)
