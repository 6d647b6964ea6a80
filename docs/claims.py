"""The paper's claims, each with a verdict that is computed from the runs under results/."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cells import Results, protocol_text, table

from noiseproof.catalogue import CLEAN, dataset_title, is_active_passive
from noiseproof.report import Comparison
from noiseproof.report._study import Condition
from noiseproof.results import Cell

_FIGURES = [Condition(dataset, "symmetric", 0.6) for dataset in ("cifar10", "cifar100")]
_NORMALIZED = {"CE": "NCE", "FL": "NFL"}
_ROBUST = ("NFL+MAE", "NFL+RCE", "NCE+MAE", "NCE+RCE")
_OVERFITS = 5.0  # points below the best epoch


@dataclass(frozen=True)
class Claim:
    """What the paper says, and how the runs bear it out."""

    text: str
    verdict: str
    """holds, does not hold, holds in part, or not measured"""
    evidence: str


def found_at(results: Results, condition: Condition, method: str) -> Cell | None:
    """The cell of a method with the paper's settings, where it was run."""
    c = results.find(condition, method)
    return None if c is None or c.ours is None else c.ours.cell


def curve(cell: Cell) -> list[float]:
    """Test accuracy by epoch in percent, the mean over the seeds."""
    columns = [record.column("test_accuracy") for record in cell.records]
    return [100 * sum(values) / len(values) for values in zip(*columns, strict=True)]


def drop(cell: Cell) -> float:
    """From the best epoch to the last, in points."""
    values = curve(cell)
    return max(values) - values[-1]


def verdict(holds: int, of: int) -> str:
    if not of:
        return "not measured"
    return "holds" if holds == of else "does not hold" if not holds else "holds in part"


def measured(results: Results, methods: Sequence[str]) -> list[tuple[Condition, dict[str, Cell]]]:
    """The conditions of the figures under which all of these methods were run."""
    found = []
    for condition in _FIGURES:
        cells = {m: found_at(results, condition, m) for m in methods}
        whole = {m: cell for m, cell in cells.items() if cell is not None}
        if len(whole) == len(methods):
            found.append((condition, whole))
    return found


def where(condition: Condition) -> str:
    return dataset_title(condition.dataset)


def no_overfitting(results: Results) -> Claim:
    """Figures 1 and 2."""
    parts, holds, of = [], 0, 0
    for plain, normalized in _NORMALIZED.items():
        for condition, cells in measured(results, (plain, normalized)):
            lost, kept = drop(cells[plain]), drop(cells[normalized])
            of += 1
            holds += lost > _OVERFITS >= kept
            parts.append(f"{where(condition)}: {plain} {lost:.1f}, {normalized} {kept:.1f}")
    evidence = "points lost from the best epoch to the last: " + "; ".join(parts)
    return Claim(
        "Normalized, a loss does not overfit wrong labels", verdict(holds, of), evidence * bool(of)
    )


def underfitting(results: Results) -> Claim:
    """Figures 1 and 2: what a robust loss alone reaches, and what can be reached."""
    parts, holds, of = [], 0, 0
    alone = ("NCE", "NFL", "MAE", "RCE")
    for condition, cells in measured(results, (*alone, *_ROBUST)):
        best = max(cells[m].mean for m in _ROBUST)
        for method in alone:
            of += 1
            holds += cells[method].mean < best - 1
            parts.append(f"{method} {cells[method].mean:.1f}")
        parts.append(f"the best active-passive loss {best:.1f} ({where(condition)})")
    return Claim("Robust losses alone underfit", verdict(holds, of), ", ".join(parts))


def scaling(results: Results) -> Claim:
    """Figure 3."""
    parts, holds, of = [], 0, 0
    for condition, rows in results.report.study.scaled.items():
        for method in dict.fromkeys(row.method for row in rows):
            means = {r.factor: r.cell.mean for r in rows if r.method == method and r.cell.records}
            if 1.0 in means and len(means) > 1:
                gain = max(means.values()) - means[1.0]
                of += 1
                holds += gain < 1
                parts.append(f"{where(condition)}, {method}: {gain:+.1f}")
    return Claim("Scaling does not mend it", verdict(holds, of), "; ".join(parts))


def two_of_a_kind(results: Results) -> Claim:
    """Figure 4."""
    parts, holds, of = [], 0, 0
    for condition, cells in measured(results, (*_ROBUST, "NFL+NCE", "MAE+RCE")):
        for other in ("NFL+NCE", "MAE+RCE"):
            for method in _ROBUST:
                of += 1
                holds += cells[method].mean > cells[other].mean
        shown = ", ".join(f"{m} {cell.mean:.1f}" for m, cell in cells.items())
        parts.append(f"{where(condition)}: {shown}")
    count = f"ahead in {holds} of {of} comparisons; " if of else ""
    return Claim(
        "Active plus passive beats two active and two passive losses", verdict(holds, of),
        count + "; ".join(parts),
    )  # fmt: skip


def top_two(results: Results) -> Claim:
    """Tables 2 and 3: in each noisy column, whether the two best losses are active-passive."""
    columns: dict[Condition, list[Comparison]] = {}
    for c in results.compared:
        if protocol_text(c) == "paper" and c.paper is not None and c.condition.noise != CLEAN:
            columns.setdefault(c.condition, []).append(c)
    full = [cells for cells in columns.values() if len(cells) >= 8]
    first = both = 0
    for cells in full:
        ranked = sorted(cells, key=lambda c: -(c.ours.cell.mean if c.ours else 0))
        first += is_active_passive(ranked[0].method)
        both += all(is_active_passive(c.method) for c in ranked[:2])
    evidence = (
        f"the best loss is active-passive in {first} and the best two are in {both} of "
        f"{len(full)} noisy columns"
    )
    return Claim(
        "Active-passive losses are in the top two", verdict(both, len(full)), evidence * bool(full)
    )


def more_active(results: Results) -> Claim:
    """Figure 5: the weight of NCE that is best on CIFAR-10 and on CIFAR-100."""
    best = {}
    for condition, cells in results.report.study.grid.items():
        if len({(c.alpha, c.beta) for c in cells}) >= 12:
            top = max(cells, key=lambda c: c.cell.records[0].column("validation_accuracy")[-1])
            best[condition.dataset] = top.alpha / top.beta
    if len(best) < 2:
        return Claim("More classes want more active loss", "not measured", "")
    holds = best["cifar100"] > best["cifar10"]
    evidence = ", ".join(f"{dataset_title(d)}: alpha / beta = {r:g}" for d, r in best.items())
    return Claim("More classes want more active loss", verdict(holds, 1), evidence)


def value_of_a(results: Results) -> Claim:
    """Which A the paper's numbers come from."""
    agree = {"paper": 0, "authors": 0}
    of = 0
    for c in results.compared:
        if protocol_text(c) != "authors" or not c.method.endswith(("RCE", "SCE")):
            continue
        usual = results.find(c.condition, c.method)
        if c.paper is not None and usual is not None and c.condition.dataset != "mnist":
            of += 1
            agree["authors"] += c.verdict == "agrees"
            agree["paper"] += usual.verdict == "agrees"
    text = "A = -4, as the paper says, gives its numbers"
    if not of:
        return Claim(text, "not measured", "")
    evidence = (
        f"of {of} cells with RCE, {agree['paper']} agree with A = -4 and {agree['authors']} with "
        "the settings of the code, where A = -9.21"
    )
    return Claim(text, "holds" if agree["paper"] >= agree["authors"] else "does not hold", evidence)


CLAIMS: tuple[Callable[[Results], Claim], ...] = (
    no_overfitting, underfitting, scaling, two_of_a_kind, top_two, more_active, value_of_a,
)  # fmt: skip


def claims(results: Results) -> list[str]:
    """The claims as a table, in the order of the paper."""
    found = [claim(results) for claim in CLAIMS]
    rows = [(c.text, c.verdict, c.evidence or "no runs yet") for c in found]
    return table(("the paper says", "here", "measured"), rows, left=3)
