"""The paper's claims, each with a verdict that is computed from the runs under results/."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from cells import Results, protocol_text, table

from noiseproof.catalogue import CLEAN, DATASETS, dataset_title, is_active_passive, noise_title
from noiseproof.report import Comparison, Condition, condition_name
from noiseproof.report._study import GridCell
from noiseproof.results import Cell

FIGURES = [Condition(dataset, "symmetric", 0.6) for dataset in ("cifar10", "cifar100")]
NORMALIZED = {"CE": "NCE", "FL": "NFL", "MAE": "NMAE", "RCE": "NRCE"}
ROBUST = ("NFL+MAE", "NFL+RCE", "NCE+MAE", "NCE+RCE")
TWO_OF_A_KIND = ("NFL+NCE", "MAE+RCE")
MAX_DROP = 5.0  # points below its best epoch at which a loss overfits
MARGIN = 1.0  # points by which a loss is better or worse than another
GRID = 12  # pairs of weights in figure 5


@dataclass(frozen=True)
class Claim:
    """What the paper says, and how the runs bear it out."""

    text: str
    verdict: str
    """holds, does not hold, holds in part, or not measured"""
    evidence: str


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


def equal_weights(method: str, dataset: str) -> str:
    """The sum with both weights 1, as figure 4 has it; on CIFAR-100 its name means other ones."""
    if dataset != "cifar100" or method in TWO_OF_A_KIND:
        return method
    return "+".join(f"1*{part}" for part in method.split("+"))


def measured(
    results: Results,
    methods: Sequence[str],
    named: Callable[[str, str], str] = lambda method, dataset: method,
) -> list[tuple[Condition, dict[str, Cell]]]:
    """The conditions of the figures under which all of these methods were run."""
    found = []
    for condition in FIGURES:
        cells = {m: results.cell(condition, named(m, condition.dataset)) for m in methods}
        whole = {m: cell for m, cell in cells.items() if cell is not None}
        if len(whole) == len(methods):
            found.append((condition, whole))
    return found


def where(condition: Condition) -> str:
    return dataset_title(condition.dataset)


def not_run(conditions: Iterable[Condition]) -> str:
    """The data sets of the figures that a verdict says nothing of, as the end of its evidence."""
    known = set(conditions)
    absent = [where(c) for c in FIGURES if c not in known]
    return f"; {', '.join(absent)}: not measured" * bool(known and absent)


def no_overfitting(results: Results) -> Claim:
    """Figures 1 and 2."""
    parts, holds, of, known = [], 0, 0, []
    for plain in ("CE", "FL"):
        normalized = NORMALIZED[plain]
        for condition, cells in measured(results, (plain, normalized)):
            known.append(condition)
            lost, kept = drop(cells[plain]), drop(cells[normalized])
            of += 1
            holds += lost > MAX_DROP >= kept
            parts.append(f"{where(condition)}: {plain} {lost:.1f}, {normalized} {kept:.1f}")
    evidence = "points lost from the best epoch to the last: " + "; ".join(parts) + not_run(known)
    return Claim(
        "Normalized, a loss does not overfit wrong labels", verdict(holds, of), evidence * bool(of)
    )


def sums_do_not_overfit(results: Results) -> Claim:
    """A sum of robust losses is robust."""
    parts, holds, of = [], 0, 0
    for figure, rate in product(FIGURES, (0.6, 0.8)):
        condition = Condition(figure.dataset, figure.noise, rate)
        found = {m: cell for m in ROBUST if (cell := results.cell(condition, m)) is not None}
        drops = {method: drop(cell) for method, cell in found.items()}
        of += len(drops)
        holds += sum(lost <= MAX_DROP for lost in drops.values())
        if drops:
            shown = ", ".join(f"{method} {lost:.1f}" for method, lost in drops.items())
            parts.append(f"{where(condition)} at {rate:g}: {shown}")
    evidence = (
        f"at most {MAX_DROP:g} points lost from the best epoch to the last in {holds} of {of} "
        f"cells; {'; '.join(parts)}"
    )
    return Claim(
        "Active plus passive keeps what it reaches", verdict(holds, of), evidence * bool(of)
    )


def underfitting(results: Results) -> Claim:
    """Figures 1 and 2: what a robust loss alone reaches, and what can be reached."""
    parts, holds, of, known = [], 0, 0, []
    for condition in FIGURES:
        best = max((c.mean for m in ROBUST if (c := results.cell(condition, m))), default=None)
        alone = {m: c for m in ("NCE", "NFL", "MAE", "RCE") if (c := results.cell(condition, m))}
        if best is None or not alone:
            continue
        known.append(condition)
        of += len(alone)
        holds += sum(cell.mean < best - MARGIN for cell in alone.values())
        means = (f"{method} {cell.mean:.1f}" for method, cell in alone.items())
        parts.append(
            f"{where(condition)}: {', '.join(means)}, the best active-passive loss {best:.1f}"
        )
    evidence = "; ".join(parts) + not_run(known)
    return Claim("Robust losses alone underfit", verdict(holds, of), evidence)


def scaling(results: Results) -> Claim:
    """Figure 3."""
    parts, holds, of = [], 0, 0
    for condition, rows in results.report.study.scaled.items():
        if condition.dataset != "cifar100":
            continue
        for method in dict.fromkeys(row.method for row in rows):
            means = {r.factor: r.cell.mean for r in rows if r.method == method and r.cell.records}
            if 1.0 in means and len(means) > 1:
                gain = max(means.values()) - means[1.0]
                of += 1
                holds += gain < MARGIN
                parts.append(f"{method} {gain:+.1f} at its best factor")
    return Claim("On CIFAR-100 scaling does not mend it", verdict(holds, of), "; ".join(parts))


def scaling_where_easy(results: Results) -> Claim:
    """MAE and RCE are multiples of the same loss, NMAE."""
    parts, holds, of = [], 0, 0
    for condition, cells in measured(results, ("NMAE", "MAE", "RCE")):
        if condition.dataset != "cifar10":
            continue
        others = len(DATASETS[condition.dataset].classes) - 1
        factors = {"NMAE": 1, "MAE": 2 * others, "RCE": 4 * others}
        of += 1
        holds += max(cells["MAE"].mean, cells["RCE"].mean) > cells["NMAE"].mean + MARGIN
        parts += [f"{m}, {factor} times: {cells[m].mean:.1f}" for m, factor in factors.items()]
    evidence = "(1 - p_y) / (K - 1) as NMAE and larger: " + "; ".join(parts)
    return Claim("On CIFAR-10 scaling helps", verdict(holds, of), evidence * bool(of))


def two_of_a_kind(results: Results) -> Claim:
    """Figure 4."""
    parts, holds, of, known = [], 0, 0, []
    for condition, cells in measured(results, (*ROBUST, *TWO_OF_A_KIND), equal_weights):
        known.append(condition)
        ahead = [cells[m].mean > cells[other].mean for m in ROBUST for other in TWO_OF_A_KIND]
        of += len(ahead)
        holds += sum(ahead)
        shown = ", ".join(f"{m} {cell.mean:.1f}" for m, cell in cells.items())
        alone = results.cell(condition, "MAE")
        third = f" (MAE, a third of it, {alone.mean:.1f})" if alone is not None else ""
        parts.append(f"{where(condition)}: {shown}{third}")
    count = f"ahead in {holds} of {of} comparisons; " if of else ""
    return Claim(
        "Active plus passive beats two active and two passive losses", verdict(holds, of),
        count + "; ".join(parts) + not_run(known),
    )  # fmt: skip


def noisy_columns(results: Results) -> list[list[Comparison]]:
    """The noisy columns of tables 2 and 3 that were run, each with its best loss first."""
    columns: dict[Condition, list[Comparison]] = {}
    for c in results.compared:
        if protocol_text(c) == "paper" and c.paper is not None and c.condition.noise != CLEAN:
            columns.setdefault(c.condition, []).append(c)
    full = [cells for cells in columns.values() if len(cells) >= 8]
    return [sorted(cells, key=lambda c: -(c.ours.cell.mean if c.ours else 0)) for cells in full]


def places(cells: Iterable[Comparison]) -> str:
    """Where cells are, such as ``"MNIST: symmetric 0.4, 0.6"``."""
    found: dict[str, dict[str, list[str]]] = {}
    for c in sorted(cells, key=lambda c: (c.condition.dataset, c.condition.rate)):
        noises = found.setdefault(dataset_title(c.condition.dataset), {})
        noises.setdefault(noise_title(c.condition.noise), []).append(f"{c.condition.rate:g}")
    return "; ".join(
        f"{dataset}: " + ", ".join(f"{noise} {', '.join(rates)}" for noise, rates in noises.items())
        for dataset, noises in found.items()
    )


def top_two(results: Results) -> Claim:
    """Tables 2 and 3: in each noisy column, whether the two best losses are active-passive."""
    columns = noisy_columns(results)
    both, first = (
        sum(all(is_active_passive(c.method) for c in cells[:n]) for cells in columns)
        for n in (2, 1)
    )
    others: dict[str, list[Comparison]] = {}
    for cells in columns:
        for c in cells[:2]:
            if not is_active_passive(c.method):
                others.setdefault(c.method, []).append(c)
    evidence = (
        f"the best loss is active-passive in {first} and the best two are in {both} of "
        f"{len(columns)} noisy columns"
    )
    evidence += "".join(f"; {m} is among the two at {places(c)}" for m, c in others.items())
    with_nlnl = sum(any(c.method == "NLNL" for c in cells) for cells in columns)
    if with_nlnl:
        rest = ([c for c in cells if c.method != "NLNL"][:2] for cells in columns)
        without = sum(all(is_active_passive(c.method) for c in cells) for cells in rest)
        evidence += (
            f". NLNL was run in {with_nlnl} columns; without it the best two are active-passive "
            f"in {without} of {len(columns)}"
        )
    return Claim(
        "Active-passive losses are the top two", verdict(both, len(columns)),
        evidence * bool(columns),
    )  # fmt: skip


def validation_accuracy(weighted: GridCell) -> float:
    """After the last epoch of the first seed, in percent."""
    return 100 * weighted.cell.records[0].column("validation_accuracy")[-1]


def best_weights(results: Results) -> dict[str, tuple[float, float]]:
    """Figure 5: alpha and beta with the best validation accuracy, of each grid that is whole."""
    best = {}
    for condition, cells in results.report.study.grid.items():
        if condition in FIGURES and len({(c.alpha, c.beta) for c in cells}) >= GRID:
            top = max(cells, key=validation_accuracy)
            best[condition.dataset] = top.alpha, top.beta
    return best


def more_active(results: Results) -> Claim:
    """Figure 5: the weight of NCE that is best on CIFAR-10 and on CIFAR-100."""
    best = best_weights(results)
    shown = [f"{dataset_title(d)}: best at alpha {a:g}, beta {b:g}" for d, (a, b) in best.items()]
    text = "More classes want more active loss"
    if len(best) < 2:
        missing = [where(c) for c in FIGURES if c.dataset not in best]
        return Claim(text, "not measured", "; ".join([*shown, f"{', '.join(missing)}: no grid"]))
    ratio = {dataset: alpha / beta for dataset, (alpha, beta) in best.items()}
    return Claim(text, verdict(ratio["cifar100"] > ratio["cifar10"], 1), "; ".join(shown))


def value_of_a(results: Results) -> Claim:
    """Which A the paper's numbers come from, under symmetric noise: there A is what differs."""
    text = "A = -4, as the paper says, gives its numbers"
    cells = [
        c for c in results.compared
        if c.method in ("SCE", "NFL+RCE", "NCE+RCE") and c.condition.noise == "symmetric"
        and c.condition.dataset != "mnist" and c.paper is not None and c.ours is not None
    ]  # fmt: skip
    usual = [c for c in cells if protocol_text(c) == "paper"]
    theirs = {(c.condition, c.method): c for c in cells if protocol_text(c) == "authors"}
    pairs = [(c, theirs[key]) for c in usual if (key := (c.condition, c.method)) in theirs]
    if not pairs:
        return Claim(text, "not measured", "")
    agree = [sum(c.verdict == "agrees" for c in of) for of in zip(*pairs, strict=True)]
    away = [sum(abs(c.difference or 0) for c in of) / len(pairs) for of in zip(*pairs, strict=True)]
    at = "; ".join(dict.fromkeys(condition_name(c.condition) for c, _ in pairs))
    evidence = (
        f"of {len(pairs)} cells of SCE, NFL+RCE and NCE+RCE that were run with both ({at}), "
        f"{agree[0]} agree with A = -4, {away[0]:.1f} points from the paper on average, and "
        f"{agree[1]} with -9.21 as in the code, {away[1]:.1f} points from it"
    )
    both = {(c.condition, c.method) for c, _ in pairs}
    rest = [c for c in usual if (c.condition, c.method) not in both]
    if rest:
        found = sum(c.verdict == "agrees" for c in rest)
        rates = ", ".join(f"{r:g}" for r in sorted({c.condition.rate for c in rest}))
        evidence += f"; of {len(rest)} run with -4 alone (at {rates}) {found} agree"
    return Claim(text, verdict(agree[0], len(pairs)), evidence)


CLAIMS: tuple[Callable[[Results], Claim], ...] = (
    no_overfitting, underfitting, scaling, scaling_where_easy, two_of_a_kind, sums_do_not_overfit,
    top_two, more_active, value_of_a,
)  # fmt: skip


def claims(results: Results) -> list[str]:
    """The claims as a table, in the order of the paper."""
    return claims_table([claim(results) for claim in CLAIMS])


def claims_table(found: Iterable[Claim]) -> list[str]:
    rows = ((c.text, c.verdict, c.evidence or "no runs yet") for c in found)
    return table(("the paper says", "here", "measured"), rows, left=3)
