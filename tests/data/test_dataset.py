"""Data sets of the user's own, and the digits that come with the package."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from noiseproof import UsageError, data
from noiseproof.data import _digits

RNG = np.random.default_rng(0)
LABELS = np.arange(6) % 3


def images(*shape: int) -> np.ndarray:
    return RNG.integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize("shape", [(6, 8, 10), (6, 1, 8, 10), (6, 8, 10, 1)])
@pytest.mark.parametrize("kind", [np.array, torch.tensor])
def test_grey_layouts(shape, kind):
    x = images(*shape)
    own = data.from_arrays(kind(x), kind(LABELS), kind(x), kind(LABELS))
    assert own.train.images.shape == (6, 1, 8, 10)
    np.testing.assert_array_equal(own.train.images.numpy().ravel(), x.ravel())
    assert own.classes == ("0", "1", "2")


def test_colour_layouts():
    x = images(6, 8, 10, 3)
    last = data.from_arrays(x, LABELS, x, LABELS, classes=["a", "b", "c", "d"])
    moved = x.transpose(0, 3, 1, 2)
    first = data.from_arrays(moved, LABELS, moved, LABELS)
    assert torch.equal(last.train.images, first.train.images)
    assert last.train.images.is_contiguous()
    assert (last.mean, last.std) == (first.mean, first.std)
    assert last.num_classes == 4


@pytest.mark.parametrize("shape", [(6, 3, 8, 3), (6, 8, 10, 12)])
def test_a_layout_that_is_not_clear_is_asked_for(shape):
    x = images(*shape)
    with pytest.raises(ValueError, match=r"could be \[N, C, H, W\] or \[N, H, W, C\]"):
        data.from_arrays(x, LABELS, x, LABELS)
    own = data.from_arrays(x, LABELS, x, LABELS, layout="nhwc")
    np.testing.assert_array_equal(own.test.images.numpy(), x.transpose(0, 3, 1, 2))
    with pytest.raises(ValueError, match="layout must be"):
        data.from_arrays(x, LABELS, x, LABELS, layout="NWHC")


def test_arrays_are_copied():
    x, y = images(6, 8, 8), LABELS.copy()
    x.setflags(write=False)
    t = torch.from_numpy(images(6, 8, 8))
    own = data.from_arrays(x, y, t, y)
    kept = own.test.images.clone(), own.train.labels.clone()
    t.zero_()
    y[:] = 0
    assert torch.equal(own.test.images, kept[0])
    assert torch.equal(own.train.labels, kept[1])


def test_labels_of_any_integer_type():
    x = images(6, 8, 8)
    for labels in (LABELS.astype(np.uint8), LABELS.astype(">i4"), LABELS.tolist(), LABELS[::1]):
        own = data.from_arrays(x, labels, x, labels)
        assert own.train.labels.dtype == torch.int64
        assert own.train.labels.tolist() == LABELS.tolist()


NOTHING = [[], (), np.array([]), torch.tensor([]), images(0, 8, 8), images(0, 8, 10, 3)]


@pytest.mark.parametrize("nothing", NOTHING)
def test_no_images_to_test_on(nothing):
    own = data.from_arrays(images(6, 8, 8), LABELS, nothing, [])
    assert own.test.images.shape == (0, 1, 8, 8)
    assert own.test.labels.shape == (0,)
    assert repr(own) == "Dataset('own', 6 + 0 images 1x8x8, 3 classes)"


def test_one_sample():
    x = images(1, 8, 8)
    own = data.from_arrays(x, [1], x, [1])
    assert own.classes == ("0", "1")
    assert own.std[0] > 0
    loader = data.Loader(
        own.train.images, own.train.labels, mean=own.mean, std=own.std, batch_size=4
    )
    ((batch, labels, index),) = loader
    assert batch.shape == (1, 1, 8, 8)
    assert (labels.tolist(), index.tolist()) == ([1], [0])


def test_one_class_is_refused():
    x = images(6, 8, 8)
    for keywords in ({}, {"classes": ["cat"]}):
        with pytest.raises(UsageError, match=r"own has 1 class; .*needs two.*classes="):
            data.from_arrays(x, [0] * 6, x, [0] * 6, **keywords)


@pytest.mark.parametrize("shape", [(6, 1, 1), (6, 1, 1, 1)])
def test_images_of_one_pixel(shape):
    x = images(*shape)
    own = data.from_arrays(x, LABELS, x, LABELS)
    assert own.train.images.shape == (6, 1, 1, 1)
    statistics = {"mean": own.mean, "std": own.std}
    augment = data.Augment(crop=1, flip=True, rotate=10)
    for loader in (
        data.Loader(own.train.images, own.train.labels, **statistics, shuffle=False),
        data.Loader(own.train.images, own.train.labels, **statistics, augment=augment),
    ):
        (batch,) = loader
        assert batch.images.shape == (6, 1, 1, 1)
        assert batch.images.isfinite().all()
    with pytest.raises(ValueError, match=r"could be \[N, C, H, W\] or \[N, H, W, C\]"):
        data.from_arrays(images(6, 3, 1, 1), LABELS, images(6, 3, 1, 1), LABELS)


def test_floats_are_images_only_where_the_layout_says_so():
    x = images(6, 8, 8, 3) / 255
    assert data.from_arrays(x, LABELS).train.inputs.shape == (6, 8, 8, 3)  # features, as they are
    said = data.from_arrays(x, LABELS, x, LABELS, layout="NHWC")
    moved = np.moveaxis(x, 3, 1).astype(np.float32)
    for part in (said.train, said.test):
        np.testing.assert_array_equal(part.inputs.numpy(), moved)
    np.testing.assert_allclose(said.mean, x.mean((0, 1, 2)), rtol=1e-6)  # of each channel
    assert data.from_arrays(moved, LABELS, layout="NCHW").mean == pytest.approx(said.mean)
    assert data.from_arrays(x[:, 0, 0], LABELS, layout="NHWC").train.inputs.shape == (6, 3)
    with pytest.raises(UsageError, match='layout must be "NCHW" or "NHWC", not'):
        data.from_arrays(x, LABELS, layout="HWC")


@pytest.mark.parametrize("shape", [(6, 0, 8), (6, 8, 0), (6, 0, 8, 8), (6, 3, 0, 0)])
def test_images_without_pixels_are_refused(shape):
    x = images(*shape)
    with pytest.raises(UsageError, match=r"images of .* have no pixels"):
        data.from_arrays(x, LABELS, x, LABELS, layout="NCHW")


@pytest.mark.parametrize("largest", [1000, 1 << 40, (1 << 63) - 1])
@pytest.mark.parametrize("kind", [np.array, torch.tensor])
def test_numbers_that_are_no_class_numbers_are_refused(largest, kind):
    """There would be a class name for every number, which took all memory."""
    x, labels = images(6, 8, 8), kind([0, 1, 2, 3, 4, largest])
    for arguments in ((x, labels, x, LABELS), (x, LABELS, x, labels)):
        with pytest.raises(UsageError) as error:
            data.from_arrays(*arguments)
        for part in (f"labels go up to {largest}", "12 images", "return_inverse=True", "classes="):
            assert part in str(error.value)
        assert "\n" not in str(error.value)
    names = [str(i) for i in range(1001)]
    if largest == 1000:
        assert data.from_arrays(x, labels, x, LABELS, classes=names).num_classes == 1001
    else:
        with pytest.raises(UsageError, match="labels must be from 0 to 1000"):
            data.from_arrays(x, labels, x, LABELS, classes=names)


def test_as_many_classes_as_images_or_a_thousand():
    x = images(2000, 1, 1)
    assert data.from_arrays(x, np.arange(2000), x, np.arange(2000)).num_classes == 2000
    assert data.from_arrays(x[:2], [0, 999], x[:2], [0, 999]).num_classes == 1000


@pytest.mark.parametrize(
    "labels",
    [np.array([b"cat", b"dog"] * 3), [1, "dog"] * 3, np.array([1, "dog"] * 3, object)],
)
def test_labels_that_are_texts_in_part_are_refused_with_a_remedy(labels):
    x = images(6, 8, 8)
    remedy = r"labels are texts; number them: classes, labels = np\.unique\(labels, return_inverse"
    with pytest.raises(UsageError, match=remedy):
        data.from_arrays(x, labels, x, labels)


@pytest.mark.parametrize("kind", [list, np.array, lambda names: np.array(names, object)])
def test_labels_that_are_names(kind):
    x, names = images(6, 8, 8), kind(["dog", "cat"] * 3)
    own = data.from_arrays(x, names, x[:1], kind(["dog"]), truth=kind(["dog"] * 6))
    assert own.classes == ("cat", "dog")
    assert own.train.labels.tolist() == [1, 0] * 3
    assert own.train.truth.tolist() == [1] * 6
    assert own.test.labels.tolist() == [1]


def test_numbers_among_objects_are_numbers():
    for labels in (LABELS.astype(object), np.array([*LABELS, None])[:-1]):  # as in pandas; NumPy's
        own = data.from_arrays(images(6, 8, 8), labels)
        assert own.train.labels.tolist() == LABELS.tolist()


def test_the_remedies_work():
    x, named = images(6, 8, 8), np.array(["dog", "cat", "dog", "cat", "cow", "cow"])
    classes, labels = np.unique(named, return_inverse=True)
    own = data.from_arrays(x, labels, x, labels, classes=classes)
    assert own.classes == ("cat", "cow", "dog")
    assert [type(name) for name in own.classes] == [str] * 3
    classes, labels = np.unique([5, 1 << 40, 7, 7, 5, 5], return_inverse=True)
    assert data.from_arrays(x, labels, x, labels, classes=classes).classes == (
        "5", "7", "1099511627776",
    )  # fmt: skip


def test_statistics_may_be_arrays():
    x = images(6, 8, 8, 3)
    own = data.from_arrays(x, LABELS, x, LABELS, mean=np.full(3, 0.5), std=torch.ones(3))
    assert (own.mean, own.std) == ((0.5, 0.5, 0.5), (1.0, 1.0, 1.0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (images(6, 8, 8) > 9, LABELS) * 2,
            r"inputs must be uint8 images, .* not bool \[6, 8, 8\]",
        ),
        ((images(6, 8, 8).astype(int), LABELS) * 2, r"rows of token ids, not int64 \[6, 8, 8\]"),
        ((-images(6, 8).astype(int), LABELS) * 2, "token ids are 0 or more"),
        ((np.full((6, 2), np.nan), LABELS) * 2, "finite numbers in float32; row 0"),
        ((np.full((6, 2), 1e300), LABELS) * 2, "finite numbers in float32; row 0"),
        ((images(6, 8), LABELS) * 2, r"\[N, H, W\].* not uint8 \[6, 8\]"),
        ((images(6, 8, 8), LABELS[:5]) * 2, r"one for each of 6 images, not int64 \[5\]"),
        (
            (images(6, 8, 8), LABELS / 1) * 2,
            r"not float64 \[6\]: if they are whole, give labels\.astype\(int\)",
        ),
        ((images(6, 8, 8), LABELS > 0) * 2, r"integers \[N\], from 0, not bool \[6\]"),
        (
            (images(6, 8, 8), np.eye(3)[LABELS]) * 2,
            r"if they are one-hot, give labels\.argmax\(1\)",
        ),
        ((images(6, 8, 8), [0, 1, math.nan, 1, 0, 1]) * 2, "sample 2 has no label; leave out"),
        ((images(6, 8, 8), ["a", None, *"baab"]) * 2, "sample 1 has no label; leave out the"),
        ((images(6, 8, 8), ["a", "b", math.nan, *"aab"]) * 2, "sample 2 has no label"),
        ((torch.eye(6).to_sparse(), LABELS), r"no sparse arrays: give to_dense\(\)"),
        ((np.array([[1.0, "a"]] * 6, object), LABELS), r"must be numbers, and these hold 'a' \(nd"),
        ((images(6, 8, 8), LABELS[:, None]) * 2, r"one for each of 6 images, not int64 \[6, 1\]"),
        ((images(6, 8, 8), LABELS - 1) * 2, "from 0 to 1, for 2 classes; they go from -1 to 1"),
        ((images(6, 8, 8), [None] * 6) * 2, "sample 0 has no label; leave out the samples"),
        (
            (images(6, 8, 8), [[1, 2], [3]]) * 2,
            "labels must be a NumPy array or a tensor, not list",
        ),
        (([images(8, 8), images(8, 9)], [0, 1]) * 2, "images must be a NumPy array or a tensor"),
        ((images(6, 8, 8), torch.tensor(3)) * 2, r"one for each of 6 images, not int64 \[\]"),
        ((images(6, 8, 8), 3) * 2, "labels must be a NumPy array or a tensor, not int"),
        ((images(6, 8, 8), [1 << 70] * 6) * 2, "labels must be .*64 bits"),
        ((images(6, 8, 8), np.full(6, 1 << 63, np.uint64)) * 2, "labels must be .*64 bits"),
        ((images(6, 8, 8), []) * 2, r"one for each of 6 images, not int64 \[0\]"),
        ((images(6, 8, 8), LABELS, [], LABELS), r"one for each of 0 images, not int64 \[6\]"),
        ((images(6, 8, 8), LABELS, images(6, 8, 9), LABELS), "1x8x8, those to test on 1x8x9"),
        ((images(0, 8, 8), []) * 2, "own has no images to train on"),
    ],
)
def test_what_is_refused(arguments, message):
    with pytest.raises(UsageError, match=message):
        data.from_arrays(*arguments)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"classes": ["a", "b"]}, "from 0 to 1, for 2 classes; they go from 0 to 2"),
        ({"mean": (0.5, 0.5), "std": (1.0, 1.0)}, "a number for each of 1 channels"),
        ({"std": (0.0,)}, "std above 0"),
        ({"std": (math.inf,)}, "std above 0"),
        ({"mean": (math.nan,)}, "std above 0"),
        ({"mean": "grey"}, "mean must have a number for each channel, not 'grey'"),
        ({"classes": "abc"}, "classes are a list of names, not 'abc'"),
        ({"classes": 3}, "classes are a list of names, not 3"),
    ],
)
def test_what_is_refused_of_the_rest(keywords, message):
    x = images(6, 8, 8)
    with pytest.raises(UsageError, match=message):
        data.from_arrays(x, LABELS, x, LABELS, **keywords)


def test_a_split_says_what_it_wants():
    with pytest.raises(ValueError, match="from_arrays takes other layouts"):
        data.Split(torch.zeros(2, 8, 8).double(), torch.zeros(2, dtype=torch.int64))


def test_statistics_are_exact():
    x = images(5000, 3, 4, 4)  # more than one block
    x[:, 2] = 7
    mean, std = data.channel_statistics(torch.from_numpy(x))
    np.testing.assert_allclose(mean, (x / 255).mean((0, 2, 3)), rtol=1e-12)
    np.testing.assert_allclose(std[:2], (x / 255).std((0, 2, 3))[:2], rtol=1e-12)
    assert std[2] == 1  # a channel that is the same everywhere


def test_given_statistics_are_kept():
    x = images(6, 8, 8)
    own = data.from_arrays(x, LABELS, x, LABELS, mean=[0.5])
    assert own.mean == (0.5,)
    assert own.std == data.channel_statistics(own.train.images)[1]


def test_digits():
    digits = data.load()
    assert repr(digits) == "Dataset('digits', 1437 + 360 images 1x8x8, 10 classes)"
    assert repr(digits.test) == "Split(360 images 1x8x8)"
    assert len(digits.train) == _digits.TRAIN
    assert digits.train.images.max() == 255
    assert len(digits.train.images.unique()) == 17
    for split, share in ((digits.train, 0.8), (digits.test, 0.2)):
        both = torch.cat([digits.train.labels, digits.test.labels]).bincount()
        assert (split.labels.bincount() - share * both).abs().max() < 1.01
    mean, std = data.channel_statistics(digits.train.images)
    assert digits.mean == pytest.approx(mean, abs=5e-5)
    assert digits.std == pytest.approx(std, abs=5e-5)


def test_digits_can_be_learnt():
    digits = data.load("digits")
    train, test = (s.images.flatten(1).double() for s in (digits.train, digits.test))
    nearest = torch.cdist(test, train).argmin(1)
    assert (digits.train.labels[nearest] == digits.test.labels).double().mean() > 0.97


def test_digits_are_those_of_scikit_learn():
    pytest.importorskip("sklearn")
    from .make_digits import make

    images, labels = make()
    digits = data.load("digits")
    both = torch.cat([digits.train.images, digits.test.images]).squeeze(1).numpy()
    np.testing.assert_array_equal(np.rint(both / 255 * 16), images)
    found = torch.cat([digits.train.labels, digits.test.labels]).numpy()
    np.testing.assert_array_equal(found, labels)
