"""Networks of the user's own: made by a function or a class, from a file of weights, frozen."""

from __future__ import annotations

import functools
import os
import sys
import types

import pytest
import torch
from torch import nn

from noiseproof import MissingExtraError, UsageError, models
from noiseproof.models import WeightsWarning, freeze, frozen_norms, load_weights


def seen(**arguments):
    network = nn.Linear(1, 1)
    network.arguments = arguments
    return network


def plain(num_classes, in_channels, image_size, input_shape, seed):
    return seen(k=num_classes, c=in_channels, size=image_size, shape=input_shape, seed=seed)


def spelt(*, in_chans, num_classes, width=3):
    return seen(k=num_classes, c=in_chans, width=width)


def shortest(channels):
    return seen(c=channels)


def forwarding(**more):
    return seen(**more)


class Net(nn.Module):
    def __init__(self, num_classes: int, in_channels: int, depth: int = 2) -> None:
        super().__init__()
        self.arguments = {"k": num_classes, "c": in_channels, "depth": depth}


@pytest.mark.parametrize(
    ("factory", "arguments"),
    [
        (plain, {"k": 7, "c": 3, "size": 8, "shape": (3, 8, 9), "seed": 5}),
        (spelt, {"k": 7, "c": 3, "width": 3}),
        (shortest, {"c": 3}),
        (forwarding, {"num_classes": 7}),
        (Net, {"k": 7, "c": 3, "depth": 2}),
        (functools.partial(Net, depth=4), {"k": 7, "c": 3, "depth": 4}),
    ],
)
def test_a_factory_is_called_with_what_it_takes(factory, arguments):
    assert models.from_factory(factory, 7, (3, 8, 9), seed=5).arguments == arguments


def test_inputs_that_are_no_images():
    def embedding(num_classes, vocab_size, input_shape):
        return seen(k=num_classes, words=vocab_size, length=input_shape[0])

    made = models.from_factory(embedding, 2, (16,), vocabulary=100)
    assert made.arguments == {"k": 2, "words": 100, "length": 16}
    with pytest.raises(UsageError, match="model embedding needs vocab_size: give it a default"):
        models.from_factory(embedding, 2, (16,))
    with pytest.raises(UsageError, match="model plain needs image_size"):
        models.from_factory(plain, 2, (16,))


def test_a_network_for_texts_is_not_tried_on_a_text_without_words():
    class Mean(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(10, 2)

        def forward(self, x):
            lengths = (x != 0).sum(1)
            return nn.utils.rnn.pack_padded_sequence(self.embed(x), lengths, batch_first=True)[0][
                :2
            ]

    models.check_network(Mean(), "mean", 2, (16,), vocabulary=10)


class Deciding(nn.Linear):
    """Gives what it decides in place of logits."""

    def forward(self, x):
        return super().forward(x) > 0


def test_what_is_no_number_is_no_logit():
    with pytest.raises(UsageError, match=r"gives torch\.bool for two inputs; logits \[N, 3\] are"):
        models.check_network(Deciding(16, 3), "mine", 3, (16,))


def test_a_softmax_at_the_end_is_warned_of():
    def ending(*last):
        return nn.Sequential(nn.Flatten(), nn.Linear(16, 3), *last)

    with pytest.warns(UserWarning, match="model mine seems to end in a softmax, and losses take"):
        models.check_network(ending(nn.Softmax(1)), "mine", 3, (16,))
    for logits in (ending(), ending(nn.LogSoftmax(1)), ending(nn.ReLU())):
        models.check_network(logits, "mine", 3, (16,))  # warnings are errors


def test_seeds_start_differently_and_nothing_global_changes():
    def drawn(num_classes):
        return nn.Linear(4, num_classes)

    before = torch.get_rng_state()
    one, same, other = (models.from_factory(drawn, 3, (4,), seed=s).weight for s in (1, 1, 2))
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (lambda width: seen(), r"model \S+ needs width: give it a default; it is called with"),
        (lambda num_classes, /: seen(), "needs num_classes"),
        (lambda: "network", "gave a str, not a torch.nn.Module"),
        (3, "model int is a int, not a function or a class"),
        (nn.Linear(3, 7), "model Linear is a network, which all runs would share: name the class"),
    ],
)
def test_what_cannot_make_a_network(factory, message):
    with pytest.raises(UsageError, match=message):
        models.from_factory(factory, 7, (3, 8, 8))


def test_a_network_by_its_place(own_modules):
    own_modules(
        mynets="from torch import nn\n\n"
        "class Nets:\n"
        "    @staticmethod\n"
        "    def small(num_classes, in_channels, image_size):\n"
        "        return nn.Linear(in_channels * image_size**2, num_classes)\n"
    )
    made = models.build("mynets:Nets.small", 5, 2, image_size=3)
    assert (made.in_features, made.out_features) == (18, 5)
    with pytest.raises(UsageError, match=r"model mynets:Nest.small: .* no 'Nest' \(did you mean"):
        models.build("mynets:Nest.small", 5)
    with pytest.raises(UsageError, match="model mynets:nn is a module, not a function or a class"):
        models.build("mynets:nn", 5)


@pytest.fixture
def libraries(monkeypatch):
    """Others of the names of torchvision and timm."""

    def resnet18(*, weights=None, progress=True, **more):
        assert weights is None
        return seen(library="torchvision", **more)

    def create_model(name, pretrained=True, **more):
        assert not pretrained
        if name != "resnet18":
            raise RuntimeError(f"Unknown model ({name})\nmore")
        return seen(library="timm", **more)

    vision = types.ModuleType("torchvision")
    vision.models = types.ModuleType("torchvision.models")
    vision.models.resnet18 = resnet18
    timm = types.ModuleType("timm")
    timm.create_model = create_model
    for name, module in (("torchvision", vision), ("torchvision.models", vision.models)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "timm", timm)


@pytest.mark.usefixtures("libraries")
def test_networks_of_libraries():
    found = models.build("torchvision:resnet18", 7, 3).arguments
    assert found == {"library": "torchvision", "num_classes": 7}
    found = models.build("timm:resnet18", 7, 1).arguments
    assert found == {"library": "timm", "num_classes": 7, "in_chans": 1}
    for name, channels, message in (
        ("torchvision:resnet81", 3, r"torchvision has no network 'resnet81' .did you mean 'resn"),
        ("torchvision:resnet18", 1, "takes images of 3 channels, and these have 1; make it for"),
        ("timm:nosuch", 3, r"timm makes no 'nosuch' for this data: Unknown model \(nosuch\)$"),
    ):
        with pytest.raises(UsageError, match=message):
            models.build(name, 7, channels)
    with pytest.raises(UsageError, match="timm:resnet18 takes images, and the data has none"):
        models.imported("timm:resnet18", 7, (16,))


@pytest.mark.parametrize("library", ["torchvision", "timm"])
def test_a_library_that_is_not_installed(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setitem(sys.modules, f"{library}.models", None)
    with pytest.raises(MissingExtraError, match=f"needs {library}: pip install {library}$"):
        models.build(f"{library}:resnet18", 7)


def test_a_library_that_does_not_fit_torch(own_modules):
    own_modules(timm__="raise RuntimeError('operator nms does not exist')\n")
    sys.path.insert(0, os.getcwd())
    with pytest.raises(UsageError, match=r"timm is installed and cannot be imported, RuntimeError"):
        models.build("timm:resnet18", 7)


def network(classes: int = 3) -> nn.Module:
    return nn.ModuleDict({"body": nn.Linear(4, 4), "head": nn.Linear(4, classes)})


@pytest.mark.parametrize(
    "wrap",
    [
        lambda state: state,
        lambda state: {"state_dict": state, "epoch": 3},
        lambda state: {"model": {"state_dict": state}},
        lambda state: {f"module.{n}": t for n, t in state.items()},
        lambda state: {"model": {f"module._orig_mod.{n}": t for n, t in state.items()}},
        lambda state: {f"network.{n}": t.half() for n, t in state.items()},
    ],
    ids=["plain", "state_dict", "nested", "module", "both", "network"],
)
def test_weights_from_a_file(wrap, tmp_path):
    trained, fresh = network(), network()
    with torch.no_grad():
        for parameter in trained.parameters():
            parameter.copy_((parameter * 8).round() / 8)  # what half precision holds
    torch.save(wrap(trained.state_dict()), tmp_path / "w.pt")
    load_weights(fresh, tmp_path / "w.pt")
    for name, tensor in trained.state_dict().items():
        assert torch.equal(fresh.state_dict()[name], tensor), name


def test_a_prefix_that_the_network_has_too(tmp_path):
    wrapped, fresh = (nn.ModuleDict({"module": network()}) for _ in range(2))
    torch.save(wrapped.state_dict(), tmp_path / "w.pt")
    load_weights(fresh, tmp_path / "w.pt")
    assert torch.equal(fresh["module"]["body"].weight, wrapped["module"]["body"].weight)


def test_what_does_not_fit_is_named(tmp_path):
    trained, fresh = network(classes=5), network()
    state = trained.state_dict() | {"extra": torch.zeros(1)}
    del state["body.bias"]
    torch.save(state, tmp_path / "w.pt")
    head, bias = fresh["head"].weight.clone(), fresh["body"].bias.clone()
    with pytest.warns(WeightsWarning) as caught:
        load_weights(fresh, tmp_path / "w.pt")
    assert [str(w.message) for w in caught] == [
        "1 of 4 tensors are from w.pt; left as they start, of another shape: head.weight [5, 4] "
        "for [3, 4], head.bias [5] for [3]; not in the file: body.bias; not used: extra"
    ]
    assert torch.equal(fresh["body"].weight, trained["body"].weight)
    assert torch.equal(fresh["head"].weight, head)
    assert torch.equal(fresh["body"].bias, bias)


class Hostile:
    def __reduce__(self):
        return print, ("run",)


def test_files_that_are_no_weights(tmp_path, capsys):
    torch.save({"other": torch.zeros(2)}, tmp_path / "other.pt")
    torch.save({"epoch": 3}, tmp_path / "none.pt")
    torch.save({"state_dict": Hostile()}, tmp_path / "hostile.pt")
    (tmp_path / "text.pt").write_text("weights")
    for name, message in (
        (
            "other.pt",
            r"no weights of .*other.pt fit the network: the file has other \[2\]; the net",
        ),
        ("none.pt", "holds no state dict"),
        ("hostile.pt", "cannot be read as weights"),
        ("text.pt", "cannot be read as weights .*; give a state dict, torch.save"),
    ):
        with pytest.raises(UsageError, match=message) as caught:
            load_weights(network(), tmp_path / name)
        assert "\n" not in str(caught.value)
    assert capsys.readouterr().out == ""


def test_safetensors(tmp_path, monkeypatch):
    trained, fresh, path = network(), network(), tmp_path / "w.safetensors"
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    with pytest.raises(MissingExtraError, match="needs safetensors: pip install safetensors"):
        load_weights(fresh, path)
    library = types.ModuleType("safetensors.torch")
    library.load_file = {str(path): trained.state_dict()}.__getitem__
    monkeypatch.setitem(sys.modules, "safetensors", types.ModuleType("safetensors"))
    monkeypatch.setitem(sys.modules, "safetensors.torch", library)
    load_weights(fresh, path)
    assert torch.equal(fresh["head"].weight, trained["head"].weight)


def test_frozen_layers():
    made = models.build("cnn4", 10, 1)
    freeze(made, ["convs.*", "norms.0", "hidden.weight"])
    frozen = [n for n, p in made.named_parameters() if not p.requires_grad]
    assert frozen == [
        "convs.0.weight", "convs.0.bias", "convs.1.weight", "convs.1.bias", "norms.0.weight",
        "norms.0.bias", "hidden.weight",
    ]  # fmt: skip
    assert list(frozen_norms(made)) == ["norms.0"]
    with pytest.raises(UsageError, match=r"freeze 'conv.\*' matches no parameter; .* convs.0.weig"):
        freeze(made, ["conv.*"])
