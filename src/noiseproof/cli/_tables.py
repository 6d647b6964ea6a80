"""Results as a table in the terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TextIO

from noiseproof._escape import printable
from noiseproof._imports import setting_text, without_digest
from noiseproof.results import HELD_OUT_ACCURACY

if TYPE_CHECKING:
    from noiseproof.results import Cell

_WIDE = 1_000_000  # characters: what is read from a file or a pipe has no width
_GAP = 2
_MANY = 500  # rows: rich takes half a millisecond for each
_FOLDED = 12  # no narrower, or a text becomes a column of letters

Column = tuple[str, Sequence[str]]


def say(line: str, file: TextIO | None = None) -> None:
    """Print a line that may hold names from a bundle: what would steer the terminal is shown."""
    print(printable(line), file=file, flush=True)


def width() -> int:
    """Of the terminal; without a limit where there is none."""
    if not sys.stdout.isatty():
        return _WIDE
    from rich.console import Console

    return Console().width


def width_of(columns: Sequence[Column], folds: Collection[str] = ()) -> int:
    """What these columns need, those that fold no more than they must."""
    from rich.cells import cell_len

    needs = []
    for name, texts in columns:
        longest = max(map(cell_len, (name, *texts)))
        needs.append(min(longest, _FOLDED) if name in folds else longest)
    return sum(needs) + _GAP * (len(needs) - 1)


def show(
    columns: Sequence[Column], *, right: Collection[str] = (), folds: Collection[str] = ()
) -> None:
    """A header and the texts below it for each column.

    Nothing is cut: where all is too wide, some columns fold, and then the terminal breaks lines.
    """
    columns = [(name, [printable(text) for text in texts]) for name, texts in columns]
    if width() == _WIDE or max(len(texts) for _, texts in columns) > _MANY:
        _show_plainly(columns, right)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for name, _ in columns:
        side: Literal["left", "right"] = "right" if name in right else "left"
        table.add_column(name, justify=side, no_wrap=name not in folds, overflow="fold")
    for row in zip(*(texts for _, texts in columns), strict=True):
        table.add_row(*map(Text, row))  # a text is not read as rich's markup
    # rich cuts what does not fit, even to nothing.
    console = Console(width=max(width(), width_of(columns, folds)))
    console.print(table, highlight=False)


def _show_plainly(columns: Sequence[Column], right: Collection[str]) -> None:
    """Without styles and folds, in lines of any width."""
    from rich.cells import cell_len

    padded = []
    for name, texts in columns:
        cells = [name, *texts]
        lengths = [len(cell) if cell.isascii() else cell_len(cell) for cell in cells]
        widest = max(lengths)
        fill = [" " * (widest - length) for length in lengths]
        pairs = zip(fill, cells, strict=True) if name in right else zip(cells, fill, strict=True)
        padded.append(["".join(pair) for pair in pairs])
    gap = " " * _GAP
    rows = (gap.join(row).rstrip() for row in zip(*padded, strict=True))
    print("\n".join(rows), flush=True)


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
            title = f"{without_digest(dataset)}, {noise_title(noise)}, {_accuracy(group)} in %" + (
                "" if protocol == "paper" else f", protocol {protocol}"
            )
            chosen = [c for c in group if c.noise == noise and noise != "none"]
            print()
            Console(width=_WIDE).print(Text(printable(title), style="bold"))
            _show([*clean, *chosen])


def _accuracy(cells: Sequence[Cell]) -> str:
    """What their accuracy is that of."""
    columns = {record.accuracy_column for cell in cells for record in cell.records}
    return (
        "accuracy on held-out given labels" if columns == {HELD_OUT_ACCURACY} else "test accuracy"
    )


def _show(cells: Sequence[Cell]) -> None:
    places = sorted({(c.noise != "none", c.rate) for c in cells})
    rows: dict[tuple[str, str], dict[tuple[bool, float], str]] = {}
    for method in dict.fromkeys(c.method for c in cells):
        alike = [c for c in cells if c.method == method]
        for cell, apart in zip(alike, _differences(alike), strict=True):
            rows.setdefault((method, apart), {})[cell.noise != "none", cell.rate] = cell_text(cell)
    columns: list[Column] = [("loss", [method for method, _ in rows])]
    for noisy, rate in places:
        name = f"{rate:g}" if rate else "as given" if noisy else "clean"
        columns.append((name, [row.get((noisy, rate), "") for row in rows.values()]))
    numbers = [name for name, _ in columns[1:]]
    if any(apart for _, apart in rows):
        columns.append(("settings", [apart for _, apart in rows]))
    show(columns, right=numbers, folds=["settings"])


def _differences(cells: Sequence[Cell]) -> list[str]:
    """For each of these cells, its settings that are not the same in all of them.

    Noise and rate have columns of their own. What the protocol sets is the same, also where it
    depends on the rate, as the loss of some methods does.
    """
    from noiseproof.results import protocol_settings

    names = [n for n in _unlike([c.settings for c in cells]) if n not in ("noise", "rate")]
    if not names:
        return [""] * len(cells)
    given = []
    for cell in cells:
        expected = protocol_settings(cell)
        set_by_protocol = [n for n in names if n in expected and cell.settings[n] == expected[n]]
        given.append({n: cell.settings[n] for n in names if n not in set_by_protocol})
    return _texts([c.settings for c in cells], _unlike(given))


def told_apart(lines: Sequence[str], settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """What tells each line from equal ones: the settings that are not the same in them."""
    alike: dict[str, list[Mapping[str, Any]]] = {}
    for line, of in zip(lines, settings, strict=True):
        alike.setdefault(line, []).append(of)
    texts = {line: iter(_texts(group, _unlike(group))) for line, group in alike.items()}
    return [next(texts[line]) for line in lines]


def _texts(settings: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    """For each of these, its settings of these names; those that it leaves open have none."""
    known = [{n: of[n] for n in names if of.get(n) is not None} for of in settings]
    whole = [", ".join(f"{n.replace('_', ' ')} {v}" for n, v in of.items()) for of in known]
    short = [", ".join(setting_text(n, v) for n, v in of.items() if n != "imports") for of in known]
    return short if len(set(short)) == len(set(whole)) else whole  # which digests tell apart


def _unlike(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The settings that are not the same in all of these."""
    names = dict.fromkeys(name for values in settings for name in values)
    return [n for n in names if len({repr(values.get(n)) for values in settings}) > 1]


def cell_text(cell: Cell) -> str:
    """As the paper prints it: 79.43 ± 0.12; without a deviation where there is one seed."""
    if not cell.records:
        return cell.missing
    several = not math.isnan(cell.deviation)
    return f"{cell.mean:.2f} ± {cell.deviation:.2f}" if several else f"{cell.mean:.2f}"
