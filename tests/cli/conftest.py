"""What the tests of the command line share."""

from __future__ import annotations

import sys

import pytest

from noiseproof import cli


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command as a user types it: its exit status, its output and its errors."""

    def invoke(*arguments: object, width: int = 120) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["noiseproof", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", str(width))
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return invoke
