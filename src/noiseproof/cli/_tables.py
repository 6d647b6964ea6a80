"""Results as a table in the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from noiseproof.results import Cell


def cell_table(cells: Sequence[Cell]) -> None:
    """Mean and deviation of each cell in percent: methods down, rates across.

    A table a data set, protocol and kind of noise, so that each fits a terminal. Cells that differ
    in something else than these, such as their weights, get rows of their own.
    """
    from rich.console import Console

    console = Console()
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.dataset, cell.protocol), []).append(cell)
    for (dataset, protocol), group in groups.items():
        clean = [c for c in group if c.noise == "none"]
        kinds = sorted({c.noise for c in group if c.noise != "none"}) or ["none"]
        for kind in kinds:
            title = f"{dataset}, {kind}, test accuracy in %" + (
                "" if protocol == "paper" else f", protocol {protocol}"
            )
            chosen = [c for c in group if c.noise == kind and kind != "none"]
            console.print(f"\n[bold]{title}[/bold]", highlight=False)
            console.print(_table([*clean, *chosen]), highlight=False, markup=False)


def _table(cells: Sequence[Cell]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("loss", no_wrap=True)
    places = sorted({(c.noise != "none", c.rate) for c in cells})
    for noisy, rate in places:
        name = f"{rate:g}" if rate else "noisy" if noisy else "clean"
        table.add_column(name, justify="right", no_wrap=True)
    rows: dict[str, dict[tuple[bool, float], list[str]]] = {}
    for cell in cells:
        at = cell.noise != "none", cell.rate
        rows.setdefault(cell.method, {}).setdefault(at, []).append(cell_text(cell))
    for method, row in rows.items():
        for i in range(max(map(len, row.values()))):
            texts = [row.get(at, []) for at in places]
            table.add_row(method, *(t[i] if i < len(t) else "" for t in texts))
    return table


def cell_text(cell: Cell) -> str:
    """As the paper prints it: 79.43 ± 0.12; without a deviation where there is one seed."""
    if not cell.records:
        return "failed"
    several = not math.isnan(cell.deviation)
    return f"{cell.mean:.2f} ± {cell.deviation:.2f}" if several else f"{cell.mean:.2f}"
