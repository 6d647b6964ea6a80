"""Which class goes where, and noise by its name."""

from __future__ import annotations

import numpy as np
import pytest

from noiseproof import noise

from .subjects import features_of

CIFAR10 = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
# The superclass of each fine label of CIFAR-100, as the data set's own files have it.
COARSE = [
    4, 1, 14, 8, 0, 6, 7, 7, 18, 3, 3, 14, 9, 18, 7, 11, 3, 9, 7, 11,
    6, 11, 5, 10, 7, 6, 13, 15, 3, 15, 0, 11, 1, 10, 12, 14, 16, 9, 11, 5,
    5, 19, 8, 8, 15, 13, 14, 17, 18, 10, 16, 4, 17, 4, 2, 0, 17, 4, 18, 17,
    10, 3, 2, 12, 12, 16, 12, 1, 9, 19, 2, 10, 0, 1, 16, 12, 9, 13, 15, 13,
    16, 19, 2, 4, 6, 19, 5, 5, 8, 19, 18, 1, 2, 15, 6, 0, 17, 8, 14, 13,
]  # fmt: skip


def test_cifar10():
    named = {CIFAR10[a]: CIFAR10[b] for a, b in noise.mapping_of("cifar10").items()}
    assert named == {
        "truck": "automobile", "bird": "airplane", "deer": "horse", "cat": "dog", "dog": "cat",
    }  # fmt: skip


@pytest.mark.parametrize("dataset", ["mnist", "digits"])
def test_digits(dataset):
    assert noise.mapping_of(dataset) == {7: 1, 2: 7, 5: 6, 6: 5, 3: 8}


def test_cifar100_goes_round_the_superclass():
    mapping = noise.mapping_of("cifar100")
    assert sorted(mapping) == sorted(mapping.values()) == list(range(100))
    for fine, target in mapping.items():
        assert COARSE[fine] == COARSE[target]
        ring = [k for k in range(100) if COARSE[k] == COARSE[fine]]
        assert len(ring) == 5
        assert target == ring[(ring.index(fine) + 1) % 5]


def test_the_authors_cifar100_goes_round_five_labels():
    mapping = noise.mapping_of("cifar100", "authors")
    assert [mapping[k] for k in range(10)] == [1, 2, 3, 4, 0, 6, 7, 8, 9, 5]
    assert mapping[99] == 95
    assert sum(COARSE[a] == COARSE[b] for a, b in mapping.items()) < 10  # hardly ever a superclass


@pytest.mark.parametrize("dataset", ["mnist", "cifar10", "cifar100"])
def test_asymmetric_noise_follows_the_map(dataset):
    mapping = noise.mapping_of(dataset)
    K = 100 if dataset == "cifar100" else 10
    noisy = noise.asymmetric(np.arange(50 * K) % K, 0.4, dataset=dataset)
    expected = np.eye(K)
    for source, target in mapping.items():
        expected[source, source], expected[source, target] = 0.6, 0.4
    np.testing.assert_allclose(noisy.matrix, expected)
    np.testing.assert_allclose(noisy.requested_matrix, expected)


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({}, ValueError, r"one of dataset .* and mapping .* neither was"),
        ({"dataset": "mnist", "mapping": {1: 0}}, ValueError, "both were"),
        ({"dataset": "cifar-10"}, ValueError, r"'cifar-10' \(did you mean 'cifar10'\?\); there is"),
        ({"dataset": "imagenet"}, ValueError, "for another, give mapping="),
        ({"dataset": "mnist", "num_classes": 7}, ValueError, "num_classes = 7, and mnist has 10"),
        ({"mapping": {1: 1}}, ValueError, "sends class 1 to itself: leave it out"),
        ({"mapping": {1: 9}}, ValueError, "mapping has class 9, and the 3 classes are 0 to 2"),
        ({"mapping": {1.5: 0}}, TypeError, "integers; it had 1.5"),
        ({"mapping": [1, 0]}, TypeError, r"must be a dict.*it was \[1, 0\]"),
        ({"mapping": {1: 0}, "variant": "authors"}, ValueError, "give dataset="),
        ({"dataset": "mnist", "variant": "author"}, ValueError, "'paper' or 'authors'; it was"),
        ({"dataset": "mnist", "variant": "authors", "exact": False}, ValueError, "is theirs"),
    ],
)
def test_asymmetric_refused(keywords, error, message):
    with pytest.raises(error, match=message) as caught:
        noise.asymmetric([0, 1, 2], 0.2, **keywords)
    assert "\n" not in str(caught.value)


def test_labels_of_another_data_set():
    with pytest.raises(ValueError, match="a label is 42, and cifar10's number of classes = 10"):
        noise.asymmetric([0, 42], 0.2, dataset="cifar10")


def test_numpy_integers_in_a_mapping():
    mapping = dict(zip(np.arange(2), np.array([1, 0]), strict=True))
    assert noise.asymmetric([0, 1] * 5, 0.2, mapping=mapping).rate == 0.2


@pytest.mark.parametrize("groups", [[(1,)], [(1, 1)], [(0, 1), (1, 2)]])
def test_circular_refused(groups):
    with pytest.raises(ValueError, match="group"):
        noise.circular(groups)


LABELS = np.arange(200) % 10


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("name", noise.NAMES)
def test_make_is_the_function_of_that_name(name, exact):
    rate = 0.0 if name == "none" else 0.3
    made = noise.make(
        name, LABELS, rate, num_classes=10, dataset="mnist", seed=4, exact=exact,
        features=features_of(LABELS),
    )  # fmt: skip
    keywords = {"seed": 4, "exact": exact}
    expected = {
        "none": lambda: noise.from_labels(LABELS, LABELS),
        "symmetric": lambda: noise.symmetric(LABELS, rate, **keywords),
        "asymmetric": lambda: noise.asymmetric(LABELS, rate, dataset="mnist", **keywords),
        "pairflip": lambda: noise.pairflip(LABELS, rate, **keywords),
        "instance": lambda: noise.instance_dependent(features_of(LABELS), LABELS, rate, seed=4),
    }[name]()
    np.testing.assert_array_equal(made.labels, expected.labels)
    if name != "instance":
        T = noise.matrix(name, rate, num_classes=10, dataset="mnist")
        np.testing.assert_array_equal(made.requested_matrix, T)


@pytest.mark.parametrize("name", ["none", "symmetric", "asymmetric"])
def test_make_the_authors(name):
    rate = 0.0 if name == "none" else 0.3
    made = noise.make(name, LABELS, rate, dataset="cifar10", variant="authors", seed=4)
    assert made.num_classes == 10
    assert made.flipped.any() == (name != "none")


def test_make_takes_the_classes_of_the_data_set():
    assert noise.make("symmetric", [0, 1], 0.5, dataset="cifar100").num_classes == 100
    assert noise.make("clean", [0, 1], dataset="unheard-of").num_classes == 2


@pytest.mark.parametrize(
    ("name", "keywords", "message"),
    [
        ("symetric", {}, "'symetric'; there is none, symmetric, asymmetric, pairflip, instance"),
        ("none", {}, "noise 'none' has rate 0; it was 0.3"),
        ("asymmetric", {}, r"give dataset= \(.*cifar10.*or call noise.asymmetric with mapping="),
        ("instance", {}, "give features="),
        ("pairflip", {"variant": "authors"}, "the authors have no pairflip noise"),
        ("instance", {"variant": "authors"}, "the authors have no instance noise"),
        ("symmetric", {"variant": "theirs"}, "'paper' or 'authors'; it was 'theirs'"),
        (
            "asymmetric",
            {"dataset": "mnist", "num_classes": 12},
            "12, and mnist has 10: leave it out",
        ),
    ],
)
def test_make_refused(name, keywords, message):
    with pytest.raises(ValueError, match=message) as caught:
        noise.make(name, LABELS, 0.3, **keywords)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "keywords", "message"),
    [
        ("instance", {"num_classes": 3}, "has no one matrix"),
        ("none", {"num_classes": 3}, "has rate 0"),
        ("symmetric", {}, "give num_classes"),
        (
            "asymmetric",
            {"dataset": "mnist", "num_classes": 12},
            "12, and mnist has 10: leave it out",
        ),
    ],
)
def test_matrix_refused(name, keywords, message):
    with pytest.raises(ValueError, match=message):
        noise.matrix(name, 0.3, **keywords)
