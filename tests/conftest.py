from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

if not torch.cuda.is_available():  # kernels are then read by Triton's interpreter
    os.environ.setdefault("TRITON_INTERPRET", "1")

from noiseproof.losses import _prediction

# Another machine can be played on this one: NOISEPROOF_TEST_THREADS=4, NOISEPROOF_TEST_MKLDNN=0.
THREADS = int(os.environ.get("NOISEPROOF_TEST_THREADS", "1"))  # xdist already fills the cores
torch.set_num_threads(THREADS)
if os.environ.get("NOISEPROOF_TEST_MKLDNN") == "0":
    torch.backends.mkldnn.enabled = False
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So a shell starts what it runs in the background, and what tests start would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.setdefault("OMP_NUM_THREADS", str(THREADS))  # of the processes that tests start

with contextlib.suppress(ImportError):
    import hypothesis

    hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
    hypothesis.settings.load_profile("same")  # the examples of every machine; a seed draws others


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", default="cpu", help="where the tests of the losses run: cpu, cuda")
    parser.addoption("--quick", action="store_true", help="some of all tests: make check")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--quick"):
        kept = quick(items)
        chosen = set(kept)
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = kept


def quick(items: list[pytest.Item], most: int = 6) -> list[pytest.Item]:
    """All but the slow tests, and of their parameters so many sets at most, spread evenly."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("slow") is None and item.get_closest_marker("long") is None:
            name = item.nodeid.partition("[")[0] if hasattr(item, "callspec") else item.nodeid
            tests.setdefault(name, []).append(item)
    return [
        group[i * (len(group) - 1) // (most - 1)] if len(group) > most else group[i]
        for group in tests.values()
        for i in range(min(most, len(group)))
    ]


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
def _as_at_first() -> None:
    """Whatever the test before left behind."""
    torch.manual_seed(0)
    torch.set_num_threads(THREADS)


@pytest.fixture
def own_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """Writes modules of a user's into the current folder, and forgets them in the end."""
    from noiseproof import _imports, syntax
    from noiseproof.losses._module import declared_losses

    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p not in ("", os.getcwd())])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # it knows a file's time by the second
    declared, signatures = dict(declared_losses), dict(syntax.SIGNATURES)

    def write(**modules: str) -> Path:
        for name, text in modules.items():  # in a package: pkg__nets, and pkg__ for its __init__
            package, _, module = name.rpartition("__")
            path = folder / package / f"{module or '__init__'}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        return folder

    yield write
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]
            _imports._loaded.pop(name, None)
    _imports._find.cache_clear()
    for table, before in ((declared_losses, declared), (syntax.SIGNATURES, signatures)):
        table.clear()
        table.update(before)
