"""The catalogue: every entry has its function, and everything that lists them follows from it."""

from __future__ import annotations

import sys

import pytest

from noiseproof import UsageError, cli, data, models, noise, syntax
from noiseproof.catalogue import (
    DATASETS,
    METHODS,
    NETWORKS,
    NLNL,
    NOISES,
    OPTIMIZERS,
    Setting,
    is_active_passive,
    label_of,
    method_named,
    noise_title,
    resolve_loss,
)
from noiseproof.runs import CHOICES, Run
from noiseproof.train.optimizers import optimizer_of


def test_every_entry_has_its_function():
    assert models.names() == tuple(NETWORKS)
    for name in NETWORKS:
        assert models.build(name, 3, 1, vocabulary=9 * (name == "bag")) is not None
    for name, entry in NOISES.items():
        if entry.group == "drawn":
            assert callable(getattr(noise, entry.function)), name
    assert set(data.names()) == set(DATASETS)
    for name in OPTIMIZERS:
        assert optimizer_of(Run(optimizer=name).resolve()).buffers


def test_every_data_set_is_described():
    for name, entry in DATASETS.items():
        assert entry.protocols.keys() == {"paper", "authors"}, name
        for protocol in entry.protocols.values():
            assert protocol.model in NETWORKS
        for mapping in entry.confusions.values():
            assert max(*mapping, *mapping.values()) < entry.num_classes


def test_every_setting_of_a_method_is_a_loss():
    def settings(table):
        for found in table.values():
            if isinstance(found, Setting):
                yield found
            else:
                yield from settings(found)

    for name, method in METHODS.items():
        for table in (method.paper, method.authors or {}):
            for found in settings(table):
                assert syntax.canonical(found.loss), name
                assert found.source


@pytest.mark.parametrize("dataset", ["mnist", "cifar10", "cifar100", "digits"])
@pytest.mark.parametrize("protocol", ["paper", "authors"])
def test_labels_are_found_again(dataset, protocol):
    """Of each method the label, from the loss that it is on this data set."""
    for name, method in METHODS.items():
        try:
            at = {"noise": "symmetric", "rate": 0.6, "protocol": protocol}
            found = resolve_loss(name, dataset, **at)
        except UsageError:  # a method without settings here, which is no sum of losses
            continue
        at |= {k: v for k, v in found.brings.items() if k == "shrink"}
        at |= {"lr": DATASETS[dataset].protocols[protocol].lr}
        assert label_of(found.loss, dataset, **at) == method.label
        assert method_named(method.label) == method_named(name) == name


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("5*nce", "5*NCE"), ("taylor(t=3)", "taylor(t=3)"), ("nce + rce(A=-9)", "NCE+RCE(A=-9)"),
        ("nce + rce(A=-4)", "1*NCE+1*RCE"), ("normalize(taylor(t=3))", "normalize(taylor(t=3))"),
        ("my_function", "my_function"),
    ],
)  # fmt: skip
def test_a_text_of_ones_own_is_its_own_label(text, label):
    assert label_of(text, "cifar100") == label


def test_active_passive_is_read_from_the_loss():
    yes = ("nce+rce", "NFL+MAE", "10*NCE+0.1*RCE(A=-9)", "normalize(fl_detached) + 0.5*mae")
    assert all(map(is_active_passive, yes))
    assert not any(map(is_active_passive, ("nce", "nfl+nce", "mae+rce", "ANL-CE", "ce+rce", "?")))


def test_a_kind_of_noise_is_one_entry(monkeypatch):
    """A new entry and its function, and it can be drawn, named and shown."""
    entry = NOISES["pairflip"]
    monkeypatch.setitem(NOISES, "backflip", type(entry)("backflip", "backwards", "drawn",
                                                        function="backflip"))  # fmt: skip
    monkeypatch.setattr(
        noise, "backflip", lambda labels, rate, *, seed=0: noise.pairflip(labels, rate, seed=seed),
        raising=False,
    )  # fmt: skip
    monkeypatch.setattr(noise._make, "NAMES", (*noise.NAMES, "backflip"))
    assert noise.make("backflip", [0, 1, 2] * 4, 0.25).rate == 0.25
    assert noise_title("backflip", 0.25) == "backflip 0.25"


def test_choices_on_the_command_line_are_those_of_the_catalogue(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["noiseproof", "train", "--help"])
    with pytest.raises(SystemExit):
        cli.main()
    shown = "".join(capsys.readouterr().out.replace("│", "").split())
    for known in (CHOICES["noise"], tuple(NETWORKS), CHOICES["schedule"], tuple(OPTIMIZERS)):
        assert "{" + ",".join(known) + "}" in shown
    assert "given" not in CHOICES["noise"]
    assert "real" not in CHOICES["noise"]


def test_nlnl_is_a_procedure():
    assert resolve_loss(" NLNL", "mnist", noise="symmetric", rate=0.4).loss == NLNL
    assert label_of(NLNL, "mnist") == "NLNL"
