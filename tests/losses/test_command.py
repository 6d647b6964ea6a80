"""``noiseproof losses --check``: what is shown while it computes, and what it refuses."""

from __future__ import annotations

import io
import re

import pytest
from rich import console

import noiseproof
from noiseproof.cli import _losses


@pytest.fixture
def few_losses(monkeypatch):
    """The command over two losses, which is quick."""
    entries = {n: e for n, e in noiseproof.losses.registry().items() if n in ("ce", "mae")}
    monkeypatch.setattr(noiseproof.losses, "registry", lambda: entries)


@pytest.fixture(params=[True, False])
def stderr(request, monkeypatch):
    """Where the bar goes: a terminal or a file."""
    written = io.StringIO()

    class Console(console.Console):
        def __init__(self, *, stderr: bool = False) -> None:
            if stderr:
                super().__init__(file=written, force_terminal=request.param, width=80)
            else:
                super().__init__(width=120)

    monkeypatch.setattr(console, "Console", Console)
    return request.param, written


def test_a_bar_while_all_losses_are_checked(few_losses, stderr, capsys):
    is_terminal, written = stderr
    _losses.losses(check=3)
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", written.getvalue())
    assert ("checking mae" in shown) == is_terminal
    if not is_terminal:
        assert shown.strip() == ""  # older releases of rich end with an empty line
    out = capsys.readouterr().out
    assert "checking" not in out
    assert [line.split()[0] for line in out.splitlines()[-2:]] == ["ce", "mae"]


@pytest.mark.parametrize("text", ["", "nce"])
def test_too_many_classes_are_refused_at_once(text):
    with pytest.raises(noiseproof.UsageError, match="at most 10000"):
        _losses.losses(text, check=100_000)
