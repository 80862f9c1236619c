"""The feature store: arrays come out as they went in, memory-mapped; an unfinished store does not exist."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from gapwise.storage import features
from gapwise.storage.features import FeatureWriter, is_complete, open_features
from gapwise.storage.files import DamagedError, aside, read_json, write_json
from gapwise.storage.integrity import sealed


def write(target: Path) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    blocks = [
        {"unary": rng.normal(size=(size, 3)).astype(np.float32), "labels": rng.integers(2, size=size).astype(np.uint8)}
        for size in (4, 1, 0, 7)
    ]
    with FeatureWriter(target) as writer:
        for block in blocks:
            writer.append("train", **block)
        writer.append("test", unary=np.zeros((0, 3), np.float32), labels=np.zeros(0, np.uint8))
        writer.put("", "words", np.asfortranarray(np.arange(6.0).reshape(2, 3)))
        writer.put("test", "map", np.array([[3, 1]], np.uint16))
        writer.meta = {"structure": "multiclass", "d": 3}
    return blocks


def test_features__round_trip_to_the_bit(tmp_path: Path) -> None:
    blocks = write(tmp_path / "f")
    store = open_features(tmp_path / "f")
    assert store.meta["structure"] == "multiclass"
    arrays = store.arrays("train")
    assert sorted(arrays) == ["labels", "labels_ptr", "unary", "unary_ptr", "words"]
    for name in ("unary", "labels"):
        whole = np.concatenate([block[name] for block in blocks])
        assert arrays[name].dtype == whole.dtype
        assert arrays[name].tobytes() == whole.tobytes()
        ptr = arrays[f"{name}_ptr"]
        assert ptr.dtype == np.int64
        for i, block in enumerate(blocks):
            np.testing.assert_array_equal(arrays[name][ptr[i] : ptr[i + 1]], block[name])
    np.testing.assert_array_equal(arrays["words"], np.arange(6.0).reshape(2, 3))


def test_features__split_without_an_entry_opens(tmp_path: Path) -> None:
    """A file without data is one that mmap alone would refuse."""
    write(tmp_path / "f")
    arrays = open_features(tmp_path / "f").arrays("test")
    assert arrays["unary"].shape == (0, 3)
    np.testing.assert_array_equal(arrays["unary_ptr"], [0, 0])
    np.testing.assert_array_equal(arrays["map"], [[3, 1]])


def test_features__are_memory_mapped_and_read_only(tmp_path: Path) -> None:
    write(tmp_path / "f")
    for array in open_features(tmp_path / "f").arrays("train").values():
        assert isinstance(array, np.memmap)
        assert not array.flags.writeable
        assert array.flags.c_contiguous


def test_held__arrays_are_in_memory_and_read_only_unless_the_split_is_large(tmp_path: Path, monkeypatch) -> None:
    numbers = np.arange(features.LARGE_PAGE // 8 + 1, dtype=np.float64)
    with FeatureWriter(tmp_path / "f") as writer:
        writer.append("train", x=numbers, y=numbers[:3])
    store = open_features(tmp_path / "f")
    held, total = store.held("train"), 0
    for name, array in store.arrays("train").items():
        np.testing.assert_array_equal(held[name], array, strict=True)
        assert isinstance(held[name], np.memmap) == (name != "x"), "only what fills a large page is copied"
        assert not held[name].flags.writeable
        total += array.nbytes
    monkeypatch.setattr(features, "HELD_BYTES", total)
    assert not isinstance(store.held("train")["x"], np.memmap)
    monkeypatch.setattr(features, "HELD_BYTES", total - 1)
    assert isinstance(store.held("train")["x"], np.memmap)


def test_writer__refuses_another_dtype_or_shape(tmp_path: Path) -> None:
    def append(wrong: np.ndarray) -> None:
        with FeatureWriter(tmp_path / "f") as writer:
            writer.append("train", unary=np.zeros((2, 3), np.float32))
            writer.append("train", unary=wrong)

    for wrong in (np.zeros((2, 3)), np.zeros((2, 4), np.float32)):
        with pytest.raises(ValueError, match=r"unary: expected float32.*got"):
            append(wrong)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("error", [ValueError("a bad image"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_writer__aborted_leaves_nothing(tmp_path: Path, error: BaseException) -> None:
    def abort() -> None:
        with FeatureWriter(tmp_path / "f") as writer:
            writer.append("train", unary=np.zeros((2, 3)))
            assert not is_complete(tmp_path / "f")
            raise error

    with pytest.raises(type(error)):
        abort()
    assert not any(tmp_path.iterdir())


def test_writer__failing_at_its_end_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    """A full disk is met at the last flush as likely as anywhere else."""

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path / "f")
    assert not any(tmp_path.iterdir())


def test_writer__killed_leaves_no_store_and_the_next_one_is_whole(tmp_path: Path) -> None:
    stale = aside(tmp_path / "f") / "train"
    stale.mkdir(parents=True)
    np.save(stale / "stale.npy", np.zeros(3))
    with pytest.raises(FileNotFoundError, match="run the featurize stage first"):
        open_features(tmp_path / "f")
    write(tmp_path / "f")
    assert "stale" not in open_features(tmp_path / "f").arrays("train")
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_damage__is_found_wherever_it_is(tmp_path: Path) -> None:
    write(tmp_path / "f")
    assert open_features(tmp_path / "f").damage() is None
    for file in sorted((tmp_path / "f").rglob("*.npy")):
        content = file.read_bytes()
        name = file.relative_to(tmp_path / "f").as_posix()
        flipped = bytearray(content)
        flipped[len(content) // 2] ^= 1
        for harm, says in ((flipped, "checksum"), (content[:-1], "bytes, was written with"), (None, "is missing")):
            file.unlink() if harm is None else file.write_bytes(harm)
            damage = open_features(tmp_path / "f").damage()
            assert damage is not None
            assert damage.startswith(name)
            assert says in damage
        file.write_bytes(content)
    meta = tmp_path / "f" / "meta.json"
    meta.write_text(meta.read_text().replace('"d": 3', '"d": 2'))
    with pytest.raises(DamagedError, match=r"meta.json: does not match its own checksum"):
        open_features(tmp_path / "f")


@pytest.mark.parametrize("name", ["../other/train/x.npy", "train/../../x.npy", "/tmp/x.npy"])
def test_features__that_list_a_file_of_another_folder_are_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path / "f")
    meta = read_json(tmp_path / "f" / "meta.json")
    write_json(tmp_path / "f" / "meta.json", sealed({**meta, "files": {**meta["files"], name: {}}}))
    with pytest.raises(DamagedError, match=f"names the file {name}, which is outside it"):
        open_features(tmp_path / "f")
