"""``noiseproof losses``: the losses as tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

import noiseproof
from noiseproof._errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from noiseproof.losses import Entry
    from noiseproof.theory import Check

FEW_CLASSES = 1000
"""Up to here tensors are so small that threads only wait for each other."""


def losses(
    text: Annotated[
        str, tyro.conf.Positional, tyro.conf.arg(metavar="[LOSS]", help_behavior_hint="")
    ] = "",
    /,
    *,
    check: Annotated[int | None, tyro.conf.arg(metavar="K")] = None,
    plot: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
) -> None:
    """List the losses, or explain one: noiseproof losses "nce + rce".

    Args:
        text: the loss to explain, such as "10*nce + 0.1*rce(A=-4)"; all are listed without it.
        check: compute what it will stand at K classes: bounds, symmetry, the paper's lemmas.
        plot: draw its value and its gradients into a png, svg or html file.
    """
    from rich.console import Console

    console = Console()
    if check is not None:
        _use_one_thread(check)
    if not text:
        if plot is not None:
            raise UsageError('--plot needs a loss: noiseproof losses "nce + rce" --plot FILE')
        _list_losses(console) if check is None else _check_losses(console, check)
        return
    loss = noiseproof.parse(text)
    if check is not None:
        _check_loss(console, noiseproof.theory.check(loss, check))
    elif plot is None:
        _explain(console, loss, 10)
    if plot is not None:
        from noiseproof import pictures

        pictures.draw(loss, plot)
        console.print(f"written to {plot}", highlight=False, markup=False)


def _use_one_thread(num_classes: int) -> None:
    import torch

    if num_classes <= FEW_CLASSES:
        torch.set_num_threads(1)


def _check_loss(console: Console, found: Check) -> None:
    from rich.table import Table

    console.print(f"{found.loss}, K = {found.num_classes}", highlight=False, markup=False)
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 1))
    table.add_column(no_wrap=True)
    table.add_column()
    for name, text in found.rows():
        table.add_row(f" {name}", text)
    console.print(table, highlight=False, markup=False)


def _check_losses(console: Console, num_classes: int) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("loss", "kind", "values", "sum over labels", "symmetric noise", "asymmetry"):
        table.add_column(column)
    for entry, found in _check_each(num_classes):
        rate = found.max_symmetric_rate
        table.add_row(
            entry.name,
            found.kind,
            str(found.values),
            str(found.sums),
            "" if rate is None else f"below {rate:.4g}",
            "" if found.asymmetry is None else f"{found.asymmetry:.4g}",
        )
    console.print(table)


def _check_each(num_classes: int) -> Iterator[tuple[Entry, Check]]:
    """Every known loss with what was computed of it; on a terminal behind a bar, which then goes.

    The bar is written to stderr, so that a table that is sent to a file is the table alone.
    """
    from rich.console import Console
    from rich.progress import Progress

    entries = noiseproof.losses.registry()
    terminal = Console(stderr=True)
    with Progress(console=terminal, transient=True, disable=not terminal.is_terminal) as bar:
        task = bar.add_task("", total=len(entries))
        for name, entry in entries.items():
            bar.update(task, description=f"checking {name:11}")
            yield entry, noiseproof.theory.check(entry.make(), num_classes)
            bar.advance(task)


def _list_losses(console: Console) -> None:
    from rich.markup import escape
    from rich.table import Table

    wide = console.width >= 140  # the names of the classes are long
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("loss", "kind", "value at label y", "hyper-parameters", *["class"] * wide):
        table.add_column(column, overflow="fold")
    for entry in noiseproof.losses.registry().values():
        hyper = ", ".join(
            f"{n}={h.default:g} ({h.range})" for n, h in entry.hyperparameters.items()
        )
        name = [entry.loss.__name__] * wide
        table.add_row(entry.name, entry.kind, escape(entry.formula), hyper, *name)
    console.print(table)
    console.print(
        "\nAdd and scale them as in [bold]10*nce + 0.1*rce(A=-4)[/bold]; make any robust with "
        "[bold]normalize(...)[/bold].\n"
        'Explain one with [bold]noiseproof losses "nce + rce"[/bold].'
    )


def _explain(console: Console, loss: noiseproof.Loss, num_classes: int) -> None:
    from rich.markup import escape
    from rich.table import Table

    about_sum = _about_sum(loss, num_classes)
    console.print(f"[bold]{escape(str(loss))}[/bold]\n")
    known = noiseproof.losses.registry()
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for factor, term in noiseproof.losses.terms(loss):
        entry = next((e for e in known.values() if type(term) is e.loss), None)
        table.add_row("term", f"[bold]{factor:g}[/bold] times [bold]{term}[/bold], {term.kind}")
        if entry is not None:
            table.add_row("", escape(entry.summary))
            table.add_row("value", escape(entry.formula))
            table.add_row("class", f"noiseproof.{entry.loss.__name__}")
            for name, hyper in entry.hyperparameters.items():
                table.add_row("with", f"{name} = {getattr(term, name):g}, where {hyper.range}")
            table.add_row("from", entry.reference)
        table.add_row("", "")
    table.add_row("kind", loss.kind)
    table.add_row("sum", about_sum)
    table.add_row("python", f'noiseproof.parse("{loss}")')
    console.print(table)


def _about_sum(loss: noiseproof.Loss, num_classes: int) -> str:
    low, high = noiseproof.losses.class_sum_range(loss, num_classes)
    if high - low <= 1e-9 * max(1.0, abs(high)):
        limit = (num_classes - 1) / num_classes
        return (
            f"over all {num_classes} classes it is {high:.6g} for every prediction tried, so it "
            f"tolerates symmetric noise at rates below {limit:.6g} (Lemma 1)"
        )
    return (
        f"over all {num_classes} classes it goes from {low:.4g} to {high:.4g} with the prediction, "
        f"so it is not robust by itself; normalize(...) is"
    )
