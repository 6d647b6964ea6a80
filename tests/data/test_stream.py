"""Images that are decoded as they are read: the same numbers, damage found, caches checked."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from noiseproof import data
from noiseproof.data import Augment, Keeping, Loader, StreamingNote, from_folder
from noiseproof.data import _keep as keeping
from noiseproof.data import _store as storing
from noiseproof.data._store import ImageStore
from noiseproof.data._stream import ImageFiles, parts_of, select
from noiseproof.sources._decoder import Decoder
from tests.data.trees import truncate, write_folder, write_image


@pytest.fixture
def folder(tmp_path) -> Path:
    return write_folder(tmp_path / "photos")


@pytest.fixture
def decoded(monkeypatch) -> list[str]:
    """The files that were decoded, in any order."""
    seen: list[str] = []
    original = storing.read_image

    def read_image(file, shape):
        seen.append(str(file))
        return original(file, shape)

    monkeypatch.setattr(storing, "read_image", read_image)
    return seen


def batches(found: data.Dataset, **settings):
    loader = Loader(
        found.train.inputs, found.train.labels, mean=found.mean, std=found.std, batch_size=5,
        augment=Augment(flip=True, **settings), seed=3,
    )  # fmt: skip
    return [torch.cat([b.images for b in loader.epoch(n)]) for n in (0, 1, 1, 5)]


@pytest.mark.parametrize("settings", [{"crop": 2}, {"size": 9}, {"size": 9, "rotate": 20.0}])
@pytest.mark.parametrize("kept", ["nothing", "some", "cache"])
def test_streamed_as_resident_bit_for_bit(folder, tmp_path, monkeypatch, kept, settings):
    """Pixels, normalization, order and augmentation."""
    resident = from_folder(folder, stream="no")
    bytes_kept = 5 * resident.train.images[0].numel() if kept == "some" else 0
    monkeypatch.setattr(keeping.Keeping, "in_memory", lambda self: bytes_kept)
    cache = tmp_path / "cache" if kept == "cache" else None
    for _ in range(2):  # the second time from the cache
        streamed = from_folder(folder, stream="yes", cache=cache)
        assert isinstance(streamed.train.inputs, ImageFiles)
        assert streamed.name == resident.name
        assert (streamed.mean, streamed.std) == (resident.mean, resident.std)
        assert torch.equal(streamed.train.inputs[:], resident.train.images)
        for ours, theirs in zip(
            batches(streamed, **settings), batches(resident, **settings), strict=True
        ):
            assert torch.equal(ours, theirs)
    cached = from_folder(folder, stream="no", cache=tmp_path / "cache")
    assert torch.equal(cached.train.images, resident.train.images)


def test_image_files_are_indexed_as_a_tensor_is(folder):
    streamed, resident = (from_folder(folder, stream=s).train.inputs for s in ("yes", "no"))
    mask = torch.arange(len(resident)) % 3 == 1
    for index in (mask, mask.nonzero().flatten(), torch.tensor([-1, 0]), slice(2, 5)):
        assert torch.equal(streamed[index], resident[index])
        assert torch.equal(select(streamed, index)[:], resident[index])


@pytest.fixture
def apart(monkeypatch):
    """Every file is handed on to a process, and the threads of other tests have none."""
    monkeypatch.setattr(storing, "_APART_WORKERS", 1)
    monkeypatch.setattr(storing, "_APART_FILES", 1)
    storing._pool.cache_clear()
    yield
    decoders = [storing._pool(os.getpid()).submit(lambda: storing._mine.decoder).result()]
    storing._pool(os.getpid()).shutdown()
    storing._pool.cache_clear()
    for decoder in filter(None, decoders):
        decoder.close()


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("killed", [False, True])
def test_processes_decode_the_same(folder, monkeypatch, decoded, killed):
    """Whether they live or are killed, be there damaged files or not."""
    monkeypatch.setattr(storing, "workers", lambda: 1)
    monkeypatch.setattr(keeping.Keeping, "in_memory", lambda self: 0)
    truncate(folder / "cat/3.png")
    with pytest.warns(UserWarning, match=r"left out .*3.png: a damaged image"):
        streamed = from_folder(folder, stream="yes", skip_unreadable=True)
    if killed:
        decoder = storing._pool(os.getpid()).submit(lambda: storing._mine.decoder).result()
        decoder._process.kill()
    found = streamed.train.inputs[:]
    assert bool(decoded) == killed
    with pytest.warns(UserWarning, match="left out"):
        resident = from_folder(folder, stream="no", skip_unreadable=True)
    assert torch.equal(found, resident.train.images)
    (folder / "cat/5.png").unlink()
    with pytest.raises(ValueError, match=r"5.png: there is no such file"):
        list(parts_of(streamed.train.inputs, 4))


def test_ranks_on_one_machine_share_its_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(12)), raising=False)
    assert storing.workers() == 12
    for name in ("RANK", "WORLD_SIZE", "MASTER_PORT", "LOCAL_WORLD_SIZE"):
        monkeypatch.setenv(name, "4")
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    assert storing.workers() == 3
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "40")
    assert storing.workers() == 1


def test_a_process_that_decodes_needs_no_torch_and_ends_with_its_input(tmp_path):
    write_image(tmp_path / "a.png", 1, size=(8, 6))
    decoder = Decoder()
    files = [str(tmp_path / "a.png"), str(tmp_path / "no.png")]
    (found, missing), told = decoder.decode(files, (3, 6, 8))
    assert told == [None, "there is no such file"]
    assert np.array_equal(found, np.asarray(Image.open(tmp_path / "a.png")))
    assert not missing.any()
    if Path("/proc").exists():
        maps = Path(f"/proc/{decoder._process.pid}/maps").read_text()
        assert "libtorch" not in maps
    decoder.close()
    assert decoder._process.returncode == 0
    with pytest.raises(ValueError, match="closed"):
        decoder.decode(files, (3, 6, 8))


def test_like_a_tensor(folder):
    inputs = from_folder(folder, stream="yes").train.inputs
    tensor = from_folder(folder, stream="no").train.images
    assert isinstance(inputs, ImageFiles)
    assert (inputs.shape, inputs.dtype, inputs.ndim) == (tensor.shape, tensor.dtype, tensor.ndim)
    assert len(inputs) == len(tensor)
    index = torch.tensor([7, 0, 3, 3])
    assert torch.equal(inputs[index], tensor[index])
    some = select(select(inputs, torch.tensor([5, 2, 9, 4])), torch.tensor([1, 3]))
    assert torch.equal(some[:], tensor[[2, 4]])
    assert torch.equal(torch.cat(list(parts_of(inputs, 4))), tensor)


def test_what_was_expected_and_what_was_not(folder):
    """Whoever asks for something else than was announced gets that."""
    inputs = from_folder(folder, stream="yes").train.inputs
    tensor = from_folder(folder, stream="no").train.images
    assert isinstance(inputs, ImageFiles)
    parts = torch.split(torch.randperm(18, generator=torch.Generator().manual_seed(0)), 4)
    inputs.expect(parts)
    assert inputs.expects(parts[0])
    assert torch.equal(inputs[parts[0]], tensor[parts[0]])
    assert torch.equal(inputs[parts[3]], tensor[parts[3]])
    assert inputs.expects(parts[1])
    for part in parts[1:]:
        assert torch.equal(inputs[part], tensor[part])
    assert not inputs.expects(parts[0])


def test_each_image_is_decoded_as_often_as_it_must(folder, tmp_path, decoded, monkeypatch):
    def epochs(found):
        decoded.clear()
        list(parts_of(found.train.inputs, 4))
        list(parts_of(found.train.inputs, 4))
        return len(decoded)

    monkeypatch.setattr(keeping.Keeping, "in_memory", lambda self: 0)
    assert epochs(from_folder(folder, stream="yes")) == 2 * 18
    assert epochs(from_folder(folder, stream="yes", cache=tmp_path / "cache")) == 0
    decoded.clear()
    again = from_folder(folder, stream="yes", cache=tmp_path / "cache")
    assert decoded == []
    assert epochs(again) == 0
    size = again.train.inputs.shape[1:].numel()
    monkeypatch.setattr(keeping.Keeping, "in_memory", lambda self: 10 * size)
    assert epochs(from_folder(folder, stream="yes")) == 2 * 8  # ten were kept in the first pass


def test_the_program_decides_and_says_so(folder, monkeypatch):
    assert isinstance(from_folder(folder).train.inputs, torch.Tensor)
    monkeypatch.setattr(keeping, "free_memory", lambda: 10_000)
    with pytest.warns(StreamingNote, match=r"photos: 18 images of 3x1\dx1\d take .* GB") as said:
        found = from_folder(folder)
    assert isinstance(found.train.inputs, ImageFiles)
    assert len(said) == 1
    assert "\n" not in str(said[0].message)
    assert isinstance(from_folder(folder, stream="no").train.inputs, torch.Tensor)
    with pytest.raises(ValueError, match="stream is one of auto, yes, no; it was 'maybe'"):
        Keeping("maybe")


@pytest.mark.parametrize("cached", [False, True])
def test_damaged_images(folder, tmp_path, cached):
    truncate(folder / "cat/3.png")
    write_image(folder / "dog/2.png", 3, mode="I;16")
    cache = tmp_path / "cache" if cached else None
    line = r"3.png: a damaged image .*; mend it, or go on without such with --skip-unreadable"
    with pytest.raises(ValueError, match=line):
        from_folder(folder, stream="yes", cache=cache)
    for _ in range(2):
        with pytest.warns(UserWarning, match=r"left out .*3.png: a damaged image.*and 1 more"):
            streamed = from_folder(folder, stream="yes", skip_unreadable=True, cache=cache)
        with pytest.warns(UserWarning, match="left out"):
            resident = from_folder(folder, stream="no", skip_unreadable=True, cache=cache)
        assert len(streamed.train) == len(resident.train) == 16
        assert torch.equal(streamed.train.inputs[:], resident.train.images)
        assert torch.equal(streamed.train.labels, resident.train.labels)
        assert (streamed.mean, streamed.std) == (resident.mean, resident.std)


def test_an_image_that_is_damaged_later_ends_the_reading(folder, monkeypatch):
    monkeypatch.setattr(keeping.Keeping, "in_memory", lambda self: 0)
    found = from_folder(folder, stream="yes")
    (folder / "cat/5.png").unlink()
    with pytest.raises(ValueError, match=r"5.png: there is no such file; .* --skip-unreadable"):
        list(parts_of(found.train.inputs, 4))


def files_of(cache: Path, suffix: str) -> Path:
    found = [p for p in cache.iterdir() if p.suffix == suffix]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("damage", ["pixels", "index", "short", "other", "no index"])
def test_a_damaged_cache_is_not_believed(folder, tmp_path, damage):
    cache = tmp_path / "cache"
    resident = from_folder(folder, stream="no", cache=cache)
    images, index = files_of(cache, ".images"), files_of(cache, ".npz")
    if damage == "pixels":
        content = bytearray(images.read_bytes())
        content[1000] ^= 1
        images.write_bytes(content)
    elif damage == "index":
        index.write_bytes(index.read_bytes()[:-30])
    elif damage == "short":
        images.write_bytes(images.read_bytes()[:-1])
    elif damage == "other":
        np.savez(index, shape=np.array([1]), checksums=np.zeros(1, np.uint32), counts=np.zeros(1))
    else:
        index.unlink()
    found = from_folder(folder, stream="yes", cache=cache)
    assert torch.equal(found.train.inputs[:], resident.train.images)
    assert (found.mean, found.std) == (resident.mean, resident.std)
    assert sorted(p.suffix for p in cache.iterdir()) == [".images", ".npz"]


def test_a_cache_is_named_by_what_is_in_it(folder, tmp_path):
    cache = tmp_path / "cache"
    from_folder(folder, stream="yes", cache=cache)
    write_image(folder / "cat/0.png", 77, size=(14, 12))
    changed = from_folder(folder, stream="yes", cache=cache)
    from_folder(folder, stream="yes", cache=cache, image_size=8)
    assert len(list(cache.glob("*.images"))) == 3
    assert torch.equal(changed.train.inputs[:], from_folder(folder).train.images)


def test_a_cache_that_cannot_be(folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="file is a file; --cache names a folder"):
        from_folder(folder, cache=tmp_path / "file")
    monkeypatch.setattr(keeping.shutil, "disk_usage", lambda p: type("U", (), {"free": 10}))
    with pytest.raises(ValueError, match=r"GB free: name another folder with --cache, or none"):
        from_folder(folder, cache=tmp_path / "cache")
    assert not list(tmp_path.glob("cache/*"))


def test_a_large_cache_says_that_it_is_written(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(keeping, "_LARGE", 1000)
    with pytest.warns(StreamingNote, match="18 images are decoded once into .*cache"):
        from_folder(folder, cache=tmp_path / "cache")
    from_folder(folder, cache=tmp_path / "cache")  # and nothing where it is read


def test_a_part_written_halfway_is_not_taken_for_a_cache(folder, tmp_path, monkeypatch):
    cache = tmp_path / "cache"

    def stop(self):
        yield from ()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ImageStore, "blocks", stop)
        with pytest.raises(KeyboardInterrupt):
            from_folder(folder, cache=cache)
    assert not list(cache.glob("*"))
    assert torch.equal(
        from_folder(folder, cache=cache).train.images, from_folder(folder).train.images
    )


def test_center_and_random_part():
    images = torch.arange(2 * 3 * 8 * 10, dtype=torch.int64).view(2, 3, 8, 10).to(torch.uint8)
    augment = Augment(size=4)
    assert torch.equal(augment.center(images), images[:, :, 2:6, 3:7])
    params = augment.sample_params(2, torch.Generator().manual_seed(0))
    cut = augment(images, params)
    assert cut.shape == (2, 3, 4, 4)
    windows = images.unfold(2, 4, 1).unfold(3, 4, 1)  # [N, C, 5, 7, 4, 4]
    for i in range(2):
        assert any(torch.equal(cut[i], windows[i, :, y, x]) for y in range(5) for x in range(7))
    many = Augment(size=7)
    drawn = many.sample_params(4000, torch.Generator().manual_seed(1))
    one = torch.arange(80, dtype=torch.uint8).view(1, 1, 8, 10).expand(4000, 1, 8, 10)
    corners = many(one, drawn)[:, 0, 0, 0].unique().tolist()
    assert corners == [0, 1, 2, 3, 10, 11, 12, 13]  # every place, and none outside
    with pytest.raises(ValueError, match="crop_size=9 is larger than the images, 8x10"):
        Augment(size=9).center(images)
    with pytest.raises(ValueError, match="give one"):
        Augment(size=4, crop=2)
