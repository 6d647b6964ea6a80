"""Writing in the background: the last counts, nothing is lost, and errors come to light."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from noiseproof.results import Folder
from noiseproof.train import fit
from noiseproof.train._checkpoint import Writer

from .subjects import but_seconds, tiny

ONE, TWO = Path("one"), Path("two")


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 300  # a machine may be as slow as it likes
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.001)


def test_of_those_that_wait_the_last_is_written():
    writer, done, go = Writer(), [], threading.Event()
    writer.submit(ONE, go.wait)  # keeps the thread busy
    wait_until(lambda: writer._busy)
    for i in range(5):
        writer.submit(ONE, lambda i=i: done.append(("one", i)))
    writer.submit(TWO, lambda: done.append(("two", 0)))
    assert done == []
    go.set()
    writer.flush()
    assert done == [("one", 4), ("two", 0)]
    writer.close()


@pytest.mark.parametrize("end", ["flush", "close"])
def test_after_writing_it_rests_until_somebody_waits(end):
    writer, done = Writer(), []
    writer.REST = writer.LONGEST = 1e6  # seconds
    writer.submit(ONE, lambda: (time.sleep(0.01), done.append(0)))
    wait_until(lambda: done == [0] and not writer._busy)
    for i in (1, 2):
        writer.submit(ONE, lambda i=i: done.append(i))
    time.sleep(0.05)
    assert done == [0]
    getattr(writer, end)()
    assert done == [0, 2]
    writer.close()


def test_closing_waits_for_what_was_submitted():
    writer, done, go = Writer(), [], threading.Event()
    writer.submit(ONE, go.wait)
    writer.submit(TWO, lambda: done.append(1))
    threading.Timer(0.05, go.set).start()
    writer.close()
    assert done == [1]
    assert not writer._thread.is_alive()


@pytest.mark.parametrize("call", ["submit", "flush", "close"])
def test_an_error_comes_up_once_at_the_next_call(call):
    writer, done = Writer(), []

    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    writer.submit(ONE, full)
    wait_until(lambda: writer._error is not None)
    with pytest.raises(OSError, match="No space left on device"):
        writer.submit(TWO, print) if call == "submit" else getattr(writer, call)()
    if call != "close":
        writer.submit(TWO, lambda: done.append(1))
        writer.close()
        assert done == [1]


def fill_the_disk(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """From the given write on there is no space left."""
    real, count = os.fsync, 0

    def fsync(handle: int) -> None:
        nonlocal count
        count += 1
        if count > after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)


def write_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that it is known which files are there."""
    real = Writer.submit

    def submit(self: Writer, path: Path, job: Callable[[], None]) -> None:
        real(self, path, job)
        self.flush()

    monkeypatch.setattr(Writer, "submit", submit)


@pytest.mark.parametrize("writes", range(10))
def test_a_full_disk_loses_nothing_that_was_written(writes, tmp_path, monkeypatch):
    """A run of three epochs writes ten files: its settings, each epoch two, and the end three."""
    run = tiny(epochs=3)
    whole = fit(run)
    write_at_once(monkeypatch)
    with monkeypatch.context() as patch:
        fill_the_disk(patch, writes)
        with pytest.raises(OSError, match=r"could not be written and is as it was: No space left"):
            fit(run, out=tmp_path)
    folder = tmp_path / run.resolve().hash
    files = sorted(os.listdir(folder))
    assert not [name for name in files if name.startswith(".")]
    assert len(Folder(folder).read_history()) == min(max(0, (writes - 1) // 2), 3)
    again = fit(run, out=tmp_path)
    assert but_seconds(again.history) == but_seconds(whole.history)
    assert "result.json" in os.listdir(folder)
