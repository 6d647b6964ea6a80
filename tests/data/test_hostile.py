"""Small files made to take all memory or to crash the reader are refused, in little memory.

What each case asks for is in its name. They are read in processes with a limit of memory, and
against the sizes of the real tables.
"""

from __future__ import annotations

import functools
import gzip
import io
import json
import re
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from noiseproof import catalogue

SCRIPT = Path(__file__).with_name("limited.py")
START, STOP = b"\x80\x02", b"."
MEMORY = 200  # MB that a refusal may take; the files of CIFAR-10 hold 31 MB, MNIST 47 MB

if sys.platform != "linux":
    pytest.skip("memory can be limited on Linux alone", allow_module_level=True)


def short(value: bytes) -> bytes:
    """A string of Python 2."""
    return b"U" + bytes([len(value)]) + value


def text(content: bytes) -> bytes:
    return b"X" + struct.pack("<I", len(content)) + content


def dictionary(**values: bytes) -> bytes:
    """A pickle of a dictionary; the values are opcodes."""
    items = b"".join(short(name.encode()) + value + b"s" for name, value in values.items())
    return START + b"}" + items + STOP


def with_key(opcodes: bytes) -> bytes:
    return START + b"}" + opcodes + b"Ns" + STOP


def doubled(times: int) -> bytes:
    """A tuple of two of a tuple of two of ..., in five bytes a time."""
    return b")" + b"q\x00h\x00\x86" * times


def nested(depth: int) -> bytes:
    return b")" + b"\x85" * depth


def images() -> bytes:
    """Those of a file of CIFAR-10, so that its labels are looked at as well."""
    start = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85U\x01btR"
    dtype = b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tR"
    content = b"T" + struct.pack("<i", 10000 * 3072) + bytes(10000 * 3072)
    return start + b"(K\x01M\x10\x27M\x00\x0c\x86" + dtype + b"\x89" + content + b"tb"


MEGABYTE = text(b"a" * (1 << 20)) + b"q\x00"  # remembered, to be recalled by
RECALL = b"h\x00"
ENCODE = b"c_codecs\nencode\n"
NESTED = "a tuple in it is nested as none was published"
TOO_MANY = "it has more than 161,000 opcodes"
NO_PICKLE = "it is no pickle that can be read"
PICKLES: dict[str, tuple[Callable[[], bytes], str]] = {
    "9 bytes that ask for 4.6 GB": (
        lambda: START + b"Nr" + struct.pack("<I", 0x12000000) + STOP,
        "it holds a NoneType, not a dictionary",
    ),
    "tuples doubled into 7 GB": (lambda: dictionary(labels=b"]", data=doubled(100)), NESTED),
    "tuples doubled, as labels": (
        lambda: dictionary(data=images(), labels=doubled(100)), NESTED,
    ),
    "tuples doubled, as a key": (lambda: with_key(doubled(60)), NESTED),
    "nested 300,000 deep": (lambda: dictionary(labels=b"]", data=nested(300_000)), NESTED),
    "nested 300,000 deep, as a key": (lambda: with_key(nested(300_000)), NESTED),
    "a key that is a tuple": (lambda: with_key(b")\x85"), "a name in it is a tuple, not a text"),
    "a key of a megabyte": (
        lambda: with_key(MEGABYTE), "it has no 'data', only a{80};",
    ),
    "lists 300,000 deep": (lambda: START + b"]" * 300_000 + b"a" * 299_999 + STOP, TOO_MANY),
    "lists 300 deep": (
        lambda: START + b"]" * 300 + b"a" * 299 + STOP, "a list in it is not one of numbers",
    ),
    "a list in itself": (
        lambda: START + b"]q\x00h\x00a" + STOP, "a list in it is not one of numbers",
    ),
    "a dictionary in a dictionary": (
        lambda: dictionary(data=b"}"), "a dictionary in it holds another",
    ),
    "300,000 empty lists": (lambda: START + b"]" * 300_000 + STOP, TOO_MANY),
    "40 million opcodes": (lambda: START + b"N" * 40_000_000 + STOP, TOO_MANY),
    "a tuple of 100,000": (
        lambda: dictionary(data=b"(" + b"N" * 100_000 + b"t"), "a tuple in it has 100000 items",
    ),
    "duplicates": (lambda: START + b"N" + b"2" * 1000 + STOP, "it has the opcode DUP"),
    "a number of 2 GB": (
        lambda: START + b"\x8b" + struct.pack("<i", 0x7FFFFFFF) + STOP, NO_PICKLE,
    ),
    "bytes of 4 GB": (
        lambda: b"\x80\x04B" + struct.pack("<I", 0xFFFFFFFF) + STOP, NO_PICKLE + ".* remain",
    ),
    "bytes of an exabyte": (
        lambda: b"\x80\x04\x8e" + struct.pack("<Q", 1 << 60) + STOP, NO_PICKLE + ".* remain",
    ),
    "a bytearray of an exabyte": (
        lambda: b"\x80\x05\x96" + struct.pack("<Q", 1 << 60) + STOP, NO_PICKLE + ".* remain",
    ),
    "a frame of an exabyte": (
        lambda: b"\x80\x04\x95" + struct.pack("<Q", 1 << 60) + b"N" + STOP, "it holds a NoneType",
    ),
    "a megabyte encoded 5000 times": (
        lambda: dictionary(
            note=MEGABYTE,
            more=b"](" + (ENCODE + RECALL + text(b"latin1") + b"\x86R") * 5000 + b"e",
        ),
        "it makes more bytes than it has",
    ),
    "images that are 10,000 times a megabyte": (
        lambda: dictionary(note=MEGABYTE, labels=b"]", data=b"](" + RECALL * 10_000 + b"e"),
        "a list in it is not one of numbers",
    ),
    "labels that are 10,000 times a megabyte": (
        lambda: dictionary(note=MEGABYTE, data=images(), labels=b"](" + RECALL * 10_000 + b"e"),
        "a list in it is not one of numbers",
    ),
    "labels that are a text": (
        lambda: dictionary(data=images(), labels=MEGABYTE), "it holds a str in place of an array",
    ),
    "a type of 10 megabytes": (
        lambda: START + b"cnumpy\ndtype\n" + text(b"u1," * 3_000_000) + b"K\x00K\x01\x87R" + STOP,
        r"its arrays are of type (u1,){20}\S*, not numbers",
    ),
    "a name of a megabyte": (
        lambda: START + b"cos\n" + b"a" * (1 << 20) + b"\n" + STOP,
        r"it asks to run os\.a{77}, which was not run",
    ),
    "a name of two lines": (
        lambda: b"\x80\x04" + text(b"os") + text(b"a\nb") + b"\x93" + STOP,
        r"it asks to run os\.a\\nb, which was not run",
    ),
}  # fmt: skip


def zipped(pickled: bytes, how: int = zipfile.ZIP_STORED, **more: bytes) -> bytes:
    """A file as ``torch.save`` writes it, around this pickle."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", how) as archive:
        archive.writestr("archive/data.pkl", pickled)
        for name, content in {"version": b"3\n", **more}.items():
            archive.writestr(f"archive/{name}", content)
    return file.getvalue()


def storages(times: int, names: Callable[[int], bytes] = lambda number: b"0") -> bytes:
    """A pickle that reads storages, by default one of them again and again."""
    start = b"(" + text(b"storage") + b"ctorch\nLongStorage\n"
    end = text(b"cpu") + b"K\x01tQ"
    return START + b"".join(start + text(names(i)) + end for i in range(times)) + STOP


def overlapping(count: int, size: int) -> bytes:
    """An archive in which many names stand for the same bytes."""
    pickled = storages(count, lambda number: b"%02d" % number)
    content = zipped(pickled, **{"data/00": bytes(size)})
    start = content.index(b"PK\x01\x02")  # the list of files, and where it ends
    end = content.index(b"PK\x05\x06")
    entries = [b"PK\x01\x02" + e for e in content[start:end].split(b"PK\x01\x02")[1:]]
    same = next(e for e in entries if b"data/00" in e)
    entries += [same.replace(b"data/00", b"data/%02d" % number) for number in range(1, count)]
    listed = b"".join(entries)
    ending = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, len(entries), len(entries),
                         len(listed), start, 0)  # fmt: skip
    return content[:start] + listed + ending


FILES: dict[str, tuple[Callable[[], bytes], str]] = {
    "pt: 300,000 deep": (lambda: zipped(dictionary(data=nested(300_000))), NESTED),
    "pt: 300,000 deep, as a key": (lambda: zipped(with_key(nested(300_000))), NESTED),
    "pt: tuples doubled": (lambda: zipped(dictionary(data=doubled(100))), NESTED),
    "pt: tuples doubled, as a key": (lambda: zipped(with_key(doubled(60))), NESTED),
    "pt: 4 GB, deflated": (
        lambda: zipped(START + b"N" * (1 << 28) + STOP, zipfile.ZIP_DEFLATED),
        "it is compressed, which torch.save does not do",
    ),
    "pt: a storage of 2 MB 10,000 times": (
        lambda: zipped(storages(10_000), **{"data/0": bytes(2_000_000)}),
        "it holds a Array, not a dictionary",
    ),
    "pt: 90 entries of the same 9 MB": (
        lambda: overlapping(90, 9_000_000),
        "makes more bytes than it has|no file of torch.save that can be read",
    ),
    "pt: 50,000 empty files": (
        lambda: zipped(START + b"}" + STOP, **{str(i): b"" for i in range(50_000)}),
        "it holds 50002 files",
    ),
    "pt: a pickle of Python": (
        lambda: dictionary(data=b"]"), "it is no file of torch.save that can be read",
    ),
}  # fmt: skip


@functools.cache
def gigabytes_of_zeros(count: int) -> bytes:
    """Compressed: members of a gzip file may follow each other."""
    return gzip.compress(bytes(1 << 26), mtime=0) * (16 * count)


IDX: dict[str, tuple[Callable[[], bytes], str]] = {
    "gz: 2 MB of 4 GB": (lambda: gigabytes_of_zeros(4), "more than 47,040,016 bytes"),
    "gz: 4 GB, after a header": (
        lambda: gzip.compress(bytes([0, 0, 8, 3]) + struct.pack(">3I", 60000, 28, 28), mtime=0)
        + gigabytes_of_zeros(4),
        "more than 47,040,016 bytes",
    ),
    "gz: 255 dimensions of 1": (
        lambda: gzip.compress(bytes([0, 0, 8, 255]) + struct.pack(">I", 1) * 255 + b"x", mtime=0),
        "has 255 dimensions, not 3",
    ),
    "gz: 255 dimensions, some of 0": (
        lambda: gzip.compress(bytes([0, 0, 8, 255]) + b"\xff" * 4 * 254 + bytes(4), mtime=0),
        "has 255 dimensions, not 3",
    ),
    "gz: 3 dimensions of 4 billion": (
        lambda: gzip.compress(bytes([0, 0, 8, 3]) + b"\xff" * 12, mtime=0),
        "0 bytes follow its header, not 4294967295 x 4294967295 x 4294967295",
    ),
}  # fmt: skip
SPARSE = {
    "mnist": "train-images-idx3-ubyte",
    "fashion-mnist": "train-images-idx3-ubyte.gz",
    "cifar10": "data_batch_1",
    "cifar10n-worst": "CIFAR-10_human.pt",
}


def cases() -> dict[str, tuple[str, str, Callable[[], bytes] | None, str]]:
    """By what it is: the data set, the file, its content (None: 8 GB of holes), the problem."""
    found: dict[str, tuple[str, str, Callable[[], bytes] | None, str]] = {}
    for name, (make, problem) in PICKLES.items():
        found[name] = ("cifar10", "data_batch_1", make, problem)
    for name, (make, problem) in FILES.items():
        found[name] = ("cifar10n-worst", "CIFAR-10_human.pt", make, problem)
    for name, (make, problem) in IDX.items():
        found[name] = ("mnist", "train-images-idx3-ubyte.gz", make, problem)
    for dataset, file in SPARSE.items():
        found[f"8 GB of holes: {file}"] = (dataset, file, None, r"more than [\d,]+ bytes")
    return found


CASES = cases()


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What became of each case; one interpreter reads all, each in a process of its own."""
    roots = []
    for number, (dataset, file, make, _) in enumerate(CASES.values()):
        root = tmp_path_factory.mktemp(f"case{number}")
        source = catalogue.DATASETS.get(dataset) or catalogue.HUMAN_FILES["cifar10n"]
        assert source.files is not None
        for other in source.files.digests:
            (root / other).touch()
        (root / file.removesuffix(".gz")).unlink()
        with (root / file).open("wb") as opened:
            opened.truncate(8 << 30) if make is None else opened.write(make())
        roots.append(f"{dataset}={root}")
    command = [sys.executable, str(SCRIPT), *roots]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == len(CASES), done.stderr
    return dict(zip(CASES, lines, strict=True))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow
def test_a_hostile_file_is_refused_in_little_memory(case, outcomes):
    found, (_, file, _, problem) = outcomes[case], CASES[case]
    assert found["error"] == "DamagedFileError", found
    assert f"{file} is damaged: " in found["message"]
    assert re.search(problem, found["message"]), found
    assert "\n" not in found["message"]
    assert len(found["message"]) < 500
    assert found["megabytes"] < MEMORY
