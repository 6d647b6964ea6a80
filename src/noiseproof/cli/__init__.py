"""The command line. Thin: what a command does lives in its room, imported when it runs."""

from __future__ import annotations

import sys
import traceback
import warnings

from tyro.extras import SubcommandApp

import noiseproof
from noiseproof._errors import DivergedError
from noiseproof._imports import cause, own_place

from ._bench import bench
from ._losses import losses
from ._predict import predict
from ._report import report
from ._results import results
from ._tables import say
from ._train import train

__all__ = ["main"]

app = SubcommandApp()
app.command(losses)
app.command(train)
app.command(predict)
app.command(bench)
app.command(results)
app.command(report)


def main() -> None:
    """The entry point: one clear line for a mistake of the user's, and exit status 2."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        print(f"noiseproof {noiseproof.__version__}")
        return
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            app.cli(prog="noiseproof", description=noiseproof.__doc__.split("\n")[0])
    except (noiseproof.UsageError, noiseproof.MissingExtraError) as error:
        _end(error, 2)
    except DivergedError as error:
        _end(error, 1)
    except BrokenPipeError:  # noiseproof losses | head
        sys.stderr.close()
    except OSError as error:
        _end(f"{error.strerror or error}: {error.filename}" if error.filename else error, 1)
    except KeyboardInterrupt:
        _end("stopped; the same command goes on from the last epoch", 130)
    except Exception as error:
        for line in traceback.format_exc().split("\n"):
            say(line, sys.stderr)
        if own_place(error):
            _end(f"this is an error of your own module: {cause(error)}", 1)
        _end("this is a fault of noiseproof: please report it with the lines above", 70)


def _warn(message: Warning | str, *_where: object, **_: object) -> None:
    """One line, without the place in the code, which tells a user nothing."""
    word = "note" if type(message).__name__.endswith("Note") else "warning"
    say(f"noiseproof: {word}: {' '.join(str(message).split())}", sys.stderr)


def _end(what: object, status: int) -> None:
    say(f"noiseproof: {what}", sys.stderr)
    sys.exit(status)
