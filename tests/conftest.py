from __future__ import annotations

import os
import signal

import pytest
import torch

if not torch.cuda.is_available():  # kernels are then read by Triton's interpreter
    os.environ.setdefault("TRITON_INTERPRET", "1")

from noiseproof.losses import _prediction

torch.set_num_threads(1)  # xdist already fills the cores
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So a shell starts what it runs in the background, and what tests start would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.setdefault("OMP_NUM_THREADS", "1")  # nor do the processes that tests start need more


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", default="cpu", help="where the tests of the losses run: cpu, cuda")


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> torch.device:
    return torch.device(request.config.getoption("--device"))


@pytest.fixture(params=["plain", "custom"])
def backward(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to the gradient at any size: plain autograd, and the custom backward pass."""
    size = 0 if request.param == "custom" else 1 << 60
    monkeypatch.setattr(_prediction, "MIN_SIZE_CUSTOM_BACKWARD", size)
    return str(request.param)


@pytest.fixture(scope="session")
def vision():
    """torchvision's functional transforms, the peer that augmentation is held against."""
    try:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):  # a torch without CUDA lacks them, and the import wants them
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        from torchvision.transforms import functional
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"torchvision is not usable here: {error}")
    yield functional
    del library


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)
