"""Networks with the fused layers are the same functions, with the same gradients and statistics."""

from __future__ import annotations

import copy

import pytest
import torch

from noiseproof import kernels, models
from noiseproof.models._cnn import _ConvNet


def error(found: torch.Tensor, exact: torch.Tensor) -> float:
    return float((found.detach().double() - exact.detach()).norm() / exact.detach().norm())


@pytest.mark.parametrize(("name", "size"), [("cnn4", 8), ("cnn8", 16), ("resnet18", 8)])
def test_fused_is_as_exact_as_plain(kernel_device, name, size, monkeypatch):
    """No further from float64 than plain PyTorch is, and a little."""
    if kernel_device.type == "cpu" and name != "cnn4":
        pytest.skip("too slow in the interpreter")
    torch.manual_seed(0)
    plain = models.build(name, 7, 3, image_size=size).to(
        kernel_device, memory_format=torch.channels_last
    )
    fused, exact = copy.deepcopy(plain), copy.deepcopy(plain).double()
    x = torch.randn(4, 3, size, size, device=kernel_device)
    upstream = torch.randn(4, 7, device=kernel_device)
    outputs = {}
    for network in (plain, exact, fused):
        monkeypatch.setattr(kernels, "available", lambda _, use=network is fused: use)
        like = next(network.parameters()).dtype
        with torch.backends.cudnn.flags(allow_tf32=False):
            outputs[network] = network.train()(x.to(like))
            outputs[network].backward(upstream.to(like))
    assert error(outputs[fused], outputs[exact]) < 2 * error(outputs[plain], outputs[exact]) + 1e-4
    parameters = (dict(network.named_parameters()) for network in (plain, fused, exact))
    one, two, true = parameters
    for key in one:
        if float(true[key].grad.abs().max()) < 1e-9:  # the norm takes it away again
            assert not two[key].grad.any()
            continue
        limit = 2 * error(one[key].grad, true[key].grad) + 1e-3
        assert error(two[key].grad, true[key].grad) < limit, key
    for (key, one), two in zip(plain.named_buffers(), fused.buffers(), strict=True):
        torch.testing.assert_close(two, one, rtol=1e-4, atol=1e-5, msg=key)


def test_images_may_have_padded_channels(kernel_device, monkeypatch):
    monkeypatch.setattr(kernels, "available", lambda _: True)
    network = models.build("cnn4", 7, 3, image_size=6).to(kernel_device).train()
    x = torch.randn(4, 3, 6, 6, device=kernel_device)
    wide = torch.nn.functional.pad(x, (0, 0, 0, 0, 0, models.padded_channels(3) - 3))
    torch.testing.assert_close(network(x), network(wide))


def test_a_network_in_eval_mode(kernel_device, monkeypatch):
    """Fused where no gradient is wanted, plain where one is."""
    torch.manual_seed(0)
    network = models.build("cnn4", 7, 3, image_size=6).to(kernel_device).train()
    x = torch.randn(4, 3, 6, 6, device=kernel_device)
    with torch.no_grad():
        network(x)  # statistics to normalize by
        plain = network.eval()(x)
    monkeypatch.setattr(kernels, "available", lambda _: True)
    with torch.no_grad():
        torch.testing.assert_close(network(x), plain, rtol=1e-4, atol=1e-5)
    x.requires_grad_()
    assert torch.autograd.grad(network(x).sum(), x)[0].abs().max() > 0


@pytest.mark.parametrize("frozen", [0, 1])
def test_layers_whose_norm_is_frozen_stand_between_fused_ones(kernel_device, frozen, monkeypatch):
    """In eval mode, with a gradient, they are plain, and channels before them may be padded."""
    torch.manual_seed(0)
    network = _ConvNet([[12], [20]], 16, 7, 3, 8).to(kernel_device).train()
    network.norms[frozen].eval()
    x = torch.randn(4, 3, 8, 8, device=kernel_device)
    expected = network(x)
    monkeypatch.setattr(kernels, "available", lambda _: True)
    wide = torch.nn.functional.pad(x, (0, 0, 0, 0, 0, models.padded_channels(3) - 3))
    found = network(wide)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert torch.autograd.grad(found.sum(), network.convs[0].weight)[0].isfinite().all()
