"""What a user names by ``module:attribute``: found and told apart by its source, then imported.

Such a name is kept as ``mynets:small@3fa9c1d20b``, with a digest of the module's file, so that the
hash of a run changes with the file. `identify` reads the file and imports nothing; `load` imports
it, because the user named it. The digest is of one file, or of all files of a package: what the
file imports from elsewhere is not seen.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.machinery
import importlib.util
import os
import re
import sys
import traceback
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

from ._errors import UsageError, level_outside
from ._hints import nearest

LIBRARIES = ("torchvision", "timm")
"""Whose networks are told apart by their names alone."""
_DIGITS = 10  # of a digest
_NAME = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*)(?::([^\W\d]\w*(?:\.[^\W\d]\w*)*))?(?:@(\w+))?")
_DIGEST = re.compile(rf"@[0-9a-f]{{{_DIGITS}}}\b")
_loaded: dict[str, str] = {}  # of each module that was imported here, the digest that it had then


class ChangedSourceWarning(UserWarning):
    """The source of a network has changed since it was trained."""


def is_import(text: str) -> bool:
    """Whether a text names something of the user's own, ``module:attribute``."""
    return ":" in text


def without_digest(text: str) -> str:
    """A text as tables show it.

    >>> without_digest("mynets:small@3fa9c1d20b")
    'mynets:small'
    """
    return _DIGEST.sub("", text)


def setting_text(name: str, value: Any) -> str:
    """A setting with its value as tables show it.

    >>> setting_text("batch_size", 32), setting_text("freeze", ["conv1.*"]), setting_text("ema", "")
    ('batch size 32', 'freeze conv1.*', 'no ema')
    """
    text = " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    words = name.replace("_", " ")
    return f"{words} {without_digest(text)}" if text else f"no {words}"


def identify(name: str, what: str) -> tuple[str, str]:
    """A name with the digest of its source, and the folder that it is imported from.

    Nothing is imported, neither the module nor the packages that it is in.

    Args:
        name: ``module:attribute``, or ``module`` alone; a digest that it has must be the present.
        what: it is for, such as ``"model"``.

    Raises:
        UsageError: there is no such module, or it is another than the digest says.
    """
    module, attribute, digest = _split(name, what)
    if module in LIBRARIES:
        return f"{module}:{attribute}", ""
    source, root = _find(module, f"{what} {name}", os.getcwd(), tuple(sys.path))
    now = _digest(source)
    if digest not in ("", now):
        raise UsageError(f"{what} {name}: {module} has changed since, it is now @{now}")
    return f"{module}{':' if attribute else ''}{attribute}@{now}", str(root)


def load(name: str, what: str, *, folder: str = "", strict: bool = True) -> Any:
    """Import what a name with a digest stands for: a module, or something in it.

    Args:
        name: as `identify` gives it.
        what: it is for, such as ``"model"``.
        folder: that `identify` found it in, perhaps in another process.
        strict: whether a module that has changed since is an error, and not a warning.

    Raises:
        UsageError: it cannot be imported, or has changed since.
    """
    path, attribute, digest = _split(name, what)
    found: Any = _module(path, name, what, digest, folder, strict)
    for part in attribute.split(".") if attribute else ():
        if not hasattr(found, part):
            known = [n for n in dir(found) if not n.startswith("_")]
            raise UsageError(
                f"{what} {without_digest(name)}: {path} has no {part!r}{nearest(part, known)}"
            )
        found = getattr(found, part)
    return found


def _split(name: str, what: str) -> tuple[str, str, str]:
    """Module, attribute and digest of a name."""
    if re.search(r"[/\\]|\.py\b", name):
        stem = re.sub(r".*[/\\]|\.py\b", "", name)
        raise UsageError(
            f"{what} {name!r} is a path; write {stem!r}, and start in the folder of the file or "
            "name it in PYTHONPATH"
        )
    match = _NAME.fullmatch(name)
    if match is None or (match[2] is None) != (what == "import"):
        example = "mymodule" if what == "import" else "mymodule:name"
        more = "; in a longer text losses go by the names of @register" if what == "loss" else ""
        raise UsageError(f"{what} {name!r} cannot be read; write it as {example!r}{more}")
    module = match[1]
    if module.split(".")[0] in (*sys.stdlib_module_names, "__main__"):
        raise UsageError(f"{what} {name!r}: {module} is Python's own; name a module of yours")
    return module, match[2] or "", match[3] or ""


@functools.lru_cache(maxsize=256)
def _find(module: str, named: str, here: str, path: tuple[str, ...]) -> tuple[Path, Path]:
    """The file of a module, and the folder that its top package is imported from."""
    _add_to_path(here)
    importlib.invalidate_caches()
    top, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError, AttributeError):
        spec = None
    found = spec
    for i in range(len(rest)):
        if found is None or found.submodule_search_locations is None:
            found = None
            break
        name = ".".join([top, *rest[: i + 1]])
        found = importlib.machinery.PathFinder.find_spec(name, found.submodule_search_locations)
    if spec is None or found is None or not _has_file(found):
        raise UsageError(
            f"{named}: there is no module {module!r}, neither in {here} nor on Python's path; "
            "start in the folder that has it, or name that folder in PYTHONPATH"
        )
    source = Path(found.origin or "")
    up = len(rest) + (1 if found.submodule_search_locations is not None else 0)
    return source, source.parents[up]


def _has_file(spec: importlib.machinery.ModuleSpec) -> bool:
    return spec.origin is not None and Path(spec.origin).is_file()


def _digest(source: Path) -> str:
    """Of a file, or of all files of the package whose ``__init__`` it is."""
    files = [source]
    if source.stem == "__init__":
        files = sorted(source.parent.rglob("*.py"))
    try:
        stamps = [(str(f), f.stat().st_size, f.stat().st_mtime_ns) for f in files]
        return _digest_of(tuple(stamps))
    except OSError as error:
        _find.cache_clear()  # it has gone
        raise UsageError(f"{source} cannot be read ({error.strerror})") from None


@functools.lru_cache(maxsize=256)
def _digest_of(stamps: tuple[tuple[str, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for name, _, _ in stamps:
        content = Path(name).read_bytes()
        if len(stamps) > 1:
            digest.update(f"{Path(name).name} {len(content)} ".encode())
        digest.update(content)
    return digest.hexdigest()[:_DIGITS]


def file_digest(path: Path) -> str:
    """Of a file of any size; it is read again only when it has changed."""
    status = path.stat()
    return _file_digest(str(path), status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _file_digest(path: str, size: int, changed: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:_DIGITS]


def _module(path: str, name: str, what: str, digest: str, folder: str, strict: bool) -> ModuleType:
    """A module, imported anew where its file has changed since this process imported it."""
    if path in sys.modules and digest and _loaded.get(path) == digest:
        return sys.modules[path]
    _add_to_path(os.getcwd())
    if folder:
        _add_to_path(folder)
    source, _ = _find(path, f"{what} {without_digest(name)}", os.getcwd(), tuple(sys.path))
    now = _digest(source)
    if digest not in ("", now):
        line = f"{what} {without_digest(name)}: {path} has changed since, from @{digest} to @{now}"
        if strict:
            raise UsageError(f"{line}; start again")
        warnings.warn(line, ChangedSourceWarning, stacklevel=level_outside())
    if _loaded.get(path, now) != now:
        for known in [m for m in sys.modules if m == path or m.startswith(f"{path}.")]:
            del sys.modules[known]
    try:
        module = importlib.import_module(path)
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"{what} {without_digest(name)}: {path} cannot be imported: {cause(error, source)}; "
            f"mend it, python -c 'import {path}' shows more"
        ) from error
    _loaded[path] = now
    return module


def cause(error: BaseException, *sources: Path) -> str:
    """An error in one line, with the last line of the user's code that it came from, if any.

    Args:
        error: what was raised.
        sources: the user's files, beside those that were imported here.
    """
    first = (str(error).strip() or "no message").split("\n")[0]
    place = own_place(error, *sources)
    return f"{type(error).__name__}: {first}{f' ({place})' if place else ''}"


def own_place(error: BaseException, *sources: Path) -> str:
    """The last line of the user's modules that an error came from; empty if from none."""
    files = {str(source) for source in sources}
    files |= {str(getattr(sys.modules.get(name), "__file__", None)) for name in _loaded}
    found = [f for f in traceback.extract_tb(error.__traceback__) if f.filename in files]
    return f"{Path(found[-1].filename).name}, line {found[-1].lineno}" if found else ""


def _add_to_path(folder: str) -> None:
    """Let Python import from a folder, as ``python -m`` lets it from the current one."""
    if folder not in sys.path and not (folder == os.getcwd() and "" in sys.path):
        sys.path.insert(0, folder)
