"""RobustClassifier as scikit-learn's users use it."""

from __future__ import annotations

import functools
import importlib
import io
import pickle
import sys
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
import torch
from torch import nn

pytest.importorskip("sklearn")
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine, make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import noiseproof
from noiseproof import MissingExtraError, UsageError, noise, tools
from noiseproof._errors import DivergedError
from noiseproof.integrations.sklearn import RobustClassifier

quick = functools.partial(RobustClassifier, epochs=10, lr=0.02, random_state=0)
wine = functools.partial(load_wine, return_X_y=True)


@parametrize_with_checks([quick()])
def test_is_an_estimator(estimator, check):
    check(estimator)


@pytest.mark.long
def test_is_an_estimator_with_its_defaults():
    results = check_estimator(RobustClassifier(), on_skip=None)
    assert {r["status"] for r in results} <= {"passed", "skipped"}
    assert all(
        r["check_name"] == "check_array_api_input" for r in results if r["status"] != "passed"
    )


@pytest.mark.slow
def test_withstands_wrong_labels():
    X, y = load_digits(return_X_y=True)
    noisy = noise.symmetric(y[:800], 0.4, num_classes=10, seed=0).labels
    scores = {
        loss: RobustClassifier(loss=loss, epochs=60, random_state=0)
        .fit(X[:800], noisy)
        .score(X[800:], y[800:])
        for loss in ("ce", "nce+rce")
    }
    assert scores["nce+rce"] > scores["ce"] + 0.03


class TestParameters:
    def test_losses_in_a_grid(self):
        search = GridSearchCV(quick(), {"loss": ["ce", "gce(rho=0.5)", "10*nce + rce"]}, cv=2)
        search.fit(*wine())
        assert str(search.best_estimator_.criterion_) == search.best_params_["loss"]

    @pytest.mark.parametrize(
        ("loss", "grid", "texts"),
        [
            ("gce", {"loss__rho": [0.3, 0.7]}, {"gce(rho=0.3)", "gce"}),
            ("nce+rce", {"loss__alpha": [1, 10]}, {"nce + rce", "10*nce + rce"}),
            (noiseproof.parse("gce"), {"loss__rho": [0.3, 0.7]}, {"gce(rho=0.3)", "gce"}),
            ("ce", {"loss": ["gce"], "loss__rho": [0.1]}, {"gce(rho=0.1)"}),
        ],
    )
    def test_numbers_of_the_loss_in_a_grid(self, loss, grid, texts):
        pipeline = make_pipeline(StandardScaler(), quick(loss=loss))
        grid = {f"robustclassifier__{name}": values for name, values in grid.items()}
        search = GridSearchCV(pipeline, grid, cv=2).fit(*wine())
        assert len(search.cv_results_["params"]) == len(texts)
        assert str(search.best_estimator_[-1].criterion_) in texts

    def test_are_listed_and_cloned(self):
        estimator = quick(loss="nce + rce").set_params(loss__rce=0.1, lr=0.5)
        assert estimator.loss == "nce + 0.1*rce"
        assert estimator.get_params()["loss__rce"] == 0.1
        assert "loss__rce" not in estimator.get_params(deep=False)
        assert clone(estimator).get_params() == estimator.get_params()
        assert estimator.set_params(loss="gce").get_params()["loss__rho"] == 0.7

    def test_of_a_loss_keep_its_keywords(self):
        given = noiseproof.parse("gce", label_smoothing=0.1)
        changed = quick(loss=given).set_params(loss__rho=0.2).loss
        assert changed == noiseproof.parse("gce(rho=0.2)", label_smoothing=0.1)

    @pytest.mark.parametrize("loss", ["auto", nn.functional.cross_entropy])
    def test_of_no_text(self, loss):
        assert quick(loss=loss).get_params()["loss"] is loss
        with pytest.raises(UsageError, match="loss__rho needs a loss with that parameter"):
            quick(loss=loss).set_params(loss__rho=1)

    def test_misspelt(self):
        with pytest.raises(UsageError, match="no parameter 'q'; it has rho"):
            quick(loss="gce").set_params(loss__q=0.7)
        with pytest.raises(ValueError, match="Invalid parameter 'epoch'"):
            quick().set_params(epoch=1)
        assert "loss" in quick(loss="no such loss").get_params()  # said by fit


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"module": "mpl"}, "unknown network 'mpl'"),
        ({"module": nn.Linear(13, 2)}, r"gives \[2, 2\] for two inputs; logits \[N, 3\]"),
        ({"module": nn.Flatten()}, "no parameters to train|logits"),
        ({"module": nn.Linear}, "model Linear needs in_features"),
        ({"hidden_layer_sizes": (0,)}, "hidden_layer_sizes are whole numbers from 1"),
        ({"loss": "nce + rcee"}, "unknown loss 'rcee'"),
        ({"loss": 3}, "loss is a text such as 'nce.rce'"),
        ({"optimizer": "adm"}, "unknown optimizer 'adm'"),
        ({"optimizer": 3}, "torch.optim.RAdam"),
        ({"epochs": 0}, "epochs must be a whole number from 1; it was 0"),
        ({"batch_size": 1.5}, "batch_size must be a whole number"),
        ({"lr": -1}, "lr must be a number from 0"),
        ({"class_weight": "equal"}, "class_weight is 'balanced', a dict or None"),
        ({"class_weight": {0: -1.0}}, "class_weight must not be negative"),
        ({"class_weight": dict.fromkeys(range(3), 0.0)}, "class_weight must .*zero for all"),
        ({"device": "gpu"}, "unknown device 'gpu'"),
        ({"device": "meta"}, "device 'meta' cannot be used here"),
        ({"loss": nn.CrossEntropyLoss(), "class_weight": "balanced"}, "reduction='none'"),
    ],
)
def test_refused_settings(settings, message):
    with pytest.raises(UsageError, match=message):
        quick().set_params(**settings).fit(*wine())


def test_refused_inputs():
    X, y = wine()
    with pytest.raises(NotFittedError):
        quick().predict(X)
    with pytest.raises(UsageError, match="y has one class, 'red'"):
        quick().fit(X, ["red"] * len(X))
    with pytest.raises(UsageError, match="sample_weight must not be negative"):
        quick().fit(X, y, sample_weight=-np.ones(len(X)))
    images = X[:, :12].reshape(-1, 3, 2, 2)
    with pytest.raises(UsageError, match="standardize=True is for tables"):
        quick(standardize=True).fit(images, y)
    with pytest.raises(UsageError, match=r"fitted on inputs \[N, 3, 2, 2\]"):
        quick().fit(images, y).predict(images[:, :, :1])


def test_diverged():
    with pytest.raises(DivergedError, match=r"take a smaller lr than 1e\+30"):
        quick(loss="unhinged", optimizer="sgd", lr=1e30).fit(*wine())


def test_without_scikit_learn(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "sklearn"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "noiseproof.integrations.sklearn")
    with pytest.raises(MissingExtraError, match=r'pip install "noiseproof\[sklearn\]"'):
        importlib.import_module("noiseproof.integrations.sklearn")


class TestLabelsAndTables:
    def test_names_and_data_frames(self):
        pandas = pytest.importorskip("pandas")
        X, y = wine()
        frame = pandas.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
        labels = pandas.Series(np.array(["barbera", "grignolino", "barolo"])[y])
        fitted = quick().fit(frame, labels)
        assert list(fitted.feature_names_in_) == list(frame.columns)
        assert list(fitted.classes_) == ["barbera", "barolo", "grignolino"]
        assert fitted.score(frame, labels) > 0.9
        with pytest.raises(ValueError, match="feature names should match"):
            fitted.predict(frame[frame.columns[::-1]])

    def test_two_classes(self):
        X, y = make_blobs(100, centers=2, random_state=0)
        fitted = quick(epochs=30).fit(X, y == 1)
        probabilities = fitted.predict_proba(X)
        assert probabilities.shape == (100, 2)
        np.testing.assert_allclose(probabilities.sum(1), 1)
        np.testing.assert_allclose(fitted.predict_log_proba(X), np.log(probabilities))
        assert ((fitted.decision_function(X) > 0) == fitted.predict(X)).all()
        assert fitted.predict(X).dtype == bool

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_computes_in_the_type_of_the_table(self, dtype):
        X, y = wine()
        fitted = quick().fit(X.astype(dtype), y)
        assert fitted.predict_proba(X).dtype == dtype

    def test_unscaled_features_are_standardized(self):
        X, y = wine()
        raw, scaled = quick(), quick(standardize=False)
        raw.fit(X * 1000, y)
        scaled.fit(StandardScaler().fit_transform(X), y)
        np.testing.assert_allclose(
            raw.predict_proba(X * 1000),
            scaled.predict_proba(StandardScaler().fit_transform(X)),
            rtol=1e-5,
        )
        assert scaled.scaler_ is None


@pytest.fixture
def rare():
    """Two overlapping classes, one of them 4 % of the samples."""
    y = (np.arange(1000) % 25 == 0).astype(int)
    return np.random.RandomState(0).randn(1000, 5) + 0.7 * y[:, None], y


def recall(estimator, X, y):
    return estimator.predict(X)[y == 1].mean()


class TestWeights:
    def test_balanced_and_by_label(self, rare):
        X, y = rare  # sample weights would change how features are standardized
        fit = functools.partial(quick, standardize=False)
        assert recall(fit().fit(X, y), X, y) < 0.1
        balanced = fit(class_weight="balanced").fit(X, y)
        assert recall(balanced, X, y) > 0.6
        given = fit(class_weight={0: 500 / 960, 1: 500 / 40}).fit(X, y)
        as_samples = fit().fit(X, y, sample_weight=np.where(y, 500 / 40, 500 / 960))
        for same in (given, as_samples):
            np.testing.assert_allclose(same.predict_proba(X), balanced.predict_proba(X), atol=1e-4)

    def test_a_sample_of_weight_zero_is_not_there(self, rare):
        X, y = rare
        kept = np.arange(1000) % 3 > 0
        weighted = quick().fit(X, y, sample_weight=kept.astype(float))
        without = quick().fit(X[kept], y[kept])
        np.testing.assert_array_equal(weighted.predict_proba(X), without.predict_proba(X))


class TestLosses:
    @pytest.mark.parametrize(
        "loss",
        [
            noiseproof.GeneralizedCrossEntropy(rho=0.5),
            noiseproof.parse("nce + rce", weight=[1, 2, 1]),
            nn.CrossEntropyLoss(),
            nn.CrossEntropyLoss(reduction="none"),
            nn.functional.cross_entropy,
        ],
        ids=["a loss", "a weighted sum", "torch's", "torch's, unreduced", "a function"],
    )
    def test_of_every_kind(self, loss):
        X, y = wine()
        fitted = quick(loss=loss).fit(X, y)
        assert fitted.score(X, y) > 0.9
        assert fitted.loss is loss
        assert clone(fitted).fit(X, y).score(X, y) == fitted.score(X, y)

    def test_auto(self, monkeypatch):
        X, y = wine()
        asked = []

        def recommend(labels):
            asked.append(labels)
            return SimpleNamespace(loss="gce", class_weight="balanced")

        monkeypatch.setattr(tools, "recommend", recommend, raising=False)
        names = np.array(["a", "b", "c"])[y]
        chosen = quick(loss="auto").fit(X, names)
        assert list(asked[0]) == list(names)
        assert str(chosen.criterion_) == chosen.recommendation_.loss == "gce"
        same = quick(loss="gce", class_weight="balanced").fit(X, names)
        np.testing.assert_array_equal(chosen.predict_proba(X), same.predict_proba(X))
        own = {"a": 1, "b": 1, "c": 1}
        own_weights = quick(loss="auto", class_weight=own).fit(X, names)
        plain = quick(loss="gce").fit(X, names)
        np.testing.assert_array_equal(own_weights.predict_proba(X), plain.predict_proba(X))

    def test_auto_as_recommended(self):
        X, y = wine()
        fitted = quick(loss="auto").fit(X, y)
        assert str(fitted.criterion_) == str(noiseproof.parse(tools.recommend(y).loss))


class Net(nn.Module):
    def __init__(self, num_classes: int, in_channels: int, width: int = 64) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(in_channels, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.2),
            nn.Linear(width, num_classes),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class Keeping(Net):
    """Keeps what it has computed in training, which torch does not copy with its graph."""

    def forward(self, x):
        logits = super().forward(x)
        if self.training:
            self.seen = logits
        return logits


class TestModules:
    @pytest.mark.parametrize(
        "module",
        [Net, functools.partial(Net, width=32), Net(3, 13), nn.Sequential(nn.LazyLinear(3))],
        ids=["class", "factory", "instance", "lazy"],
    )
    def test_of_every_kind(self, module):
        X, y = wine()
        fitted = quick(module, loss="ce").fit(X[:-1], y[:-1])  # 177: no batch of one is left
        assert fitted.score(X, y) > 0.9
        assert next(fitted.module_.parameters()).dtype == torch.float32
        again = clone(fitted).fit(X[:-1], y[:-1])
        np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))

    def test_given_instance_is_a_start_and_stays_as_it_was(self):
        X, y = wine()
        network = nn.Sequential(nn.Linear(13, 3))
        before = network[0].weight.detach().clone()
        fitted = quick(network, lr=0.0).fit(X, y)
        assert torch.equal(fitted.module_[0].weight, before)
        quick(network).fit(X, y)
        assert torch.equal(network[0].weight, before)

    def test_images(self):
        X, y = load_digits(return_X_y=True)
        X = X.reshape(-1, 1, 8, 8) / 16

        def convolutions(num_classes, in_channels):
            return nn.Sequential(
                nn.Conv2d(in_channels, 8, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(num_classes)
            )

        assert quick(convolutions, epochs=3).fit(X, y).score(X, y) > 0.8
        assert quick(epochs=3).fit(X, y).score(X, y) > 0.8  # the perceptron takes any shape
        assert quick("cnn4", epochs=1).fit(X[:64], y[:64]).predict_proba(X[:3]).shape == (3, 10)

    def test_optimizer_class(self):
        X, y = wine()
        assert quick(optimizer=torch.optim.RAdam, epochs=30).fit(X, y).score(X, y) > 0.9
        assert quick(optimizer="sgd", epochs=30).fit(X, y).score(X, y) > 0.9


class TestFit:
    def test_same_seed_same_network_and_the_global_generators_are_left_alone(self):
        X, y = wine()
        torch.manual_seed(7)
        np.random.seed(7)
        before = torch.get_rng_state(), np.random.get_state()[1].copy()
        first, second, third = (quick(Net).set_params(random_state=s).fit(X, y) for s in (1, 1, 2))
        assert torch.equal(torch.get_rng_state(), before[0])
        assert (np.random.get_state()[1] == before[1]).all()
        np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
        assert (first.predict_proba(X) != third.predict_proba(X)).any()

    def test_early_stopping_keeps_the_best_epoch(self):
        X, y = load_digits(return_X_y=True)
        noisy = noise.symmetric(y, 0.4, num_classes=10, seed=0).labels
        stopped = quick(loss="ce", epochs=40, early_stopping=True, n_iter_no_change=5)
        stopped.fit(X, noisy)
        scores = stopped.validation_scores_
        assert len(scores) == len(stopped.loss_curve_) == stopped.n_iter_ < 40
        assert max(np.flatnonzero(scores == np.max(scores))) == stopped.n_iter_ - 6
        to_the_end = quick(loss="ce", epochs=40).fit(X, noisy)
        assert to_the_end.validation_scores_ is None
        assert stopped.score(X, y) > to_the_end.score(X, y) + 0.05

    def test_warm_start_continues(self):
        X, y = wine()
        warm = quick(warm_start=True, epochs=3).fit(X, y)
        first = warm.loss_curve_[0]
        assert warm.fit(X, y).loss_curve_[0] < first
        cold = quick(epochs=3).fit(X, y)
        assert cold.fit(X, y).loss_curve_[0] == first
        warm.fit(X, y + (y == 2))  # other classes: from the beginning
        assert list(warm.classes_) == [0, 1, 3]

    def test_files(self, tmp_path):
        X, y = wine()
        fitted = make_pipeline(StandardScaler(), quick(Net)).fit(X, y)
        joblib.dump(fitted, tmp_path / "model.joblib")
        loaded = joblib.load(tmp_path / "model.joblib")
        np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
        assert clone(pickle.loads(pickle.dumps(fitted)))[-1].module is Net

    def test_a_module_that_keeps_tensors_of_its_steps(self):
        X, y = wine()
        module = Keeping(num_classes=3, in_channels=13)
        module(torch.zeros(2, 13))
        fitted = quick(module, epochs=2).fit(X, y)
        assert fitted.module_.seen.requires_grad
        loaded = pickle.loads(pickle.dumps(fitted.set_params(module=Keeping)))
        np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))

    def test_progress(self, capsys, monkeypatch):
        X, y = wine()
        quick(epochs=20, verbose=True, early_stopping=True, n_iter_no_change=20).fit(X, y)
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 10
        assert "epoch 20/20, loss 0." in lines[-1]
        assert "held-out accuracy" in lines[-1]

        class Terminal(io.StringIO):
            def isatty(self):
                return True

        terminal = Terminal()
        monkeypatch.setattr(sys, "stdout", terminal)
        quick(epochs=20, verbose=True).fit(X, y)
        assert terminal.getvalue().count("\r") == 20
        assert terminal.getvalue().endswith("\n")


def test_it_fits_where_gradients_are_off():
    X, y = make_blobs(60, random_state=0)
    expected = RobustClassifier(epochs=3, random_state=0).fit(X, y).loss_curve_
    with torch.no_grad():
        assert RobustClassifier(epochs=3, random_state=0).fit(X, y).loss_curve_ == expected


def test_a_loss_that_cannot_be_trained_with_is_said():
    X, y = make_blobs(60, random_state=0)
    with pytest.raises(UsageError, match="the loss is the class CrossEntropyLoss: give an instan"):
        RobustClassifier(loss=nn.CrossEntropyLoss).fit(X, y)
    learnt = nn.CrossEntropyLoss()
    learnt.scale = nn.Parameter(torch.ones(()))
    with pytest.warns(UserWarning, match=r"has parameters \(scale\), which are not trained"):
        RobustClassifier(loss=learnt, epochs=1).fit(X, y)
