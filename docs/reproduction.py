"""The page docs/reproduction.md and the README's table, from the files under results/."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import groupby

import figures
from cells import (
    ROOT,
    Results,
    labels,
    ours,
    paper,
    protocol_text,
    rate,
    results_of_the_repository,
    settings_text,
    signed,
    table,
)
from claims import MARGIN, MAX_DROP, ROBUST, claims, noisy_columns, places
from reasons import reasons

from noiseproof.bench import plan, read_bench
from noiseproof.catalogue import (
    CLEAN,
    dataset_title,
    is_active_passive,
    labels_title,
    noise_group,
    noise_title,
    protocol_of,
)
from noiseproof.report import Comparison, Condition, Figure, condition_name
from noiseproof.report._compare import MAX_POINTS, MAX_Z_SCORE

README_DATASET = "cifar10"
VERDICTS = ("agrees", "above", "below", "not run")
_PLAIN = ("CE", "FL", "GCE", "SCE")
OTHER_LABELS = "authors' generator"  # in a source: labels that ours do not compare with
_LATER = ("NCE+AGCE", "NCE+AUL", "CEeps+MAE", "ANL-CE", "JAL-CE", "JAL-FL")


def every_cell(results: Results) -> list[str]:
    """Each cell: the paper's, later papers' and ours."""
    lines = []
    for dataset, group in groupby(results.compared, key=lambda c: c.condition.dataset):
        for noise, cells in groupby(group, key=lambda c: c.condition.noise):
            human = noise_group(noise) == "human"
            title = noise_title(noise) if human else labels_title(noise)
            lines += [f"### {dataset_title(dataset)}, {title}", ""]
            shown = list(cells)
            lines += table(
                ("loss", "settings", "rate", "paper", "run again by later papers", "ours", "seeds",
                 "difference", "in deviations", ""),
                ((
                    c.method, settings_text(c), rate(c), paper(c),
                    "; ".join(f"{p.mean:.2f} ({p.source})" for p in c.later), ours(c),
                    "" if c.ours is None else ", ".join(map(str, c.ours.cell.seeds)),
                    signed(c.difference),
                    "" if c.z_score is None else f"{c.z_score:+.1f}",
                    c.verdict if c.verdict != "not published" else "",
                ) for c in shown),
                left=2,
            )  # fmt: skip
    return lines


def summary(results: Results) -> list[str]:
    """How many cells of the paper's tables agree, by data set, noise and family of losses."""
    rows = []
    usual = [
        c for c in results.compared if c.paper is not None and protocol_text(c) in ("", "paper")
    ]
    groups: dict[tuple[str, str, str], Counter[str]] = {}
    for c in usual:
        family = "active-passive" if is_active_passive(c.method) else "others"
        key = (c.condition.dataset, c.condition.noise, family)
        groups.setdefault(key, Counter())[c.verdict] += 1
    for (dataset, noise, family), counts in groups.items():
        numbers = (str(counts[v]) for v in VERDICTS)
        rows.append((dataset_title(dataset), labels(noise), family, *numbers))
    return table(("data set", "labels", "losses", *VERDICTS), rows, left=3)


def by_which_rule(results: Results) -> list[str]:
    """How many of the cells agree by one half of the rule alone."""
    agree = [
        c for c in results.compared
        if c.verdict == "agrees" and c.paper is not None and protocol_text(c) == "paper"
        and c.difference is not None
    ]  # fmt: skip
    wide = [c for c in agree if abs(c.difference or 0) > MAX_POINTS]
    near = [c for c in agree if c.z_score is not None and abs(c.z_score) > MAX_Z_SCORE]
    if not wide:
        return []
    most = max(wide, key=lambda c: abs(c.difference or 0))
    return [
        f"Of the {len(agree)} cells that agree, {len(near)} are within a point but more than two "
        f"deviations away, and {len(wide)} are within two deviations but more than a point away, "
        f"most of all {most.method} at {condition_name(most.condition)}: "
        f"{signed(most.difference)}, with {paper(most)} in the paper.",
        "",
    ]


def best_losses(results: Results) -> list[str]:
    """Whether the active-passive losses are ahead, as the paper says."""
    columns = noisy_columns(results)
    ahead, pairs = 0, 0
    first: dict[str, list[Comparison]] = {}
    for cells in columns:
        if not is_active_passive(cells[0].method):
            first.setdefault(cells[0].method, []).append(cells[0])
        means = {c.method: c.ours.cell.mean for c in cells if c.ours}
        for active in means.keys() & set(ROBUST):
            for plain in means.keys() & set(_PLAIN):
                pairs += 1
                ahead += means[active] > means[plain]
    won = len(columns) - sum(map(len, first.values()))
    elsewhere = "".join(f"; {m} is the best at {places(cells)}" for m, cells in first.items())
    nlnl = [c.ours.cell for cells in columns for c in cells if c.ours and c.method == "NLNL"]
    long = {
        cell.settings["epochs"] / protocol_of("paper", cell.dataset).epochs for cell in nlnl
    }  # fmt: skip
    note = f" NLNL trains {max(long):g} times as many epochs." if long else ""
    return [
        "- **The order of the losses.** Among the paper's losses the best one is active-passive in "
        f"{won} of the {len(columns)} noisy settings{elsewhere}.{note} Of the {pairs} comparisons "
        "of one of the four with CE, FL, GCE or SCE under the same noise, the active-passive loss "
        f"is ahead in {ahead}.",
    ]


def later_losses(results: Results) -> list[str]:
    """Losses of later papers, and NCE+RCE beside them; the best first."""
    found: dict[Condition, list[tuple[float, Comparison]]] = {}
    for c in results.compared:
        if (
            c.ours is not None and protocol_text(c) == "paper" and c.method in ("NCE+RCE", *_LATER)
        ):  # fmt: skip
            found.setdefault(c.condition, []).append((c.ours.cell.mean, c))
    rows, best, below, numbers = [], [], 0, 0
    for condition, cells in found.items():
        if not any(c.method in _LATER for _, c in cells):
            continue
        cells.sort(key=lambda pair: -pair[0])
        best.append(f"{cells[0][1].method} at {condition_name(condition)}")
        for mean, c in cells:
            number = c.later[0] if c.later else None
            away = None if number is None else round(round(mean, 2) - number.mean, 2)
            if number is not None and away is not None and OTHER_LABELS not in number.source:
                numbers += 1
                below += away < 0
            rows.append((
                condition_name(condition), c.method, number.source if number else "",
                f"{number.mean:.2f}" if number else "", ours(c), signed(away),
            ))  # fmt: skip
    if not rows:
        return []
    return [
        "What came after the paper, with the settings of its own paper and the protocol of this "
        f"one, the best first. Ours are best with {', '.join(best)}. Of the {numbers} numbers that "
        f"later papers print and that compare, ours is below in {below}. Where a source says that "
        "the labels are of the authors' generator, the two do not: ours has the disjoint one, "
        f"under which more labels are wrong.{worth_of_labels(results)}",
        "",
        *table(("", "loss", "published by", "published", "ours", "difference"), rows, left=3),
    ]


def worth_of_labels(results: Results) -> str:
    """What the authors' labels alone change, of a loss that was run with both."""
    condition = Condition("cifar10", "asymmetric", 0.4)
    usual = results.find(condition, "NCE+RCE")
    theirs = results.find(condition, "NCE+RCE", overrides="noise as authors")
    if usual is None or theirs is None or usual.ours is None or theirs.ours is None:
        return ""
    gain = theirs.ours.cell.mean - usual.ours.cell.mean
    return f" To NCE+RCE at asymmetric 0.4 the authors' labels alone are worth {gain:+.1f} points."


def spread(results: Results, dataset: str, methods: tuple[str, ...]) -> str:
    """The greatest distance from the paper among noisy cells of these losses, and where it is."""
    cells = [
        c for c in results.compared
        if c.condition.dataset == dataset and c.method in methods and protocol_text(c) == "paper"
        and c.condition.noise != CLEAN and c.difference is not None
    ]  # fmt: skip
    if not cells:
        return ""
    worst = max(cells, key=lambda c: abs(c.difference or 0))
    away, noise = worst.difference or 0.0, noise_title(worst.condition.noise, worst.condition.rate)
    known = dict.fromkeys(c.method for c in cells)
    names = ", ".join(m for m in methods if m in known)
    if len(cells) == 1:
        return f"{names} is {away:+.1f} from the paper at {noise}, the one cell run"
    at = f"{worst.method} at {noise}, {away:+.1f}"
    return f"{names} are at most {abs(away):.1f} from the paper ({at})"


def distances(results: Results) -> list[str]:
    lines = []
    for dataset in dict.fromkeys(c.condition.dataset for c in results.compared):
        parts = list(filter(None, (spread(results, dataset, m) for m in (ROBUST, _PLAIN))))
        if parts:
            lines.append(f"- **{dataset_title(dataset)}**, in points: {'; '.join(parts)}.")
    return lines


def made_by(results: Results) -> str:
    machines = Counter(str(r.about["machine"]["device"]) for r in results.records)
    torches = sorted({str(r.about["versions"]["torch"]) for r in results.records})
    epochs = sum(len(r.history) for r in results.records)
    hours = sum(sum(r.column("seconds")) for r in results.records) / 3600
    return (
        f"{len(results.records)} runs, {epochs:,} epochs, {hours:.1f} hours of "
        f"{', '.join(machines)}, torch {', '.join(torches)}"
    )


def left_on_cifar100() -> str:
    """How many of the runs that its claims need are there, and what trains the others."""
    found = plan(read_bench(ROOT / "docs" / "cifar100.toml"), ROOT / "results")
    return (
        f"CIFAR-100: {len(found.done)} of {len(found.bench)} runs are there. "
        "`noiseproof bench docs/cifar100.toml` trains what is missing, the most telling first."
    )


def page() -> str:
    results = results_of_the_repository()
    lines = [
        "# The paper's tables, measured again",
        "",
        "This page is written by `docs/generate.py` from the files under `results/` (`make docs` "
        "renews it, a test holds it to them). `noiseproof report results` shows the same numbers "
        "with every curve.",
        "",
        f"Made by {made_by(results)}. Each number is the accuracy on the clean test set after the "
        "last epoch, in percent, the mean ± the sample deviation over the seeds that are named. No "
        "run was chosen, and none was run again for a better number. The settings are those of the "
        "paper (`--protocol paper`) where nothing else is said; `authors` are those of its "
        "authors' code where the two differ.",
        "",
        "A difference *in deviations* is divided by that of the difference between one run of "
        "theirs and one of ours, the root of the sum of both variances; a single run of ours is "
        "taken to scatter as theirs did. A cell *agrees* within one point or two deviations.",
        "",
        "## In short",
        "",
        *summary(results),
        *by_which_rule(results),
        *best_losses(results),
        *distances(results),
        "",
        "![Test accuracy against the fraction of wrong labels, one panel for each data set and "
        "kind of noise](pictures/reproduction.svg)",
        "",
        "## The paper's claims",
        "",
        "Symmetric noise of rate 0.6 and the paper's settings where nothing else is said; numbers "
        "are test accuracies after the last epoch in percent, most of them of one or two seeds. A "
        f"loss overfits that ends more than {MAX_DROP:g} points below its best epoch; one "
        f"underfits that ends more than {MARGIN:g} point below the best active-passive loss. A "
        "claim *holds* if it does in all comparisons that are shown, and *in part* if in some.",
        "",
        *claims(results),
        left_on_cifar100(),
        "",
        "## The paper's figures",
        "",
        "Drawn from these runs; the paper's are described in our words.",
        "",
        *figures.section(results),
        "## Later losses",
        "",
        *later_losses(results),
        "## Where it differs, and why",
        "",
        *reasons(results),
        "## Every cell",
        "",
        *every_cell(results),
    ]
    return "\n".join(lines).rstrip() + "\n"


def readme_table() -> str:
    """One data set under symmetric noise: ours, and the paper's in brackets."""
    results = results_of_the_repository()
    rates = (0.2, 0.4, 0.6, 0.8)
    conditions = [Condition(README_DATASET, CLEAN, 0.0)]
    conditions += [Condition(README_DATASET, "symmetric", r) for r in rates]
    rows = []
    for method in (*_PLAIN, *ROBUST):
        cells = [results.find(condition, method) for condition in conditions]
        shown = [
            "" if c is None or c.ours is None or c.paper is None
            else f"{c.ours.cell.mean:.2f} ({c.paper.mean:.2f})"
            for c in cells
        ]  # fmt: skip
        rows.append((method, *shown))
    head = ("loss", "clean", *(f"{r:.0%} wrong" for r in rates))
    return "\n".join(table(head, rows)).rstrip()


def pictures() -> dict[str, Figure]:
    """The pictures of the page and of the README, by the name of their file."""
    results = results_of_the_repository()
    overview = next(f for f in results.report.overview if f.name == "overview")
    title = dataset_title(README_DATASET)
    panels = [panel for panel in overview.panels if panel.title.startswith(f"{title}, ")]
    first = replace(
        overview,
        name="result",
        title=f"Test accuracy on {title}, the more labels are wrong",
        panels=panels,
    )
    return {"result": first, "reproduction": overview, **figures.figures(results)}


def svg(figure: Figure) -> str:
    return figures.svg(results_of_the_repository(), figure)
