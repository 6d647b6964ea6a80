"""The folder of a run: written whole or not at all, read back, and refused where it is damaged."""

from __future__ import annotations

import math
import os
import stat
from pathlib import Path

import pytest

from noiseproof import UsageError
from noiseproof.results import Folder, write_atomically

ROWS = [{"epoch": 1, "loss": 1 / 3, "wrong": math.nan}, {"epoch": 2, "loss": 1e-9, "wrong": 1.0}]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "results" / "run")


def test_folders_are_made_and_files_replaced(folder):
    path = folder.path / "file"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert os.listdir(folder.path) == ["file"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_what_was_there(folder, monkeypatch, call, error):
    path = folder.path / "file"
    write_atomically(path, b"one")

    def fail(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(type(error)) as raised:
            write_atomically(path, b"two")
    assert path.read_bytes() == b"one"
    assert os.listdir(folder.path) == ["file"]
    if isinstance(error, OSError):
        assert raised.value.errno == 28
        expected = f"[Errno 28] {path} could not be written and is as it was: {error.strerror}"
        assert str(raised.value) == expected


def test_a_link_is_followed_and_stays(tmp_path):
    target, link = tmp_path / "there" / "file", tmp_path / "link"
    target.parent.mkdir()
    target.write_bytes(b"one")
    link.symlink_to(Path("there") / "file")
    write_atomically(link, b"two")
    assert link.is_symlink()
    assert target.read_bytes() == b"two"
    assert os.listdir(target.parent) == ["file"]
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "new" / "file")
    write_atomically(dangling, b"three")
    assert dangling.is_symlink()
    assert (tmp_path / "new" / "file").read_bytes() == b"three"


def test_a_link_to_itself_is_one_line(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(OSError, match="loop could not be written and is as it was: Too many"):
        write_atomically(tmp_path / "loop", b"one")


@pytest.mark.parametrize("through_a_link", [False, True])
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path, through_a_link):
    pipe, path = tmp_path / "pipe", tmp_path / "pipe"
    os.mkfifo(pipe)
    if through_a_link:
        path = tmp_path / "link"
        path.symlink_to(pipe)
    read: list[bytes] = []
    # Open at both ends, so that a writer that does not open it leaves no reader waiting.
    with os.fdopen(os.open(pipe, os.O_RDWR), "r+b", buffering=0) as end:
        write_atomically(path, b"one")
        os.set_blocking(end.fileno(), False)
        read.append(end.read() or b"")
    assert read == [b"one"]
    assert pipe.is_fifo()
    assert path.is_symlink() == through_a_link
    assert set(os.listdir(tmp_path)) == {pipe.name, path.name}


def test_a_device_stays_a_device(tmp_path):
    device = tmp_path / "full"  # not /dev/full itself, which a fault would replace
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 7))
        os.close(os.open(device, os.O_WRONLY))
    except PermissionError:
        pytest.skip("devices cannot be made here")
    with pytest.raises(OSError, match=r"full could not be written: No space left on device"):
        write_atomically(device, b"one")
    assert device.is_char_device()
    assert os.listdir(tmp_path) == ["full"]


def test_a_folder_is_refused_in_one_line(tmp_path):
    with pytest.raises(UsageError, match=r"is a folder; give the name of a file$"):
        write_atomically(tmp_path, b"one")
    assert os.listdir(tmp_path) == []


def test_a_folder_that_cannot_be_written_to_names_the_file(tmp_path):
    (tmp_path / "file").write_bytes(b"one")
    with pytest.raises(OSError, match=r"file/below could not be written and is as it was: "):
        write_atomically(tmp_path / "file" / "below", b"two")


def test_what_killed_writers_left_is_tidied_away(folder, monkeypatch):
    folder.write_json("run.json", {})
    with monkeypatch.context() as patch:  # as if the process ended here: nothing is cleaned up
        patch.setattr(os, "replace", lambda *_: None)
        write_atomically(folder.path / "checkpoint.pt", b"half of i")
    (folder.path / ".own").touch()
    assert len(os.listdir(folder.path)) == 3
    folder.tidy()
    assert sorted(os.listdir(folder.path)) == [".own", "run.json"]


def test_json_there_and_back(folder):
    content = {"error": None, "loss": 0.1 + 0.2, "settings": {"lr": 0.01}, "name": "Ü"}
    assert folder.read_json("result.json") is None
    folder.write_json("result.json", content)
    assert folder.read_json("result.json") == content


def test_json_has_null_for_what_is_no_number(folder):
    folder.write_json("result.json", {"nan": math.nan, "inf": math.inf, "one": 1.0})
    assert "NaN" not in (folder.path / "result.json").read_text()
    assert folder.read_json("result.json") == {"nan": None, "inf": None, "one": 1.0}


def test_history_there_and_back(folder):
    assert folder.read_history() == []
    folder.write_history(ROWS)
    text = (folder.path / "history.csv").read_text()
    assert text == "epoch,loss,wrong\n1,0.333333,nan\n2,1e-09,1\n"
    read = folder.read_history()
    assert [row["loss"] for row in read] == pytest.approx([1 / 3, 1e-9], rel=1e-5)
    assert math.isnan(read[0]["wrong"])
    folder.write_history([])
    assert folder.read_history() == []


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe", b'{"a": 1'])
def test_damaged_json_is_one_clear_line(folder, content):
    write_atomically(folder.path / "result.json", content)
    with pytest.raises(ValueError, match=r"result\.json is damaged; delete the folder .*run to"):
        folder.read_json("result.json")


@pytest.mark.parametrize(
    "rows", [b"1,x", b"1", b"1,2,3", b"1,\xff", b"1,\x00", b'1,"' + b"9" * 200_000 + b'"']
)
def test_a_damaged_history_is_one_clear_line(folder, rows):
    write_atomically(folder.path / "history.csv", b"epoch,loss\n" + rows + b"\n")
    with pytest.raises(ValueError, match=r"history\.csv is damaged; delete the folder .*run to"):
        folder.read_history()
