"""The conclusions of a report: sentences that are computed from its results."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ..catalogue import CLEAN, GIVEN, is_active_passive
from ._entries import Condition, Entry
from ._lead import RULE, Lead, rank, within_deviation
from ._study import Study
from ._styles import PERCENT
from ._words import ACCURACY_WORDS, HELD_OUT_NOTE, MAX_LISTED, listed, spell_out, where

_ACTIVE_AND_PASSIVE = (
    "An active loss only raises the probability of the label; a passive loss also lowers those of "
    "the other classes; an active-passive loss is a sum of one of each as the paper has them, "
    "without those of later papers."
)


def make_conclusions(study: Study) -> list[str]:
    """The main conclusion, and then the sentences that support it.

    The first is what cross entropy loses, where it was run; of labels as given it is which loss is
    best. Names of losses are spelt out where they come first.
    """
    compared = [c for c in study.conditions if c.noise != CLEAN and len(study.at(c)) > 1]
    if not compared:
        return [_nothing_to_compare(study)]
    given = [c for c in compared if c.noise == GIVEN]
    on_held_out = study.judged_on(compared) != "test"
    return spell_out([
        *_on_known_noise(study, [c for c in compared if c.noise != GIVEN]),
        *_on_given_labels(study, given),
        *([HELD_OUT_NOTE] if on_held_out else []),
    ])  # fmt: skip


def _on_known_noise(study: Study, conditions: list[Condition]) -> list[str]:
    """What cross entropy loses, which loss is best, and whether active-passive losses are."""
    if not conditions:
        return []
    return [
        *_what_cross_entropy_loses(study, conditions),
        _best(study, conditions),
        *_active_passive_sentences(study, conditions),
        *(_best_by_noise(study, conditions) if len(conditions) > 1 else []),
        *_of_one_seed(study, conditions),
    ]


def _on_given_labels(study: Study, conditions: list[Condition]) -> list[str]:
    """Which loss is best on each data set, how sure that is, and by which rule."""
    sentences = []
    for condition in conditions[:MAX_LISTED]:
        sentences += _which_is_best(study, condition)
    sentences += _also_there([(c.dataset, c.noise) for c in conditions[MAX_LISTED:]])
    has_seeds = any(len(e.cell.seeds) > 1 for c in conditions for e in study.at(c))
    return [*sentences, RULE] if has_seeds else sentences


def _which_is_best(study: Study, condition: Condition) -> list[str]:
    """Which loss is best on labels as given, which are near it, and where cross entropy is."""
    (best, _), *others = rank(study.at(condition))
    leads = {e: lead for e, lead in others if lead is not None}
    second, lead = next(iter(leads.items()))
    place = f"on {study.where(condition)}"
    result = f"{_with_error(best)} {ACCURACY_WORDS[study.judged_on([condition])]}"
    if round(lead.points, 2) == 0:
        result += f", as much as {second.label}"
    else:
        result += f", {lead} points before {second.label}"
    result = result.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")
    verdicts = {lead.verdict for lead in leads.values()}
    if verdicts == {"one seed"}:
        seeds = "with one seed" if lead.num_seeds else "without a seed in common"
        chance = f"{seeds} nothing can be said about chance"
        return [f"{best.label} comes first {place}: {result}; {chance}."]
    if verdicts == {"clear"}:
        head = f"{best.label} is best {place}: {result}."
    elif lead.verdict == "clear":
        head = f"{best.label} comes first {place}: {result}."
    else:
        head = f"{best.label} comes first, {_relation(lead, second.label)}, {place}: {result}."
    sentences = [head]
    for verdict in ("level", "unclear", "one seed"):
        near = [e for e in leads if e is not second and leads[e].verdict == verdict]
        if near:
            relation = _relation(leads[near[0]], _names(near)).removeprefix("but ")
            sentences.append(f"{best.label} {'is ' if verdict == 'level' else ''}{relation}.")
    sentences += [
        f"{e.label} is {leads[e]} points behind {best.label}."
        for e in leads
        if e.cell.method == "CE" and e is not second and leads[e].verdict == "clear"
    ]
    return sentences


def _relation(lead: Lead, other: str) -> str:
    """What can be said of a lead that is not clear."""
    if lead.verdict == "level":
        return f"level with {other}"
    seeds = "one seed" if lead.num_seeds < 2 else f"{lead.num_seeds} seeds"
    return f"but cannot be told apart from {other} with {seeds}"


def _with_error(entry: Entry) -> str:
    """The mean over the seeds with its standard error."""
    cell = entry.cell
    error = cell.deviation / math.sqrt(len(cell.seeds))
    return f"{cell.mean:.2f}{'' if math.isnan(error) else f' ± {error:.2f}'}{PERCENT}"


def _names(entries: list[Entry]) -> str:
    labels = [e.label for e in entries]
    return _join(labels) if len(labels) <= MAX_LISTED else listed(labels)


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


def _accuracy(entry: Entry) -> str:
    return f"{entry.cell.mean:.1f}{PERCENT}"


class _Gap(NamedTuple):
    """How far cross entropy is behind the best loss of a condition."""

    points: float
    condition: Condition
    ce: Entry
    best: Entry


def _what_cross_entropy_loses(study: Study, conditions: list[Condition]) -> list[str]:
    """By how much CE is behind the best loss where it is most; nothing where it was not run."""
    gaps = []
    for condition in conditions:
        best, *_ = ranked = _by_accuracy(study, condition)
        ce = next((e for e in ranked if e.cell.method == "CE"), None)
        if ce is not None:
            gaps.append(_Gap(best.cell.mean - ce.cell.mean, condition, ce, best))
    if not gaps:
        return []
    most = max(gaps, key=lambda gap: gap.points)
    if most.points <= 0:
        place = f"on {study.where(most.condition)}" if len(gaps) == 1 else "in these results"
        return [f"CE is nowhere behind another loss {place}."]
    accuracy = ACCURACY_WORDS[study.judged_on([most.condition])]
    up_to = "up to " if len(gaps) > 1 else ""
    level = ", within the deviation over the seeds" if within_deviation(most.ce, most.best) else ""
    return [
        f"CE loses {up_to}{most.points:.1f} points of {accuracy} to {most.best.label}: "
        f"{_accuracy(most.ce)} against {_accuracy(most.best)} on {study.where(most.condition)}"
        f"{level}."
    ]


def _best(study: Study, conditions: list[Condition]) -> str:
    """Which loss is best, or which kind of loss is most often."""
    if len(conditions) == 1:
        best, second = _by_accuracy(study, conditions[0])[:2]
        gap = best.cell.mean - second.cell.mean
        tie = within_deviation(best, second)
        lead = f"level with {second.label}" if tie else f"{gap:.1f} points before {second.label}"
        return f"{best.label} is best on {study.where(conditions[0])}: {_accuracy(best)}, {lead}."
    winners = [_by_accuracy(study, c)[0] for c in conditions]
    families = Counter(_family(e.cell.method) for e in winners)
    family, won = families.most_common(1)[0]
    everywhere = "both" if len(conditions) == 2 else f"all {len(conditions)}"
    share = everywhere if won == len(conditions) else f"{won} of {len(conditions)}"
    labels = Counter(e.label for e in winners if _family(e.cell.method) == family)
    label, times = labels.most_common(1)[0]
    if list(families.values()).count(won) > 1:  # no family won most often
        names = _join(list(dict.fromkeys(e.label for e in winners)))
        return f"No one kind of loss is best: {names} win."
    if len(labels) == 1:
        return f"{label} is best in {share} noisy settings."
    return f"{family} is best in {share} noisy settings, most often {label}, in {times}."


def _family(method: str) -> str:
    if is_active_passive(method):
        return "An active-passive loss"
    if method in ("NCE", "NFL", "NGCE"):
        return "A normalized active loss alone"
    if method in ("MAE", "RCE", "NMAE", "NRCE"):
        return "A passive loss alone"
    return method


def _active_passive_sentences(study: Study, conditions: list[Condition]) -> list[str]:
    """What active and passive mean, and whether their sum beats NCE, or else CE."""
    if not any(is_active_passive(e.cell.method) for c in conditions for e in study.at(c)):
        return []
    sentences = [_ACTIVE_AND_PASSIVE]
    for baseline, name in (("NCE", "plain NCE"), ("CE", "CE")):
        if gains := _gains_over(baseline, study, conditions):
            sentences.append(_versus(name, gains))
            break
        if baseline == "NCE":
            sentences.append("Plain NCE was not run beside the active-passive losses: "
                             "whether they beat it cannot be said from these results.")  # fmt: skip
    return sentences


def _versus(name: str, gains: list[float]) -> str:
    """The active-passive losses compared with a baseline."""
    wins, mean = sum(gain > 0 for gain in gains), f"{statistics.fmean(gains):+.1f} points"
    if len(gains) == 1:
        return f"The active-passive loss {'beats' if wins else 'does not beat'} {name} ({mean})."
    spread = f"{mean} on average, from {min(gains):+.1f} to {max(gains):+.1f}"
    if wins == 0:
        return f"No active-passive loss beats {name} ({spread})."
    count = f"all {len(gains)}" if wins == len(gains) else f"{wins} of {len(gains)}"
    return f"Active-passive losses beat {name} in {count} comparisons ({spread})."


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
    sentences = [
        f"Best on {where(dataset, noise)}: {_winners(study, group)}."
        for (dataset, noise), group in list(groups.items())[:MAX_LISTED]
    ]
    return [*sentences, *_also_there(list(groups)[MAX_LISTED:])]


def _of_one_seed(study: Study, conditions: list[Condition]) -> list[str]:
    """Where the best loss or the next has one seed, so that no lead can be compared with chance."""
    if all(len(e.cell.seeds) < 2 for c in conditions for e in study.at(c)):
        return ["With one seed nothing can be said about chance."]
    leaders = [_by_accuracy(study, condition)[:2] for condition in conditions]
    count = sum(any(len(e.cell.seeds) < 2 for e in two) for two in leaders)
    settings = "every noisy setting"
    if count < len(conditions):
        settings = f"{count} of the {len(conditions)} noisy settings"
    return [f"In {settings} the best loss or the next has one seed, so that nothing can be said "
            "about chance."] if count else []  # fmt: skip


def _also_there(groups: Sequence[tuple[str, str]]) -> list[str]:
    """A sentence on the data sets and kinds of noise that have none of their own, if there are."""
    names = [where(dataset, noise) for dataset, noise in groups]
    return [f"The tables also have {listed(names)}."] if names else []


def _winners(study: Study, conditions: list[Condition]) -> str:
    if len(conditions) > MAX_LISTED:
        winners = Counter(_by_accuracy(study, c)[0].label for c in conditions)
        label, times = winners.most_common(1)[0]
        return f"most often {label}, at {times} of {len(conditions)} rates"
    parts = []
    for condition in conditions:
        best, second = _by_accuracy(study, condition)[:2]
        tie = f", level with {second.label}" if within_deviation(best, second) else ""
        rate = f" at {condition.rate:g}" if condition.rate else ""
        parts.append(f"{best.label}{rate} ({_accuracy(best)}{tie})")
    return "; ".join(parts)


def _join(names: list[str]) -> str:
    """Names as a list in a sentence.

    >>> _join(["CE", "NCE", "MAE"])
    'CE, NCE and MAE'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
