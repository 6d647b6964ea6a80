"""What the results say, in sentences. Computed: nothing here knows who ought to win."""

from __future__ import annotations

import math
import statistics
from collections import Counter

from ._names import CLEAN, PERCENT, dataset_name, is_apl, noise_name
from ._study import Entry, Study, Where, place_name


def conclusions(study: Study) -> list[str]:
    """The conclusion, one sentence, and then the sentences that support it."""
    places = [w for w in study.places if w[1] != CLEAN and len(study.at(w)) > 1]
    if not places:
        return [_without_comparison(study)]
    return [_headline(study, places), *_winners(study, places), *_comparisons(study, places)]


def _without_comparison(study: Study) -> str:
    ran = [e for e in study.entries if e.cell.records]
    if not ran:
        return "No run has ended well, so there is nothing to conclude."
    if all(e.cell.noise == CLEAN for e in ran):
        return "Every run had clean labels, so nothing can be said about robustness."
    return "No two losses were run under the same noise, so there is nothing to compare."


def _ranked(study: Study, where: Where) -> list[Entry]:
    return sorted(study.at(where), key=lambda e: -e.cell.mean)


def _level(a: Entry, b: Entry) -> bool:
    """Whether the difference of two means is within their deviations, where both are known."""
    both = math.hypot(a.cell.deviation, b.cell.deviation)
    return not math.isnan(both) and abs(a.cell.mean - b.cell.mean) <= both


def _headline(study: Study, places: list[Where]) -> str:
    if len(places) == 1:
        best, second = _ranked(study, places[0])[:2]
        gap = best.cell.mean - second.cell.mean
        level = _level(best, second)
        lead = f"level with {second.label}" if level else f"{gap:.1f} points before {second.label}"
        where = f"{place_name(places[0])} noise"
        score = f"{best.cell.mean:.1f}{PERCENT}"
        return f"{best.label} is best on {where}: {score}, {lead}{_against(study, places)}."
    winners = [_ranked(study, w)[0] for w in places]
    families = Counter(_family(e.cell.method) for e in winners)
    family, won = families.most_common(1)[0]
    everywhere = "both" if len(places) == 2 else f"all {len(places)}"
    settings = everywhere if won == len(places) else f"{won} of {len(places)}"
    losses = Counter(e.label for e in winners if _family(e.cell.method) == family)
    label, times = losses.most_common(1)[0]
    if list(families.values()).count(won) > 1:  # no family won most often
        names = _and(list(dict.fromkeys(e.label for e in winners)))
        return f"No one kind of loss is best: {names} win{_against(study, places)}."
    if len(losses) == 1:
        return f"{label} is best in {settings} noisy settings{_against(study, places)}."
    return (
        f"{family} is best in {settings} noisy settings, most often {label} ({times})"
        f"{_against(study, places)}."
    )


def _family(method: str) -> str:
    if is_apl(method):
        return "An active-passive loss"
    if method in ("NCE", "NFL", "NGCE"):
        return "A normalised active loss alone"
    if method in ("MAE", "RCE", "NMAE", "NRCE"):
        return "A passive loss alone"
    return method


def _against(study: Study, places: list[Where]) -> str:
    """How the active-passive losses did against plain NCE, or else against CE."""
    for rival, name in (("NCE", "plain NCE"), ("CE", "CE")):
        wins, gaps = _duels(study, places, rival)
        if gaps:
            mean = f"{statistics.fmean(gaps):+.1f} points" + (" on average" * (len(gaps) > 1))
            if len(gaps) == 1:
                verb = "beats" if wins else "does not beat"
                return f"; the active-passive loss {verb} {name} ({mean})"
            if wins == 0:
                return f"; no active-passive loss beats {name} ({mean})"
            count = f"all {len(gaps)}" if wins == len(gaps) else f"{wins} of {len(gaps)}"
            return f"; active-passive losses beat {name} in {count} comparisons ({mean})"
    return ""


def _duels(study: Study, places: list[Where], rival: str) -> tuple[int, list[float]]:
    """Every active-passive loss against the rival of the same protocol and settings."""
    gaps = []
    for where in places:
        entries = study.at(where)
        rivals = {
            (e.cell.protocol, e.variation): e.cell.mean for e in entries if e.cell.method == rival
        }
        for e in entries:
            other = rivals.get((e.cell.protocol, e.variation))
            if is_apl(e.cell.method) and other is not None:
                gaps.append(e.cell.mean - other)
    return sum(gap > 0 for gap in gaps), gaps


def _winners(study: Study, places: list[Where]) -> list[str]:
    groups: dict[tuple[str, str], list[Where]] = {}
    for where in places:
        groups.setdefault((where[0], where[1]), []).append(where)
    lines = []
    for (dataset, noise), wheres in groups.items():
        parts = []
        for where in wheres:
            best, second = _ranked(study, where)[:2]
            level = f", level with {second.label}" if _level(best, second) else ""
            at = f"{where[2]:g}: " if where[2] else ""
            parts.append(f"{at}{best.label} ({best.cell.mean:.1f}{PERCENT}{level})")
        kind = noise if wheres[0][2] else noise_name(noise, 0)
        lines.append(f"{dataset_name(dataset)}, {kind} noise, best at " + "; ".join(parts) + ".")
    return lines


def _comparisons(study: Study, places: list[Where]) -> list[str]:
    lines = []
    wins, gaps = _duels(study, places, "NCE")
    if gaps:
        lines.append(
            f"Active-passive losses against plain NCE: above it in {wins} of {len(gaps)}, "
            f"{statistics.fmean(gaps):+.1f} points on average, "
            f"from {min(gaps):+.1f} to {max(gaps):+.1f}."
        )
    elif any(is_apl(e.cell.method) for w in places for e in study.at(w)):
        lines.append("Plain NCE was not run beside the active-passive losses: "
                     "whether they beat it cannot be said from these results.")  # fmt: skip
    lost = []
    for where in places:
        ce = [e for e in study.at(where) if e.cell.method == "CE"]
        if ce:
            best = _ranked(study, where)[0]
            lost.append((best.cell.mean - ce[0].cell.mean, where, best.label))
    if lost:
        gap, where, label = max(lost, key=lambda item: item[0])
        behind = f"{place_name(where)}: {gap:.1f} points below {label}"
        lines.append(
            f"Cross entropy is furthest behind on {behind}."
            if gap > 0
            else "Cross entropy is nowhere behind."
        )
    return lines


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
