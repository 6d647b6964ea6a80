"""Corrections, applied to a copy of the data in every form."""

from __future__ import annotations

import csv
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from noiseproof import UsageError, data
from noiseproof.runs import Run
from noiseproof.tools._apply import Corrections, read_corrections, write_corrected
from noiseproof.tools._command import command_of
from noiseproof.tools._samples import Samples, samples_of

ROWS = [("good, \"really\"\nnew line", "yes"), ("bad", "no"), ("=so so", "no"), ("fine", "yes"),
        ("awful", "no"), ("great", "yes")]  # fmt: skip


def decide(path: Path, *decisions: tuple[int, str, str, str]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["index", "name", "given", "decision", "label"])
        writer.writerows(
            [i, "some name", given, what, label] for i, given, what, label in decisions
        )
    return path


def corrected(run: Run, tmp_path: Path, *decisions: tuple[int, str, str, str]) -> tuple[Path, Run]:
    samples = samples_of(run)
    labels = np.asarray(samples.labels.labels).astype(np.int64)
    file = decide(tmp_path / "corrections.csv", *decisions)
    found = read_corrections(file, labels, samples.data.classes)
    return write_corrected(samples, found, tmp_path / "out")


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_table_is_copied_with_other_labels(tmp_path, form):
    path = tmp_path / f"reviews.{form}"
    if form == "csv":
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([("text", "stars", "who"), *[(t, s, "me") for t, s in ROWS]])
    else:
        arrow, parquet = (pytest.importorskip(m) for m in ("pyarrow", "pyarrow.parquet"))
        texts, labels = zip(*ROWS, strict=True)
        table = {"text": texts, "stars": labels, "who": ["me"] * len(ROWS)}
        parquet.write_table(arrow.table(table), path)
    run = Run(dataset=f"{form}:{path}", label="stars", text="text")
    made, own = corrected(
        run, tmp_path, (1, "no", "change", "yes"), (2, "no", "drop", ""), (3, "yes", "keep", "yes")
    )
    content = own.content()
    assert content is not None
    assert list(content.train.inputs) == [t for i, (t, _) in enumerate(ROWS) if i != 2]
    assert [content.classes[k] for k in content.train.labels] == ["yes", "yes", "yes", "no", "yes"]
    assert made.name == f"reviews-corrected.{form}"
    samples = samples_of(run, annotator="who")
    assert samples.annotators == ["me"] * 6
    assert samples.show(0) == ROWS[0][0]


def test_embeddings_are_learnt_from_and_the_text_beside_them_is_shown(tmp_path):
    arrow, parquet = (pytest.importorskip(m) for m in ("pyarrow", "pyarrow.parquet"))
    texts, labels = zip(*ROWS, strict=True)
    vectors = [[float(i), 1.0] for i in range(len(ROWS))]
    path = tmp_path / "reviews.parquet"
    columns = {
        "text": texts, "label": labels, "embedding": vectors, "length": range(len(ROWS)),
        "price": [0.1 + 0.2] * len(ROWS), "note": ["x", *[None] * (len(ROWS) - 1)],
    }  # fmt: skip
    beside = ("text", "price", "note")
    parquet.write_table(arrow.table(columns), path)
    run = Run(dataset=f"parquet:{path}", ignore=beside)
    shown = {"text": ROWS[1][0], "price": "0.3", "note": "", "length": "1"}
    assert samples_of(run).show(1) == shown
    made, _ = corrected(run, tmp_path, (1, "no", "change", "yes"), (2, "no", "drop", ""))
    own = Run(dataset=f"parquet:{made}", ignore=beside).content()
    assert own.train.inputs.tolist() == [[*v, i] for i, v in enumerate(vectors) if i != 2]
    assert [own.classes[k] for k in own.train.labels][:2] == ["yes", "yes"]


def test_a_table_of_a_spreadsheet_stays_one(tmp_path):
    rows = ["a;label", "1,5;x", "2,5;y", "3,5;x", "4,5;y"]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    made, own = corrected(
        Run(dataset=f"csv:{tmp_path / 't.csv'}"), tmp_path, (1, "y", "change", "x")
    )
    assert made.read_text().splitlines() == [*rows[:2], "2,5;x", *rows[3:]]
    content = own.content()
    assert content is not None
    assert np.asarray(content.train.inputs).tolist() == [[1.5], [2.5], [3.5], [4.5]]


def test_numbers_stay_numbers(tmp_path):
    np.savez(tmp_path / "own.npz", x=np.eye(6, dtype=np.float32), y=np.array([3, 7, 3, 7, 3, 7]),
             t=np.array([3, 3, 3, 7, 3, 7]), x_test=np.eye(2, 6, dtype=np.float32),
             y_test=np.array([3, 7]))  # fmt: skip
    run = Run(dataset=f"npz:{tmp_path / 'own.npz'}", truth="t")
    made, own = corrected(run, tmp_path, (1, "7", "change", "3"), (5, "7", "drop", ""))
    with np.load(made) as arrays:
        assert arrays["y"].tolist() == [3, 3, 3, 7, 3]
        assert arrays["y"].dtype == np.int64
        assert arrays["x"].tolist() == np.eye(6)[:5].tolist()
        assert len(arrays["t"]) == 5
        assert len(arrays["x_test"]) == 2
    assert own.content().train.truth.tolist() == [0, 0, 0, 1, 0]
    assert samples_of(run).show(0) == {f"feature {i}": "1" if i == 0 else "0" for i in range(6)}


def test_a_folder_becomes_a_table(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for i in range(6):
        folder = tmp_path / "pets" / ("cat" if i % 2 else "dog")
        folder.mkdir(parents=True, exist_ok=True)
        image.new("RGB", (20, 12), (i, 2, 3)).save(folder / f"{i}.png")
    run = Run(dataset=f"folder:{tmp_path / 'pets'}", image_size=10)
    samples = samples_of(run)
    assert samples.names[0].endswith("cat/1.png")
    assert samples.show(0).startswith(b"\xff\xd8\xff")  # a small JPEG
    decisions = (0, "cat", "change", "dog"), (1, "cat", "drop", "")
    _, own = corrected(run, tmp_path, *decisions)
    content = own.content()
    assert [content.classes[k] for k in content.train.labels] == ["dog", "cat", "dog", "dog", "dog"]
    assert content.test is None
    assert data.load_content(content, own.resolve().source).train.images.shape[1:] == (3, 10, 10)
    _, own = corrected(replace(run, test=str(tmp_path / "pets")), tmp_path, *decisions)
    content = own.content()
    assert [content.classes[k] for k in content.test.labels] == ["cat"] * 3 + ["dog"] * 3


def test_a_data_set_by_name_becomes_arrays(tmp_path):
    run = Run(dataset="digits", noise="none")
    first = data.load("digits").train.labels[:2].tolist()
    made, own = corrected(
        run, tmp_path, (0, str(first[0]), "change", "9"), (1, str(first[1]), "drop", "")
    )
    content = own.content()
    assert made.suffix == ".npz"
    assert len(content.train) == 1436
    assert content.classes[content.train.labels[0]] == "9"
    assert len(content.test) == 360


def test_of_images_that_stream_there_is_no_copy(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for i in range(4):
        (tmp_path / "ab"[i % 2]).mkdir(exist_ok=True)
        image.new("L", (8, 8), i).save(tmp_path / "ab"[i % 2] / f"{i}.png")
    own = data.from_folder(tmp_path, stream="yes")
    labels = own.train.labels.numpy()
    samples = Samples(Run(dataset="webvision"), own, None, None, None, None)
    with pytest.raises(UsageError, match="all images in memory at once: give --stream no"):
        write_corrected(samples, Corrections(labels, labels >= 0, 0), tmp_path)


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        ((0, "no", "change", "yes"), "other data"),
        ((99, "yes", "keep", "yes"), "other data"),
        ((0, "yes", "change", "maybe"), "none of the classes"),
        ((0, "yes", "burn", "yes"), "keep, change or drop"),
        (("-1", "yes", "keep", "yes"), "no decision"),
    ],
)
def test_decisions_of_other_data_are_refused(tmp_path, decision, message):
    labels = np.array([1, 0])
    with pytest.raises(UsageError, match=message):
        read_corrections(decide(tmp_path / "c.csv", decision), labels, ("no", "yes"))


def test_another_file_is_refused(tmp_path):
    (tmp_path / "c.csv").write_text("rank,index\n1,2\n")
    with pytest.raises(UsageError, match="exported"):
        read_corrections(tmp_path / "c.csv", np.array([0]), ("no", "yes"))
    with pytest.raises(UsageError, match="cannot be read"):
        read_corrections(tmp_path / "none.csv", np.array([0]), ("no", "yes"))


def test_classes_are_read_as_they_are_written(tmp_path):
    """A spreadsheet's apostrophe and characters that are not printed do not lose a class."""
    classes = ("=1+1", "a\x1bb")
    file = decide(
        tmp_path / "c.csv", (0, "'=1+1", "change", "a\\x1bb"), (1, "a\\x1bb", "change", "'=1+1")
    )
    assert read_corrections(file, np.array([0, 1]), classes).labels.tolist() == [1, 0]


def test_the_command_can_be_typed_and_leaves_no_column_a_feature_that_was_none(tmp_path):
    path = tmp_path / "my wine.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["x", "kind of wine", "true kind", "the bottle"])
        writer.writerows([i, "ab"[i % 2], "ab"[i % 2], f"b{i}"] for i in range(6))
    run = Run(
        dataset=f"csv:{path}", label="kind of wine", truth="true kind", ignore=("the bottle",),
        skip_unreadable=True,
    )  # fmt: skip
    made, own = corrected(run, tmp_path, (1, "b", "change", "a"))
    assert shlex.split(command_of(own)) == [
        "noiseproof", "train", "--dataset", f"csv:{made}", "--label", "kind of wine", "--truth",
        "true kind", "--ignore", "the bottle", "--skip-unreadable",
    ]  # fmt: skip
