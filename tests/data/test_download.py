"""Downloads, from a server on this machine: complete or not there, and mended by the next run."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from noiseproof import data
from noiseproof.data import _download

from . import writers

NAMES = ["mnist", "cifar10", "cifar100", "cifar10n"]


@pytest.fixture
def served(server, small, tmp_path):
    """Have a data set served, and the table know the checksums; gives where it will be."""

    def serve(name: str, mirrors: tuple[str, ...] = ("",)) -> Path:
        if name.startswith("cifar10n"):
            writers.write_human(name, server.folder)
        elif name.startswith("cifar"):
            writers.write_archive(name, server.folder)
        else:
            writers.write_idx_gz(name, server.folder)
        files = [f for f in sorted(server.folder.iterdir()) if f.is_file()]
        small(
            name,
            downloads={f.name: writers.checksum(f) for f in files},
            mirrors=tuple(server.url + mirror for mirror in mirrors),
        )
        (tmp_path / "root").mkdir(exist_ok=True)
        return tmp_path / "root" / "noiseproof" / name

    return serve


def read(name, tmp_path, download=True):
    root = tmp_path / "root"
    if name.endswith("n"):
        return data.human(f"{name}-worst", root=root, download=download).labels
    found = data.load(name, root=root, download=download)
    np.testing.assert_array_equal(found.train.images.numpy(), writers.arrays(name)[0][0])
    return found.train.labels


def left_over(own: Path) -> set[str]:
    return {p.name for p in own.parent.iterdir()} - {own.name}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_missing_is_downloaded_once(name, served, server, tmp_path, capfd):
    own = served(name)
    labels = read(name, tmp_path)
    asked = list(server.asked)
    assert len(asked) == len(set(asked)) == (4 if name == "mnist" else 1)
    assert "100%" in capfd.readouterr().err  # the progress bar
    assert torch.equal(read(name, tmp_path), labels)
    assert torch.equal(read(name, tmp_path, download=False), labels)
    assert server.asked == asked
    assert not left_over(own)
    assert not [p for p in own.rglob("*") if p.name.endswith(".tar.gz")]
    assert not list(tmp_path.rglob("surprise"))  # what else was in the archive


def wrong(path, content):
    return 200, content[:-1] + b"!", len(content)


def half(path, content):
    return 200, content[: len(content) // 2], len(content)


def absent(path, content):
    return 404, b"", 0


def page(path, content):
    return 200, b"<html>sign in</html>", 20


@pytest.mark.parametrize("fault", [wrong, half, absent, page])
@pytest.mark.parametrize("name", ["mnist", "cifar100"])
def test_mirrors_are_tried_in_turn(name, fault, served, server, tmp_path):
    own = served(name, mirrors=("first/", "second/"))
    server.fault = lambda path, content: (
        fault(path, content) if path.startswith("first") else (200, content, len(content))
    )
    read(name, tmp_path)
    assert [path.split("/")[0] for path in server.asked[:2]] == ["first", "second"]
    assert not left_over(own)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [(wrong, "another checksum"), (half, ""), (absent, "404"), (page, "another checksum")],
)
@pytest.mark.parametrize("name", NAMES)
def test_the_next_run_recovers(name, fault, reason, served, server, tmp_path):
    own = served(name, mirrors=("first/", "second/"))
    server.fault = fault
    with pytest.raises(data.MissingDataError) as error:
        read(name, tmp_path)
    for part in (f"{server.url}first/", f"{server.url}second/", str(own), reason, "load again"):
        assert part in str(error.value)
    assert "\n" not in str(error.value)
    assert not own.exists()
    server.fault = None
    read(name, tmp_path)
    assert not left_over(own)


def test_what_came_whole_is_not_asked_for_again(served, server, tmp_path):
    own = served("mnist")
    server.fault = lambda path, content: (
        half(path, content) if path.startswith("train-images") else (200, content, len(content))
    )
    with pytest.raises(data.MissingDataError):
        read("mnist", tmp_path)
    before = list(server.asked)
    server.fault = None
    read("mnist", tmp_path)
    after = server.asked[len(before) :]
    assert before[-1] == after[0] == "train-images-idx3-ubyte.gz"
    assert not set(before[:-1]) & set(after)
    assert not left_over(own)


def test_no_network_says_what_was_looked_for_where(tmp_path):
    with pytest.raises(data.MissingDataError) as error:
        data.load("cifar10", root=tmp_path)
    for part in (
        "data_batch_1 to test_batch",
        str(tmp_path / "cifar-10-batches-py"),
        "http://127.0.0.1:9/cifar-10-python.tar.gz (no connection)",
        "connect and load again",
    ):
        assert part in str(error.value)


@pytest.mark.parametrize("name", NAMES)
def test_damage_to_a_download_is_mended(name, served, server, tmp_path):
    own = served(name)
    labels = read(name, tmp_path)
    path = next(p for p in sorted(own.iterdir()) if p.name != "batches.meta")
    for damage in (b"", path.read_bytes()[:-9]):
        path.write_bytes(damage)
        with pytest.raises(data.DamagedFileError, match="load with download=True to have it"):
            read(name, tmp_path, download=False)
        before = len(server.asked)
        assert torch.equal(read(name, tmp_path), labels)
        assert len(server.asked) > before
        assert not left_over(own)
    path.unlink()
    assert torch.equal(read(name, tmp_path), labels)


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar10"])
def test_damage_in_the_cache_is_mended(name, served, server, tmp_path):
    served(name)
    data.load(name)
    own = tmp_path / "cache" / "noiseproof" / name
    path = sorted(own.iterdir())[0]
    path.write_bytes(b"damage")
    assert len(data.load(name).train) == writers.SIZES[name][0]
    assert path.read_bytes() != b"damage"


def test_damage_stays_until_it_can_be_mended(served, server, tmp_path):
    own = served("cifar100")
    read("cifar100", tmp_path)
    (own / "train").write_bytes(b"damage")
    server.fault = absent
    with pytest.raises(data.MissingDataError, match="could not be downloaded"):
        read("cifar100", tmp_path)
    assert (own / "train").read_bytes() == b"damage"
    server.fault = None
    read("cifar100", tmp_path)


def test_files_of_the_user_are_neither_replaced_nor_mixed(served, server, tmp_path):
    served("cifar10")
    root = tmp_path / "root"
    writers.write("cifar10 python 2", root)
    theirs = root / "cifar-10-batches-py"
    (theirs / "data_batch_2").write_bytes(b"damage")
    with pytest.raises(data.DamagedFileError, match="data_batch_2 is damaged"):
        read("cifar10", tmp_path)
    assert not server.asked
    (theirs / "data_batch_2").unlink()  # as the error says
    before = sorted(theirs.iterdir())
    read("cifar10", tmp_path)
    assert server.asked
    assert sorted(theirs.iterdir()) == before


def test_an_interrupted_run_is_no_obstacle(served, tmp_path):
    own = served("cifar100")
    for state in ("parts", "new", "old"):
        folder = own.parent / f".cifar100.{state}"
        folder.mkdir(parents=True)
        (folder / "cifar-100-python.tar.gz").write_bytes(b"half")
        (folder / "tmp1234").write_bytes(b"half")
    read("cifar100", tmp_path)
    assert sorted(p.name for p in own.iterdir()) == ["test", "train"]
    assert not left_over(own)


@pytest.mark.parametrize("damaged", [False, True])
def test_many_at_once_download_once(damaged, served, server, tmp_path):
    own = served("cifar10")
    if damaged:
        read("cifar10", tmp_path)
        (own / "test_batch").write_bytes(b"damage")
        server.asked.clear()
    results, start = [], threading.Barrier(6)

    def run() -> None:
        start.wait()
        results.append(read("cifar10", tmp_path))

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6
    assert len(server.asked) == 1
    assert not left_over(own)


def test_an_archive_in_the_root_is_unpacked_without_a_network(served, server, tmp_path):
    own = served("cifar10")
    root = tmp_path / "root"
    archive = root / "cifar-10-python.tar.gz"
    archive.write_bytes((server.folder / archive.name).read_bytes())
    read("cifar10", tmp_path, download=False)
    assert not server.asked
    assert own.is_dir()
    (own / "test_batch").write_bytes(b"damage")
    read("cifar10", tmp_path, download=False)
    archive.write_bytes(archive.read_bytes()[:-5])
    read("cifar10", tmp_path, download=False)
    (own / "test_batch").unlink()
    with pytest.raises(data.DamagedFileError, match=r"its sha256 is .*; delete it and load again"):
        read("cifar10", tmp_path, download=False)


def test_an_archive_that_lacks_a_file(served, server, small, tmp_path):
    served("cifar100")
    archive = tmp_path / "root" / "cifar-100-python.tar.gz"
    writers.write_archive("cifar100", tmp_path / "root")
    small(
        "cifar100",
        folders=("another-folder",),
        downloads={archive.name: writers.checksum(archive)},
    )
    with pytest.raises(data.DamagedFileError, match=r"tar\.gz is damaged: it does not unpack"):
        read("cifar100", tmp_path)


def test_without_pooch(served, tmp_path, monkeypatch):
    served("mnist")
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(data.MissingDataError, match=r'pip install "noiseproof\[data\]"'):
        read("mnist", tmp_path)


def test_without_a_progress_bar(served, tmp_path, monkeypatch):
    import pooch.downloaders

    served("mnist")
    monkeypatch.setattr(pooch.downloaders, "tqdm", None)
    read("mnist", tmp_path)


@pytest.mark.parametrize("fault", [wrong, half, absent, page])
@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_a_refused_download_leaves_nothing(name, fault, served, server, tmp_path):
    served(name)
    server.fault = fault
    with pytest.raises(data.MissingDataError):
        read(name, tmp_path)
    assert not list((tmp_path / "root").iterdir())


def test_no_network_leaves_nothing(tmp_path):
    for name in ("mnist", "cifar10"):
        with pytest.raises(data.MissingDataError):
            data.load(name, root=tmp_path)
        with pytest.raises(data.MissingDataError):
            data.load(name)
    assert [p.name for p in tmp_path.rglob("*")] == ["cache"]  # which is the user's


def test_an_archive_that_is_refused_leaves_nothing(served, server, tmp_path):
    served("cifar10")
    archive = tmp_path / "root" / "cifar-10-python.tar.gz"
    archive.write_bytes(b"damage")
    with pytest.raises(data.DamagedFileError):
        read("cifar10", tmp_path)
    assert list((tmp_path / "root").iterdir()) == [archive]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_ctrl_c_leaves_what_came_whole(interrupt, served, server, tmp_path, monkeypatch):
    import pooch

    own = served("mnist")
    download = pooch.HTTPDownloader.__call__

    def interrupted(self, url, output_file, *rest, **keywords):
        if "train-labels" in url:
            Path(output_file).write_bytes(b"half")
            raise interrupt
        return download(self, url, output_file, *rest, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(pooch.HTTPDownloader, "__call__", interrupted)
        with pytest.raises(interrupt):
            read("mnist", tmp_path)
        came = [url.rsplit("/", 1)[-1] for url in server.asked]
        left = {p.relative_to(own.parent).as_posix() for p in own.parent.rglob("*")}
        assert left == {".mnist.parts"} | {f".mnist.parts/{name}" for name in came}
    read("mnist", tmp_path)
    assert not left_over(own)


def test_ctrl_c_before_anything_came_leaves_nothing(served, tmp_path, monkeypatch):
    import pooch

    def interrupted(self, url, output_file, *rest, **keywords):
        Path(output_file).write_bytes(b"half")
        raise KeyboardInterrupt

    served("cifar10")
    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        read("cifar10", tmp_path)
    assert not list((tmp_path / "root").iterdir())


def test_a_lock_that_is_removed_still_keeps_others_out(tmp_path):
    """Whoever waits for a lock whose file is removed waits for the next file of that name."""
    inside, most, turns = [], [], threading.Barrier(4)

    def run() -> None:
        turns.wait()
        for _ in range(10):
            with _download.lock(tmp_path / "noiseproof" / "mnist"):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 40
    assert not list(tmp_path.iterdir())


@contextmanager
def unprivileged(
    closed: str | None = None, fill: Callable[[Path], None] | None = None
) -> Iterator[Path]:
    """A root in which nothing may be written, not even by the superuser, who becomes nobody.

    Args:
        closed: the folder in it, if any, in which nothing may be read.
        fill: what puts files into it.
    """
    import pooch  # noqa: F401  # nobody may not read the interpreter's own files
    import requests  # noqa: F401

    superuser = os.geteuid() == 0
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        root = Path(name)
        shut = root / (closed or "")
        (root / "MNIST" / "raw").mkdir(parents=True)
        if fill is not None:
            fill(root)
        root.chmod(0o555)
        if closed is not None:
            shut.chmod(0o000)
        try:
            if superuser:
                os.seteuid(65534)
            yield root
        finally:
            if superuser:
                os.seteuid(0)
            for folder in (root, shut):
                folder.chmod(0o755)


REMEDY = r"root=, --data-root or NOISEPROOF_DATA"


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no such rights there")
@pytest.mark.parametrize("name", ["mnist", "cifar10n"])
def test_a_root_that_cannot_be_written_to(name, served):
    served(name)
    data.load("digits")
    with unprivileged() as root, pytest.raises(data.DataError) as error:
        data.human("cifar10n-worst", root) if name == "cifar10n" else data.load(name, root)
    expected = f"cannot write to {root / 'noiseproof'} (Permission denied); "
    assert str(error.value).startswith(expected)
    assert REMEDY in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no such rights there")
@pytest.mark.parametrize("closed", ["", "MNIST", "MNIST/raw"])
@pytest.mark.parametrize("download", [False, True])
def test_a_root_that_cannot_be_read(closed, download, served):
    served("mnist")
    with unprivileged(closed) as root, pytest.raises(data.DataError) as error:
        data.load("mnist", root, download)
    assert str(error.value).startswith(f"cannot read {root}")
    assert "(Permission denied); " in str(error.value)
    assert REMEDY in str(error.value)


@pytest.mark.skipif(sys.platform == "win32", reason="files have no such rights there")
@pytest.mark.parametrize("name", ["mnist", "cifar100"])
def test_a_file_that_cannot_be_read(name, served, server):
    served(name)
    file = {"mnist": "MNIST/raw/train-images-idx3-ubyte.gz"}.get(name, "cifar-100-python.tar.gz")

    def fill(root: Path) -> None:
        if name == "mnist":
            writers.write("mnist gz", root)
        else:
            writers.write_archive(name, root)
        (root / file).chmod(0o000)
        (root / "noiseproof").mkdir(mode=0o777)
        (root / "noiseproof").chmod(0o777)

    with unprivileged(fill=fill) as root, pytest.raises(data.DamagedFileError) as error:
        data.load(name, root)
    expected = f"{root / file} is damaged: it cannot be read (Permission denied); mend that, or "
    assert str(error.value).startswith(expected)
    assert REMEDY in str(error.value)


@pytest.mark.parametrize("download", [False, True])
@pytest.mark.parametrize("by", ["argument", "variable"])
def test_a_root_that_is_not_there_is_not_made(by, download, served, server, tmp_path, monkeypatch):
    served("mnist")
    mistyped = tmp_path / "rot" / "data"
    monkeypatch.setenv("NOISEPROOF_DATA", str(mistyped))
    with pytest.raises(data.MissingDataError) as error:
        data.load("mnist", str(mistyped) if by == "argument" else None, download)
    assert str(error.value).startswith(f"the data root {mistyped} is not there; ")
    assert REMEDY in str(error.value)
    assert "\n" not in str(error.value)
    assert not server.asked
    assert not mistyped.parent.exists()
    assert data.load("digits", mistyped)  # which comes with the package


def test_the_cache_folder_is_made(served, tmp_path):
    served("mnist")
    assert not (tmp_path / "cache").exists()
    data.load("mnist")
    assert (tmp_path / "cache" / "noiseproof" / "mnist").is_dir()


def test_a_root_that_is_a_file(served, tmp_path):
    served("mnist")
    (tmp_path / "file").write_text("a file")
    with pytest.raises(data.MissingDataError, match=f"file is not a folder.*{REMEDY}"):
        data.load("mnist", tmp_path / "file")


def test_a_file_in_place_of_our_folder(served, tmp_path):
    served("mnist")
    (tmp_path / "root" / "noiseproof").write_text("a file")
    with pytest.raises(data.DataError, match=rf"cannot write to .*noiseproof \(.*{REMEDY}"):
        read("mnist", tmp_path)
    assert (tmp_path / "root" / "noiseproof").read_text() == "a file"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_full_disk_is_no_fault_of_the_network(number, served, tmp_path, monkeypatch):
    import pooch

    def full(*_, **keywords):
        raise OSError(number, os.strerror(number))

    served("mnist")
    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", full)
    with pytest.raises(data.DataError, match=rf"cannot write to .*{os.strerror(number)}.*{REMEDY}"):
        read("mnist", tmp_path)
    assert not list((tmp_path / "root").iterdir())


def test_reasons_are_short():
    assert _download._reason(OSError(5, "Input/output error")) == "Input/output error"
    assert _download._reason(TimeoutError()) == "TimeoutError"
