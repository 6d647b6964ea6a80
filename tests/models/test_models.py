"""The networks: their layers, output shapes and initialization."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from noiseproof import models


def image(name: str, size: int | None = None) -> torch.Tensor:
    channels = 1 if name in ("cnn4", "mlp") else 3
    size = size or {"mlp": 8, "cnn4": 28, "resnet50-imagenet": 64}.get(name, 32)
    return torch.randn(2, channels, size, size)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("mlp", 86026),
        ("cnn4", 422090),
        ("cnn8", 1639794),
        ("resnet18", 11173962),
        ("resnet34", 21282122),
        ("resnet50", 23520842),
        ("resnet50-imagenet", 23528522),  # torchvision's resnet50 with ten classes
    ],
)
def test_size_and_output(name, parameters):
    x = image(name)
    network = models.build(name, 10, x.shape[1]).eval()
    assert sum(p.numel() for p in network.parameters()) == parameters
    with torch.no_grad():
        assert network(x).shape == (2, 10)


def test_the_paper_s_layers():
    """FACTS: 32, 64, 3136→128→10; and 64, 64, 128, 128, 196, 196, 3136→256→10."""
    for name, channels, widths, hidden in (
        ("cnn4", 1, [32, 64], 128),
        ("cnn8", 3, [64, 64, 128, 128, 196, 196], 256),
    ):
        network = models.build(name, 10, channels)
        convs = [m for m in network.modules() if isinstance(m, nn.Conv2d)]
        linear = [m for m in network.modules() if isinstance(m, nn.Linear)]
        assert [c.out_channels for c in convs] == widths
        assert all(c.bias is not None and c.kernel_size == (3, 3) for c in convs)
        assert [(m.in_features, m.out_features) for m in linear] == [(3136, hidden), (hidden, 10)]


def test_initialisation():
    network = models.build("cnn8", 10, 3, seed=1)
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            fan_in = module.weight[0].numel()
            bound = (6 / fan_in) ** 0.5
            assert 0.9 * bound < module.weight.abs().max() <= bound
            assert 0.5 * fan_in**-0.5 < module.bias.abs().max() <= fan_in**-0.5
        elif isinstance(module, nn.Linear):
            bound = (6 / (module.in_features + module.out_features)) ** 0.5
            assert 0.9 * bound < module.weight.abs().max() <= bound
        elif isinstance(module, nn.BatchNorm2d):
            assert bool((module.weight == 1).all())
            assert bool((module.running_var == 1).all())
            assert bool((module.running_mean == 0).all())


def test_the_seed_decides_and_the_global_generator_is_left_alone():
    before = torch.get_rng_state()
    one, same, other = (models.build("cnn4", 10, 1, seed=s).state_dict() for s in (0, 0, 1))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(one[k], same[k]) for k in one)
    assert not torch.equal(one["convs.0.weight"], other["convs.0.weight"])


def test_image_sizes():
    assert models.build("cnn4", 10, 1, image_size=8)(image("cnn4", 8)).shape == (2, 10)
    assert models.build("cnn8", 10, 3, image_size=8).eval()(image("cnn8", 8)).shape == (2, 10)
    assert models.build("resnet18", 10, 3).eval()(image("resnet18", 16)).shape == (2, 10)
    with pytest.raises(ValueError, match="at least 8 pixels wide; image_size was 4"):
        models.build("cnn8", 10, 3, image_size=4)


def test_mistakes_are_named():
    with pytest.raises(ValueError, match=r"unknown network 'resnet43' \(did you mean 'resnet34'\?"):
        models.build("resnet43", 10)
    with pytest.raises(ValueError, match="num_classes must be at least 1; got 0"):
        models.build("cnn8", 0)


def test_torch_vision_s_weights_would_load():
    ours = set(models.build("resnet50-imagenet", 1000).state_dict())
    for key in ("conv1.weight", "bn1.running_mean", "layer1.0.downsample.0.weight",
                "layer1.0.downsample.1.bias", "layer4.2.conv3.weight", "fc.bias"):  # fmt: skip
        assert key in ours
    assert len(ours) == 320
