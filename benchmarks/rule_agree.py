"""How far two networks agree that are each trained on half of the samples: when to stop, with
nothing held out?

    python benchmarks/rule.py data DIR       # writes the sets, which rule.py chooses on
    python benchmarks/rule_agree.py --data DIR --set pairs --weights even --shrink 4 --variant grows

For each run a row for every epoch goes to benchmarks/rule_agree.csv, and the others stay: how far
the two agree, and how accurate they are on clean images that were set aside.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from rule import add_choice, chosen, line_of, precise, root_of, set_of
from tables import save

from noiseproof.runs import Run


def agreement(run: Run, root: str | None) -> list[dict[str, float]]:
    """How far two networks agree that are each trained on half of the samples, epoch by epoch.

    They start differently, and are compared by their averaged weights on all training images, of
    whose labels each has seen half: a wrong label that one has learnt by heart the other does not
    know. It is Cohen's kappa, since two that predict one class alone always agree.
    """
    import contextlib

    import torch

    from noiseproof import models
    from noiseproof.train._pack import GraphPack, Pack
    from noiseproof.train._setup import Setup, device_of

    device, setup = device_of(run.device), Setup(root)
    on_gpu, rows = device.type == "cuda", []
    halves = [
        replace(run, holdout=0.5, fold=fold, choose_epoch=False).resolve(on_gpu=on_gpu)
        for fold in (1, 2)
    ]
    with torch.cuda.device(device) if on_gpu else contextlib.nullcontext():
        first = setup.trainer(halves[0])
        classes, shape = len(first.inputs.classes), first.inputs.shape
        other = models.build(halves[1].model, classes, shape=shape, seed=run.seed + 1)
        trainers = [first, setup.trainer(halves[1], network=other)]
        packs = [GraphPack([t], compiled=False) if on_gpu else Pack([t]) for t in trainers]
        images = [t.validation.inputs for t in trainers if t.validation is not None]
        for epoch in range(halves[0].epochs):
            clean = [pack.train_epoch(epoch)[0].values["test_accuracy_ema"] for pack in packs]
            with torch.no_grad(), packs[0].backend_flags():
                one, two = (
                    torch.cat([t._eval_logits(averaged, part).argmax(1) for part in images])
                    for t, averaged in ((t, t.state.ema_tensors()) for t in trainers)
                )
            shares = [torch.bincount(x, minlength=classes) / len(x) for x in (one, two)]
            chance, same = float((shares[0] * shares[1]).sum()), float((one == two).float().mean())
            kappa = (same - chance) / (1 - chance) if chance < 1 else 0.0
            rows.append({"epoch": epoch + 1, "kappa": kappa, "clean": sum(clean) / 2})
            print(f"  epoch {epoch + 1}: kappa {kappa:.4f}, clean {sum(clean) / 2:.4f}", flush=True)
    best, chosen = max(row["clean"] for row in rows), max(rows, key=lambda row: row["kappa"])
    print(
        f"{line_of(run, 'two halves')}: best {best:.2%}, last {rows[-1]['clean']:.2%}, "
        f"where they agree most {chosen['clean']:.2%} (epoch {chosen['epoch']:.0f})"
    )
    return rows


def rows_of(run: Run, root: str | None) -> list[dict[str, object]]:
    """The same with what was trained, for the table."""
    resolved = run.resolve()
    about = {
        "run": resolved.hash, "set": set_of(resolved), "rate": run.rate, "loss": resolved.loss,
        "shrink": run.shrink, "shrink_schedule": resolved.shrink_schedule, "seed": run.seed,
    }  # fmt: skip
    return [{**about, **row} for row in agreement(run, root)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_choice(parser)
    given = parser.parse_args()
    for run in precise(chosen(given), given):
        save(__file__, rows_of(run, root_of(given)), beside="run")


if __name__ == "__main__":
    main()
