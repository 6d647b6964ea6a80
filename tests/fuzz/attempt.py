"""Give changed input to a reader, under a limit of memory and time: run by test_fuzz.py.

    python -m tests.fuzz.attempt PART FIRST_SEED COUNT FOLDER

Prints a line of JSON for each input that ends in anything else than the errors that users may see.
The seed at work is kept in FOLDER/seed, for the case that the process does not survive it.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import random
import resource
import shutil
import signal
import sys
import traceback
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from noiseproof import UsageError, bench, catalogue, data, parse, results, sources, syntax
from noiseproof.results import Record
from noiseproof.runs import Run
from tests.data import writers

from .mutate import change_bytes, change_text, change_value

MEMORY = 1 << 30  # bytes beyond what the interpreter and torch have mapped
SECONDS = 10  # of the processor, for one input
Case = tuple[Any, Callable[[], None]]  # the input, to be shown; what reads it
Part = Callable[[random.Random, Path], Case]


def check_line(text: object) -> None:
    """A message is one line, not a long one, and memory was not what was wanting."""
    assert "MemoryError" not in str(text), f"too much memory was asked for: {text!r:.300}"
    assert "\n" not in str(text), f"a message of several lines: {text!r:.300}"
    assert len(str(text)) < 4000, f"a message of {len(str(text))} characters: {text!r:.300}"


# (a) records and bundles


def _records() -> list[Record]:
    rows = [{"epoch": e, "lr": 0.1, "train_loss": 1.5, "test_accuracy": 0.5} for e in (1, 2, 3)]
    about = {"parameters": 10, "noise_rate": 0.4, "versions": {"torch": "2"}, "machine": {"a": "b"}}
    runs = [
        Run(), Run(dataset="cifar10", noise="cifar10n-worst", loss="jal-ce"),
        Run(loss="10*nce + 0.1*rce(A=-4)", epochs=3, seed=1, rate=0.4),
    ]  # fmt: skip
    return [Record(run.resolve(), rows, about) for run in runs]


# A line of the first format: settings were left open, and what they came to stands beside them.
_OLD = {
    "settings": {
        "dataset": "mnist", "noise": "symmetric", "rate": 0.4, "variant": "paper",
        "model": "cnn4", "protocol": "paper", "epochs": 2, "batch_size": 128, "lr": 0.01,
        "schedule": "cosine", "lr_floor": 0.0, "momentum": 0.9, "nesterov": False, "clip": 5.0,
        "crop": 0, "flip": False, "rotate": 0.0, "ema": 0.0, "balance": 0.0, "holdout": 0.0,
        "seed": 0, "optimizer": "sgd", "loss": "nce+rce",
    },
    "about": {
        "loss": "nce + rce", "weight_decay": 1e-3, "l1": 0.0, "precision": "fp32",
        "parameters": 5, "noise_rate": 0.4, "versions": {}, "machine": {},
    },
    "error": None,
    "history": {"epoch": [1, 2], "learning_rate": [0.1, 0.1], "test_accuracy": [0.1, 0.2]},
}  # fmt: skip
_JSON = [
    b"null", b"NaN", b"Infinity", b"-1e999", b"1" * 5000, b"{", b"}", b"[" * 3000, b"]", b'"', b",",
    b":", b"\\ud800", b"\x00", b"\xff", b"\n", b'{"format":1}', b"\xef\xbb\xbf", b"true",
]  # fmt: skip


def bundle(rng: random.Random, folder: Path) -> Case:
    path = folder / "some.jsonl"
    results.write_bundle(path, _records())
    lines = [*path.read_bytes().splitlines(), json.dumps(_OLD).encode()]
    i = rng.randrange(len(lines))
    if rng.random() < 0.7:
        lines[i] = json.dumps(change_value(rng, json.loads(lines[i]))).encode()
    else:
        lines[i] = change_bytes(rng, lines[i], _JSON)
    path.write_bytes(b"\n".join(lines) + b"\n")
    return lines[i], lambda: _read(path)


def record(rng: random.Random, folder: Path) -> Case:
    run, kept = _records()[0], results.Folder(folder / "run")
    about = {"format": results.FORMAT, "settings": run.run.settings(), "hash": run.hash}
    kept.write_json("run.json", {**about, **run.about})
    kept.write_history(list(run.history))
    kept.write_json("result.json", {**run.history[-1], "epochs": 3, "error": None})
    if rng.random() < 0.2:
        kept.write_json("error.json", {"error": "no such device"})
        (kept.path / "result.json").unlink()
    path = rng.choice(sorted(kept.path.iterdir()))
    content = path.read_bytes()
    if path.suffix == ".json" and rng.random() < 0.7:
        content = json.dumps(change_value(rng, json.loads(content))).encode()
    else:
        content = change_bytes(rng, content, [*_JSON, b",,", b"1e999", b'"\n"', b"nan"])
    path.write_bytes(content)
    return {path.name: content}, lambda: _read(folder)


def _read(place: Path) -> None:
    """Read, and use what was read as tables do."""
    for last_only in (False, True):
        reading = results.read(place, last_only=last_only)
        for problem in reading.problems:
            check_line(problem)
        for found in reading.records:
            assert isinstance(found.accuracy, float)
            assert isinstance(found.hash, str)
            assert all(len(found.column(name)) == len(found.history) for name in ("lr", "epoch"))
        for cell in results.cells(reading.records):
            assert isinstance(cell.mean, float)
        results.table(reading.records)


# (b) losses

_LOSSES = [
    "nce", "10*nce + 0.1*rce(A=-4)", "normalize(fl(gamma=2))", "2*(ce + mae) - gce(rho=0.7)",
    "symmetrize(fl(gamma=2))", "negative(fl(gamma=0.5))", "logit_clip(ce)",
]  # fmt: skip
_WORDS = [
    *syntax.SIGNATURES, *syntax.FORMS, *"()*+-/=,.:[]{}'\"\\#@!~^%&|<>;\n\t\0 ", "**", "//",
    ":=", "lambda x:", " if ", " for ", "None", "True", "1e999", "-1e999", "nan", "inf", "1e308",
    "1" * 400, "0x10", "1j", "1_0", "00", "f''", "b'a'", "(" * 100, "-" * 100, "+" * 150,
    "normalize(" * 30, "é", "\ud800", "\u2028", "K=", "gamma=", "A=", "q=", "*nce", "+ce", "T=",
    "forward_correction(nce)", "__import__('os')", "await ", "...",
]  # fmt: skip


_NUMBERS = [
    "0", "1", "-1", "2", "0.5", "1e-320", "1e308", "-1e308", "1e309", "0.1", "1" * 400, "-0", "3.",
]  # fmt: skip


def _sum(rng: random.Random, depth: int) -> str:
    """A text that can be read but for its numbers, hyper-parameters or depth."""
    terms = [_term(rng, depth) for _ in range(rng.choice((1, 1, 2, 3)))]
    return rng.choice((" + ", "-", "+")).join(terms)


def _term(rng: random.Random, depth: int) -> str:
    known = rng.choice(list(syntax.SIGNATURES)), rng.choice(list(syntax.FORMS))
    given = [
        f"{name}={rng.choice(_NUMBERS)}"
        for name in (*syntax.SIGNATURES[known[0]].hyper, *(["K"] if rng.random() < 0.1 else []))
        if rng.random() < 0.5
    ]
    match rng.randrange(5 if depth else 2):
        case 0:
            return known[0]
        case 1:
            return f"{known[0]}({', '.join(given)})"
        case 2:
            return f"{rng.choice(_NUMBERS)}*{_term(rng, depth - 1)}"
        case 3:
            return f"{known[1]}({_sum(rng, depth - 1)})"
        case _:
            return f"({_sum(rng, depth - 1)})"


def loss(rng: random.Random, folder: Path) -> Case:
    text = _sum(rng, 4) if rng.random() < 0.5 else rng.choice([*_LOSSES, *syntax.SIGNATURES])
    if rng.random() < 0.7:
        text = change_text(rng, text, _WORDS)

    def read() -> None:
        syntax.read(text)
        written = syntax.canonical(text)
        assert syntax.canonical(written) == written, f"{written!r} is not its own canonical text"
        syntax.short(written)
        said = syntax.canonical(str(parse(text)))
        assert said == written, f"the loss calls itself {said!r}, its canonical text is {written!r}"

    return text, read


# (c) grids

_GRID = """title = "Which loss for my noise?"
dataset = "cifar10"
noise = ["symmetric", "none"]
rate = [0.2, 0.4]
loss = ["ce", "nce+rce", "10*nce + 0.1*mae"]
seed = [0, 1, 2]
epochs = 3

[[include]]
loss = "jal-ce"
rate = 0.8

[[exclude]]
loss = "ce"
rate = 0.2
"""
_TOML = [
    *"[]{}='\"\n,.#-+_\0 ", "[[include]]\n", "[[exclude]]\n", "[include]\n", '"""', "'''", "nan",
    "inf", "-inf", "1e999", "true", "1979-05-27", "07:32:00", "0x10", "9" * 30, "9" * 5000,
    "\\u0000", "seed = 1\n", "epochs = -1\n", "lr = nan\n", "batch_size = 0\n",
    "name = 'a/../b'\n",
    "overrides = ['data']\n", "device = 'cuda:99'\n", "a.b.c = 1\n", "é", "\ud7ff", "[" * 2000,
    "{a=" * 500, f"seed = {list(range(1000))}\n", f"rate = {[i / 1000 for i in range(1000)]}\n",
    "shows = 3\n", "title = [1]\n", "include = 3\n", "exclude = [3]\n", "loss = ''\n",
    "loss = []\n",
    *(f"{name} = " for name in bench._bench.FIELDS), *(f'"{d}"' for d in catalogue.DATASETS),
]  # fmt: skip


def grid(rng: random.Random, folder: Path) -> Case:
    if rng.random() < 0.5:
        text = change_text(rng, _GRID, _TOML)
    else:  # one setting of another value, in TOML that can be read
        name = rng.choice(bench._bench.FIELDS)
        value = rng.choice(["nan", "inf", "-1", "0", "1.5", "true", '""', '"a\\nb"', "[]", "[[]]",
                            "[1, 'a']", "9223372036854775807", "1e308", "{a = 1}", "1979-05-27",
                            '"../../etc"', '"nce"', "[{}]", "'\\u0000'"])  # fmt: skip
        kept = [line for line in _GRID.splitlines() if not line.startswith(f"{name} ")]
        text = "\n".join([f"{name} = {value}", *kept])
    path = folder / "grid.toml"
    path.write_text(text, encoding="utf-8", errors="replace")

    def read() -> None:
        found = bench.read_bench(path)
        assert len(found) == len(found.runs) > 0
        assert isinstance(found.title, str)
        assert len(found.cells) > 0

    return text, read


# (d) files of data

_OPCODES = [
    b")", b"]", b"}", b"(", b"t", b"l", b"d", b"e", b"u", b"s", b"a", b"0", b"1", b"2", b"N", b"R",
    b"b", b"o", b"Q", b".", b"\x85", b"\x86", b"\x87", b"\x81", b"\x93", b"q\x00h\x00\x86" * 30,
    b"\x85" * 200, b"r\xff\xff\xff\x1f", b"j\x00\x00\x00\x00", b"X\xff\xff\xff\x7f",
    b"T\xff\xff\xff\x7f", b"\x8a\xff", b"\x8b\xff\xff\xff\x7f", b"\x8e" + b"\xff" * 7 + b"\x00",
    b"I9\n", b"L9L\n", b"Fnan\n",
    b"cos\nsystem\n", b"cnumpy\ndtype\n", b"c_codecs\nencode\n", b"V\\ud800\n", b"S'a'\n", b"\x95",
    b"cnumpy.core.multiarray\n_reconstruct\n", b"cnumpy.core.multiarray\nscalar\n",
    b"U\x02O8", b"K\x00",
    b"ctorch\nLongStorage\n", b"ctorch._utils\n_rebuild_tensor_v2\n", b"PK\x01\x02", b"PK\x05\x06",
    b"U\x02M8", b"U\x03U99", b"\x00\x00\x08\x03", b"\x1f\x8b\x08", b"\xff" * 8, bytes(8),
]  # fmt: skip
_LAYOUTS = [*writers.LAYOUTS, "cifar100n of tensors"]


def _write_layout(layout: str, root: Path) -> str:
    if layout in writers.LAYOUTS:
        return writers.write(layout, root)
    import torch

    columns = {k: torch.from_numpy(v) for k, v in writers.columns("cifar100n").items()}
    torch.save(columns, root / "CIFAR-100_human.pt")
    return "cifar100n"


def file(rng: random.Random, folder: Path) -> Case:
    layout = rng.choice(_LAYOUTS)
    name = _write_layout(layout, folder)
    path = rng.choice(sorted(p for p in folder.rglob("*") if p.is_file()))
    content = path.read_bytes()
    inside = rng.random() < 0.7  # a checksum would find it before the reader sees it
    if path.suffix == ".gz" and inside:
        content = gzip.compress(change_bytes(rng, gzip.decompress(content), _OPCODES), mtime=0)
    elif path.suffix == ".pt" and inside:
        content = _change_zipped(rng, content)
    else:
        content = change_bytes(rng, content, _OPCODES)
    path.write_bytes(content)

    def read() -> None:
        if name.endswith("n"):
            human = "cifar100n" if name == "cifar100n" else "cifar10n-worst"
            labels = data.human(human, root=folder, download=False).labels
            column = "noisy_label" if name == "cifar100n" else "worse_label"
            assert labels.tolist() == writers.columns(name)[column].tolist()
            return
        found = data.load(name, root=folder, download=False)
        images, labels = writers.arrays(name)[0]
        assert (found.train.images.numpy() == images).all()
        assert (found.train.labels.numpy() == labels).all()

    return {f"{layout}, {path.name}": content}, read


def _change_zipped(rng: random.Random, content: bytes) -> bytes:
    """One file of an archive changed, and its checksum with it."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice([*files, *(n for n in files if n.endswith("data.pkl"))])
    files[name] = change_bytes(rng, files[name], _OPCODES)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, inner in files.items():
            archive.writestr(name, inner)
    return out.getvalue()


_TABLE = 'size,text,file,label\n1,"a, b",a/0.png,cat\n2.5,c,b/0.png,dog\n-3,d,a/1.png,cat\n'
_OF_TABLES = [b",", b"\n", b'"', b"nan", b"1e999", b"\x00", b"\xff", b";", b"", b"label", b"../"]


def own(rng: random.Random, folder: Path) -> Case:
    """Data of the user's own: a table, an npz file, a folder of images, one file changed."""
    import numpy as np
    from PIL import Image

    for name, count in (("a", 2), ("b", 1)):
        (folder / "set" / name).mkdir(parents=True)
        for at in range(count):
            image = Image.new(rng.choice(("RGB", "L", "P", "RGBA")), (6, 6), at)
            image.save(folder / "set" / name / f"{at}.png")
    (folder / "set" / "t.csv").write_text(_TABLE)
    (folder / "set" / "t.csv.gz").write_bytes(gzip.compress(_TABLE.encode(), mtime=0))
    np.savez(folder / "set" / "t.npz", x=np.ones((3, 2)), y=["cat", "dog", "cat"])
    options, changed = rng.choice((
        ({"dataset": "csv:t.csv", "text": "text"}, "t.csv"),
        ({"dataset": "csv:t.csv", "ignore": ("text", "file")}, "t.csv"),
        ({"dataset": "csv:t.csv", "image": "file"}, rng.choice(("t.csv", "a/0.png"))),
        ({"dataset": "csv:t.csv.gz", "text": "text"}, "t.csv.gz"),
        ({"dataset": "npz:t.npz"}, "t.npz"),
        ({"dataset": "folder:."}, "b/0.png"),
    ))  # fmt: skip
    path = folder / "set" / changed
    if changed == "t.npz" and rng.random() < 0.7:
        content = _change_zipped(rng, path.read_bytes())
    else:
        tokens = _OF_TABLES if changed.startswith("t.csv") else _OPCODES
        content = change_bytes(rng, path.read_bytes(), tokens)
    path.write_bytes(content)
    form, _, name = str(options.pop("dataset")).partition(":")
    skip = rng.random() < 0.3

    def read() -> None:
        source = sources.source_named(
            f"{form}:{folder / 'set' / name}", skip_unreadable=skip, **options
        )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "left out what cannot be read")
            found = data.load_source(source)
        assert len(found.train.labels) == len(found.train.inputs)

    return {changed: content, "options": options}, read


def model(rng: random.Random, folder: Path) -> Case:
    """An exported model: the bytes of the file, or the settings and inputs that it holds."""
    import numpy as np
    from safetensors.torch import load, save

    from noiseproof import models, train
    from noiseproof.train._model import Inputs

    name, inputs = rng.choice((
        ("mlp", Inputs((2,), (0.5, 1.0), (1.0, 2.0), ("a", "b"), "features", columns=("x", "y"))),
        ("cnn4", Inputs((1, 4, 4), (0.5,), (0.2,), ("a", "b"), stored=(1, 6, 6))),
        ("bag", Inputs((3,), (), (), ("a", "b"), "text", 9, coding=data.TextCoding(3, 9))),
    ))  # fmt: skip
    network = models.build(name, 2, shape=inputs.shape, vocabulary=inputs.vocabulary)
    settings = Run(model=name).resolve().settings()
    path = train.Model(network, inputs, settings).export(folder / "m.safetensors")
    content = path.read_bytes()
    if rng.random() < 0.3:
        content = change_bytes(rng, content, [b"{", b"}", b'"', b"[", b"-1", b"1e999", b"\x00"])
    else:
        length = int.from_bytes(content[:8], "little")
        about = json.loads(content[8 : 8 + length])["__metadata__"]
        key = rng.choice(("inputs", "inputs", "settings"))
        about[key] = json.dumps(change_value(rng, json.loads(about[key])))
        content = save(load(content), about)
    path.write_bytes(content)

    def read() -> None:
        found = train.load(path)
        dtype, shape = found.inputs.raw
        if math.prod(shape) < 1_000_000:  # rows of token ids may be of any length
            batch = np.zeros((2, *shape), str(dtype).removeprefix("torch."))
            assert found.predict_proba(batch).shape == (2, 2)

    return content, read


def expect_small_files() -> None:
    """Have the tables expect the small files of ``tests/data/writers.py``."""
    for table in (catalogue.DATASETS, catalogue.HUMAN_FILES):
        for name in table:
            if name in writers.SIZES or name in catalogue.HUMAN_FILES:
                table[name] = writers.source_of(name)


PARTS: dict[str, Part] = {
    "bundle": bundle, "record": record, "loss": loss, "grid": grid, "file": file, "own": own,
    "model": model,
}  # fmt: skip


def limit() -> None:
    with open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def attempt(part: Part, seed: int, folder: Path) -> dict[str, Any] | None:
    """What went wrong with one input, or None."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    given, read = part(random.Random(seed), folder)
    try:
        read_quietly(read)
    except (Exception, Expired) as error:
        where = traceback.format_tb(error.__traceback__)[-3:]
        what = f"{type(error).__name__}: {error!s:.300}"
        return {"seed": seed, "error": what, "where": where, "input": f"{given!r:.1500}"}
    return None


def read_quietly(read: Callable[[], None]) -> None:
    """Read in good time, with an error that users may see or none, and without a warning."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with warnings.catch_warnings(record=True) as warned:
            read()
    except UsageError as error:
        check_line(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    assert not warned, f"a warning of Python's: {warned[0].message}"


class Expired(BaseException):
    """Reading took too long."""


def _expire(*_: object) -> None:
    raise Expired(f"not read after {SECONDS} seconds of the processor")


def main() -> None:
    name, first, count, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    signal.signal(signal.SIGPROF, _expire)
    warnings.simplefilter("always")
    warnings.simplefilter("ignore", DeprecationWarning)  # which users are not shown
    expect_small_files()
    limit()
    for seed in range(first, first + count):
        (folder / "seed").write_text(str(seed))
        problem = attempt(PARTS[name], seed, folder / "case")
        if problem is not None:
            print(json.dumps(problem), flush=True)


if __name__ == "__main__":
    main()
