"""The reference of the site: a page for each public package, of the names in its ``__all__``."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.application import Sphinx

import noiseproof


def modules() -> dict[str, ModuleType]:
    """The public packages and modules, and each library's module of `integrations`."""
    public = {name: getattr(noiseproof, name) for name in noiseproof.__all__}
    found = {m.__name__: m for m in public.values() if isinstance(m, ModuleType)}
    integrations = noiseproof.integrations
    for inside in pkgutil.iter_modules(integrations.__path__, f"{integrations.__name__}."):
        if "._" not in inside.name:
            found[inside.name] = importlib.import_module(inside.name)
    return found


def page(module: ModuleType) -> str:
    """What a module has of its own, and where the rest of its public names is from."""
    name = module.__name__
    lines = [name, "=" * len(name), "", f".. automodule:: {name}", "   :members:"]
    borrowed = {}
    for public in getattr(module, "__all__", ()):
        home = ".".join(getattr(getattr(module, public), "__module__", name).split(".")[:2])
        if home != name and public in getattr(modules().get(home), "__all__", ()):
            borrowed[public] = home
    if hasattr(module, "__all__"):
        lines.append("   :imported-members:")
    if borrowed:
        lines.append(f"   :exclude-members: {', '.join(borrowed)}")
        links = (f":py:obj:`{public} <{home}.{public}>`" for public, home in borrowed.items())
        lines += ["", f"Also here: {', '.join(links)}."]
    return "\n".join(lines) + "\n"


def contents() -> str:
    """The packages, each with the first line of its docstring."""
    rows = [
        f"| [{name}]({name}.rst) | {(module.__doc__ or '').split(chr(10))[0]} |"
        for name, module in modules().items()
    ]
    return "\n".join([
        "# The Python reference",
        "",
        "`noiseproof` has the losses and what makes losses from losses, as in "
        "[noiseproof.losses](noiseproof.losses.rst), and the packages:",
        "",
        "| package | what it has |",
        "| --- | --- |",
        *rows,
        "",
        "```{toctree}",
        ":hidden:",
        "",
        *modules(),
        "```",
        "",
    ])  # fmt: skip


def write(folder: Path) -> None:
    """Write the pages where they are not yet as they should be."""
    folder.mkdir(exist_ok=True)
    pages = {f"{name}.rst": page(module) for name, module in modules().items()}
    for file, text in {**pages, "index.md": contents()}.items():
        path = folder / file
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def keep_colons(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Napoleon reads what is before a colon in an attribute's first line as its type: give none."""
    if what in ("attribute", "data", "property"):
        lines[:0] = ["..", ""]


def skip_foreign(
    app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out what a library adds to our classes: its words refer to its own documentation."""
    if inspect.isfunction(obj) and not obj.__module__.startswith("noiseproof"):
        return True
    return None
