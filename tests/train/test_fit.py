"""What a run gives back and what it leaves in its folder."""

from __future__ import annotations

import csv
import json
import math
import os

import pytest
import torch

from noiseproof import data, models, noise
from noiseproof.train import Run, fit, load
from noiseproof.train._setup import split

from .subjects import COLUMNS, STEPS, but_seconds, flat_net, run_folders, same, tiny, weights


def test_a_result():
    seen = []
    run = tiny()
    result = fit(run, on_epoch=seen.append)
    assert result.run == run.resolve()
    assert (result.folder, result.error) == (None, None)
    assert [row["epoch"] for row in result.history] == [1, 2]
    assert list(result.history[0]) == COLUMNS
    assert result.accuracy == result.history[-1]["test_accuracy"]
    assert repr(result) == f"Result({run.resolve()}, accuracy {result.accuracy:.4f})"
    assert [row["lr"] for row in result.history] == [0.01, 0.005]
    assert not result.network.training
    assert [(p.run, p.epoch, p.epochs, p.row) for p in seen] == [
        (run.resolve(), 1, 2, result.history[0]),
        (run.resolve(), 2, 2, result.history[1]),
    ]
    assert all(p.images_per_second == pytest.approx(1437 / p.row["seconds"]) for p in seen)


def test_the_network_is_the_one_whose_accuracy_is_reported():
    result = fit(tiny())
    digits = data.load("digits")
    loader = data.Loader(digits.test.images, digits.test.labels, mean=digits.mean, std=digits.std)
    with torch.no_grad():
        predicted = result.network(loader.normalize(digits.test.images)).argmax(1)
    assert result.accuracy == pytest.approx((predicted == digits.test.labels).double().mean())


def test_what_is_in_the_folder(tmp_path):
    run = tiny(loss="nce + 0.5*mae", ema=0.5)
    result = fit(run, out=tmp_path)
    assert result.folder == tmp_path / run.resolve().hash
    assert sorted(os.listdir(result.folder)) == [
        "examples.json", "history.csv", "model-ema.pt", "model.json", "model.pt", "result.json",
        "run.json",
    ]  # fmt: skip
    with (result.folder / "history.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [list(row) for row in rows] == [list(row) for row in result.history]
    for row, told in zip(rows, result.history, strict=True):
        assert {k: float(v) for k, v in row.items()} == pytest.approx(told, rel=1e-5)
    ended = json.loads((result.folder / "result.json").read_text())
    assert ended == {"error": None, "epochs": 2, **result.history[-1]}
    about = json.loads((result.folder / "run.json").read_text())
    assert (about["hash"], about["settings"]) == (run.resolve().hash, run.resolve().settings())
    settings = about["settings"]
    assert (settings["loss"], settings["precision"]) == ("nce + 0.5*mae", "fp32")
    assert (settings["weight_decay"], settings["l1"], about["parameters"]) == (5e-3, 0.0, 86026)
    assert about["noise_rate"] == pytest.approx(0.4, abs=1e-3)
    assert about["versions"]["torch"] == torch.__version__
    assert set(about["machine"]) == {"device", "system"}


def test_the_model_loads_into_a_network_of_its_name(tmp_path):
    result = fit(tiny(), out=tmp_path)
    network = models.build("mlp", 10, 1, image_size=8)
    network.load_state_dict(torch.load(result.folder / "model.pt", weights_only=True))
    assert same(weights(network), weights(result.network))


def test_a_run_that_has_ended_is_read_and_not_trained_again(tmp_path):
    seen = []
    first = fit(tiny(), out=tmp_path)
    again = fit(tiny(), out=tmp_path, on_epoch=seen.append)
    assert seen == []
    assert again.network is None
    assert again.folder == first.folder
    for one, two in zip(first.history, again.history, strict=True):
        assert one == pytest.approx(two, rel=1e-5)
    forced = fit(tiny(), out=tmp_path, on_epoch=seen.append, force=True)
    assert len(seen) == 2
    assert but_seconds(forced.history) == but_seconds(first.history)
    fit(tiny(seed=1), out=tmp_path, on_epoch=seen.append)
    assert len(seen) == 4
    assert len(run_folders(tmp_path)) == 2


def test_a_history_that_lost_rows_is_damaged(tmp_path):
    folder = fit(tiny(), out=tmp_path).folder
    lines = (folder / "history.csv").read_text().splitlines(keepends=True)
    (folder / "history.csv").write_text("".join(lines[:-1]))
    with pytest.raises(ValueError, match=r"history\.csv is damaged; delete the folder"):
        fit(tiny(), out=tmp_path)


@pytest.mark.parametrize("damage", [{"settings": 3}, {"settings": None}, {"overrides": []}])
def test_a_description_of_other_types_is_damaged(tmp_path, damage):
    folder = fit(tiny(epochs=1), out=tmp_path).folder
    described = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(described | damage))
    with pytest.raises(ValueError, match=r"run\.json is damaged; delete the folder"):
        fit(tiny(epochs=1), out=tmp_path)
    if "settings" in damage:
        with pytest.raises(ValueError, match=r"run\.json is damaged; delete the folder"):
            load(folder)


def test_the_seed_decides_and_the_global_generator_does_not():
    one = fit(tiny())
    torch.manual_seed(7)
    before = torch.get_rng_state()
    again, other = fit(tiny()), fit(tiny(seed=1))
    assert torch.equal(before, torch.get_rng_state())
    assert but_seconds(again.history) == but_seconds(one.history)
    assert same(weights(again.network), weights(one.network))
    assert but_seconds(other.history) != but_seconds(one.history)


def test_two_losses_meet_the_same_noise_start_and_batches():
    met: dict[str, list[torch.Tensor]] = {"ce": [], "mse": []}

    def watching(name, loss):
        def wrapped(logits, labels):
            met[name] += [logits.detach().clone(), labels]
            return loss(logits, labels)

        return wrapped

    fit(tiny(), loss=watching("ce", torch.nn.functional.cross_entropy))
    fit(tiny(), loss=watching("mse", lambda z, y: z[torch.arange(len(y)), y].square().mean()))
    assert torch.equal(met["ce"][0], met["mse"][0])  # the start, on the same images
    assert not torch.equal(met["ce"][2], met["mse"][2])  # and then they part
    assert len(met["ce"]) == 2 * 2 * STEPS
    assert same(met["ce"][1::2], met["mse"][1::2])  # labels in their order


def test_a_part_is_split():
    run = tiny(holdout=0.2, rate=0.5, lr=0.0, momentum=0.0)
    trained: list[torch.Tensor] = []

    def loss(logits, labels):
        trained.append(labels)
        return logits.sum() * 0

    result = fit(run, loss=loss)
    assert list(result.history[0])[-4:-2] == ["gradient_norm", "validation_accuracy"]
    labels = noise.make("symmetric", data.load("digits").train.labels, 0.5, num_classes=10, seed=0)
    left = torch.cat(trained[: len(trained) // 2])
    assert len(left) == 1437 - round(0.2 * 1437)
    held = torch.bincount(labels.labels, minlength=10) - torch.bincount(left, minlength=10)
    assert held.sum() == round(0.2 * 1437)
    assert bool((held > 0).all())
    with pytest.raises(ValueError, match=r"holdout=0\.0001 of 1437 samples leaves nothing to"):
        fit(tiny(holdout=0.0001))


def test_validation_is_against_the_noisy_labels():
    """Of which a network that is right is right about as often as they are."""
    row = fit(Run(rate=0.4, loss="5*nce", holdout=0.3, epochs=4, device="cpu")).history[-1]
    assert row["test_accuracy"] > 0.75
    assert 0.4 < row["validation_accuracy"] < 0.65


@pytest.mark.parametrize("seed", [0, 1])
def test_what_is_held_out_is_not_trained_on(seed):
    labels = torch.arange(1000) % 7
    for stratified in (False, True):
        kept, held = split(labels, 0.2, seed, stratified=stratified)
        assert len(held) == 200
        assert sorted([*kept.tolist(), *held.tolist()]) == list(range(1000))
        assert not torch.equal(held, split(labels, 0.2, seed + 1, stratified=stratified)[1])


def test_known_data_sets_hold_out_what_they_always_did():
    _, held = split(torch.arange(20) % 2, 0.2, 0, stratified=False)
    assert held.tolist() == [0, 2, 12, 18]  # runs that are published were made with it


def test_every_class_of_one_s_own_data_is_held_out_in_its_share():
    labels = torch.tensor([0] * 500 + [1] * 50 + [2] * 5 + [3])[torch.randperm(556)]
    for seed in range(5):
        kept, held = split(labels, 0.2, seed, stratified=True)
        assert len(held) == round(0.2 * 556)
        assert torch.bincount(labels[held], minlength=4).tolist() == [100, 10, 1, 0]
        assert len(labels[kept].unique()) == 4
    pairs = torch.arange(10) // 2
    kept, held = split(pairs, 0.2, 0, stratified=True)
    assert len(pairs[held].unique()) == 2
    assert len(pairs[kept].unique()) == 5


def test_one_sample_is_no_batch_for_batch_norm():
    with pytest.raises(
        ValueError, match=r"batch_size=4 leaves a last batch of one of the 1437 .*5"
    ):
        fit(tiny(batch_size=4))
    assert fit(tiny(batch_size=718, epochs=1), network=flat_net()).accuracy >= 0
    assert fit(tiny(batch_size=9999, epochs=1)).accuracy >= 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"device": "gpu"}, "unknown device 'gpu'; give cpu, cuda, cuda:1 or auto"),
        ({"device": "meta"}, r"device 'meta' cannot be used here \(.*\); give --device cpu"),
        ({"model": "mpl"}, r"unknown network 'mpl' \(did you mean 'mlp'"),
        ({"dataset": "digit"}, r"unknown data set 'digit' \(did you mean 'digits'"),
        (
            {"noise": "symetric"},
            r"noise is one of none, symmetric, .*'symetric' \(did you mean 'sym",
        ),
        ({"loss": "ncee"}, "unknown loss 'ncee'"),
    ],
)
def test_unknown_names_leave_no_folder(settings, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        fit(tiny(**settings), out=tmp_path)
    assert run_folders(tmp_path) == []


def test_nothing_to_test_on_is_no_number():
    digits = data.load("digits")
    own = data.from_arrays(digits.train.images, digits.train.labels)
    assert math.isnan(fit(tiny(model="mlp", holdout=0), data=own).accuracy)


def test_without_a_test_set_a_part_of_the_given_labels_is_held_out():
    digits = data.load("digits")
    result = fit(tiny(), data=data.from_arrays(digits.train.images, digits.train.labels))
    assert result.run.holdout == 0.2
    last = result.history[-1]
    assert result.accuracy == last["validation_accuracy"] > 0.3
    assert "test_accuracy" not in last
    assert "memorised" not in last  # nobody knows which labels are wrong


def test_an_empty_name_is_not_taken_for_none(tmp_path):
    with pytest.raises(ValueError, match=r"the name of a run is letters, .*; it was ''"):
        fit(tiny(), out=tmp_path, name="")
    assert list(tmp_path.iterdir()) == []
