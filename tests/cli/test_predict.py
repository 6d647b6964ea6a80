"""Files are predicted, and models exported, as a user types it."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from noiseproof import data
from noiseproof.train import Run, _samples, fit, load

rng = np.random.default_rng(0)
LABELS = np.arange(60) % 3
NAMES = np.array(["cat", "dog", "=ant"])
FEATURES = (2 * np.eye(3)[LABELS] + rng.normal(size=(60, 3))).astype(np.float32)
TEXTS = [f"a {word} film" for word in ("good", "bad", "long")] * 20


def write_csv(path: Path, **columns) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, Path]:
    """A folder of a run for each kind of data, and what it was trained on beside it."""
    home = tmp_path_factory.mktemp("home")
    columns = {name: FEATURES[:, i] for i, name in enumerate("abc")}
    write_csv(home / "rows.csv", **columns, label=NAMES[LABELS])
    write_csv(home / "texts.csv", review=TEXTS, label=NAMES[LABELS])
    np.savez(home / "set.npz", x=np.arange(180).reshape(60, 3) % 9, y=LABELS)
    settings = {"epochs": 2, "device": "cpu"}
    made = {
        "rows": Run(dataset=f"csv:{home / 'rows.csv'}", **settings),
        "texts": Run(dataset=f"csv:{home / 'texts.csv'}", text="review", **settings),
        "tokens": Run(dataset=f"npz:{home / 'set.npz'}", **settings),
    }
    return {name: fit(run, out=home / "runs").folder for name, run in made.items()}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_another_table(runs, here, run):
    write_csv(
        here / "new.csv", c=FEATURES[:, 2], other="x" * 60, b=FEATURES[:, 1], a=FEATURES[:, 0]
    )
    code, out, err = run("predict", runs["rows"], "new.csv", "--probabilities")
    assert (code, err) == (0, "")
    rows = rows_of(out)
    expected = load(runs["rows"]).predict_proba(FEATURES)
    assert [int(row["index"]) for row in rows] == list(range(60))
    classes = [load(runs["rows"]).classes[k] for k in expected.argmax(1)]
    assert [row["class"].removeprefix("'") for row in rows] == classes  # which no sheet computes
    for name, column in zip(load(runs["rows"]).classes, expected.T.tolist(), strict=True):
        found = [float(row[f"probability_{name}"]) for row in rows]
        assert found == pytest.approx(column, abs=2e-6)
    assert [float(row["probability"]) for row in rows] == pytest.approx(
        expected.max(1).values.tolist(), abs=2e-6
    )


def test_a_table_of_one_column(runs, here, run):
    write_csv(here / "new.csv", review=["a good film", "", "bad, very bad"])
    code, _, err = run("predict", runs["texts"], "new.csv")
    assert code == 2
    assert "new.csv, line 3: column 'review' is empty; mend it, or go on without such" in err
    code, out, err = run("predict", runs["texts"], "new.csv", "--skip-unreadable")
    assert code == 0
    assert [row["index"] for row in rows_of(out)] == ["0", "2"]
    assert err.count("\n") == 1
    assert "warning: left out what cannot be read: new.csv, line 3" in err


def test_rows_that_cannot_be_read_are_left_out(runs, here, run):
    (here / "new.csv").write_text("a,b,c\n1,2,3\n1,,3\n1,2\nx,y,z\n4,5,6\n")
    code, out, err = run("predict", runs["rows"], "new.csv", "--skip-unreadable")
    assert code == 0
    assert [row["index"] for row in rows_of(out)] == ["0", "3"]  # of rows that have all columns
    assert "and 4 more" in err  # a line that is short, an empty value, three that are no numbers
    (here / "new.csv").write_text("a,b,c\nx,y,z\n")
    code, out, err = run("predict", runs["rows"], "new.csv")
    assert (code, out) == (2, "")
    assert "line 2: column 'a' is 'x', no finite number; mend it" in err
    assert "--ignore" not in err  # which is for training
    code, out, err = run("predict", runs["rows"], "new.csv", "--skip-unreadable")
    assert (code, out) == (2, "")
    assert "nothing was predicted: no sample could be read" in err


def test_arrays(runs, here, run):
    x = FEATURES.copy()
    x[1, 0] = np.nan
    np.savez(here / "a.npz", x=x)
    np.save(here / "b.npy", FEATURES[:2])
    np.savez(here / "c.npz", x_train=FEATURES, y_train=LABELS, x_test=FEATURES[:3])
    code, _, err = run("predict", runs["rows"], "a.npz")
    assert code == 2
    assert "a.npz, row 1: it holds a NaN or an infinity; mend it" in err
    code, out, _ = run("predict", runs["rows"], "a.npz", "b.npy", "c.npz", "--skip-unreadable")
    assert code == 0
    places = [(row["file"], int(row["index"])) for row in rows_of(out)]
    assert places == [
        *(("a.npz", i) for i in range(60) if i != 1),
        *(("b.npy", i) for i in range(2)),
        *(("c.npz", i) for i in range(3)),
    ]


@pytest.mark.parametrize(
    ("model", "arrays", "message"),
    [
        ("tokens", {"x": [[1, 2, 500]]}, "new.npz: token ids must be from 0 to 8, as in training"),
        ("tokens", {"x": [[0.5, 2, 3]]}, "new.npz: token ids are integers; they were float64"),
        ("rows", {"x": [[1.0, 2]]}, r"new.npz: inputs must be [N, 3], as in training"),
        ("rows", {"p": [1.0], "q": [2.0]}, "new.npz holds p, q; call what is predicted 'x'"),
        ("rows", {"x": 3.0}, "new.npz: inputs are [samples, ...], and x is a single value"),
        ("rows", {"x": [["a", "b", "c"]]}, "inputs must be an array of numbers"),
    ],
)
def test_arrays_of_another_kind(runs, here, run, model, arrays, message):
    np.savez(here / "new.npz", **{name: np.array(array) for name, array in arrays.items()})
    code, out, err = run("predict", runs[model], "new.npz")
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_what_is_not_there_is_said_before_anything_is_done(runs, here, run):
    np.save(here / "a.npy", FEATURES)
    for arguments, message in (
        (("a.npy", "b.csv"), "there is no file b.csv"),
        ((), "which files? Name images"),
        (("a.npy", "--out", here), "is a folder; give the name of a file"),
    ):
        code, out, err = run("predict", runs["rows"], *arguments)
        assert (code, out) == (2, "")
        assert message in err
    of_all = runs["rows"].parent
    said = run("predict", of_all, "a.npy")[2]
    assert f"{of_all} has no run.json; give the folder of one run, such as {of_all}" in said
    assert run("predict", here, "a.npy")[2].endswith("give the folder of one run\n")  # without any
    (here / "a.csv").write_text("q\n1\n")
    assert (
        "a.csv is a table, and the run was trained on none"
        in run("predict", runs["tokens"], "a.csv")[2]
    )


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A run on images of two sizes, of which the middle is taken, and the images."""
    image = pytest.importorskip("PIL.Image")
    home = tmp_path_factory.mktemp("photos")
    for k, name in enumerate(("cat", "dog")):
        (home / "all" / name).mkdir(parents=True)
        for i in range(12):
            pixels = np.clip(rng.normal(60 + 120 * k, 30, (14, 14 + i % 2, 3)), 0, 255)
            image.fromarray(pixels.astype(np.uint8)).save(home / "all" / name / f"{i:02}.png")
    run = Run(
        dataset=f"folder:{home / 'all'}", image_size=12, crop_size=8, crop=0, model="mlp",
        epochs=3, device="cpu",
    )  # fmt: skip
    return fit(run, out=home / "runs").folder, home


def test_images_in_parts(photos, here, run, monkeypatch):
    folder, home = photos
    monkeypatch.setattr(_samples, "_IMAGES", 5)  # so that there are several
    files = sorted((home / "all").rglob("*.png"))
    (home / "all" / "dog" / "05x.png").write_bytes(b"no image")
    try:
        code, _, err = run("predict", folder, home / "all")
        assert code == 2
        assert "05x.png: no image; mend it, or go on without such with --skip-unreadable" in err
        code, out, _ = run("predict", folder, home / "all", "--skip-unreadable", "--out", "p.csv")
    finally:
        (home / "all" / "dog" / "05x.png").unlink()
    assert (code, out) == (0, "24 predictions written to p.csv\n")
    rows = rows_of(Path("p.csv").read_text())
    assert [row["file"] for row in rows] == [str(file) for file in files]
    pixels = np.stack([data.read_image(file, (3, 12, 12)) for file in files])
    model = load(folder)
    expected = model.predict_proba(pixels[:, 2:10, 2:10])  # the middle, channels last
    torch.testing.assert_close(model.predict_proba(pixels), expected)
    found = [float(row["probability"]) for row in rows]
    assert found == pytest.approx(expected.max(1).values.tolist(), abs=2e-6)


def test_a_table_of_images(here, run):
    image = pytest.importorskip("PIL.Image")
    (here / "in").mkdir()
    for i in range(20):
        image.new("L", (8, 8), 20 + 200 * (i % 2)).save(here / "in" / f"{i}.png")
    names = [f"{i}.png" for i in range(20)]
    write_csv(here / "in" / "list.csv", file=names, label=["dark", "light"] * 10)
    table = Run(dataset="csv:in/list.csv", image="file", epochs=2, batch_size=8, device="cpu")
    folder = fit(table, out=here / "runs").folder
    write_csv(here / "in" / "new.csv", file=[*names[:3], "gone.png"])
    code, _, err = run("predict", folder, "in/new.csv")
    assert code == 2
    assert "in/new.csv, line 5 (gone.png): there is no such file" in err
    code, out, _ = run("predict", folder, "in/new.csv", "--skip-unreadable")
    assert code == 0
    assert [(row["file"], row["index"]) for row in rows_of(out)] == [
        ("in/new.csv", str(i)) for i in range(3)
    ]


class Terminal:
    """A stream that says that it is one."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None: ...

    def isatty(self) -> bool:
        return True


def test_a_bar_on_a_terminal(runs, here, run, monkeypatch):
    np.save(here / "a.npy", FEATURES)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    code, out, _ = run("predict", runs["rows"], "a.npy")
    assert code == 0
    assert len(rows_of(out)) == 60  # and nothing else
    assert "60/60" in terminal.text


def test_a_prediction_that_is_stopped_does_not_go_on(runs, here, run, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    np.save(here / "a.npy", FEATURES)
    monkeypatch.setattr(_samples, "read_samples", stop)
    assert run("predict", runs["rows"], "a.npy") == (130, "", "noiseproof: stopped\n")


# Export


def test_export_beside_the_run_and_predict_from_it(runs, here, run):
    code, out, err = run("export", runs["rows"], "--to", "safetensors")
    assert (code, err) == (0, "")
    assert out == f"written to {runs['rows'] / 'model.safetensors'}, 0.3 MB\n"
    np.save(here / "a.npy", FEATURES)
    expected = run("predict", runs["rows"], "a.npy")
    assert run("predict", runs["rows"] / "model.safetensors", "a.npy") == expected
    again = run("export", runs["rows"] / "model.safetensors", "--out", "m.safetensors")
    assert again[0] == 0
    assert run("predict", "m.safetensors", "a.npy") == expected
    assert run("results", runs["rows"].parent)[0] == 0  # who reads runs is not disturbed


@pytest.mark.slow
def test_export_says_what_the_program_takes(runs, here, run):
    code, out, err = run("export", runs["tokens"], "--out", "m.pt2")
    assert (code, err) == (0, "")
    assert out.splitlines()[1] == "from ids: int64 [N, 3] to probabilities: float32 [N, 3]"
    assert os.listdir(here) == ["m.pt2"]
    script = (
        "import sys, torch\n"
        "made = torch.export.load('m.pt2').module()(torch.ones(5, 3, dtype=torch.int64))\n"
        "print(list(made.shape), 'noiseproof' in sys.modules)"
    )
    other = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True)
    assert other.stdout == "[5, 3] False\n"


def test_export_to_what(runs, here, run):
    for arguments, message in (
        ((), "to what? Give one of safetensors (.safetensors), torch (.pt2), onnx (.onnx)"),
        (("--out", "m.bin"), "it was m.bin"),
        (("--to", "safetensors", "--ema"), "has no model-ema.pt; train it with ema="),
    ):
        code, out, err = run("export", runs["rows"], *arguments)
        assert (code, out) == (2, "")
        assert message in err
    assert os.listdir(here) == []


def test_the_chosen_epoch_is_told_and_taken(here, run):
    code, out, err = run(
        "train", "--epochs", "3", "--choose-epoch", "True", "--ema-horizon", "0.2",
        "--device", "cpu", "--out", "runs",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert re.search(
        r"test accuracy [\d.]+% at epoch [1-3], chosen by what was held out "
        r"\([\d.]+% after 3 epochs, [\d.]+% with the averaged weights\)",
        " ".join(out.split()),
    )
    (folder,) = (path for path in (here / "runs").iterdir() if path.name != ".locks")
    np.save("a.npy", np.zeros((2, 1, 8, 8), np.uint8))
    found = {}
    for flags in ((), ("--last",), ("--ema",)):
        code, found[flags], _ = run("predict", folder, "a.npy", *flags)
        assert code == 0
        assert run("export", folder, "--to", "safetensors", *flags)[0] == 0
        made = folder / f"model{''.join(flags)[1:]}.safetensors"
        assert run("predict", made, "a.npy") == (0, found[flags], "")
    assert found[()] != found["--last",]
    code, _, err = run("predict", made, "a.npy", "--last")
    assert code == 2
    assert "export the run with --last" in err


NETS = """
from torch import nn
def small(num_classes, input_shape):
    return nn.Sequential(nn.Flatten(), nn.Linear(input_shape.numel(), num_classes))
"""


def test_a_network_of_ones_own_is_named_again(own_modules, tmp_path, run):
    own_modules(mynets=NETS)
    folder = fit(Run(model="mynets:small", epochs=1, device="cpu"), out=tmp_path / "runs").folder
    np.save("a.npy", data.load("digits").test.images[:3].numpy())
    expected = run("predict", folder, "a.npy")
    assert expected[0] == 0
    assert run("export", folder, "--out", "m.safetensors")[0] == 0
    code, _, err = run("predict", "m.safetensors", "a.npy")
    assert code == 2
    assert "network mynets:small, which is imported only if you name it too" in err
    assert run("predict", "m.safetensors", "a.npy", "--network", "mynets:small") == expected


def test_an_output_beyond_the_classes_is_called_by_its_number(own_modules, tmp_path, run):
    own_modules(
        mynets="from torch import nn\n\n\n"
        "def wide(num_classes=10):\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(64, 12))\n"
    )
    wide = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 12))
    with torch.no_grad():
        wide[1].bias[11] = 1e3
    small = Run(epochs=1, lr=1e-6, device="cpu")
    folder = fit(small, network=wide, out=tmp_path / "runs", name="wide").folder
    np.save("a.npy", data.load("digits").test.images[:3].numpy())
    answer = ("predict", folder, "a.npy", "--network", "mynets:wide", "--probabilities")
    code, out, _ = run(*answer)
    assert code == 0
    rows = list(csv.DictReader(out.splitlines()))
    assert [row["class"] for row in rows] == ["11"] * 3
    assert float(rows[0]["probability_11"]) == pytest.approx(1.0)


def test_a_run_that_begins_anew_takes_its_exports_away(tmp_path):
    tiny = Run(epochs=1, batch_size=256, device="cpu")
    folder = fit(tiny, out=tmp_path).folder
    load(folder).export(folder / "model.safetensors")
    (folder / "notes.txt").write_text("mine")
    fit(tiny, out=tmp_path, force=True)
    assert not (folder / "model.safetensors").exists()
    assert (folder / "notes.txt").exists()
