"""Who is training a run: a lock that the operating system lets go of when its process ends."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

LOCKS = ".locks"


def claim(stack: ExitStack, out: Path, name: str) -> bool:
    """Claim the folder ``name`` under ``out`` until the stack is closed; False if another has it.

    The lock is a file under ``.locks`` in the folder of results, and works on a shared disk too.
    Nobody waits for a process that has ended, however it did.
    """
    from filelock import FileLock, Timeout

    (out / LOCKS).mkdir(parents=True, exist_ok=True)
    lock = FileLock(out / LOCKS / name)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    stack.callback(lock.release)
    return True
