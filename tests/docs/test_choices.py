"""What docs/which-loss.md and docs/imbalance.md say of their tables is what was measured."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from noiseproof.runs import Run

ROOT = Path(__file__).parent.parent.parent


def read(name: str) -> list[dict[str, str]]:
    with (ROOT / "benchmarks" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def accuracy() -> dict[tuple[str, str, str], dict[str, float]]:
    """By data, noise and rate, then by loss."""
    found: dict[tuple[str, str, str], dict[str, float]] = {}
    for m in read("which_loss"):
        by_loss = found.setdefault((m["data"], m["noise"], m["rate"]), {})
        by_loss[m["loss"]] = float(m["accuracy_percent"])
    return found


def ranked(by_loss: dict[str, float]) -> list[str]:
    return sorted(by_loss, key=by_loss.__getitem__, reverse=True)


def test_the_loss_to_begin_with(accuracy):
    conditions = [("none", "0"), ("symmetric", "0.2"), ("symmetric", "0.4")]
    for data in ("digits", "features"):
        for condition in conditions:
            by_loss = accuracy[(data, *condition)]
            assert by_loss["1*nce + 1*rce"] > max(by_loss.values()) - 3
    for data in ("digits", "features"):
        clean = accuracy[data, "none", "0"]
        assert clean["1*nce + 1*rce"] >= clean["ce"]


def test_no_weight_is_right_everywhere(accuracy):
    digits, features = (accuracy[d, "symmetric", "0.6"] for d in ("digits", "features"))
    assert ranked(digits)[0] == "nce + 0.1*rce"
    assert ranked(digits)[-2:] == ["10*nce + 0.1*rce", "ce"]
    assert ranked(features)[:3] == ["gce", "10*nce + 0.1*rce", "1*nce + 1*rce"]
    assert features["nce + 0.1*rce"] < features["10*nce + 0.1*rce"] - 10


def test_the_default_of_the_command_line_is_the_best_on_its_data(accuracy):
    default = Run(rate=0.6).resolve()
    assert default.loss == Run(loss="nce + 0.1*rce", rate=0.6).resolve().loss
    for rate in ("0.4", "0.6"):
        assert ranked(accuracy["digits", "symmetric", rate])[0] == "nce + 0.1*rce"
    assert ranked(accuracy["digits", "asymmetric", "0.4"])[0] == "nce + 0.1*rce"


def test_numbers_in_the_text_are_those_of_the_tables(accuracy):
    text = (ROOT / "docs" / "which-loss.md").read_text()
    head, _, _ = text.partition("If you know nothing")
    digits, features = (accuracy[d, "symmetric", "0.6"] for d in ("digits", "features"))
    shown = [digits["nce + 0.1*rce"], digits["ce"], features["1*nce + 1*rce"], features["gce"]]
    shown += [features["10*nce + 0.1*rce"], features["ce"]]
    for value in shown:
        assert f"{value:.1f}" in head
    for mark in ("mnist", "cifar10"):
        table = text.partition(f"<!-- {mark} -->")[2].partition(f"<!-- /{mark} -->")[0]
        rows = {line.split(",")[0]: line.split(" | ") for line in table.splitlines()}
        for method in ("CE", "NCE+RCE", *(["JAL-CE"] if mark == "cifar10" else [])):
            assert f"{float(rows[f'| {method}'][4].strip('*')):.1f}" in head


def test_a_linear_network_on_vectors(accuracy):
    deep, linear = (
        {key[1:]: of for key, of in accuracy.items() if key[0] == name}
        for name in ("vectors", "vectors, linear")
    )
    most = "symmetric", "0.6"
    assert max(value for loss, value in deep[most].items() if loss != "auto") < 50
    for value in (linear[most]["1*nce + 1*rce"], linear[most]["ce"], deep[most]["auto"],
                  deep[most]["ce"]):  # fmt: skip
        assert f"{value:.1f}" in (ROOT / "docs" / "which-loss.md").read_text()
    clean = [of["none", "0"]["1*nce + 1*rce"] for of in (deep, linear)]
    assert clean[0] - clean[1] < 1
    recipe = " ".join((ROOT / "docs" / "recipes" / "text.md").read_text().split())
    both = [of[most]["1*nce + 1*rce"] for of in (linear, deep)]
    assert "wrong {:.1f} % and {:.1f} % with `nce + rce`".format(*both) in recipe


def test_auto_on_vectors(accuracy):
    for (data, noise, rate), of in accuracy.items():
        best = max(value for loss, value in of.items() if loss != "auto")
        if data == "vectors" and noise == "symmetric":
            assert round(of["auto"] - best) == {"0.2": 2, "0.4": 8, "0.6": 31}[rate]
        if data == "vectors, linear" and noise != "asymmetric":
            assert of["auto"] > best - 0.5
        elif data == "vectors, linear":
            assert (best, round(best - of["auto"], 1)) == (of["mae"], 4.6)


def rare(data: str, what: str, rate: str) -> dict[tuple[str, str], float]:
    """By loss and whether it has class weights."""
    return {
        (m["loss"], m["weighted"]): float(m["percent"])
        for m in read("imbalance")
        if (m["data"], m["what"], m["rate"]) == (data, what, rate)
    }


@pytest.mark.parametrize("loss", ["nce + rce", "mae"])
@pytest.mark.parametrize("data", ["features", "segmentation"])
@pytest.mark.parametrize("rate", ["0", "0.2", "0.4"])
def test_without_weights_robust_losses_give_a_class_up(data, loss, rate):
    least, mean = rare(data, "least recall", rate), rare(data, "mean recall", rate)
    assert least[loss, "no"] == 0
    assert least[loss, "yes"] > 40
    assert mean[loss, "no"] < mean["ce", "no"]
    if rate != "0":
        assert mean[loss, "yes"] > max(mean["ce", "no"], mean["ce", "yes"])


@pytest.mark.parametrize("rate", ["0.2", "0.4"])
def test_the_union_of_the_disk(rate):
    found = rare("segmentation", "intersection over union", rate)
    assert max(found, key=found.__getitem__) == ("ce", "no")
    assert found["nce + rce", "yes"] > found["ce", "yes"]
    assert found["mae", "yes"] > found["ce", "yes"]
