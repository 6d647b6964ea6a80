"""A model in files of other programs gives the probabilities that it gives here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from noiseproof import MissingExtraError, UsageError, data, models
from noiseproof.catalogue import NETWORKS
from noiseproof.train import ChangedSourceWarning, Run, fit, load
from noiseproof.train._model import Inputs, Model

from .subjects import TiedNet, tiny

CLASSES = ("cat", "dog", "=x")
SEVERAL = (1, 5)  # batches
LARGE = ("resnet18", "resnet34", "resnet50", "resnet50-imagenet")

# Another program: it knows NumPy, onnxruntime and the file.
RUNNER = """
import json, sys
import numpy as np, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1])
given = np.load(sys.argv[2])
(taken,), (made,) = session.get_inputs(), session.get_outputs()
np.savez(sys.argv[3], **{name: session.run(None, {taken.name: given[name]})[0] for name in given})
assert not {"noiseproof", "torch"} & set(sys.modules)
about = session.get_modelmeta().custom_metadata_map
print(json.dumps([taken.name, taken.shape, taken.type, made.name, made.shape, about]))
"""


def subject(name: str, inputs: Inputs) -> Model:
    """A network of the catalogue whose norms have statistics, as if it were trained."""
    draw = torch.Generator().manual_seed(1)
    network = models.build(
        name, len(inputs.classes), shape=inputs.shape, vocabulary=inputs.vocabulary
    )
    for module in network.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1, generator=draw)
            module.running_var.uniform_(0.5, 1.5, generator=draw)
    settings = Run(model=name).resolve().settings()
    return Model(network, inputs, settings)


IMAGES = Inputs((3, 16, 16), (0.4, 0.5, 0.6), (0.2, 0.3, 0.2), CLASSES)
TOKENS = Inputs((7,), (), (), CLASSES, "tokens", 50)
FEATURES = Inputs((4,), (1.0, 2.0, 3.0, 4.0), (0.5, 1.0, 2.0, 3.0), CLASSES, "features")


def raw(inputs: Inputs, n: int) -> torch.Tensor:
    dtype, shape = inputs.raw
    if dtype == torch.float32:
        return torch.randn(n, *shape) * 3
    return torch.randint(0, inputs.vocabulary or 256, (n, *shape), dtype=dtype)


def run_onnx(file: Path, batches: dict[str, np.ndarray], folder: Path):
    """The outputs of another process, and what it sees of the file."""
    np.savez(folder / "given.npz", **batches)
    paths = [file, folder / "given.npz", folder / "made.npz"]
    run = subprocess.run(
        [sys.executable, "-I", "-c", RUNNER, *map(str, paths)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    with np.load(folder / "made.npz") as made:
        return dict(made), json.loads(run.stdout)


def check(model: Model, folder: Path):
    """Both programs against the model, at batches of several sizes; what ONNX says of itself."""
    batches = {str(n): raw(model.inputs, n) for n in SEVERAL}
    expected = {n: model.predict_proba(batch) for n, batch in batches.items()}
    program = torch.export.load(model.export(folder / "m.pt2"))
    for n, batch in batches.items():
        torch.testing.assert_close(program.module()(batch), expected[n], atol=1e-5, rtol=0)
    file = model.export(folder / "m.onnx")
    made, seen = run_onnx(file, {n: batch.numpy() for n, batch in batches.items()}, folder)
    for n in batches:
        np.testing.assert_allclose(made[n], expected[n].numpy(), atol=1e-5, rtol=0)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.long if n in LARGE else ()) for n in NETWORKS]
)
def test_every_network_gives_the_same_elsewhere(name, tmp_path):
    inputs = TOKENS if name == "bag" else IMAGES
    seen = check(subject(name, inputs), tmp_path)
    taken, shape, dtype, made, out_shape, about = seen
    assert (taken, dtype) == (
        ("ids", "tensor(int64)") if name == "bag" else ("images", "tensor(uint8)")
    )
    assert shape == ["N", *inputs.shape]
    assert (made, out_shape) == ("probabilities", ["N", 3])
    assert json.loads(about["classes"]) == list(CLASSES)
    assert json.loads(about["settings"])["model"] == name


@pytest.mark.slow
def test_features_and_cropped_images(tmp_path):
    taken, shape, dtype, *_ = check(subject("mlp", FEATURES), tmp_path)
    assert (taken, shape, dtype) == ("features", ["N", 4], "tensor(float)")
    cut = Inputs((3, 8, 8), (0.4,) * 3, (0.2,) * 3, CLASSES, stored=(3, 12, 10))
    _, shape, *_ = check(subject("mlp", cut), tmp_path)
    assert shape == ["N", 3, 12, 10]  # the middle is cut out inside


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return fit(tiny(ema=0.5), out=tmp_path_factory.mktemp("runs"))


def test_weights_come_back_with_all_that_belongs_to_them(trained, tmp_path):
    images = data.load("digits").test.images
    for ema in (False, True):
        model = load(trained.folder, ema=ema)
        again = load(model.export(tmp_path / "m.safetensors"))
        assert torch.equal(again.predict_proba(images), model.predict_proba(images))
        assert (again.inputs, again.settings) == (model.inputs, model.settings)
        assert again.settings == trained.run.settings()
    with pytest.raises(UsageError, match=r"m\.safetensors holds one set of weights; .* --ema"):
        load(tmp_path / "m.safetensors", ema=True)


@pytest.mark.parametrize("inputs", [IMAGES, TOKENS, FEATURES], ids=lambda i: i.kind)
def test_every_kind_of_input_comes_back(inputs, tmp_path):
    model = subject("bag" if inputs is TOKENS else "mlp", inputs)
    again = load(model.export(tmp_path / "m.safetensors"))
    batch = raw(inputs, 3)
    assert torch.equal(again.predict_proba(batch), model.predict_proba(batch))
    assert not any(p.is_meta for p in again.parameters())


def test_texts_come_back_with_their_coding(tmp_path):
    texts = ["a good one", "a bad one"] * 20
    (tmp_path / "t.csv").write_text("text,label\n" + "".join(f"{t},{t[2]}\n" for t in texts))
    run = Run(dataset=f"csv:{tmp_path / 't.csv'}", text="text", epochs=2, device="cpu")
    model = load(fit(run, out=tmp_path / "runs").folder)
    again = load(model.export(tmp_path / "m.safetensors"))
    assert again.inputs.columns == ("text",)
    assert torch.equal(again.predict_proba(texts), model.predict_proba(texts))


def test_weights_that_layers_share_are_exported(tmp_path):
    result = fit(tiny(epochs=1), network=TiedNet(), out=tmp_path, name="tied")
    model = load(result.folder, network=TiedNet())
    file = model.export(tmp_path / "m.safetensors")
    with pytest.raises(UsageError, match="has a network of your own, TiedNet: give network="):
        load(file)
    images = data.load("digits").test.images
    again = load(file, network=TiedNet)
    assert torch.equal(again.predict_proba(images), model.predict_proba(images))


NETS = """
from torch import nn
def small(num_classes, input_shape):
    return nn.Sequential(nn.Flatten(), nn.Linear(input_shape.numel(), num_classes))
"""


def test_a_file_imports_nothing_that_is_not_named_too(own_modules, tmp_path, monkeypatch):
    own_modules(mynets=NETS)
    result = fit(tiny(model="mynets:small"), out=tmp_path / "runs")
    model = load(result.folder)
    file = model.export(tmp_path / "m.safetensors")
    own_modules(mynets=NETS + "raise SystemExit")
    del sys.modules["mynets"]
    with pytest.raises(UsageError, match=r"network mynets:small, which is imported only if .*"
                       r"network='mynets:small', in a command --network mynets:small"):  # fmt: skip
        load(file)
    own_modules(mynets=NETS + "\n")
    with pytest.warns(ChangedSourceWarning):
        again = load(file, network="mynets:small")
    images = data.load("digits").test.images
    assert torch.equal(again.predict_proba(images), model.predict_proba(images))
    model.settings["model"] = "timm:hf-hub:someone/something"  # which timm would fetch
    with pytest.raises(UsageError, match="imported only if you name it too"):
        load(model.export(tmp_path / "m.safetensors"))


def rewritten(file: Path, **changes) -> Path:
    """The file with other metadata; None removes some."""
    from safetensors import safe_open
    from safetensors.torch import save_file

    with safe_open(str(file), "pt") as opened:
        about = opened.metadata()
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    about = {key: value for key, value in (about | changes).items() if value is not None}
    save_file(tensors, str(file), about)
    return file


def changed(**values) -> str:
    return json.dumps(asdict(FEATURES) | values)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inputs": None}, "holds weights without what noiseproof export adds; .*--weights"),
        ({"inputs": "["}, "is damaged; export the run again"),
        ({"inputs": "[" * 100_000}, "is damaged"),
        ({"inputs": "[1]"}, "is damaged"),
        ({"inputs": changed(std=[1, 1, 1, 0])}, "is damaged"),
        ({"inputs": changed(mean=["a"] * 4)}, "is damaged"),
        ({"inputs": changed(shape=[4.5])}, "is damaged"),
        ({"inputs": changed(kind="sound")}, "is damaged"),
        ({"inputs": changed(surprise=1)}, "is damaged"),
        ({"inputs": changed(shape=[10**9], mean=[0] * 10**3)}, "is damaged"),
        ({"inputs": changed(classes=["a", "b", "c", "d"])}, "cannot be loaded into MLP: .*size"),
        ({"settings": "{}"}, "setting 'dataset' is missing"),
    ],
)
def test_a_file_that_is_not_right_is_one_line(changes, message, tmp_path):
    file = subject("mlp", FEATURES).export(tmp_path / "m.safetensors")
    with pytest.raises(UsageError, match=message) as caught:
        load(rewritten(file, **changes))
    assert "\n" not in str(caught.value)
    assert str(file) in str(caught.value)


def test_an_absurd_size_takes_no_memory(tmp_path):
    file = subject("bag", TOKENS).export(tmp_path / "m.safetensors")
    for size, message in (
        (10**13, r"cannot be loaded into Bag: .*size mismatch"),
        (10**30, "has no inputs that bag takes"),
        (-5, "has no inputs that bag takes"),
    ):
        inputs = json.dumps(asdict(TOKENS) | {"vocabulary": size})
        with pytest.raises(UsageError, match=message) as caught:
            load(rewritten(file, inputs=inputs))
        assert "\n" not in str(caught.value)


def test_other_files_are_named(tmp_path):
    with pytest.raises(UsageError, match=r"there is no file .*m\.safetensors"):
        load(tmp_path / "m.safetensors")
    (tmp_path / "m.safetensors").write_bytes(b"no")
    with pytest.raises(UsageError, match=r"cannot be read as \.safetensors"):
        load(tmp_path / "m.safetensors")
    for name, message in (("m.onnx", "a program for others to run"), ("m.pt", "is no .safetens")):
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(UsageError, match=message):
            load(tmp_path / name)


def test_the_form_is_named_or_seen(tmp_path):
    model = subject("mlp", FEATURES)
    with pytest.raises(UsageError, match=r"to what\? Give one of safetensors .*; it was .*m\.bin"):
        model.export(tmp_path / "m.bin")
    with pytest.raises(UsageError, match=r"it was 'onxx'"):
        model.export(tmp_path / "m.onnx", "onxx")
    with pytest.raises(UsageError, match="is a folder"):
        model.export(tmp_path, "safetensors")
    assert load(model.export(tmp_path / "new" / "m.safetensors")).classes == CLASSES


@pytest.mark.parametrize(
    ("library", "name"),
    [("safetensors", "m.safetensors"), ("onnx", "m.onnx"), ("onnxscript", "m.onnx")],
)
def test_a_missing_library_is_named(library, name, tmp_path, monkeypatch):
    for module in [m for m in sys.modules if m.split(".")[0] == library]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=r'pip install "noiseproof\[export\]"'):
        subject("mlp", FEATURES).export(tmp_path / name)
    assert not os.listdir(tmp_path)


class Undecided(nn.Module):
    """Its path depends on the values, which no exporter follows."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(x) if float(x.sum()) > 0 else -self.layer(x)


@pytest.mark.slow
def test_a_network_that_cannot_be_exported_is_one_line(tmp_path):
    model = Model(Undecided(), FEATURES)
    with pytest.raises(UsageError, match="Undecided cannot be exported to onnx, ") as caught:
        model.export(tmp_path / "m.onnx")
    assert "\n" not in str(caught.value)
    assert not os.listdir(tmp_path)


@pytest.mark.slow
def test_exporters_say_nothing_and_files_tell_nothing_of_the_machine(tmp_path):
    script = (
        "import torch\nfrom noiseproof import models\n"
        "from noiseproof.train._model import Inputs, Model\n"
        "model = Model(models.build('bag', 2, shape=(5,), vocabulary=9),"
        " Inputs((5,), (), (), ('a', 'b'), 'tokens', 9))\n"
        "model.export('m.onnx'); model.export('m.pt2')\n"
    )
    (tmp_path / "mine.py").write_text(script)
    run = subprocess.run(
        [sys.executable, "-W", "default", "mine.py"], cwd=tmp_path, capture_output=True, text=True
    )
    noise = [line for line in run.stderr.splitlines() if "DeprecationWarning" not in line]
    assert (run.returncode, run.stdout, noise) == (0, "", [])
    for name in ("m.onnx", "m.pt2"):
        content = (tmp_path / name).read_bytes()
        for path in (str(tmp_path), str(Path(torch.__file__).parent), "mine.py"):
            assert path.encode() not in content


def test_warnings_are_as_before(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        subject("mlp", FEATURES).export(tmp_path / "m.safetensors")
        with pytest.raises(UserWarning):
            warnings.warn("still heard", stacklevel=1)
