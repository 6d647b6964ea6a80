"""Data of one's own: every layout, and every fault with the line that names it."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

from noiseproof import data, sources
from noiseproof._errors import UsageError
from noiseproof.data._text import _words
from noiseproof.runs import Run
from noiseproof.sources import Source, source_named


def table(path: Path, *rows: str, header: str = "a,b,label") -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def picture(path: Path, colour: int = 0, size: tuple[int, int] = (8, 8), mode: str = "RGB") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, colour).save(path)
    return path


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for at in range(4):
        picture(tmp_path / "photos" / "cat" / f"{at}.png", 10 + at)
        picture(tmp_path / "photos" / "dog" / f"{at}.png", 200 + at)
    return tmp_path / "photos"


ROWS = ("1,2,cat", "3,4,dog", "5,6,cat", "7,8,dog")


# Layouts


def test_features(tmp_path):
    own = data.from_table(table(tmp_path / "t.csv", *ROWS))
    assert own.classes == ("cat", "dog")
    assert own.columns == ("a", "b")
    assert own.train.inputs.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]
    assert own.train.labels.tolist() == [0, 1, 0, 1]
    assert own.kind == "features"
    assert own.mean == (4.0, 5.0)
    assert len(own.test) == 0
    assert repr(own).startswith("Dataset('t.csv@")


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_columns_may_be_told_apart_by_other_marks(tmp_path, mark):
    rows = [row.replace(",", mark) for row in ROWS]
    own = data.from_table(table(tmp_path / "t.csv", *rows, header=f"a{mark}b{mark}label"))
    assert own.train.inputs.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]


def test_decimals_of_spreadsheets(tmp_path):
    """Which have a comma where columns are told apart by semicolons."""
    rows = ("-1,5;2;1.5;cat", "0,25;;2.25;dog", "1000;5,0e-1;3;cat", "1;4;5;dog")
    path = table(tmp_path / "t.csv", *rows, header="a;b;c;label")
    with pytest.raises(UsageError, match="line 3: column 'b' is empty"):
        data.from_table(path)
    with pytest.warns(UserWarning, match="left out"):
        own = data.from_table(path, skip_unreadable=True)
    assert own.train.inputs.tolist() == [[-1.5, 2, 1.5], [1000, 0.5, 3], [1, 4, 5]]
    both = table(tmp_path / "both.csv", "1,5;cat", "1.5;dog", "2;dog", header="a;label")
    with pytest.raises(UsageError, match="line 2: column 'a' is '1,5', no finite number"):
        data.from_table(both)  # one of the marks is that of thousands
    thousands = table(tmp_path / "t.csv", "1.257,30;cat", "9,5;dog", "2;dog", header="a;label")
    with pytest.raises(UsageError, match=r"holds '1.257,30'.*write its numbers with a point"):
        data.from_table(thousands)


def test_a_table_packed_by_gzip_with_a_mark_of_its_encoding(tmp_path):
    plain = table(tmp_path / "t.csv", *ROWS)
    packed = tmp_path / "p.csv.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + plain.read_bytes()))
    own = data.from_table(packed)
    assert own.columns == ("a", "b")
    assert torch.equal(own.train.inputs, data.from_table(plain).train.inputs)


def test_parquet(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"a": [1.0, 2.0, 3.0], "label": ["x", "y", "x"], "who": [1, 2, 3]}
    parquet.write_table(arrow.table(columns), tmp_path / "t.parquet")
    own = data.from_table(tmp_path / "t.parquet", ignore=["who"])
    assert own.train.inputs.tolist() == [[1], [2], [3]]
    assert own.classes == ("x", "y")


def test_a_column_of_vectors_is_as_many_features(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

    def written(vectors, name="t.parquet", kind=None) -> Path:
        columns = {
            "age": [7.0, 8.0, 9.0], "embedding": arrow.array(vectors, kind),
            "label": ["x", "y", "x"], "review": ["good", "bad", "fine"],
        }  # fmt: skip
        parquet.write_table(arrow.table(columns), tmp_path / name)
        return tmp_path / name

    vectors = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    fixed = arrow.list_(arrow.float32(), 2)
    for path in (written(vectors), written(vectors, "fixed.parquet", fixed)):
        own = data.from_table(path, ignore=["review"])
        assert own.columns == ("age", "embedding")
        assert own.train.inputs.tolist() == [[7, 1, 2], [8, 3, 4], [9, 5, 6]]
    wider = written([[*vector, 0.0] for vector in vectors], "wider.parquet")
    with pytest.raises(UsageError, match="to train on are 3, those to test on 4"):
        data.from_table(written(vectors), test=wider, ignore=["review"])
    with pytest.raises(UsageError, match=r"row 2: column 'embedding' is 'nan', no finite number"):
        data.from_table(written([[1.0, 2.0], [3.0, np.nan], [5.0, 6.0]]), ignore=["review"])
    odd = ([[1.0], [2.0, 3.0], [4.0]], [[1.0, 2.0], [None, 3.0], [4.0, 5.0]], [["a"]] * 3, [[]] * 3)
    for damaged in odd:
        with pytest.raises(UsageError, match=r"'embedding' holds .* are numbers of one length"):
            data.from_table(written(damaged), ignore=["review"])
    with pytest.warns(UserWarning, match="row 2: column 'embedding' is 'nan'.*number$"):  # once
        own = data.from_table(
            written([vectors[0], None, vectors[2]]), ignore=["review"], skip_unreadable=True
        )
    assert own.train.inputs.tolist() == [[7, 1, 2], [9, 5, 6]]
    own = data.from_table(written([[True, False]] * 3), ignore=["review"])
    assert own.train.inputs[0].tolist() == [7, 1, 0]
    with pytest.raises(UsageError, match=r"holds vectors.*name another with --text"):
        data.from_table(written(vectors), text="embedding")


def test_texts_become_the_same_token_ids_in_every_process(tmp_path):
    rows = ('"Good film, very good",1', '"bad",0', '"Bad film",0')
    path = table(tmp_path / "t.csv", *rows, header="review,label")
    own = data.from_table(path, text="review")
    assert own.kind == "text"
    assert own.classes == ("0", "1")
    one, two, three = own.train.inputs
    assert one[:2].tolist() == [10141, 17070]  # good, film, for good
    assert two.tolist() == [three[0], *[0] * (len(two) - 1)]
    assert own.coding(["GOOD film; very good!"]).tolist() == [one.tolist()]
    assert own.vocabulary == 1 << 15


def test_images_of_a_table_are_found_beside_it(tmp_path):
    picture(tmp_path / "set" / "img" / "1.png", 5)
    picture(tmp_path / "set" / "img" / "2.png", 9, mode="L")
    path = table(tmp_path / "set" / "t.csv", "img/1.png,a", "img/2.png,b", header="file,label")
    own = data.from_table(path, image="file")
    assert own.train.images.shape == (2, 3, 8, 8)
    assert own.train.images[1].unique().tolist() == [9]


def test_a_folder(photos):
    own = data.from_folder(photos)
    assert own.classes == ("cat", "dog")
    assert own.train.images.shape == (8, 3, 8, 8)
    assert own.train.images[:, 0, 0, 0].tolist() == [10, 11, 12, 13, 200, 201, 202, 203]
    assert own.train.labels.tolist() == [0] * 4 + [1] * 4
    assert own.name.startswith("photos@")


@pytest.mark.parametrize("name", ["test", "val", "valid", "validation"])
def test_a_folder_with_a_part_to_test_on(photos, tmp_path, name):
    photos.rename(tmp_path / "train")
    root = tmp_path / "set"
    root.mkdir()
    (tmp_path / "train").rename(root / "train")
    picture(root / name / "dog" / "x.png", 7)
    picture(root / name / "cat" / "y.png", 8)
    own = data.from_folder(root)
    assert (len(own.train), len(own.test)) == (8, 2)
    assert own.test.labels.tolist() == [0, 1]
    apart = data.from_folder(root / "train", root / name)
    assert torch.equal(apart.test.images, own.test.images)


def test_images_of_several_sizes_are_brought_to_one(tmp_path):
    picture(tmp_path / "a" / "1.png", 1, (100, 50))
    picture(tmp_path / "b" / "1.png", 1, (80, 160))
    assert data.from_folder(tmp_path).train.images.shape == (2, 3, 64, 64)
    assert data.from_folder(tmp_path, image_size=20).train.images.shape == (2, 3, 20, 20)
    picture(tmp_path / "b" / "1.png", 1, (100, 50))
    picture(tmp_path / "a" / "1.png", 1, (100, 50))
    assert data.from_folder(tmp_path).train.images.shape == (2, 3, 50, 50)


def test_grey_images_stay_grey_and_photos_are_turned_upright(tmp_path):
    picture(tmp_path / "a" / "1.png", 1, mode="L")
    picture(tmp_path / "b" / "1.png", 1, mode="L")
    assert data.from_folder(tmp_path).train.images.shape[1] == 1
    turned = Image.new("RGB", (8, 6), 0)
    turned.putpixel((0, 0), (255, 255, 255))
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned: columns are rows
    for name in ("a", "b"):
        turned.save(tmp_path / name / "1.png", exif=exif)
    images = data.from_folder(tmp_path).train.images
    assert images.shape == (2, 3, 8, 6)
    assert images[0, 0].nonzero().tolist() == [[0, 5]]


@pytest.mark.parametrize(
    "names",
    [("x", "y", "", ""), ("images", "labels", "", ""), ("x_train", "y_train", "x_test", "y_test"),
     ("train_images", "train_labels", "test_images", "test_labels")],
)  # fmt: skip
def test_npz(tmp_path, names):
    x, y = np.arange(2 * 4 * 4, dtype=np.uint8).reshape(2, 4, 4), np.array([[3], [5]])
    arrays = dict(zip(names, (x, y, x[:1], y[:1]), strict=True))
    arrays.pop("", None)
    np.savez(tmp_path / "s.npz", **arrays)
    own = data.load_source(source_named(f"npz:{tmp_path / 's.npz'}"))
    assert own.train.images.shape == (2, 1, 4, 4)
    assert own.classes == ("3", "5")
    assert len(own.test) == (1 if names[2] else 0)


@pytest.mark.parametrize(("dtype", "kind"), [(np.float64, "features"), (np.int32, "tokens")])
def test_npz_of_features_and_of_token_ids(tmp_path, dtype, kind):
    np.savez(tmp_path / "s.npz", x=np.arange(6).reshape(3, 2).astype(dtype), y=["b", "a", "b"],
             real=["a", "a", "b"])  # fmt: skip
    own = data.load_source(source_named(f"npz:{tmp_path / 's.npz'}", truth="real"))
    assert own.kind == kind
    assert own.classes == ("a", "b")
    assert own.train.truth.tolist() == [0, 0, 1]


def test_true_labels_are_tested_on(tmp_path):
    header = "a,given,real"
    train = table(tmp_path / "t.csv", "1,x,y", "2,y,y", header=header)
    test = table(tmp_path / "u.csv", "3,x,y", header=header)
    own = data.from_table(train, test, label="given", truth="real")
    assert own.train.labels.tolist() == [0, 1]
    assert own.train.truth.tolist() == [1, 1]
    assert own.test.labels.tolist() == [1]
    without = table(tmp_path / "v.csv", "3,x", header="a,given")
    assert data.from_table(train, without, label="given", truth="real").test.labels.tolist() == [0]


def test_what_cannot_be_the_true_labels(tmp_path):
    path = table(tmp_path / "t.csv", "1,x,0.5", "2,y,0.7", "3,x,0.5", header="a,given,size")
    said = "'size' of .*t.csv holds none of the classes of the labels, but such as '0.5', where th"
    with pytest.raises(UsageError, match=said):
        data.from_table(path, label="given", truth="size")
    np.savez(tmp_path / "s.npz", x=np.eye(3), y=["b", "a", "b"], real=[1, 0, 1])
    with pytest.raises(UsageError, match="but such as '0', where they hold 'a'"):
        data.load_source(source_named(f"npz:{tmp_path / 's.npz'}", truth="real"))


class Pairs(torch.utils.data.Dataset):
    classes = ("cat", "dog")

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, at):
        return self.items[at]


def test_any_map_style_data_set():
    own = data.from_dataset(Pairs([(torch.ones(3), 0), (torch.zeros(3), torch.tensor(1))]))
    assert (own.kind, own.classes) == ("features", ("cat", "dog"))
    assert own.train.labels.tolist() == [0, 1]
    pillow = Pairs([(Image.new("RGB", (6, 6), 3), 1), (Image.new("L", (6, 6), 4), 0)])
    assert data.from_dataset(pillow, pillow).test.images.shape == (2, 3, 6, 6)
    wide = Image.new("L", (40, 20), 3)
    wide.paste(9, (10, 0, 30, 20))
    scaled = data.from_dataset(Pairs([(wide, 1), (wide.rotate(90, expand=True), 0)]), image_size=10)
    assert scaled.train.images.shape == (2, 1, 10, 10)
    assert scaled.train.images.min() > 7  # the middle, as of files
    texts = Pairs([{"text": "good film", "label": 1}, {"text": "bad", "label": 0}])
    assert data.from_dataset(texts).kind == "text"
    with pytest.raises(UsageError, match="which key has the input"):
        data.from_dataset(Pairs([{"words": "good", "label": 1}]))
    with pytest.raises(UsageError, match=r"such as dataset\['train'\]; it has train, test"):
        data.from_dataset({"train": texts, "test": texts})
    with pytest.raises(UsageError, match="item 1 has no input"):
        data.from_dataset(Pairs([("good", 1), (None, 0)]))
    with pytest.raises(UsageError, match="a map-style data set is needed"):
        data.from_dataset(iter([]))
    with pytest.raises(UsageError, match=r"an item for each index; DataLoader has none; give load"):
        data.from_dataset(DataLoader(texts))
    with pytest.raises(UsageError, match=r"of one shape; some are \[2\] and some \[3\]"):
        data.from_dataset(Pairs([(torch.ones(3), 0), (torch.ones(2), 1)]))


def test_hugging_face_s_names_of_classes():
    class Names:
        names = ("neg", "pos")

    class HuggingFace(Pairs):
        classes = None
        features: ClassVar = {"text": None, "label": Names()}

    items = HuggingFace([{"text": "good", "label": 1}, {"text": "bad", "label": 0}])
    assert data.from_dataset(items).classes == ("neg", "pos")


def test_what_programs_leave_in_folders_is_no_image(photos):
    picture(photos / "cat" / ".ipynb_checkpoints" / "1-checkpoint.png")
    picture(photos / "cat" / "__MACOSX" / "1.png")
    picture(photos / "cat" / "deep" / "5.PNG", 14)
    (photos / "cat" / "folder.png").mkdir()
    (photos / "dog" / "._1.png").write_bytes(b"x")
    own = data.from_folder(photos)
    assert own.train.labels.tolist() == [0] * 5 + [1] * 4


def test_a_part_to_train_on_alone_and_with_another_to_test_on(photos, tmp_path):
    root = tmp_path / "set"
    root.mkdir()
    photos.rename(root / "train")
    own = data.from_folder(root)
    assert (own.classes, len(own.train), len(own.test)) == (("cat", "dog"), 8, 0)
    picture(root / "val" / "cat" / "1.png")
    picture(root / "val" / "dog" / "1.png")
    own = data.from_folder(root, root / "val")
    assert (own.classes, len(own.train), len(own.test)) == (("cat", "dog"), 8, 2)


@pytest.mark.parametrize("index", ["", "Unnamed: 0", "__index_level_0__"])
def test_the_index_that_pandas_writes_is_no_feature(tmp_path, index):
    rows = [f"{i},{row}" for i, row in enumerate(ROWS)]
    own = data.from_table(table(tmp_path / "t.csv", *rows, header=f"{index},a,b,label"))
    assert own.columns == ("a", "b")


def test_classes_that_are_numbers(tmp_path):
    train = table(tmp_path / "t.csv", "1,10.0", "2,2.0", "3,1.5", "4,2", header="a,label")
    test = table(tmp_path / "u.csv", "1,10", "2,1.5", header="a,label")
    own = data.from_table(train, test)
    assert own.classes == ("1.5", "2", "10")
    assert own.train.labels.tolist() == [2, 1, 0, 1]
    assert own.test.labels.tolist() == [2, 0]


def test_a_class_may_be_called_none(tmp_path):
    own = data.from_table(table(tmp_path / "t.csv", "1,2,None", "3,4,scratch"))
    assert own.classes == ("None", "scratch")


def test_true_and_false_are_numbers(tmp_path):
    own = data.from_table(table(tmp_path / "t.csv", "1,True,cat", "2,false,dog", "3,1,dog"))
    assert own.train.inputs.tolist() == [[1, 1], [2, 0], [3, 1]]


def test_marks_in_quotes_are_no_marks(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('"size, weight, age";label\n1;cat\n2;dog\n')
    assert data.from_table(path).columns == ("size, weight, age",)


@pytest.mark.parametrize(
    ("shape", "read", "model"),
    [((28, 28), (1, 28, 28), "cnn4"), ((32, 32, 3), (3, 32, 32), "cnn8"),
     ((3, 32, 32), (3, 32, 32), "cnn8"), ((8, 3, 3), (3, 8, 3), "mlp")],
)  # fmt: skip
def test_images_of_a_file_in_any_layout(tmp_path, shape, read, model):
    x = np.arange(4 * np.prod(shape)).reshape(4, *shape).astype(np.uint8)
    np.savez(tmp_path / "s.npz", x=x, y=[0, 1, 0, 1])
    run = Run(dataset=f"npz:{tmp_path / 's.npz'}")
    assert run.content().shape == read
    assert run.resolve().model == model
    images = data.load_source(source_named(run.dataset)).train.images
    assert images.shape == (4, *read)
    assert images[1, 0, 1, 2] == (x[1, 1, 2, 0] if shape[-1] == 3 else x[1].reshape(read)[0, 1, 2])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\u6211\u559c\u6b22\u7535\u5f71", list("\u6211\u559c\u6b22\u7535\u5f71")),
        ("\u6211\u559c\u6b22 it", [*"\u6211\u559c\u6b22", "it"]),
        ("\u0e21\u0e35\u0e0a\u0e48\u0e2d", ["\u0e21\u0e35", "\u0e0a\u0e48", "\u0e2d"]),
        ("\u0939\u093f\u0928\u094d\u0926\u0940 \u092e\u0947\u0902\u0964",
         ["\u0939\u093f\u0928\u094d\u0926\u0940", "\u092e\u0947\u0902"]),
        ("\ud55c\uad6d\uc5b4 \ubb38\uc7a5", ["\ud55c\uad6d\uc5b4", "\ubb38\uc7a5"]),
        ("Caf\u00e9", ["caf\u00e9"]),
        ("Cafe\u0301", ["caf\u00e9"]),
    ],
)  # fmt: skip
def test_words_of_other_scripts(text, words):
    coding = data.TextCoding(length=20)
    assert coding([text]).tolist() == coding([" ".join(words)]).tolist()
    assert _words(text) == words


def test_labels_by_name_with_the_classes_in_another_order():
    own = data.from_arrays(np.eye(3), ["b", "a", "b"], classes=["b", "c", "a"], truth=list("bac"))
    assert own.train.labels.tolist() == [0, 2, 0]
    assert own.train.truth.tolist() == [0, 2, 1]
    with pytest.raises(UsageError, match="the label 'z' is not among classes"):
        data.from_arrays(np.eye(2), ["a", "z"], classes=["a", "b"])


def test_a_class_that_only_the_truth_has():
    assert data.from_arrays(np.eye(3), [0, 1, 0], truth=[0, 1, 4]).num_classes == 5


# Identity


def test_a_default_that_is_given_names_the_same_data(tmp_path):
    path = table(tmp_path / "t.csv", *ROWS)
    given = sources.read(source_named(f"csv:{path}", label="label"))
    assert given.name == sources.read(source_named(f"csv:{path}")).name


def test_a_file_deep_in_a_folder_that_changes_is_noticed(photos):
    deep = picture(photos / "cat" / "deep" / "9.png", 50)
    first = sources.read(source_named(f"folder:{photos}"))
    assert sources.read(source_named(f"folder:{photos}")) is first
    picture(deep, 51, (8, 9))
    assert sources.read(source_named(f"folder:{photos}")).name != first.name


def test_the_name_follows_the_content_and_not_the_place(tmp_path, monkeypatch):
    def name(path, **options):
        return sources.read(source_named(f"csv:{path}", **options)).name

    path = table(tmp_path / "t.csv", *ROWS)
    first = name(path)
    (tmp_path / "other").mkdir()
    copied = tmp_path / "other" / "t.csv"
    copied.write_bytes(path.read_bytes())
    assert name(copied) == first
    monkeypatch.chdir(tmp_path)
    assert name("t.csv") == first
    assert name("t.csv", ignore=("a",)) != first
    table(path, *ROWS[:-1], "7,8,cat")
    assert name("t.csv") != first


def test_a_source_travels_to_another_process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = Source(form="csv", path=Path("t.csv"), test=Path("u.csv"), ignore=("a", "b"))
    back = Source.from_json(source.to_json())
    assert back.path == tmp_path / "t.csv"
    assert back.test == tmp_path / "u.csv"
    assert (back.ignore, back.form) == (("a", "b"), "csv")


# Faults: one line that names the file or the line


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (("1,2",), {}, r"t\.csv, line 2: 2 values where the header has 3 columns; .*skip-unread"),
        (("1,2,cat", "1,,dog"), {}, r"t\.csv, line 3: column 'b' is empty"),
        (("1,2,cat", "1,nan,dog"), {}, r"line 3: column 'b' is 'nan', no finite number"),
        (("1,2,cat", "1,1e99,dog"), {}, r"line 3: column 'b' is '1e99', no finite number"),
        (("1,2,cat", "1,3,"), {}, r"line 3: column 'label' is empty"),
        (("1,x,cat", "1,y,dog"), {}, r"line 2: column 'b' holds 'x', which is no number; leave"),
        (("1,2,cat",), {"label": "lable"}, r"no column 'lable' \(did you mean 'label'\?\)"),
        (ROWS, {"text": "c"}, "no column 'c'.*name one with --text: a, b, label"),
        (("1,2,cat", "3,4,cat"), {}, "has one class, 'cat', in column 'label'"),
        ((), {}, "has no rows"),
        (ROWS, {"ignore": ("a", "b")}, "no column beside the labels"),
        (ROWS, {"ignore": ("z",)}, "no column 'z'"),
        (ROWS, {"image": "a"}, r"t\.csv, line 2: there is no image .*1; "),
        (ROWS, {"text": "a", "image": "b"}, "give text or image alone"),
        (("x,y z,cat", "u,v,dog"), {}, "column 'a' holds 'x', which is no number; name what is cl"),
        (('"1,5","2,5",cat', '"0,5","1,5",dog'), {}, "; write its numbers with a point, or name"),
        (("x,2,cat", "u,3,dog"), {}, "leave it out with --ignore a, or name what is classified"),
        (("1,2,cat", "a,b,label", "3,4,dog"), {}, r"line 3: the header once more; .*skip-unread"),
    ],
)
def test_faults_of_a_table(tmp_path, rows, options, message):
    with pytest.raises(UsageError, match=message) as caught:
        data.from_table(table(tmp_path / "t.csv", *rows), **options)
    assert "\n" not in str(caught.value)


def test_reading_a_table_leaves_the_csv_module_as_it_was(tmp_path):
    usual = csv.field_size_limit()
    table(tmp_path / "t.csv", *ROWS, "1,2," + "c" * 200_000)
    assert max(map(len, data.from_table(tmp_path / "t.csv").classes)) == 200_000
    assert csv.field_size_limit() == usual


def test_faults_of_files(tmp_path):
    for content, message in (
        (b"a,b,label\n\xff\xfe,1,2\n", "line 2: no UTF-8 text"),
        (b'a,b,label\n"1,2,x\n', "line 2: a value begins with a quote, and none ends it"),
        (b'a,b,label\n1,2,"x"s\n', "line 2: no CSV, "),
        (b"\x1f\x8bnonsense", "cannot be unpacked"),
        (b"", "needs a first line"),
        (b"a,a,label\n1,2,x\n", "two columns 'a'"),
    ):
        (tmp_path / "t.csv").write_bytes(content)
        with pytest.raises(UsageError, match=message):
            data.from_table(tmp_path / "t.csv")
    with pytest.raises(UsageError, match="is not there"):
        data.from_table(tmp_path / "none.csv")
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    with pytest.raises(UsageError, match="no Parquet file"):
        data.from_table(tmp_path / "t.parquet")
    (tmp_path / "t.npz").write_bytes(b"PK\x03\x04")
    with pytest.raises(UsageError, match="no npz file"):
        data.load_source(source_named(f"npz:{tmp_path / 't.npz'}"))
    np.savez(tmp_path / "t.npz", x=np.array([{}], object), y=[1])
    with pytest.raises(UsageError, match="it holds Python objects"):
        data.load_source(source_named(f"npz:{tmp_path / 't.npz'}"))
    np.save(tmp_path / "t.npy", np.ones(3))
    with pytest.raises(UsageError, match="holds one array; an npz file with x and y is needed"):
        data.load_source(source_named(f"npz:{tmp_path / 't.npy'}"))
    np.savez(tmp_path / "t.npz", x=np.array([[1, 2], [3, -1]]), y=[0, 1])
    with pytest.raises(UsageError, match="row 1: integers are token ids, which are 0 or more"):
        data.load_source(source_named(f"npz:{tmp_path / 't.npz'}"))
    np.savez(tmp_path / "t.npz", x=np.zeros((2, 8, 8, 4), np.uint8), y=[0, 1])
    with pytest.raises(UsageError, match=r"of 1 or 3 channels, and these are \[2, 8, 8, 4\]"):
        data.load_source(source_named(f"npz:{tmp_path / 't.npz'}"))
    np.savez(tmp_path / "t.npz", q=np.ones((2, 2)))
    with pytest.raises(UsageError, match="no array of inputs; it has q"):
        data.load_source(source_named(f"npz:{tmp_path / 't.npz'}"))


def test_a_class_that_only_the_test_part_has(tmp_path, photos):
    train = table(tmp_path / "t.csv", *ROWS)
    test = table(tmp_path / "u.csv", "1,2,cow")
    with pytest.raises(UsageError, match=r"u\.csv, line 2: the class 'cow' is not among"):
        data.from_table(train, test)
    picture(tmp_path / "test" / "cow" / "1.png")
    picture(tmp_path / "test" / "cat" / "1.png")
    with pytest.raises(UsageError, match="has the class 'cow', which"):
        data.from_folder(photos, tmp_path / "test")


def test_faults_of_folders(tmp_path, photos):
    (photos / "empty").mkdir()
    with pytest.raises(UsageError, match=r"empty has no images"):
        data.from_folder(photos)
    (photos / "empty").rmdir()
    with pytest.raises(UsageError, match="is not there; give the folder"):
        data.from_folder(tmp_path / "none")
    with pytest.raises(UsageError, match="has no folders"):
        data.from_folder(photos / "cat")
    for name in ("0.png", "1.png", "2.png", "3.png"):
        (photos / "dog" / name).unlink()
    (photos / "dog").rmdir()
    with pytest.raises(UsageError, match="one folder, cat"):
        data.from_folder(photos)


@pytest.mark.parametrize(
    ("fault", "message"),
    [("truncated", "a damaged image"), ("text", "no image"), ("deep", "mode I.*; save it with 8")],
)
def test_an_image_that_cannot_be_read(photos, fault, message):
    bad = photos / "cat" / "1.png"
    if fault == "truncated":
        Image.fromarray(np.random.default_rng(0).integers(0, 255, (8, 8, 3), np.uint8)).save(bad)
        bad.write_bytes(bad.read_bytes()[:-60])
    elif fault == "text":
        bad.write_text("not a picture")
    else:
        Image.fromarray(np.zeros((8, 8), np.uint16)).save(bad)
    with pytest.raises(UsageError, match=rf"cat.1\.png: .*{message}.*--skip-unreadable"):
        data.from_folder(photos)
    with pytest.warns(UserWarning, match=r"left out what cannot be read: .*1\.png"):
        own = data.from_folder(photos, skip_unreadable=True)
    assert len(own.train) == 7
    assert own.train.labels.tolist() == [0] * 3 + [1] * 4
    assert len(own.left_out) == 1


def test_rows_that_cannot_be_read_are_left_out_with_a_count(tmp_path):
    path = table(tmp_path / "t.csv", *ROWS, "1,,cat", "1", "x,2,dog", "9,9,")
    with pytest.warns(UserWarning, match=r"t\.csv, line 7: .*, and 3 more"):
        own = data.from_table(path, skip_unreadable=True)
    assert len(own.train) == 4


def test_a_column_of_numbers_is_no_class(tmp_path):
    rows = [f"{i},{i + 0.5},c{i % 2}" for i in range(300)]
    with pytest.raises(UsageError, match="300 different values in 300 rows, so it is no class"):
        data.from_table(table(tmp_path / "t.csv", *rows), label="b")
    with pytest.raises(UsageError, match="60 different values in 60 rows, so it is no class"):
        data.from_table(table(tmp_path / "t.csv", *rows[:60]), label="b")


def test_columns_in_one_text_are_told_apart(tmp_path):
    with pytest.raises(UsageError, match=r"several are given with blanks .*, --ignore a b"):
        data.from_table(table(tmp_path / "t.csv", *ROWS), ignore=["a,b"])


def test_what_is_meant_by_data_of_another_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "t.csv", *ROWS)
    (tmp_path / "photos").mkdir()
    for given, meant in (
        ("t.csv", r"\(did you mean 'csv:t\.csv'\?\)"),
        ("CSV:t.csv", r"\(did you mean 'csv:t\.csv'\?\)"),
        ("images:photos", r"\(did you mean 'folder:photos'\?\)"),
        ("t.xlsx", r"\(save a spreadsheet as CSV, and give csv:FILE\)"),
        ("nothing", "the known ones are"),
    ):
        with pytest.raises(UsageError, match=f"unknown data set '{given}'.*{meant}"):
            Run(dataset=given).resolve()
    (tmp_path / "book.csv").write_bytes(b"PK\x03\x04")
    with pytest.raises(UsageError, match="packed, as spreadsheets are, and no CSV; save it"):
        data.from_table("book.csv")
    with pytest.raises(UsageError, match=r"t\.csv is no npz file that can be read: numpy\.savez"):
        data.load_source(source_named("npz:t.csv"))


def test_a_long_value_is_shown_in_part(tmp_path):
    rows = [f"{'word ' * 20},1,c{i % 2}" for i in range(4)]
    with pytest.raises(UsageError, match=r"holds 'word word [word ]+\.\.\.', which is no number"):
        data.from_table(table(tmp_path / "t.csv", *rows))


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "~no_such_user_here/x"])
def test_texts_that_are_the_name_of_no_file(name):
    assert sources.meant_source(name) == ""
    with pytest.raises(UsageError, match=r"cannot be the name of a file|is not there"):
        sources.read(source_named(f"csv:{name}"))
