"""Features on an object store: mapped from a copy on this machine that is identified by its contents."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from locations import files_of

from gapwise.storage.backend import UrlPath, backend
from gapwise.storage.backend.objects import ObjectBackend
from gapwise.storage.features import FeatureWriter, is_complete, open_features
from gapwise.storage.files import DamagedError, read_json, remove, write_json
from gapwise.storage.integrity import sealed, unsealed


def write(target: UrlPath, seed: int = 0) -> np.ndarray:
    values = np.random.default_rng(seed).normal(size=(50, 3))
    with FeatureWriter(target) as writer:
        for block in np.split(values, 5):
            writer.append("train", unary=block)
        writer.put("", "words", np.arange(6))
        writer.meta = {"structure": "multiclass", "d": 3}
    return values


def copies(cache: Path) -> list[Path]:
    return sorted(path for path in (cache / "features").iterdir() if path.is_dir())


def test_features__made_here_are_mapped_without_being_fetched(objects: UrlPath, cache: Path, monkeypatch) -> None:
    assert not is_complete(objects / "f")
    values = write(objects / "f")
    assert is_complete(objects / "f")
    monkeypatch.setattr(ObjectBackend, "download", lambda *args: pytest.fail("fetched"))
    arrays = open_features(objects / "f").arrays("train")
    assert sorted(arrays) == ["unary", "unary_ptr", "words"]
    assert arrays["unary"].tobytes() == values.tobytes()
    assert isinstance(arrays["unary"], np.memmap)
    assert not list((cache / "staging").rglob("*.npy"))


def test_features__made_elsewhere_are_fetched_once(objects: UrlPath, tmp_path: Path, monkeypatch) -> None:
    values = write(objects / "f")
    monkeypatch.setenv("GAPWISE_CACHE", str(tmp_path / "other machine"))
    fetched, real = [], ObjectBackend.download
    monkeypatch.setattr(ObjectBackend, "download", lambda *args: (fetched.append(1), real(*args)))
    opened: list[np.ndarray] = []
    threads = [
        threading.Thread(target=lambda: opened.append(open_features(objects / "f").arrays("train")["unary"]))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [array.tobytes() for array in opened] == [values.tobytes()] * 3
    assert len(fetched) == 1
    assert len(copies(tmp_path / "other machine")) == 1


def test_features__of_other_contents_under_the_same_name_are_another_copy(objects: UrlPath, cache: Path) -> None:
    write(objects / "f")
    remove(objects / "f")
    values = write(objects / "f", seed=1)
    assert open_features(objects / "f").arrays("train")["unary"].tobytes() == values.tobytes()
    assert len(copies(cache)) == 2


def test_features__damaged_on_the_way_are_an_error_and_leave_no_copy(objects: UrlPath, tmp_path, monkeypatch) -> None:
    values = write(objects / "f")
    monkeypatch.setenv("GAPWISE_CACHE", str(tmp_path / "other machine"))
    file = objects / "f" / "train" / "unary.npy"
    good = file.read_bytes()
    file.write_bytes(good[:-1] + b"\0")
    with pytest.raises(DamagedError, match=r"train/unary\.npy does not match its checksum; run\.stage=featurize"):
        open_features(objects / "f").arrays("train")
    assert copies(tmp_path / "other machine") == []
    file.write_bytes(good)
    assert open_features(objects / "f").arrays("train")["unary"].tobytes() == values.tobytes()


def test_features__whose_copy_is_damaged_are_fetched_again(objects: UrlPath, cache: Path) -> None:
    values = write(objects / "f")
    (copy,) = copies(cache)
    (copy / "train" / "unary.npy").write_bytes(b"spoilt")
    store = open_features(objects / "f")
    assert store.damage() is None
    assert store.arrays("train")["unary"].tobytes() == values.tobytes()


def test_features__copied_there_by_hand_are_taken_as_they_are(objects: UrlPath, tmp_path: Path) -> None:
    with FeatureWriter(tmp_path / "f") as writer:
        writer.append("train", unary=np.ones((4, 2)))
        writer.meta = {"structure": "multiclass", "d": 3}
    names = [path.relative_to(tmp_path / "f").as_posix() for path in (tmp_path / "f").rglob("*") if path.is_file()]
    backend(objects).upload(objects / "f", tmp_path / "f", names)
    assert open_features(objects / "f").arrays("train")["unary"].sum() == 8


def test_features__that_fail_in_the_middle_leave_nothing(objects: UrlPath, cache: Path, monkeypatch) -> None:
    def fail(target: UrlPath) -> None:
        with FeatureWriter(target) as writer:
            writer.append("train", unary=np.ones((4, 2)))
            raise KeyError("reader")

    with pytest.raises(KeyError):
        fail(objects / "f")
    assert files_of(objects / "f") == []

    def refuse(*args):
        raise PermissionError("access denied")

    with monkeypatch.context() as patch:
        patch.setattr(ObjectBackend, "send", refuse)
        with pytest.raises(PermissionError):
            write(objects / "f")
    assert not is_complete(objects / "f")
    assert not list(cache.rglob("*.npy"))
    write(objects / "f")
    assert is_complete(objects / "f")


def test_features__of_another_format_version_are_refused(objects: UrlPath) -> None:
    write(objects / "f")
    meta = objects / "f" / "meta.json"
    write_json(meta, sealed({**unsealed(read_json(meta), meta), "format_version": 99}))
    with pytest.raises(ValueError, match="format version 99"):
        open_features(objects / "f")
