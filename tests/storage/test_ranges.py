"""Features on an object store of which a process reads the ranges of some blocks: the same numbers, and no more bytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from gapwise.storage import ranges
from gapwise.storage.backend import ChangedError, DamagedError, UrlPath, backend
from gapwise.storage.backend.base import Backend
from gapwise.storage.backend.objects import ObjectBackend
from gapwise.storage.features import FeatureWriter, open_features
from gapwise.storage.ranges import RangedArrays

SIZES = (4, 1, 0, 7, 300, 2)
ENDS = np.cumsum([0, *SIZES])


@pytest.fixture
def store(objects: UrlPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UrlPath:
    """Features that another machine has made."""
    rng = np.random.default_rng(0)
    monkeypatch.setenv("GAPWISE_CACHE", str(tmp_path / "first machine"))
    with FeatureWriter(objects / "f") as writer:
        for size in SIZES:
            writer.append("train", unary=rng.normal(size=(size, 3)), labels=rng.integers(9, size=size))
        writer.put("", "words", np.arange(6))
        writer.put("test", "map", np.zeros(1000))
        writer.meta = {"structure": "none", "checked": True}
    monkeypatch.setenv("GAPWISE_CACHE", str(tmp_path / "another"))
    return objects / "f"


@pytest.fixture
def whole(store: UrlPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, np.ndarray]:
    with monkeypatch.context() as patch:
        patch.setenv("GAPWISE_CACHE", str(tmp_path / "first machine"))
        return open_features(store).arrays("train")


def in_ranges(store: UrlPath) -> RangedArrays:
    arrays, ranged = open_features(store).of_blocks("train", ("unary", "nothing"))
    assert arrays is ranged
    assert ranged is not None
    return ranged


def rows(array: np.ndarray, block: int) -> bytes:
    return array[ENDS[block] : ENDS[block + 1]].tobytes()


@pytest.mark.parametrize("blocks", [[3], [0, 1, 2], [5, 0, 3], [4, 4], [2], []])
def test_need__reads_the_rows_of_these_blocks_once(store, whole, blocks, monkeypatch) -> None:
    monkeypatch.setattr(ranges, "PIECE", 1000)
    monkeypatch.setattr(ranges, "AT_A_TIME", 2500)
    ranged = in_ranges(store)
    assert sorted(ranged) == sorted(whole), "of this split and the shared ones"
    array = ranged["unary"]
    assert isinstance(array, np.memmap)
    assert not array.flags.writeable
    assert (array.shape, array.dtype) == (whole["unary"].shape, whole["unary"].dtype)
    before = ranged.fetched
    for _ in range(2):
        ranged.need(np.array(blocks, np.int64))
        assert ranged.fetched - before == sum(24 * SIZES[k] for k in set(blocks))
    for k in range(len(SIZES)):
        assert rows(array, k) == (rows(whole["unary"], k) if k in blocks else bytes(24 * SIZES[k]))
    ranged.need(np.arange(len(SIZES)))
    assert array.tobytes() == whole["unary"].tobytes()
    assert ranged.fetched - before == whole["unary"].nbytes
    assert not list((ranges.cache_root()).iterdir()), "files without names"


def test_other_arrays__are_read_whole_when_they_are_asked_for(store, whole) -> None:
    ranged = in_ranges(store)
    assert ranged.fetched == 0
    for name in ("labels", "words", "unary_ptr"):
        assert ranged[name].tobytes() == whole[name].tobytes()
        assert ranged[name] is ranged[name]
    ranged.need(np.arange(3))  # of what is open, nothing is missing
    assert ranged.fetched == sum((store / file).read_bytes().__len__() for file in (
        "train/labels.npy", "shared/words.npy", "train/unary_ptr.npy"
    ))  # fmt: skip
    ranged.read_whole(["unary"])
    assert ranged["unary"].tobytes() == whole["unary"].tobytes()


def test_of_blocks__maps_files_that_are_here(store, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("GAPWISE_CACHE", str(tmp_path / "first machine"))
    arrays, ranged = open_features(store).of_blocks("train", ("unary",))
    assert ranged is None
    assert isinstance(arrays["unary"], np.memmap)


def spoilt(data: bytes, how: str) -> bytes:
    return {"cut": data[:-1], "flipped": data[:-1] + b"\7", "no array": b"x" * len(data)}[how]


@pytest.mark.parametrize(
    ("name", "how", "says"),
    [
        ("labels", "flipped", "does not match its checksum"),
        ("unary", "cut", "bytes, was written with"),
        ("unary", "no array", "not an .npy file"),
    ],
)
def test_files__that_are_damaged_are_an_error_that_names_them(store, name, how, says) -> None:
    file = store / "train" / f"{name}.npy"
    file.write_bytes(spoilt(file.read_bytes(), how))
    with pytest.raises(DamagedError, match=rf"train/{name}\.npy.*{says}"):
        in_ranges(store)[name]


def test_need__notices_that_a_file_was_written_again_or_removed(store) -> None:
    ranged, file = in_ranges(store), store / "train" / "unary.npy"
    assert ranged["unary"].size
    ranged.need(np.array([0]))
    file.write_bytes(spoilt(file.read_bytes(), "flipped"))
    ranged.need(np.array([0]))  # is here
    with pytest.raises(ChangedError, match=r"train/unary\.npy: was removed or written again.*repeat the command"):
        ranged.need(np.array([1]))
    file.unlink()
    with pytest.raises(ChangedError, match="was removed or written again"):
        ranged.need(np.array([3]))


def test_need__refuses_a_range_that_comes_back_short(store, monkeypatch) -> None:
    ranged, real = in_ranges(store), ObjectBackend.read_ranges
    assert ranged["unary"].size
    monkeypatch.setattr(ObjectBackend, "read_ranges", lambda *args: [data[:-1] for data in real(*args)])
    with pytest.raises(OSError, match=r"unary\.npy: expected 96 bytes from 128 on, got 95"):
        ranged.need(np.array([0]))
    monkeypatch.undo()


def test_need__says_where_the_disk_is_full(store, tmp_path, monkeypatch) -> None:
    ranged = in_ranges(store)
    assert ranged["unary"].size

    def full(descriptor: int, data: bytes, start: int) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ranges.os, "pwrite", full)
    with pytest.raises(OSError, match=rf"{tmp_path}/another: No space left .*GAPWISE_CACHE"):
        ranged.need(np.array([0]))
    monkeypatch.undo()


def test_need__goes_on_where_a_disk_takes_part_of_a_range(store, whole, monkeypatch) -> None:
    ranged, real = in_ranges(store), ranges.os.pwrite
    assert ranged["unary"].size
    with monkeypatch.context() as patch:
        patch.setattr(ranges.os, "pwrite", lambda descriptor, data, start: real(descriptor, data[:50], start))
        ranged.need(np.array([0, 3]))
    assert rows(ranged["unary"], 0) == rows(whole["unary"], 0)
    assert rows(ranged["unary"], 3) == rows(whole["unary"], 3)


def test_backends__without_ranges_of_their_own_read_files(store) -> None:
    """Those that somebody else has written."""
    file, plain = store / "train" / "unary.npy", backend(store)
    wanted = [(0, 10), (100, 300)]
    assert Backend.read_ranges(plain, file, wanted) == plain.read_ranges(file, wanted)
    size, stamp = Backend.stamp(plain, file)
    assert size == plain.stamp(file)[0] == len(file.read_bytes())
    file.write_bytes(file.read_bytes()[:-1] + b"\7")
    assert Backend.stamp(plain, file)[1] != stamp
