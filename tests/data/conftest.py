from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from noiseproof import catalogue

from . import writers

REAL = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.fixture(scope="session")
def real() -> Callable[[str], Path]:
    """A root with a set of the real data, unpacked once and kept among the temporary files."""

    def root(name: str) -> Path:
        script = REAL / "unpack.py"
        if not (REAL / name).is_dir() or not script.is_file():
            pytest.skip(f"the real {name} is not here")
        if importlib.util.find_spec("PIL") is None:
            pytest.skip(f"unpacking the real {name} needs Pillow")
        stamp = f"{os.getuid()}-{int(script.stat().st_mtime)}"
        target = Path(tempfile.gettempdir()) / f"noiseproof-tests-{stamp}" / name
        target.parent.mkdir(mode=0o700, exist_ok=True)
        with FileLock(f"{target}.lock"):
            if not target.is_dir():
                part = target.with_name(f"{name}.part")
                shutil.rmtree(part, ignore_errors=True)
                run = [sys.executable, str(script), str(part), name]
                subprocess.run(run, check=True, capture_output=True)
                os.replace(part, target)
        return target

    return root


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Have the table expect the small files of ``writers``."""

    def patch(name: str, **published: Any) -> Any:
        source = writers.source_of(name, **published)
        table: Any = catalogue.HUMAN_FILES if name in catalogue.HUMAN_FILES else catalogue.DATASETS
        monkeypatch.setitem(table, name, source)
        return source

    return patch


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test reads or writes the user's own folders, or asks for anything outside."""
    monkeypatch.delenv("NOISEPROOF_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for table in (catalogue.DATASETS, catalogue.HUMAN_FILES):
        for name, source in table.items():
            if source.files is not None:
                files = replace(source.files, mirrors=("http://127.0.0.1:9/",))
                monkeypatch.setitem(table, name, replace(source, files=files))


class Server:
    """Files of a folder by HTTP; ``asked`` is what was asked for, ``fault`` changes an answer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []
        self.fault: Callable[[str, bytes], tuple[int, bytes, int]] | None = None
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, self))
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/"


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, server: Server, *arguments: Any) -> None:
        self.of = server
        super().__init__(*arguments)

    def do_GET(self) -> None:
        name = self.path.rsplit("/", 1)[-1]
        self.of.asked.append(self.path.lstrip("/"))
        path = self.of.folder / name
        content = path.read_bytes() if path.is_file() else b""
        status, length = 200 if path.is_file() else 404, len(content)
        if self.of.fault is not None:
            status, content, length = self.of.fault(self.path.lstrip("/"), content)
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    folder = tmp_path / "served"
    folder.mkdir()
    server = Server(folder)
    thread = threading.Thread(target=server.http.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.http.shutdown()
    server.http.server_close()
    thread.join()
