"""The package as a whole: what it has, and what imports what and when."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import noiseproof

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "noiseproof"


def imported_by(code: str) -> set[str]:
    """The top-level modules that a fresh interpreter holds after this code."""
    script = f"{code}\nimport sys; print('modules:', *{{m.split('.')[0] for m in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split("modules:")[1].split())


def test_import_is_lazy():
    assert not {"torch", "numpy", "tyro", "rich"} & imported_by("import noiseproof")


def test_help_does_not_wait_for_torch():
    code = (
        "import sys; sys.argv = ['noiseproof', '--help']\n"
        "from noiseproof.cli import main\n"
        "try: main()\n"
        "except SystemExit as stop: assert not stop.code"
    )
    assert "torch" not in imported_by(code)


@pytest.mark.slow
def test_losses_need_torch_and_numpy_alone():
    code = "import noiseproof; noiseproof.parse('nce + rce'); import noiseproof.functional"
    used = imported_by(code)
    assert "torch" in used
    assert not {"tyro", "rich", "pytest", "scipy"} & used - imported_by("import torch")


def test_every_public_name_is_there():
    for name in noiseproof.__all__:
        assert getattr(noiseproof, name) is not None
    assert set(noiseproof.__all__) <= set(dir(noiseproof))
    with pytest.raises(AttributeError, match="no attribute 'NoSuchLoss'"):
        noiseproof.NoSuchLoss  # noqa: B018
    typed = ast.parse((SOURCE / "__init__.py").read_text())
    checking = next(node for node in typed.body if isinstance(node, ast.If))
    seen = {a.name for n in checking.body if isinstance(n, ast.ImportFrom) for a in n.names}
    assert seen == set(noiseproof.__all__)  # what a type checker sees is what there is
    for name in noiseproof.losses.__all__:
        assert getattr(noiseproof.losses, name) is not None


def test_every_declared_loss_is_public():
    for entry in noiseproof.losses.registry().values():
        if isinstance(entry.loss, type) and entry.loss.__module__.startswith("noiseproof"):
            assert getattr(noiseproof, entry.loss.__name__) is entry.loss


def table_of_packages() -> dict[str, tuple[set[str], bool]]:
    """Of each room in the table of ARCHITECTURE.md, what it may import, and whether it is all."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    found: dict[str, tuple[set[str], bool]] = {}
    for names, imports in re.findall(r"^\| (`.*?) \| .* \| (.*)\|$", text, re.MULTILINE):
        for name in re.findall(r"`(\w+)(?:/|\.py)`", names):
            known = {word for word in re.findall(r"\w+", imports) if word in found}
            found[name] = (set(found), True) if imports.startswith("all") else (known, False)
        if names.startswith("`_errors.py`"):
            break
    return found


def test_rooms_import_what_the_table_says():
    """That is from rooms above them; and what it says they do import."""
    rooms = table_of_packages()
    there = {path.stem for path in SOURCE.iterdir() if path.suffix in ("", ".py")}
    assert there - {"__init__", "__main__", "__pycache__"} == rooms.keys()
    everywhere = {name for name in rooms if name.startswith("_")} | {"__version__"}
    used: dict[str, set[str]] = {room: set() for room in rooms}
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room in ("__init__", "__main__", *everywhere):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.ImportFrom):
                depth = len(path.relative_to(SOURCE).parts) - node.level
                module = node.module or ""
                if node.level and depth == 0:
                    names = [module] if module else [alias.name for alias in node.names]
                elif module.startswith("noiseproof"):
                    names = [module.removeprefix("noiseproof").strip(".") or node.names[0].name]
            elif isinstance(node, ast.Import):
                names = [
                    a.name.removeprefix("noiseproof.") for a in node.names if "noiseproof" in a.name
                ]
            named = {name.split(".")[0] for name in names}
            used[room] |= named - {room, "noiseproof", *everywhere}
    for room, (allowed, all_) in rooms.items():
        assert used[room] <= allowed, f"{room} imports {used[room] - allowed}"
        assert all_ or used[room] == allowed, f"{room} imports no {allowed - used[room]}"
