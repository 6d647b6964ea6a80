"""Results as a table in the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noiseproof.results import Cell


def cell_table(cells: Sequence[Cell]) -> None:
    """Mean and deviation of each cell in percent: methods down, noise across, a table a data set.

    Cells that differ in something else than these, such as their weights, get rows of their own.
    """
    from rich.console import Console
    from rich.table import Table

    console = Console()
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.dataset, cell.protocol), []).append(cell)
    for (dataset, protocol), group in groups.items():
        noises = sorted({(c.noise != "none", c.noise, c.rate) for c in group})
        table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
        table.title = dataset if protocol == "paper" else f"{dataset}, protocol {protocol}"
        table.add_column("test accuracy, %")
        for _, noise, rate in noises:
            table.add_column(f"{noise} {rate:g}" if rate else noise, justify="right")
        rows: dict[str, dict[tuple[bool, str, float], list[str]]] = {}
        for cell in group:
            at = cell.noise != "none", cell.noise, cell.rate
            rows.setdefault(cell.method, {}).setdefault(at, []).append(cell_text(cell))
        for method, row in rows.items():
            for i in range(max(map(len, row.values()))):
                texts = [row.get(at, []) for at in noises]
                table.add_row(method, *(t[i] if i < len(t) else "" for t in texts))
        console.print()
        console.print(table, highlight=False, markup=False)


def cell_text(cell: Cell) -> str:
    """As the paper prints it: 79.43 ± 0.12; without a deviation where there is one seed."""
    if not cell.records:
        return "failed"
    several = not math.isnan(cell.deviation)
    return f"{cell.mean:.2f} ± {cell.deviation:.2f}" if several else f"{cell.mean:.2f}"
