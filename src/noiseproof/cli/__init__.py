"""The command line. Thin: what a command does lives in its room, imported when it runs."""

from __future__ import annotations

import io
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable

from tyro.extras import SubcommandApp

import noiseproof
from noiseproof import _torchrun
from noiseproof._errors import DivergedError, LostRankError
from noiseproof._imports import cause, own_place

from ._aliases import check_words
from ._audit import audit
from ._bench import bench
from ._choose import choose
from ._export import export
from ._losses import losses
from ._predict import predict
from ._recommend import recommend
from ._report import report
from ._results import results
from ._tables import say
from ._train import train
from ._tune import tune

__all__ = ["main"]

COMMANDS: tuple[Callable[..., None], ...] = (
    losses, train, predict, export, audit, recommend, choose, tune, bench, results, report,
)  # fmt: skip
app = SubcommandApp()
for command in COMMANDS:
    app.command(command)


def main() -> None:
    """The entry point: one clear line for a mistake of the user's, and exit status 2.

    Of several ranks that torchrun started rank 0 prints; of those that end with an error the first.
    """
    here = _torchrun.place()
    if here is None:
        _main()
        return
    if here.rank:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # until the process ends
        sys.stderr = io.StringIO()
    try:
        _main()
    except SystemExit as ended:
        if here.rank and ended.code and not _spoken:  # flags that are wrong: rank 0 says so
            time.sleep(30)
        raise


_spoken = False  # whether it is said why the process ends, be it by another rank


def _main() -> None:
    if sys.argv[1:] in (["--version"], ["-V"]):
        print(f"noiseproof {noiseproof.__version__}")
        return
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            check_words(sys.argv[1:], COMMANDS)
            app.cli(prog="noiseproof", description=noiseproof.__doc__.split("\n")[0])
    except (noiseproof.UsageError, noiseproof.MissingExtraError) as error:
        _end(error, 2)
    except DivergedError as error:
        _end(error, 1)
    except LostRankError as error:
        _end(error, 1)
    except BrokenPipeError:  # noiseproof losses | head
        sys.stderr.close()
    except OSError as error:
        why = error.strerror or error
        _end(f"{why}: {error.filename}" if error.filename else why, 1)
    except KeyboardInterrupt:
        command = "" if "--votes" in sys.argv else "".join(sys.argv[1:2])
        later = {"tune": "; the same command goes on with the study"} | dict.fromkeys(
            ("train", "bench", "choose", "audit"), "; the same command goes on from the last epoch"
        )
        _end(f"stopped{later.get(command, '')}", 130)
    except Exception as error:
        above = traceback.format_exc()
        if own_place(error):
            _end(f"this is an error of your own module: {cause(error)}", 1, above)
        _end("this is a fault of noiseproof: please report it with the lines above", 70, above)


def _warn(message: Warning | str, *_where: object, **_: object) -> None:
    """One line, without the place in the code, which tells a user nothing."""
    word = "note" if type(message).__name__.endswith("Note") else "warning"
    say(f"noiseproof: {word}: {' '.join(str(message).split())}", sys.stderr)


def _end(what: object, status: int, above: str = "") -> None:
    """Print why the process ends, and the lines above it; of several ranks the first does."""
    global _spoken
    if _torchrun.speaks():
        here = _torchrun.place()
        file = sys.stderr if here is None else sys.__stderr__
        for line in above.split("\n") if above else ():
            say(line, file)
        say(f"noiseproof: {what}", file)
        _torchrun.has_spoken()
    _spoken = True
    sys.exit(status)
