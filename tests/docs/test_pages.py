"""The pages are true: their examples run, their commands exist, their tables are up to date."""

from __future__ import annotations

import functools
import inspect
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import pytest
import tyro

from noiseproof import cli

ROOT = Path(__file__).parent.parent.parent
GENERATED = (ROOT / "docs" / "losses", ROOT / "docs" / "api")  # by the site, where it was built
PAGES = sorted(
    str(page.relative_to(ROOT))
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    if page.parent not in GENERATED
)
ELSEWHERE = ("recipes", "trainers")  # tests/integrations/test_pages.py runs their examples
EXAMPLES = [name for name in PAGES if Path(name).parent.name not in ELSEWHERE]
PRINTED = ("docs/active-or-passive.md", "docs/noise.md")  # a text after an example is its output


def blocks(name: str, language: str) -> list[str]:
    text = (ROOT / name).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    examples = blocks(name, "python")
    assert examples or name not in ("README.md", "CONTRIBUTING.md", "docs/imbalance.md")
    for block in examples:
        namespace: dict[str, object] = {}
        exec(compile(block, name, "exec"), namespace)  # as pasted, with nothing added
    if name in PRINTED:
        printed = capsys.readouterr().out
        assert all(text in printed for text in blocks(name, "text"))


@functools.cache
def commands(name: str) -> list[list[str]]:
    """The words after ``noiseproof`` of every command that a page shows."""
    lines = "".join(blocks(name, "(?:console|bash|sh)")).replace("\\\n", " ").splitlines()
    written = (line.removeprefix("$ ") for line in lines)
    words = [shlex.split(line, comments=True) for line in written if line.startswith("noiseproof ")]
    return [line[1:] for line in words if "..." not in line and not line[1].startswith("-")]


def without_body(command: FunctionType) -> FunctionType:
    """A function with the flags of a command that does nothing."""
    empty = FunctionType((lambda *_, **__: None).__code__, command.__globals__, command.__name__)
    empty.__signature__ = inspect.signature(command)
    empty.__annotations__ = command.__annotations__
    return empty


@pytest.mark.parametrize("name", [name for name in PAGES if commands(name)])
def test_commands_are_understood(name, capsys):
    """No page shows a command, a flag or a choice that there is not. Nothing is run."""
    for word, *arguments in commands(name):
        assert hasattr(cli, word), f"{name}: there is no command {word}"
        try:
            tyro.cli(without_body(getattr(cli, word)), args=arguments)
        except SystemExit:
            output = "".join(capsys.readouterr())
            pytest.fail(f"{name}: noiseproof {word} {shlex.join(arguments)}\n{output}")


def test_pages_show_commands():
    shown = {arguments[0] for name in PAGES for arguments in commands(name)}
    assert {"train", "bench", "report", "losses", "results"} <= shown


@pytest.mark.slow
def test_generated_tables_are_up_to_date():
    run = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},  # the other core has tests of its own
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    path = ROOT / name
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
        assert (path.parent / target).exists(), f"{name} links to {target}"
