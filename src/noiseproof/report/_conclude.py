"""The conclusions of a report: sentences that are computed from its results."""

from __future__ import annotations

import math
import statistics
from collections import Counter

from ..catalogue import CLEAN, dataset_title, is_active_passive, noise_group, noise_title
from ._study import Condition, Entry, Study, condition_name
from ._styles import PERCENT


def make_conclusions(study: Study) -> list[str]:
    """The main conclusion, and then the sentences that support it."""
    conditions = [c for c in study.conditions if c.noise != CLEAN and len(study.at(c)) > 1]
    if not conditions:
        return [_nothing_to_compare(study)]
    return [
        _headline(study, conditions),
        *_best_by_noise(study, conditions),
        *_baseline_sentences(study, conditions),
    ]


def _nothing_to_compare(study: Study) -> str:
    ran = [e for e in study.entries if e.cell.records]
    if not ran:
        return "No run has ended well, so there is nothing to conclude."
    if all(e.cell.noise == CLEAN for e in ran):
        return "Every run had clean labels, so nothing can be said about robustness."
    return "No two losses were run under the same noise, so there is nothing to compare."


def _by_accuracy(study: Study, condition: Condition) -> list[Entry]:
    """The entries of a condition, the best first."""
    return sorted(study.at(condition), key=lambda e: -e.cell.mean)


def _within_deviation(a: Entry, b: Entry) -> bool:
    """Whether two means differ by no more than their deviations; False where one is unknown."""
    deviation = math.hypot(a.cell.deviation, b.cell.deviation)
    return not math.isnan(deviation) and abs(a.cell.mean - b.cell.mean) <= deviation


def _headline(study: Study, conditions: list[Condition]) -> str:
    versus = _versus_baseline(study, conditions)
    if len(conditions) == 1:
        best, second = _by_accuracy(study, conditions[0])[:2]
        gap = best.cell.mean - second.cell.mean
        tie = _within_deviation(best, second)
        lead = f"level with {second.label}" if tie else f"{gap:.1f} points before {second.label}"
        noise = _with_noise(condition_name(conditions[0]), conditions[0].noise)
        accuracy = f"{best.cell.mean:.1f}{PERCENT}"
        return f"{best.label} is best on {noise}: {accuracy}, {lead}{versus}."
    winners = [_by_accuracy(study, c)[0] for c in conditions]
    families = Counter(_family(e.cell.method) for e in winners)
    family, won = families.most_common(1)[0]
    everywhere = "both" if len(conditions) == 2 else f"all {len(conditions)}"
    share = everywhere if won == len(conditions) else f"{won} of {len(conditions)}"
    labels = Counter(e.label for e in winners if _family(e.cell.method) == family)
    label, times = labels.most_common(1)[0]
    if list(families.values()).count(won) > 1:  # no family won most often
        names = _join(list(dict.fromkeys(e.label for e in winners)))
        return f"No one kind of loss is best: {names} win{versus}."
    if len(labels) == 1:
        return f"{label} is best in {share} noisy settings{versus}."
    return f"{family} is best in {share} noisy settings, most often {label} ({times}){versus}."


def _family(method: str) -> str:
    if is_active_passive(method):
        return "An active-passive loss"
    if method in ("NCE", "NFL", "NGCE"):
        return "A normalised active loss alone"
    if method in ("MAE", "RCE", "NMAE", "NRCE"):
        return "A passive loss alone"
    return method


def _versus_baseline(study: Study, conditions: list[Condition]) -> str:
    """The active-passive losses compared with plain NCE, or with CE where NCE was not run."""
    for baseline, name in (("NCE", "plain NCE"), ("CE", "CE")):
        gains = _gains_over(baseline, study, conditions)
        if not gains:
            continue
        wins = sum(gain > 0 for gain in gains)
        mean = f"{statistics.fmean(gains):+.1f} points" + (" on average" * (len(gains) > 1))
        if len(gains) == 1:
            verb = "beats" if wins else "does not beat"
            return f"; the active-passive loss {verb} {name} ({mean})"
        if wins == 0:
            return f"; no active-passive loss beats {name} ({mean})"
        count = f"all {len(gains)}" if wins == len(gains) else f"{wins} of {len(gains)}"
        return f"; active-passive losses beat {name} in {count} comparisons ({mean})"
    return ""


def _gains_over(baseline: str, study: Study, conditions: list[Condition]) -> list[float]:
    """Points that each active-passive loss gains over a baseline with the same settings."""
    gains = []
    for condition in conditions:
        entries = study.at(condition)
        baselines = {
            (e.cell.protocol, e.overrides): e.cell.mean
            for e in entries
            if e.cell.method == baseline
        }
        for e in entries:
            mean = baselines.get((e.cell.protocol, e.overrides))
            if is_active_passive(e.cell.method) and mean is not None:
                gains.append(e.cell.mean - mean)
    return gains


def _best_by_noise(study: Study, conditions: list[Condition]) -> list[str]:
    """A sentence for each data set and noise: the best loss at each rate."""
    groups: dict[tuple[str, str], list[Condition]] = {}
    for condition in conditions:
        groups.setdefault((condition.dataset, condition.noise), []).append(condition)
    sentences = []
    for (dataset, noise), group in groups.items():
        parts = []
        for condition in group:
            best, second = _by_accuracy(study, condition)[:2]
            tie = f", level with {second.label}" if _within_deviation(best, second) else ""
            rate = f"{condition.rate:g}: " if condition.rate else ""
            parts.append(f"{rate}{best.label} ({best.cell.mean:.1f}{PERCENT}{tie})")
        subject = _with_noise(f"{dataset_title(dataset)}, {noise_title(noise)}", noise)
        sentences.append(f"{subject}, best at {'; '.join(parts)}.")
    return sentences


def _baseline_sentences(study: Study, conditions: list[Condition]) -> list[str]:
    """How the active-passive losses compare with NCE, and the best loss with CE."""
    sentences = []
    gains = _gains_over("NCE", study, conditions)
    if gains:
        sentences.append(
            f"Active-passive losses against plain NCE: above it in {sum(g > 0 for g in gains)} of "
            f"{len(gains)}, {statistics.fmean(gains):+.1f} points on average, "
            f"from {min(gains):+.1f} to {max(gains):+.1f}."
        )
    elif any(is_active_passive(e.cell.method) for c in conditions for e in study.at(c)):
        sentences.append("Plain NCE was not run beside the active-passive losses: "
                         "whether they beat it cannot be said from these results.")  # fmt: skip
    behind = []
    for condition in conditions:
        ce = [e for e in study.at(condition) if e.cell.method == "CE"]
        if ce:
            best = _by_accuracy(study, condition)[0]
            behind.append((best.cell.mean - ce[0].cell.mean, condition, best.label))
    if behind:
        gap, condition, label = max(behind, key=lambda item: item[0])
        sentences.append(
            f"Cross entropy is furthest behind on {condition_name(condition)}: {gap:.1f} points "
            f"below {label}."
            if gap > 0
            else "Cross entropy is nowhere behind."
        )
    return sentences


def _join(names: list[str]) -> str:
    """Names as a list in a sentence.

    >>> _join(["CE", "NCE", "MAE"])
    'CE, NCE and MAE'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _with_noise(name: str, noise: str) -> str:
    """The name of a condition as the object of a sentence."""
    return name if noise_group(noise) == "given" else f"{name} noise"
