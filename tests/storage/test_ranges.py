"""Features on an object store of which a process reads the ranges of some blocks: the same numbers, and no more bytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from gapwise.storage import ranges
from gapwise.storage.backend import ChangedError, UrlPath
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


@pytest.mark.parametrize("blocks", [[0, 1, 2], [5, 0, 3], [4, 4]])
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


def test_need__notices_that_a_file_was_written_again_or_removed(store) -> None:
    ranged, file = in_ranges(store), store / "train" / "unary.npy"
    assert ranged["unary"].size
    ranged.need(np.array([0]))
    file.write_bytes(file.read_bytes()[:-1] + b"\7")
    ranged.need(np.array([0]))  # is here
    with pytest.raises(ChangedError, match=r"train/unary\.npy: was removed or written again.*repeat the command"):
        ranged.need(np.array([1]))
    file.unlink()
    with pytest.raises(ChangedError, match="was removed or written again"):
        ranged.need(np.array([3]))
