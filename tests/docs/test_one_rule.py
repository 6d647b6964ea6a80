"""The tables of docs/one-rule.md: each number where it belongs, and what is missing said so."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from statistics import fmean
from types import ModuleType

import pytest

from noiseproof.catalogue import AUTO, AUTO_BRINGS
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
    assert {row: of[0] for row, of in table.items()} == {
        "`auto`": "70.0", "JAL-CE": "50.0", "JAL-CE, averaged": "30.0", "ANL-CE": "40.0",
        "ANL-CE, averaged": "30.0", "regret of `auto`": "0.0",
    }  # fmt: skip
    assert {cell for of in table.values() for cell in of[1:]} == {page.MISSING}
    assert "python benchmarks/rule.py proof cifar10`" in page.proof_table("cifar10")


def test_what_the_page_says_of_fashion_mnist_was_measured(page):
    at = {
        r.run.method: r for r in page.committed("proof").values()
        if r.run.dataset == "fashion-mnist" and (r.run.noise, r.run.rate) == ("symmetric", 0.6)
    }  # fmt: skip
    auto, anl, much, even = (at[m] for m in ("auto", "NCE+nnce", "NCE+100*RCE", "NCE+RCE"))
    ours = 100 * page._ends_with(auto)
    averaged = {r.run.method: 100 * r.column("test_accuracy_ema")[-1] for r in at.values()}
    assert abs(ours - 100 * anl.accuracy) < 0.1
    assert [round(ours - 100 * r.accuracy) for r in (much, even)] == [4, 9]
    assert auto.column("chosen_epoch")[-1] == 6
    assert round(ours - averaged["auto"], 1) == 15.7
    assert min(averaged, key=averaged.__getitem__) == "auto"


def test_texts_are_found_by_their_file(page, monkeypatch, tmp_path):
    for part in ("train", "test"):
        with gzip.open(tmp_path / f"{part}.csv.gz", "wt") as file:
            file.write("label,gt,text\n" + "".join(f"{i % 4},{i % 3},word{i}\n" for i in range(60)))
    accuracies = {"auto": 0.6, "jal-ce": 0.5, "anl-ce": 0.4, "ce": 0.3}
    runs = page.rule.proof("news", [0], tmp_path)
    records = [made_up(run, accuracies[run.loss], [0.1, 0.7, 0.3], chosen=2) for run in runs]
    monkeypatch.setattr(page, "committed", lambda kind: {r.hash: r for r in records})
    assert [of for (of,) in cells(page.proof_table("news")).values()] == [
        "70.0", "50.0", "30.0", "70.0", "40.0", "30.0", "70.0", "30.0", "30.0", "70.0", "0.0",
    ]  # fmt: skip


def test_of_the_choice_seeds_are_one_row(page, monkeypatch, tmp_path):
    found = {}
    for seed, best in ((10, 0.8), (11, 0.9)):
        run, _ = page.rule.choice(tmp_path, ["pairs"], ["even"], [4.0], ["grows"], [seed])
        settings = {**vars(run), "dataset": "cifar100"}  # any whose loss has as many classes
        record = made_up(Run(**settings), 0.2, [0.5, best], chosen=1)
        object.__setattr__(record.run, "dataset", "pairs.npz@0")
        found[str(seed)] = record
    monkeypatch.setattr(page, "committed", lambda kind: found)
    (line,) = page.choice_table("cifar10", "pairs").splitlines()[2:]
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


Key = tuple[str, str, float, str]  # a set, weights, a penalty and its schedule


def tried(page: ModuleType) -> dict[Key, dict[float, list[Record]]]:
    """By setting and rate: the runs that differ in nothing else from what is chosen among."""
    found: dict[Key, dict[float, list[Record]]] = {}
    for record in page.committed("choose").values():
        run = record.run
        name = page.rule.set_of(run)
        usual = (page.rule.HORIZON, page.rule.SETS[name]["lr"], 0.0)
        if (run.ema_horizon, run.lr, run.lr_floor) == usual:
            classes = page.rule.CLASSES[name]
            weigh = next(w for w, of in page.rule.WEIGHTS.items()
                         if Run(loss=of(classes)).resolve().loss == run.loss)  # fmt: skip
            key = (name, weigh, run.shrink, run.shrink_schedule)
            found.setdefault(key, {}).setdefault(run.rate, []).append(record)
    return found


def chosen(page: ModuleType) -> dict[Key, dict[float, float]]:
    return {
        key: {rate: 100 * fmean(map(page._chosen, alike)) for rate, alike in of.items()}
        for key, of in tried(page).items()
    }


def test_auto_is_the_best_on_average_of_what_was_tried_in_all_four_cells(page):
    means: dict[tuple[str, float, str], list[float]] = {}
    for (name, *setting), of in chosen(page).items():
        if name in ("cifar10", "pairs"):
            means.setdefault(tuple(setting), []).extend(of.values())
    whole = {setting: fmean(cells) for setting, cells in means.items() if len(cells) == 4}
    assert len(whole) >= 4
    best = max(whole, key=whole.__getitem__)
    assert best == ("even", AUTO_BRINGS["shrink"], AUTO_BRINGS["shrink_schedule"])
    for classes in (10, 100):
        text = page.rule.WEIGHTS["even"](classes)
        dataset = {10: "cifar10", 100: "cifar100"}[classes]
        auto = Run(dataset=dataset, loss=AUTO, lr=0.01).resolve()
        assert Run(loss=text).resolve().loss == auto.loss
    assert AUTO_BRINGS["ema_horizon"] == page.rule.HORIZON


def test_what_the_page_says_of_the_pairs_was_measured(page):
    of = {key[1:]: at for key, at in chosen(page).items() if key[0] == "pairs"}
    assert max(max(at.values()) for key, at in of.items() if key[0] == "jal") < 65
    constant = {key[1]: at for key, at in of.items() if key[0::2] == ("even", "constant")}
    strongest = constant[max(constant)]
    assert round(max(at[0.5] for at in constant.values()) - strongest[0.5], 1) == 0
    assert strongest[0.8] < 30 < 80 < max(at[0.8] for at in constant.values())
    growing = [of["even", shrink, "linear"] for shrink in (4.0, 8.0)]
    for at in growing:
        assert at[0.8] > max(at[0.8] for at in constant.values())
    assert abs(fmean(growing[0].values()) - fmean(growing[1].values())) < 1
    by_seed = {
        how: {
            r.run.seed: 100 * page._chosen(r) for r in tried(page)["pairs", "even", 4.0, how][0.8]
        }
        for how in ("constant", "linear")
    }
    gained = [by_seed["linear"][seed] - by_seed["constant"][seed] for seed in (10, 11, 12)]
    assert min(gained) > 1
    assert round(fmean(gained)) == 3
    assert abs(of["even", 4.0, "linear"][0.5] - constant[4.0][0.5]) < 0.3
    last = {
        shrink: [
            _behind_chosen(page, r) for r in tried(page)["pairs", "even", shrink, "linear"][0.8]
        ]
        for shrink in (4.0, 8.0)
    }
    assert round(max(last[4.0])) == 32
    assert max(last[8.0]) < 2


@pytest.mark.parametrize(("of_set", "others"), [("pairs", 3), ("small", 1)])
def test_averages_and_floors_make_little_difference(page, of_set, others):
    at: dict[tuple[float, float], dict[float, float]] = {}
    for record in page.committed("choose").values():
        run = record.run
        of = (page.rule.set_of(run), run.seed, run.shrink, run.shrink_schedule, run.lr)
        if of == (of_set, 10, 4.0, "linear", 0.01):
            key = (run.ema_horizon, run.lr_floor)
            at.setdefault(key, {})[run.rate] = 100 * page._chosen(record)
    usual = at.pop((page.rule.HORIZON, 0.0))
    assert len(at) == others
    assert max(abs(usual[r] - other[r]) for other in at.values() for r in usual) < 0.55


def test_what_the_page_says_of_cifar10_was_measured(page):
    of = {key[1:]: at for key, at in chosen(page).items() if key[0] == "cifar10"}
    growing = {shrink: of["even", shrink, "linear"] for shrink in (4.0, 8.0, 16.0)}
    lost = {s: fmean(growing[4.0][r] - at[r] for r in at) for s, at in growing.items()}
    assert (round(lost[8.0]), round(lost[16.0])) == (2, 6)
    assert all(abs(growing[4.0][r] - of["even", 4.0, "constant"][r]) < 1 for r in growing[4.0])
    assert fmean(growing[4.0].values()) > max(
        fmean(at.values()) for key, at in of.items() if key[0] == "jal"
    )
    runs = [r for at in tried(page)["cifar10", "even", 4.0, "linear"].values() for r in at]
    assert max(_behind_chosen(page, r) for r in runs) < 2


def test_what_the_page_says_of_the_chosen_epoch_was_measured(page):
    every = {key: [r for at in of.values() for r in at] for key, of in tried(page).items()}
    of_auto = [r for key, runs in every.items() if key[1:] == ("even", 4.0, "linear") for r in runs]
    assert round(max(map(page._regret, of_auto)), 1) == 0.6
    assert round(max(page._regret(r) for runs in every.values() for r in runs), 1) == 2.3
    assert round(max(_of_label_wave(page, r) for runs in every.values() for r in runs)) == 30


def test_averages_over_neighbouring_epochs_find_no_better_one(page):
    gained: dict[tuple[str, int], list[float]] = {}
    for record in page.committed("choose").values():
        held_out = record.column("validation_accuracy_ema")
        for span in (1, 2, 3, 4):  # epochs on each side
            means = [fmean(held_out[max(0, i - span) : i + span + 1]) for i in range(len(held_out))]
            best = max(range(len(means)), key=means.__getitem__)
            there = 100 * record.column("test_accuracy_ema")[best]
            key = (page.rule.set_of(record.run), span)
            gained.setdefault(key, []).append(there - 100 * page._chosen(record))
    assert max(abs(fmean(gained[name, s])) for name in ("pairs", "cifar10") for s in (1, 4)) < 0.1


def test_what_the_page_says_of_two_networks_that_agree_was_measured(page):
    by_run: dict[tuple[str, float], list[tuple[float, float]]] = {}
    with (page.rule.COMMITTED.parent / "rule_agree.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            by_run.setdefault((row["set"], float(row["rate"])), []).append(
                (float(row["kappa"]), 100 * float(row["clean"]))
            )
    behind = {key: max(c for _, c in rows) - max(rows)[1] for key, rows in by_run.items()}
    assert {key: round(lost, 1) for key, lost in behind.items()} == {
        ("pairs", 0.8): 0.1, ("pairs", 0.5): 0.2, ("small", 0.7): 2.2, ("small", 0.5): 2.9,
    }  # fmt: skip
    assert round(max(c for _, c in by_run["pairs", 0.8]), 1) == 57.8
    whole = {}
    for (name, *setting), of in tried(page).items():
        if setting == ["even", 4.0, "linear"]:
            whole |= {(name, rate): alike for rate, alike in of.items()}
    (seed_10,) = (r for r in whole["pairs", 0.8] if r.run.seed == 10)
    assert round(100 * page._chosen(seed_10), 1) == 88.0
    regrets = {
        rate: [round(page._regret(r), 1) for r in whole["small", rate]] for rate in (0.7, 0.5)
    }
    assert regrets == {0.7: [0.0], 0.5: [0.2]}


def _behind_chosen(page: ModuleType, record: Record) -> float:
    """How many points the averaged weights of the last epoch are behind those chosen."""
    return 100 * (page._chosen(record) - record.column("test_accuracy_ema")[-1])


def test_what_the_page_says_of_learning_rates_was_measured(page):
    at: dict[tuple[str, float, float], Record] = {}
    for record in page.committed("choose").values():
        run = record.run
        how = (run.seed, run.shrink, run.shrink_schedule, run.ema_horizon, run.lr_floor)
        if how == (10, 4.0, "linear", page.rule.HORIZON, 0.0):
            at[page.rule.set_of(run), run.rate, run.lr] = record
    for rate in page.rule.SETS["small"]["rates"]:
        usual, fast = (page._chosen(at["small", rate, lr]) for lr in (0.01, 0.1))
        assert usual > fast
    usual, fast = (at["pairs", 0.8, lr] for lr in (0.01, 0.1))
    assert (round(100 * page._chosen(fast)), fast.column("chosen_epoch")[-1]) == (95, 5)
    assert fast.column("test_accuracy_ema")[-1] < usual.column("test_accuracy_ema")[-1]
    assert Run(dataset="cifar100", loss=AUTO).resolve().loss == "5*nce + 0.1*amse(a=200)"


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
    assert sum(lost <= 0 for lost in behind.values()) == 15
    assert sum(0 < lost <= 0.25 for lost in behind.values()) == 2
    assert round(behind["letter", "clean"], 1) == 1.4
    rows_of = page._of_tables("proof")

    def measured(name: str, setting: str, key: str = "ends_with") -> float:
        mine = [r for r in rows_of if (r["table"], r["setting"]) == (name, setting)]
        return fmean(float(r[key]) for r in mine)

    gained = {
        name: measured(name, page.NO_LIMIT) - measured(name, "auto")
        for name in ("letter", "dna", "spam", "pima")
    }
    assert gained["letter"] < 0 < 1 < gained["spam"] < gained["pima"] < 3.5 < gained["dna"]
    lost = measured("letter", page.NO_LIMIT) - measured("letter", page.NO_LIMIT, "last")
    assert round(lost) == 12
    limits = {line.split("|")[1].strip(): line for line in page.limits_table().splitlines()}
    assert "| 79.1 (78.8) | 79.5 (72.8) |" in limits["mean"]
    assert AUTO_BRINGS["shrink_limit"] == 0.1


def test_what_the_page_says_of_the_cost_was_measured(page):
    with (page.rule.COMMITTED.parent / "rule_cost.csv").open(newline="") as file:
        ratios = {r["network"]: float(r["ratio"]) for r in csv.DictReader(file)
                  if r["device"] == "CPU"}  # fmt: skip
    text = " ".join((DOCS / "one-rule.md").read_text().split())
    said = f"{min(ratios.values()):.2f} to {max(v for k, v in ratios.items() if k != 'mlp'):.2f}"
    assert f"{said} times with a convolutional network" in text
    assert f"and {ratios['mlp']:.2f} times with the small one" in text


def test_what_the_page_says_of_peoples_mistakes_was_measured(page):
    of: dict[str, list[Record]] = {}
    for record in page.committed("proof").values():
        if page.without_digest(record.run.dataset) == page._NEWS:
            name = record.run.method + (page.HELD_OUT if record.run.choose_epoch else "")
            of.setdefault(name, []).append(record)
    assert {len(alike) for alike in of.values()} == {3}
    ends = {name: 100 * fmean(map(page._ends_with, alike)) for name, alike in of.items()}
    auto = ends.pop(f"auto{page.HELD_OUT}")
    assert abs(auto - ends["JAL-CE"]) < 0.15
    assert 0 < auto - ends["CE"] < 0.5
    assert max(ends, key=ends.__getitem__) == f"ANL-CE{page.HELD_OUT}"
    assert round(ends[f"ANL-CE{page.HELD_OUT}"] - auto, 1) == 0.9
    ours = of[f"auto{page.HELD_OUT}"]
    assert round(100 * fmean(r.column("memorised")[-1] for r in ours)) == 99
    agreed = [100 * r.column("validation_accuracy_ema")[-1] for r in ours]
    assert round(fmean(agreed)) == 85
    assert min(agreed) > 80 == round(100 - 100 * fmean(r.about["noise_rate"] for r in ours))


def _of_label_wave(page: ModuleType, record: Record) -> float:
    ema = record.column("test_accuracy_ema")
    return 100 * (max(ema) - ema[page.rule.label_wave(record.column("changed_predictions")) - 1])


def test_no_table_of_nothing(page, monkeypatch):
    monkeypatch.setattr(page, "committed", lambda kind: {})
    assert len(page.choice_table("cifar10", "pairs").splitlines()) == 2
    assert "Not measured yet" in page.proof_table("cifar100")
