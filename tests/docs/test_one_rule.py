"""The tables of docs/one-rule.md: each number where it belongs, and what is missing said so."""

from __future__ import annotations

import gzip
from pathlib import Path
from types import ModuleType

import pytest

from noiseproof.catalogue import AUTO_BRINGS
from noiseproof.results import Record
from noiseproof.runs import Run

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def page(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DOCS))
    import one_rule

    monkeypatch.setattr(one_rule.rule, "CHOSEN", True)
    return one_rule


def made_up(run: Run, last: float, ema: list[float], chosen: int) -> Record:
    rows = [{"epoch": float(i + 1), "test_accuracy": last, "test_accuracy_ema": e,
             "chosen_epoch": float(min(chosen, i + 1)), "test_accuracy_chosen": ema[chosen - 1]}
            for i, e in enumerate(ema)]  # fmt: skip
    resolved = run.resolve(on_gpu=True)
    if not resolved.choose_epoch:
        rows = [{k: v for k, v in row.items() if "chosen" not in k} for row in rows]
    return Record(resolved, rows, {})


def cells(text: str) -> dict[str, list[str]]:
    lines = (line.strip("| ").split(" | ") for line in text.splitlines()[2:])
    return {first: rest for first, *rest in lines}


def test_of_the_proof_every_number_is_in_its_column(page, monkeypatch):
    runs = page.rule.proof("cifar100", [0, 1])[:3]  # of one cell and seed
    accuracies = {"auto": 0.6, "jal-ce": 0.5, "anl-ce": 0.4}
    records = [made_up(run, accuracies[run.loss], [0.1, 0.7, 0.3], chosen=2) for run in runs]
    kept = {record.hash: record for record in records}
    monkeypatch.setattr(page, "committed", lambda kind: kept)
    table = cells(page.proof_table("cifar100"))
    assert table["symmetric 0.8"] == [
        "70.0", "50.0", "30.0", page.MISSING, "40.0", "30.0", page.MISSING, "0.0",
    ]  # fmt: skip
    assert set(table["asymmetric 0.4"]) == {page.MISSING}
    assert "python benchmarks/rule.py proof cifar10`" in page.proof_table("cifar10")


def test_texts_are_found_by_their_file(page, monkeypatch, tmp_path):
    for part in ("train", "test"):
        with gzip.open(tmp_path / f"{part}.csv.gz", "wt") as file:
            file.write("label,gt,text\n" + "".join(f"{i % 4},{i % 3},word{i}\n" for i in range(60)))
    accuracies = {"auto": 0.6, "jal-ce": 0.5, "anl-ce": 0.4, "ce": 0.3}
    runs = page.rule.proof("news", [0], tmp_path)
    records = [made_up(run, accuracies[run.loss], [0.1, 0.7, 0.3], chosen=2) for run in runs]
    monkeypatch.setattr(page, "committed", lambda kind: {r.hash: r for r in records})
    (row,) = cells(page.proof_table("news")).values()
    assert row == ["70.0", "50.0", "30.0", "70.0", "40.0", "30.0", "70.0", "30.0", "30.0", "70.0",
                   "0.0"]  # fmt: skip


def test_of_the_choice_seeds_are_one_row(page, monkeypatch, tmp_path):
    found = {}
    for seed, best in ((10, 0.8), (11, 0.9)):
        run, _ = page.rule.choice(tmp_path, ["pairs"], ["even"], [4.0], ["grows"], [seed])
        settings = {**vars(run), "dataset": "cifar100"}  # any whose loss has as many classes
        record = made_up(Run(**settings), 0.2, [0.5, best], chosen=1)
        object.__setattr__(record.run, "dataset", "pairs.npz@0")
        found[str(seed)] = record
    monkeypatch.setattr(page, "committed", lambda kind: found)
    (line,) = page.choice_table().splitlines()[2:]
    assert line.startswith("| `even` | 4 | growing |")
    assert "50.0 ± 0.0 (85.0)" in line
    assert line.count(page.MISSING) == 3


def test_parts_are_told_apart_and_averaged_over_seeds(page, monkeypatch):
    records = []
    for seed in (0, 1):
        for part, run in zip(page.rule.PARTS, page.rule.parts("digits", [seed]), strict=False):
            last = 0.5 + 0.1 * seed + 0.01 * len(part)
            records.append(made_up(run, last, [last], chosen=1))
    monkeypatch.setattr(page, "committed", lambda kind: {r.hash: r for r in records})
    table = cells(page.parts_table("digits"))
    for part in page.rule.PARTS:
        mean = 100 * (0.55 + 0.01 * len(part))
        row = table["`auto`" if part == "auto" else part]
        assert row[0] == f"{mean:.1f} ± 7.1"
        assert set(row[1:]) == {page.MISSING}
    assert table["regret of `auto`"][0] == "0.0 ± 0.0"


def test_what_the_page_says_of_the_pairs_was_measured(page):
    found: dict[tuple[str, float, str], dict[float, Record]] = {}
    for record in page.committed("choose").values():
        run = record.run
        usual = (10, page.rule.HORIZON, page.rule.SETS["pairs"]["lr"])
        if "pairs" in run.dataset and (run.seed, run.ema_horizon, run.lr) == usual:
            key = (run.loss, run.shrink, run.shrink_schedule)
            found.setdefault(key, {})[run.rate] = record
    jal, even = (Run(loss=page.rule.WEIGHTS[w](100)).resolve().loss for w in ("jal", "even"))
    chosen = {k: {rate: 100 * page._chosen(r) for rate, r in of.items()} for k, of in found.items()}
    assert max(max(of.values()) for k, of in chosen.items() if k[0] == jal) < 65
    constant = {k[1]: of for k, of in chosen.items() if k[0] == even and k[2] == "constant"}
    strongest = constant[max(constant)]
    assert strongest[0.5] == max(of[0.5] for of in constant.values())
    assert strongest[0.8] < 30 < 80 < max(of[0.8] for of in constant.values())
    for key in ((even, 4.0, "linear"), (even, 8.0, "linear")):
        assert chosen[key][0.8] > max(of[0.8] for of in constant.values())
    last = found[even, 8.0, "linear"][0.8].column("test_accuracy_ema")
    assert 100 * (max(last) - last[-1]) < 2
    regrets = [page._regret(r) for of in found.values() for r in of.values()]
    assert max(regrets) < 0.7
    waves = [_of_label_wave(page, r) for of in found.values() for r in of.values()]
    assert 24 < max(waves) < 26
    assert AUTO_BRINGS["shrink_schedule"] == "linear"


def test_what_the_page_says_of_a_large_learning_rate_was_measured(page):
    (fast,) = [
        r for r in page.committed("choose").values()
        if "pairs" in r.run.dataset and (r.run.lr, r.run.rate) == (0.1, 0.8)
    ]  # fmt: skip
    last = 100 * fast.column("test_accuracy")[-1]
    assert (round(last), round(100 * page._chosen(fast))) == (61, 95)


def test_what_the_page_says_of_tables_was_measured(page):
    table = page.tables_table().splitlines()
    head = [cell.strip() for cell in table[0].strip("|").split("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:-1]]
    at = {name: i for i, name in enumerate(head)}
    ours, rivals = at["`auto`"], [at["`ce`"], at["`gce`"], at["`1*nce + 1*rce`"]]
    behind = {}
    for row in rows:
        means = {i: float(row[i].split(" ")[0]) for i in (ours, *rivals)}
        behind[row[0], row[1]] = max(means[i] for i in rivals) - means[ours]
    assert len(behind) == 18
    assert sum(lost <= 0 for lost in behind.values()) == 12
    assert sum(0 < lost <= 1 for lost in behind.values()) == 4
    assert round(behind["letter", "clean"], 1) == 2.0
    assert round(behind["dna", "symmetric 0.6"], 1) == 3.3
    limits = {line.split("|")[1].strip(): line for line in page.limits_table().splitlines()}
    assert "| 79.1 (78.8) | 79.5 (72.8) |" in limits["mean"]
    assert AUTO_BRINGS["shrink_limit"] == 0.1


def _of_label_wave(page: ModuleType, record: Record) -> float:
    ema = record.column("test_accuracy_ema")
    return 100 * (max(ema) - ema[page.rule.label_wave(record.column("changed_predictions")) - 1])


def test_no_table_of_nothing(page, monkeypatch):
    monkeypatch.setattr(page, "committed", lambda kind: {})
    assert len(page.choice_table().splitlines()) == 2
    assert "Not measured yet" in page.proof_table("cifar100")
