"""Results as a table in the terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Literal, TextIO

from noiseproof._escape import printable

if TYPE_CHECKING:
    from noiseproof.results import Cell

_WIDE = 1_000_000  # characters: what is read from a file or a pipe has no width
_GAP = 2
_FOLDED = 12  # no narrower, or a text becomes a column of letters

Column = tuple[str, Sequence[str]]


def say(line: str, file: TextIO | None = None) -> None:
    """Print a line that may hold names from a bundle: what would steer the terminal is shown."""
    print(printable(line), file=file)


def width() -> int:
    """Of the terminal; without a limit where there is none."""
    from rich.console import Console

    return Console().width if sys.stdout.isatty() else _WIDE


def width_of(columns: Sequence[Column], folds: Collection[str] = ()) -> int:
    """What these columns need, those that fold no more than they must."""
    needs = []
    for name, texts in columns:
        longest = max(map(len, (name, *texts)))
        needs.append(min(longest, _FOLDED) if name in folds else longest)
    return sum(needs) + _GAP * (len(needs) - 1)


def show(
    columns: Sequence[Column], *, right: Collection[str] = (), folds: Collection[str] = ()
) -> None:
    """A header and the texts below it for each column.

    Nothing is cut: where all is too wide, some columns fold, and then the terminal breaks lines.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    columns = [(name, [printable(text) for text in texts]) for name, texts in columns]
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for name, _ in columns:
        side: Literal["left", "right"] = "right" if name in right else "left"
        table.add_column(name, justify=side, no_wrap=name not in folds, overflow="fold")
    for row in zip(*(texts for _, texts in columns), strict=True):
        table.add_row(*map(Text, row))  # a text is not read as rich's markup
    # rich cuts what does not fit, even to nothing.
    console = Console(width=max(width(), width_of(columns, folds)))
    console.print(table, highlight=False)


def cell_table(cells: Sequence[Cell]) -> None:
    """Mean and deviation of each cell in percent: methods down, rates across.

    There is one table for each data set, protocol and noise, so that it fits a terminal. Cells that
    differ in other settings get rows of their own, which name these settings.
    """
    from rich.console import Console
    from rich.text import Text

    from noiseproof.catalogue import noise_title

    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.dataset, cell.protocol), []).append(cell)
    for (dataset, protocol), group in groups.items():
        clean = [c for c in group if c.noise == "none"]
        noises = sorted({c.noise for c in group if c.noise != "none"}) or ["none"]
        for noise in noises:
            title = f"{dataset}, {noise_title(noise)}, test accuracy in %" + (
                "" if protocol == "paper" else f", protocol {protocol}"
            )
            chosen = [c for c in group if c.noise == noise and noise != "none"]
            print()
            Console(width=_WIDE).print(Text(printable(title), style="bold"))
            _show([*clean, *chosen])


def _show(cells: Sequence[Cell]) -> None:
    places = sorted({(c.noise != "none", c.rate) for c in cells})
    rows: dict[tuple[str, str], dict[tuple[bool, float], str]] = {}
    for method in dict.fromkeys(c.method for c in cells):
        alike = [c for c in cells if c.method == method]
        for cell, apart in zip(alike, _differences(alike), strict=True):
            rows.setdefault((method, apart), {})[cell.noise != "none", cell.rate] = cell_text(cell)
    columns: list[Column] = [("loss", [method for method, _ in rows])]
    for noisy, rate in places:
        name = f"{rate:g}" if rate else "noisy" if noisy else "clean"
        columns.append((name, [row.get((noisy, rate), "") for row in rows.values()]))
    numbers = [name for name, _ in columns[1:]]
    if any(apart for _, apart in rows):
        columns.append(("settings", [apart for _, apart in rows]))
    show(columns, right=numbers, folds=["settings"])


def _differences(cells: Sequence[Cell]) -> list[str]:
    """For each of these cells, its settings that are not the same in all of them.

    Noise and rate have columns of their own.
    """
    names = [
        name
        for name in dict.fromkeys(name for c in cells for name in c.settings)
        if name not in ("noise", "rate") and len({repr(c.settings.get(name)) for c in cells}) > 1
    ]
    found = []
    for cell in cells:
        found.append(", ".join(f"{n.replace('_', ' ')} {cell.settings.get(n)}" for n in names))
    return found


def cell_text(cell: Cell) -> str:
    """As the paper prints it: 79.43 ± 0.12; without a deviation where there is one seed."""
    if not cell.records:
        return "failed"
    several = not math.isnan(cell.deviation)
    return f"{cell.mean:.2f} ± {cell.deviation:.2f}" if several else f"{cell.mean:.2f}"
