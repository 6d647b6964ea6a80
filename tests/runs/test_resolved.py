"""A run is resolved once: what is the same run, what is another, and what a record must hold."""

from __future__ import annotations

import dataclasses
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from noiseproof import UsageError, bench, catalogue, results
from noiseproof.bench import _plan
from noiseproof.catalogue import METHODS, Method, Setting
from noiseproof.results import _records
from noiseproof.runs import ResolvedRun, Run, _resolve
from noiseproof.train import fit

COMMITTED = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def committed() -> list[results.Record]:
    reading = results.read(COMMITTED)
    assert reading.problems == []
    return reading.records


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch):
    monkeypatch.setattr(_plan, "gpus", lambda: ())


def test_nothing_is_left_open():
    for name in bench.names():
        for run in bench.bench(name).runs:
            values = dataclasses.asdict(run.resolve())
            assert None not in values.values(), run
            assert values["precision"] in ("bf16", "fp32")


@pytest.mark.parametrize("protocol", ["paper", "authors"])
@pytest.mark.parametrize("dataset", catalogue.DATASETS)
@pytest.mark.parametrize("method", ["nce+rce", "nfl+mae", "ngce+rce", "mae+rce", "nfl+nce"])
def test_a_method_is_one_run_however_it_is_written(method, dataset, protocol):
    first, second = method.split("+")
    at = {"dataset": dataset, "protocol": protocol, "rate": 0.6}
    run = Run(loss=method, **at).resolve()
    texts = (f"{second}+{first}", f" {first.upper()} +  {second.upper()}", run.loss)
    for text in texts:
        assert Run(loss=text, **at).resolve() == run, text
        assert Run(loss=text, **at).resolve().hash == run.hash
        assert run.means(text)
    short = " + ".join(reversed(run.loss.split(" + ")))
    assert Run(loss=short, **at).resolve() == run


def test_a_text_with_numbers_is_read_as_it_stands():
    named, weighed = (Run(dataset="cifar100", loss=x).resolve() for x in ("nce+rce", "1*nce+1*rce"))
    assert named.loss == "10*nce + 0.1*rce(A=-4)"
    assert weighed.loss == "nce + rce(A=-4)"
    assert (named.method, weighed.method) == ("NCE+RCE", "1*NCE+1*RCE")


def test_a_decay_given_by_hand_that_equals_the_method_s_is_the_same_run():
    jal = Run(dataset="cifar10", loss="jal-ce")
    by_hand = dataclasses.replace(jal, weight_decay=0.0, l1=5e-5)
    as_text = dataclasses.replace(by_hand, loss="amse(a=30) + nce")
    assert jal.resolve() == by_hand.resolve() == as_text.resolve()
    other = dataclasses.replace(jal, weight_decay=1e-4).resolve()
    assert other.hash != jal.resolve().hash
    assert other.method == "JAL-CE"


def test_a_corrected_method_renames_its_runs_and_no_others(monkeypatch):
    runs = [run for name in bench.names() for run in bench.bench(name).runs]
    before = {run: run.resolve().hash for run in runs}
    corrected = Method("JAL-CE", {"cifar10": Setting("nce + amse(a=31)", "", 5e-5, 0.0)})
    monkeypatch.setitem(METHODS, "jal-ce", corrected)
    for cached in (catalogue._labels._labels_with, catalogue.label_of):
        cached.cache_clear()
    changed = {run for run in runs if run.loss != "jal-ce" or run.dataset == "cifar10"}
    renamed = {run for run in changed if run.resolve().hash != before[run]}
    assert renamed == {run for run in changed if run.loss == "jal-ce"}
    assert renamed


@pytest.fixture(autouse=True)
def _fresh_labels():
    yield
    for cached in (catalogue._labels._labels_with, catalogue.label_of):
        cached.cache_clear()


def test_a_precision_by_name_is_a_part_of_the_run(tmp_path):
    runs = {p: Run(epochs=1, device="cpu", precision=p) for p in ("auto", "fp32", "bf16", "tf32")}
    hashes = {p: run.resolve().hash for p, run in runs.items()}
    assert hashes["auto"] == hashes["fp32"]
    assert len(set(hashes.values())) == 3
    fit(runs["bf16"], out=tmp_path)
    (record,) = results.read(tmp_path).records
    assert record.run.precision == "bf16"

    def done(precision: str) -> int:
        return len(bench.plan(bench.Bench("x", "X", "", (runs[precision],)), tmp_path).done)

    assert [done(p) for p in runs] == [1, 0, 1, 0]
    assert fit(runs["auto"], out=tmp_path).network is None  # a record of either satisfies it
    assert fit(runs["fp32"], out=tmp_path).network is not None


def test_auto_is_bf16_on_a_gpu_and_fp32_on_a_cpu():
    run = Run()
    assert [run.resolve(on_gpu=g).precision for g in (True, False)] == ["bf16", "fp32"]
    assert [r.precision for r in run.resolutions()] == ["bf16", "fp32"]
    assert len(Run(precision="tf32").resolutions()) == 1


def test_noise_is_as_it_will_be_drawn():
    assert Run().resolve().variant == "paper"
    assert Run(protocol="authors").resolve().variant == "authors"
    assert Run(protocol="authors", noise="pairflip").resolve().variant == "paper"
    clean = Run(protocol="authors", noise="asymmetric", rate=0).resolve()
    assert (clean.noise, clean.rate, clean.variant) == ("none", 0.0, "paper")
    with pytest.raises(UsageError, match="the authors have no pairflip noise: give variant='paper"):
        Run(noise="pairflip", variant="authors").resolve()
    with pytest.raises(UsageError, match="cifar10n-worst are labels of cifar10, and the data set"):
        Run(noise="cifar10n-worst").resolve()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dataset": "cifar11"}, r"unknown data set 'cifar11' \(did you mean 'cifar10'\?\)"),
        ({"model": "cnn9"}, r"unknown network 'cnn9' \(did you mean 'cnn8'\?\)"),
        ({"loss": "nce + rcee"}, r"unknown loss 'rcee' \(did you mean 'rce'\?\)"),
        ({"loss": "anl-cd"}, r"unknown loss 'anl-cd' \(did you mean 'anl-ce'\?\)"),
        ({"loss": "atuo"}, r"unknown loss 'atuo' \(did you mean 'auto'\?\)"),
        ({"loss": "auto + ce"}, "and is no part of a sum: give it alone, --loss auto"),
        ({"loss": "2*NLNL"}, "and is no part of a sum: give it alone, --loss nlnl"),
        ({"loss": "auto(3)"}, "auto takes no numbers"),
        ({"loss": "my-auto"}, "unknown loss 'my-auto'"),
        ({"loss": None}, "loss must be a text; it was None"),
        ({"loss": "jal-ce"}, "jal-ce has no published settings for 'digits'"),
    ],
)
def test_what_is_unknown_is_named_without_torch(settings, message):
    with pytest.raises(UsageError, match=message):
        Run(**settings).resolve()


def test_every_committed_run_is_found_by_what_a_user_would_give(committed):
    """Each from its protocol, its method and the settings that differ from them: MNIST's weight
    decay, and the network of CIFAR-100, for which the authors' code has another than the paper.
    """
    for record in committed:
        run = record.run
        given = {"dataset": run.dataset, "noise": run.noise, "rate": run.rate, "seed": run.seed,
                 "loss": run.method, "protocol": run.protocol, "variant": run.variant,
                 "holdout": run.holdout}  # fmt: skip
        if run.noise not in ("symmetric", "asymmetric"):
            del given["variant"]
        if run.method not in {m.label for m in METHODS.values()}:
            given["loss"] = run.loss
        usual = Run(**given).resolve(on_gpu=True)
        more = {k: v for k, v in run.settings().items() if v != usual.settings()[k]}
        assert more.keys() <= {"weight_decay", "model"}, (run, more)
        assert Run(**given, **more).resolve(on_gpu=True).hash == record.hash


def test_committed_benches_are_done():
    losses = ["ce", "fl", "gce", "sce", "nfl+mae", "RCE+NFL", "nce+mae", "NCE+RCE"]
    tables = bench.bench("table-symmetric").narrow(dataset=["mnist"], loss=losses)
    assert len(bench.plan(tables, COMMITTED).done) == len(tables) == 120
    reasons = bench.read_bench(COMMITTED.parent / "docs" / "reasons.toml")
    assert bench.plan(reasons, COMMITTED).waiting == []


def test_a_new_setting_with_a_default_renames_nothing(committed, monkeypatch):
    field = ("cutmix", int, dataclasses.field(default=0))
    wider = dataclasses.make_dataclass(
        "ResolvedRun", [field], bases=(ResolvedRun,), frozen=True, kw_only=True
    )
    for record in committed:
        again = wider.from_settings(record.run.settings())
        assert (again.cutmix, again.hash) == (0, record.hash)
    assert dataclasses.replace(again, cutmix=5).hash != again.hash
    monkeypatch.setattr(_records, "ResolvedRun", wider)
    monkeypatch.setattr(_resolve, "ResolvedRun", wider)
    assert "cutmix" in Run().resolve().settings()
    test_committed_benches_are_done()


def test_a_record_must_be_whole():
    settings = Run().resolve().settings()
    assert ResolvedRun.from_settings(settings) == Run().resolve()
    without = {k: v for k, v in settings.items() if k not in ("optimizer", "overrides", "name")}
    assert ResolvedRun.from_settings(without) == Run().resolve()
    for changed, message in (
        ({"rate": None}, "the setting 'rate' is None, not a float"),
        ({"rate": True}, "the setting 'rate' is True, not a float"),
        ({"epochs": 2.5}, "the setting 'epochs' is 2.5, not a int"),
        ({"loss": 3}, "the setting 'loss' is 3, not a str"),
        ({"overrides": [1]}, r"the setting 'overrides' is \[1\], not a tuple"),
        ({"colour": "red"}, "this version does not know the setting 'colour'"),
    ):
        with pytest.raises(UsageError, match=message):
            ResolvedRun.from_settings(settings | changed)
    del settings["rate"]
    with pytest.raises(UsageError, match="the setting 'rate' is missing"):
        ResolvedRun.from_settings(settings)


def test_runs_that_train_side_by_side_share_a_pack_key():
    runs = [Run(dataset="cifar10", loss=loss, seed=s).resolve() for loss, s in
            itertools.product(("ce", "jal-ce"), (0, 1))]  # fmt: skip
    assert len({run.pack_key for run in runs}) == 1
    assert Run(dataset="cifar10", holdout=0.2).resolve().pack_key != runs[0].pack_key


def test_every_field_of_a_run_reaches_the_resolved_run(monkeypatch):
    """A setting that is added to both classes is not forgotten between them."""
    given = dataclasses.make_dataclass(
        "Run", [("cutmix", float, dataclasses.field(default=0.0))], bases=(Run,), frozen=True,
        kw_only=True,
    )  # fmt: skip
    wider = dataclasses.make_dataclass(
        "ResolvedRun", [("cutmix", float, dataclasses.field(default=0.0))], bases=(ResolvedRun,),
        frozen=True, kw_only=True,
    )  # fmt: skip
    monkeypatch.setattr(_resolve, "ResolvedRun", wider)
    assert given(cutmix=0.4).resolve().cutmix == 0.4
    assert given(cutmix=0.4).resolve().hash != given().resolve().hash == Run().resolve().hash


def test_values_that_are_equal_are_one_run():
    same = [
        ({"nesterov": np.True_}, {"nesterov": True}), ({"rate": -0.0}, {"rate": 0.0}),
        ({"weight_decay": -0.0}, {"weight_decay": 0}), ({"loss": "fl(gamma=-0.0)"},
        {"loss": "fl(gamma=0)"}), ({"model": "CNN-4"}, {"model": "cnn4"}),
        ({"dataset": "cifar10", "noise": "asymmetric", "rate": 0, "loss": "epsilon-softmax"},
         {"dataset": "cifar10", "noise": "none", "loss": "epsilon-softmax"}),
    ]  # fmt: skip
    for one, other in same:
        assert Run(**one).resolve().hash == Run(**other).resolve().hash, one
    with pytest.raises(UsageError, match="nesterov is true or false; it was 1"):
        Run(nesterov=1)


def test_other_numbers_under_a_method_s_name_have_another_label():
    at = {"dataset": "cifar100"}
    labels = {
        text: Run(loss=text, **at).resolve().method
        for text in ("sce", "sce(alpha=0.1, beta=1)", "js(pi=0.5)", "js(pi=0.3)")
    }
    assert labels["sce"] == "SCE"
    assert len(set(labels.values())) == 4, labels
    for loss in ("mae", "rce", "fl"):
        named, plain = (
            Run(loss=x, protocol="authors", **at).resolve() for x in (loss, f"1*{loss}")
        )
        assert named.method != plain.method


def test_a_bench_keeps_runs_that_a_gpu_would_tell_apart():
    assert len(bench.grid(precision=["auto", "fp32"])) == 2
    assert len(bench.grid(precision=["auto", "auto"])) == 1
    assert len(bench.grid(device=["cpu", "cuda"])) == 2


@pytest.mark.parametrize(
    ("loss", "dataset", "noise", "text"),
    [
        ("nce", "mnist", "symmetric", "10*nce"), ("nce", "cifar10", "symmetric", "nce"),
        ("nfl", "cifar10", "symmetric", "10*normalize(fl_detached)"),
        ("nfl", "cifar10", "asymmetric", "normalize(fl_detached)"),
        ("ngce", "mnist", "symmetric", "10*ngce(rho=0.1)"),
        ("ngce", "cifar10", "asymmetric", "ngce(rho=0.1)"),
        ("nce+rce", "webvision", "given", "50*nce + 0.1*rce(A=-9.210340371976182)"),
        ("nce+mae", "webvision", "given", "50*nce + 0.5*mae"),
        ("sce", "webvision", "given", "10*ce + rce(A=-9.210340371976182)"),
        ("nrce", "cifar100", "symmetric", "24.75*nrce(A=-4)"),
    ],
)  # fmt: skip
def test_the_authors_code_is_followed_for_every_loss(loss, dataset, noise, text):
    """The scale of 10 of some single losses, their exponent, and their A and MAE on WebVision."""
    found = catalogue.resolve_loss(loss, dataset, noise=noise, rate=0.4, protocol="authors")
    assert found.loss == text


def test_what_the_authors_do_not_have_is_said():
    for loss in ("anl-ce", "jal-fl", "nce+agce", "epsilon-softmax", "js"):
        with pytest.raises(
            UsageError, match=rf"the code of the paper's authors has no {re.escape(loss)}"
        ):
            Run(dataset="cifar10", loss=loss, protocol="authors").resolve()
    assert Run(dataset="cifar10", loss="anl-ce", variant="authors").resolve().variant == "authors"


def test_numbers_that_sources_disagree_on_are_noted():
    run = Run(dataset="cifar100", rate=0.6, loss="epsilon-softmax")
    assert "its published code 0.00125; 0.0125 is used" in run.note()
    assert dataclasses.replace(run, rate=0.4).note() == Run().note() == ""


@pytest.mark.parametrize(
    ("loss", "printed"), [("anl-fl", "5*nfl + 5*nnfl"), ("jal-fl", "1*nfl + amse(a=30)")]
)
def test_which_focal_loss_is_trained_is_noted(loss, printed):
    run = Run(dataset="cifar10", loss=loss)
    assert "fl_detached" in run.resolve().loss
    assert run.note().endswith(f"the loss as the paper prints it is {printed}")
    assert "fl_detached" not in Run(dataset="cifar10", loss=printed).resolve().loss
