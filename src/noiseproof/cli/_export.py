"""``noiseproof export``: a trained model in a file of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from ._tables import say
from ._words import size


def export(
    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    /,
    *,
    to: Annotated[
        str | None, tyro.conf.arg(metavar="{safetensors,torch,onnx}", help_behavior_hint="")
    ] = None,
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")] = None,
    ema: tyro.conf.FlagCreatePairsOff[bool] = False,
    last: tyro.conf.FlagCreatePairsOff[bool] = False,
    network: Annotated[
        str | None, tyro.conf.arg(metavar="MODULE:NAME", help_behavior_hint="")
    ] = None,
) -> None:
    """Write a trained model for other programs: noiseproof export runs/HASH --to onnx.

    ONNX and torch files hold the preprocessing, and give probabilities; safetensors files hold the
    weights with everything that is needed to use them, and are read by noiseproof predict too.

    Args:
        run: the folder of the run, or a .safetensors file that it was exported to.
        to: the form; by default what the name of the file ends in.
        out: the file; by default model.safetensors, model.pt2 or model.onnx in the run's folder.
        ema: take the moving average of the weights.
        last: take the weights of the last epoch, also where another one was chosen.
        network: of a run with a network of your own, what makes it, if the run does not say.
    """
    from noiseproof.train import load
    from noiseproof.train._export import SUFFIXES, form_of, takes

    form = form_of(out, to)
    if out is None:
        name = f"model{'-ema' if ema else '-last' if last else ''}{SUFFIXES[form]}"
        out = run / name if run.is_dir() else run.with_suffix(SUFFIXES[form])
    model = load(run, network=network, ema=ema, last=last)
    model.export(out, form)
    say(f"written to {out}, {size(out.stat().st_size)}")
    if form != "safetensors":
        say(f"from {takes(model)} to probabilities: float32 [N, {len(model.classes)}]")
