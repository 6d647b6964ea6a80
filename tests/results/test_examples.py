"""The examples of a run: written, read, and refused where they are damaged."""

from __future__ import annotations

import base64
import json

import pytest

from noiseproof import UsageError
from noiseproof.results import Example, Folder, read_examples, write_examples

PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\nx").decode()
GOOD = {"index": 3, "given": "1", "true": "7", "predicted": "7", "probability": 0.9,
        "picture": PICTURE}  # fmt: skip


def test_what_is_written_is_read(tmp_path):
    examples = [Example(**GOOD), Example(**GOOD | {"index": 4, "true": "</script>\x1b"})]
    write_examples(Folder(tmp_path), examples)
    assert read_examples(tmp_path) == examples
    assert [path.name for path in tmp_path.iterdir()] == ["examples.json"]


def test_no_more_are_read_than_a_run_has(tmp_path):
    write_examples(Folder(tmp_path), [Example(**GOOD)] * 1000)
    assert len(read_examples(tmp_path)) == 6


def test_a_folder_without_them_and_a_bundle_have_none(tmp_path):
    (tmp_path / "x.jsonl").touch()
    assert read_examples(tmp_path) == read_examples(tmp_path / "x.jsonl") == []


@pytest.mark.parametrize(
    "change",
    [
        {"index": "3"}, {"index": True}, {"given": None}, {"true": "x" * 101}, {"predicted": []},
        {"probability": 1.5}, {"probability": 1}, {"probability": float("nan")}, {"more": 1},
        {"picture": "javascript:alert(1)"}, {"picture": '"><script>'},
        {"picture": base64.b64encode(b"GIF89a").decode()}, {"picture": PICTURE * 4000},
    ],
)  # fmt: skip
def test_a_damaged_example_is_refused(tmp_path, change):
    content = {"examples": [GOOD, GOOD | change]}
    (tmp_path / "examples.json").write_text(json.dumps(content))
    with pytest.raises(UsageError, match=r"examples\.json is damaged"):
        read_examples(tmp_path)


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"examples": 1}', '{"examples": [1]}', "[" * 10**5]
)
def test_a_damaged_file_is_refused(tmp_path, text):
    (tmp_path / "examples.json").write_text(text)
    with pytest.raises(UsageError, match=r"examples\.json is damaged"):
        read_examples(tmp_path)
