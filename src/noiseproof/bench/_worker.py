"""A process that trains what it is told to, line by line.

Each line of its input is a pack of runs, each of its output something that happened. It ends when
its input does, at once: with the process that started it, however that came to its end.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import warnings
from dataclasses import asdict, replace
from typing import IO, Any

FREE = "free"  # said when a pack is done
READY = "ready"  # said once, with the number of GPUs


def main() -> None:
    """Read, train, say; nothing else may write to the output, so that is moved aside."""
    with os.fdopen(os.dup(1), "w", buffering=1) as out:
        os.dup2(2, 1)
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=_listen, args=(sys.stdin, lines), daemon=True).start()

        import torch

        from ..runs import ResolvedRun
        from ._work import RunEvent, WorkerConfig, work

        torch.set_num_threads(1)
        warnings.showwarning = _warn

        def say(content: dict[str, Any]) -> None:
            out.write(json.dumps(content) + "\n")

        def tell(event: RunEvent) -> None:
            say(asdict(event))

        say({"what": READY, "gpus": torch.cuda.device_count()})
        while True:
            content = json.loads(lines.get())
            runs = [
                replace(
                    ResolvedRun.from_settings(run["settings"]),
                    device=run["device"],
                    paths=tuple(run["paths"].items()),
                    stream=run["stream"],
                )
                for run in content["runs"]
            ]
            work(runs, WorkerConfig.from_json(content["config"]), tell)
            say({"what": FREE})


def _warn(message: Warning | str, *_where: object, **_: object) -> None:
    """One line in one piece: other workers write to the same terminal."""
    sys.stderr.write(f"noiseproof: warning: {' '.join(str(message).split())}\n")
    sys.stderr.flush()


def _listen(source: IO[str], lines: queue.Queue[str]) -> None:
    for line in source:
        lines.put(line)
    os._exit(0)  # whoever gave the orders is gone; every file is whole at any moment
