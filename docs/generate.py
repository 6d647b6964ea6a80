"""Write the files that follow from the declarations and the results; ``--check`` only compares.

    python docs/generate.py [--check]

Rewrites docs/losses.md, the table in docs/theory.md, the tables of the catalogue in
docs/training.md, docs/reproduction.md (from results/), the tables of docs/which-loss.md,
docs/imbalance.md, docs/find-wrong-labels.md and docs/choose.md and the evidence of
`noiseproof.recommend` (src/noiseproof/tools/evidence.csv; from benchmarks/ and results/), those
of docs/one-rule.md (from benchmarks/rule/), those of docs/speed.md (from benchmarks/loss_cpu.csv
and train_step.csv), the tables of losses and of the reproduction in README.md, between their marks,
the pictures, and the signatures of the losses that texts are read with
(src/noiseproof/syntax/signatures.json).
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Callable
from pathlib import Path

import choices
import matrices
import one_rule
import reproduction
import torch
from cells import ROOT, row
from figures import origin
from gallery import CLASSES, SUMS, entries, hyper, text_and_example

import noiseproof
from noiseproof import pictures, syntax
from noiseproof.catalogue import METHODS, NOISES, Protocol, Setting, protocol_of
from noiseproof.losses import Entry

PICTURES = ("ce", "nce", "rce", "nce + rce", "nce + amse")
DRAWN = ROOT / "docs" / "pictures"
SHOWN = ("torch cross_entropy", "ce", "mae", "rce", "gce", "nce", "nce + rce", "nfl", "ngce")


def class_sum(entry: Entry) -> str:
    low, high = noiseproof.losses.class_sum_range(entry.make(), CLASSES)
    low, high = (float(f"{x:.9g}") for x in (low, high))  # no digits that the machine decides
    if high - low <= 1e-9 * max(1.0, high):
        return f"{high:.6g}, so robust"
    return f"{low:.3g} to {high:.3g}"


def short_table() -> str:
    lines = [
        row("text", "class", "kind", "value at label y", "hyper-parameters"),
        row("---", "---", "---", "---", "---"),
    ]
    for e in entries():
        lines.append(row(f"`{e.name}`", f"`{e.loss.__name__}`", e.kind, f"`{e.formula}`", hyper(e)))
    return "\n".join(lines)


def page() -> str:
    parts = [
        "# The losses",
        "",
        "This page is written by `docs/generate.py` from the declarations in "
        "`src/noiseproof/losses/`; `make docs` renews it.",
        "",
        "p is the softmax of the logits, y the label, q the one-hot label, K the number of "
        "classes. "
        "A loss is *active* if its summand is zero for every class other than the label, else "
        "*passive*: a property of the sum over classes as its paper writes it, not of what the sum "
        "comes to (MAE comes to 2 (1 - p_y) and is passive). It is *robust* to symmetric noise if "
        f"its sum over all labels is the same for every prediction; the last column has that sum "
        f"at K = {CLASSES}, or the least and greatest one met on extreme and random predictions.",
        "",
        row("text", "class", "kind", f"sum over labels, K = {CLASSES}"),
        row("---", "---", "---", "---"),
        *(
            row(f"[`{e.name}`](#{e.name})", f"`{e.loss.__name__}`", e.kind, class_sum(e))
            for e in entries()
        ),
    ]
    for e in entries():
        text, example = text_and_example(e)
        parts += ["", f"## {e.name}", "", f"`noiseproof.{e.loss.__name__}`. {text}", "", example]
        parts += ["", f"Reference: {e.reference}."]
    return "\n".join(parts) + "\n"


def speed_table() -> str:
    with (ROOT / "benchmarks" / "loss_cpu.csv").open(newline="") as file:
        measured = list(csv.DictReader(file))
    shapes = list(dict.fromkeys(m["shape"] for m in measured))
    ratio = {(m["loss"], m["shape"]): m["ratio"] for m in measured}
    memory = {m["loss"]: m["memory"] for m in measured}  # of the largest shape, the last
    lines = [
        row("loss", *shapes, f"memory, {shapes[-1]}"),
        row("---", *["---:"] * (len(shapes) + 1)),
    ]
    for loss in SHOWN:
        lines.append(row(f"`{loss}`", *(ratio[loss, shape] for shape in shapes), memory[loss]))
    return "\n".join(lines)


def steps_table() -> str:
    with (ROOT / "benchmarks" / "train_step.csv").open(newline="") as file:
        measured = list(csv.DictReader(file))
    columns = {
        "what": "what", "ms_per_step": "ms a step and run", "seconds_per_epoch": "s an epoch",
        "with_test": "with its test", "times_ordinary": "times the ordinary loop",
    }  # fmt: skip
    columns = {k: words for k, words in columns.items() if any(m.get(k) for m in measured)}
    lines = [row("network", *columns.values()), row("---", "---", *["---:"] * (len(columns) - 1))]
    for m in measured:
        if not m["what"].startswith("floor"):
            lines.append(row(f"`{m['network']}`", *(m[k] for k in columns)))
    return "\n".join(lines)


def bounds_table() -> str:
    lines = [
        row(
            "loss",
            "kind",
            "values",
            "sum over labels",
            "symmetric noise",
            "Lemma 2",
            "asymmetry ratio",
        ),
        row(*["---"] * 7),
    ]
    texts = [*(e.name for e in entries()), *SUMS]
    for text in texts:
        found = noiseproof.theory.check(noiseproof.parse(text), CLASSES)
        rate, ratio = found.max_symmetric_rate, found.asymmetry
        lines.append(
            row(
                f"`{text}`",
                found.kind,
                str(found.values),
                str(found.sums),
                "" if rate is None else f"below {rate:g}",
                found.lemma_2.split(":")[0],
                "" if ratio is None else f"{ratio:.4g}",
            )
        )
    return "\n".join(lines)


def signatures() -> str:
    """What the torch-free reader of texts knows of the declared losses."""
    names = [name for name, s in syntax.SIGNATURES.items() if not s.user]
    return syntax.to_json({name: noiseproof.parse(name).kind for name in names})


def protocols_table() -> str:
    shown = ("digits", "mnist", "cifar10", "cifar100", "webvision")
    rows: list[tuple[str, Callable[[Protocol], str]]] = [
        ("network", lambda p: f"`{p.model}`"),
        ("epochs", lambda p: str(p.epochs)),
        ("learning rate", lambda p: f"{p.lr:g}, {p.schedule}"),
        ("weight decay", lambda p: f"{p.weight_decay:g}"),
        ("batch", lambda p: str(p.batch_size)),
        ("momentum", lambda p: f"{p.momentum:g}{', Nesterov' * p.nesterov}"),
        ("augmentation", _augmentation),
    ]
    lines = [row("", *(f"`{d}`" for d in shown)), row(*["---"] * (len(shown) + 1))]
    for name, of in rows:
        lines.append(row(name, *(of(protocol_of("paper", d)) for d in shown)))
    return "\n".join(lines)


def _augmentation(p: Protocol) -> str:
    resized = "resized " if p.crop_scale else ""
    used = {
        "crop": p.crop, f"{resized}crop {p.crop_size}": p.crop_size, "flip": p.flip,
        f"rotation {p.rotate:g}°": p.rotate, f"colours {p.jitter:g}": p.jitter,
    }  # fmt: skip
    return ", ".join(what for what, value in used.items() if value) or "none"


def noises_table() -> str:
    lines = [row("`--noise`", "labels", "rate", "variants"), row(*["---"] * 4)]
    for name, entry in NOISES.items():
        if entry.group != "given":
            rate = "`--rate`" if entry.has_rate else "fixed"
            lines.append(row(f"`{name}`", entry.about, rate, ", ".join(entry.variants)))
    return "\n".join(lines)


def methods_table() -> str:
    datasets = ("digits", "mnist", "cifar10", "cifar100", "webvision")
    lines = [row("`--loss`", "in papers", *datasets), row(*["---"] * (len(datasets) + 2))]
    for name, method in METHODS.items():
        if method.paper:
            texts = (_setting_text(method.paper.get(d)) for d in datasets)
            lines.append(row(f"`{name}`", method.label, *texts))
    return "\n".join(lines)


def _setting_text(setting: object) -> str:
    if setting is None:
        return ""
    if not isinstance(setting, Setting):
        return "by noise and rate"
    text = f"`{syntax.short(setting.loss)}`"
    return text + (f", L1 {setting.l1:g}" if setting.l1 else "")


def between(text: str, mark: str, content: str) -> str:
    marked = f"<!-- {mark} -->\n{content}\n<!-- /{mark} -->"
    found = f"<!-- {mark} -->.*<!-- /{mark} -->"
    text, times = re.subn(found, lambda _: marked, text, flags=re.DOTALL)
    if times != 1:
        raise ValueError(f"the marks of {mark} are there {times} times, not once")
    return text


def documents() -> dict[Path, str]:
    readme = ROOT / "README.md"
    text = between(readme.read_text(), "losses", short_table())
    text = between(text, "reproduction", reproduction.readme_table())
    fast = ROOT / "docs" / "speed.md"
    measured_speed = between(fast.read_text(), "speed", speed_table())
    measured_speed = between(measured_speed, "steps", steps_table())
    theory = ROOT / "docs" / "theory.md"
    bounds = between(theory.read_text(), "bounds", bounds_table())
    training = ROOT / "docs" / "training.md"
    settings = between(training.read_text(), "protocols", protocols_table())
    settings = between(settings, "noises", noises_table())
    settings = between(settings, "methods", methods_table())
    which = ROOT / "docs" / "which-loss.md"
    choice = which.read_text()
    for data in ("digits", "features", "vectors", "vectors, linear"):
        choice = between(choice, data.replace(", ", "-"), choices.accuracy_table(data))
    for data in choices.REPRODUCED:
        choice = between(choice, data, choices.reproduced_table(data))
    imbalance = ROOT / "docs" / "imbalance.md"
    rare = imbalance.read_text()
    for data in ("features", "segmentation"):
        rare = between(rare, data, choices.imbalance_table(data))
    audits = ROOT / "docs" / "find-wrong-labels.md"
    audited = between(audits.read_text(), "human", choices.human_audit_table())
    audited = between(audited, "small", choices.small_audit_table())
    page_of_choice = ROOT / "docs" / "choose.md"
    chosen = between(page_of_choice.read_text(), "measured", choices.choose_table())
    estimator = ROOT / "docs" / "trainers" / "sklearn.md"
    measured = estimator.read_text()
    for data in ("digits", "breast_cancer", "wine", "20 classes"):
        measured = between(measured, data, choices.sklearn_table(data))
    of_rule = ROOT / "docs" / "one-rule.md"
    ruled = between(of_rule.read_text(), "choice", one_rule.choice_table("cifar10", "pairs"))
    ruled = between(ruled, "small", one_rule.choice_table("small"))
    ruled = between(ruled, "parts", one_rule.parts_table("digits"))
    ruled = between(ruled, "limits", one_rule.limits_table())
    ruled = between(ruled, "tables", one_rule.tables_table())
    for data in ("cifar10", "cifar100", "fashion-mnist", "news"):
        ruled = between(ruled, data, one_rule.proof_table(data))
    own = ROOT / "docs" / "own-data.md"
    texts = between(own.read_text(), "noisy-text", choices.noisy_text_table("noisy_text"))
    vectors = choices.noisy_text_table("embedded_text")
    texts = between(texts, "embedded-text", vectors)
    return {
        ROOT / "src" / "noiseproof" / "syntax" / "signatures.json": signatures(),
        ROOT / "src" / "noiseproof" / "tools" / "evidence.csv": choices.evidence(),
        readme: text,
        fast: measured_speed,
        ROOT / "docs" / "losses.md": page(),
        theory: bounds,
        training: settings,
        which: choice,
        imbalance: rare,
        audits: audited,
        own: texts,
        of_rule: ruled,
        page_of_choice: chosen,
        estimator: measured,
        ROOT / "docs" / "reproduction.md": reproduction.page(),
    }


def main() -> None:
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    torch.set_num_threads(1)  # tensors this small are slower on more
    stale = [p for p, text in documents().items() if not p.exists() or p.read_text() != text]
    figures = {DRAWN / f"{name}.svg": f for name, f in reproduction.pictures().items()}
    stale += [
        path
        for path, figure in figures.items()
        if not path.exists() or not path.read_text().endswith(origin(figure))
    ]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date: run make docs")
        sys.exit(bool(stale))
    for path, text in documents().items():
        path.write_text(text)
        print(f"{path.relative_to(ROOT)} written")
    DRAWN.mkdir(exist_ok=True)
    for path, figure in figures.items():
        path.write_text(reproduction.svg(figure))
    (DRAWN / "noise.svg").write_bytes(matrices.svg())
    for text in PICTURES:
        pictures.draw(noiseproof.parse(text), DRAWN / f"{text.replace(' + ', '-')}.svg")


if __name__ == "__main__":
    main()
