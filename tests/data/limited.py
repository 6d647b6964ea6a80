"""Read files under a limit of memory, each in a process of its own: run by test_hostile.py.

The arguments are a root for each data set to load: ``name=root``. Prints a line of JSON for each.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from typing import Any

from noiseproof import data

HEADROOM = 1 << 30  # beyond what the interpreter and torch have mapped
SECONDS = 30


def attempt(name: str, root: str) -> dict[str, Any]:
    """What became of loading, with the most memory that it took, in MB."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        load = data.human if name.startswith("cifar10n") else data.load
        load(name, root=root, download=False)
        found = {"error": "", "message": "it was read"}
    except BaseException as error:
        found = {"error": type(error).__name__, "message": str(error)}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {**found, "megabytes": (peak - before) / 1024}


def limit() -> None:
    with open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + HEADROOM,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    for case in sys.argv[1:]:
        name, root = case.split("=", 1)
        if not (child := os.fork()):
            limit()
            print(json.dumps(attempt(name, root)), flush=True)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            signal = os.WTERMSIG(status)
            print(json.dumps({"error": "killed", "message": f"by signal {signal}"}), flush=True)


if __name__ == "__main__":
    main()
