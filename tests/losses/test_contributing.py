"""CONTRIBUTING's example, added to a copy of the package as it says, passes what it says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAME, CLASS, FUNCTION = "rest_power", "PowerOfRest", "power_of_rest"


def insert(path: Path, before: str, line: str) -> None:
    """Add a line before the first that begins like that, with its indentation."""
    text = path.read_text()
    found = re.search(rf"^( *){re.escape(before)}", text, flags=re.MULTILINE)
    assert found, f"{path.name} has no {before}"
    path.write_text(f"{text[: found.start()]}{found[1]}{line}\n{text[found.start() :]}")


def follow_the_steps(root: Path) -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    block = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)[0]
    declaration, comment, _ = block.partition("# To try it")
    assert comment
    source = root / "src" / "noiseproof"
    (source / "losses" / "_rest.py").write_text(declaration.rstrip() + "\n")
    insert(source / "losses" / "__init__.py", "from ._successors", f"from ._rest import {CLASS}")
    for init in (source / "losses" / "__init__.py", source / "__init__.py"):
        insert(init, '"ReverseCrossEntropy"', f'"{CLASS}",')
    insert(source / "__init__.py", "ReverseCrossEntropy,", f"{CLASS},")
    line = next(li for li in page.splitlines() if f"{FUNCTION} = " in li)
    given = re.search(rf"`({FUNCTION} = .*?)`", line)
    assert given
    with (source / "functional.py").open("a") as file:
        file.write(f"{given[1]}\n")


def python(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = {"PYTHONPATH": os.pathsep.join([str(root / "src"), str(root / "docs")])}
    run = subprocess.run(
        [sys.executable, *arguments], cwd=root, capture_output=True, text=True,
        env=os.environ | path,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    return run


@pytest.mark.slow
def test_the_example_passes_the_suite(tmp_path):
    ignored = shutil.ignore_patterns("__pycache__")
    for part in ("src", "tests", "docs", "benchmarks"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    follow_the_steps(tmp_path)
    text = python(tmp_path, "-c", "import generate; print(generate.signatures(), end='')").stdout
    (tmp_path / "src" / "noiseproof" / "syntax" / "signatures.json").write_text(text)
    assert f'"{NAME}"' in text
    chosen = f"{NAME} or {CLASS} or signatures or public"
    run = python(
        tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", chosen,
        "tests/losses", "tests/syntax", "tests/test_package.py", "src/noiseproof/losses/_rest.py",
    )  # fmt: skip
    assert int(re.findall(r"(\d+) passed", run.stdout)[-1]) > 70  # it was a subject of them
    # And they would see what it lacks, such as an example.
    declared = tmp_path / "src" / "noiseproof" / "losses" / "_rest.py"
    declared.write_text(declared.read_text().replace(">>>", "---"))
    faces = ("-m", "pytest", "-q", "-p", "no:xdist", "-k", NAME, "tests/losses/test_faces.py")
    with pytest.raises(AssertionError, match="PowerOfRest"):
        python(tmp_path, *faces)
