"""What every kind of storage promises: the same tests on a disk and in the memory of an object store."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import zarr
from hangs import within
from locations import KINDS, files_of, fresh

from gapwise.storage.backend import ChangedError, Location, LockedError, backend, location
from gapwise.storage.files import (
    aside,
    deliver,
    listed,
    locked,
    make_directory,
    make_durable,
    publish,
    tree_checksum,
    working,
)
from gapwise.storage.layout import open_group
from gapwise.storage.pointer import Pointer
from gapwise.storage.weights import mapped, published


@pytest.fixture(params=KINDS)
def root(request: pytest.FixtureRequest, cache: Path) -> Location:
    """An existing directory of each kind in turn."""
    where = fresh(request.param, request)
    make_directory(where)
    return where


def write_group(path: Location, *names: str) -> None:
    group = zarr.open_group(aside(path), mode="w", zarr_format=3)
    for name in names:
        group.create_array(name, data=np.arange(1, 7), chunks=(2,))
    publish(path)


def put(path: Location, text: str) -> None:
    make_directory(path.parent)
    path.write_bytes(text.encode())


class TestNames:
    def test_location__tells_what_is_there(self, root: Location) -> None:
        folder = root / "a"
        assert not folder.exists()
        assert files_of(folder) == []
        for name in ("x.json", "y.json", "deep/z.json", "deep/er/w.json"):
            put(folder / name, name)
        assert (folder / "x.json").is_file()
        assert not (folder / "x.json").is_dir()
        assert folder.is_dir()
        assert not folder.is_file()
        assert listed(folder, "*") == [folder / "deep", folder / "x.json", folder / "y.json"]
        assert [path.name for path in listed(folder, "?.json")] == ["x.json", "y.json"]
        assert listed(folder, "*/*.json") == [folder / "deep" / "z.json"]
        assert files_of(folder) == ["deep/er/w.json", "deep/z.json", "x.json", "y.json"]
        everything = dict(backend(folder).read_all(folder, files_of(folder)))
        assert everything == {name: name.encode() for name in files_of(folder)}
        assert (folder / "x.json").read_text() == "x.json"
        with (folder / "x.json").open("rb") as stream:
            assert stream.read() == b"x.json"


class TestWriting:
    def test_tree__is_the_same_everywhere(self, root: Location, tmp_path: Path) -> None:
        for path in (root / "a.zarr", tmp_path / "verifier.zarr"):
            write_group(path, "x", "longer", "x2")
            with pytest.raises(KeyError):
                open_group(path)["y"]
            open_group(path, "a").create_array("y", data=np.arange(3))
            assert sorted(open_group(path).array_keys()) == ["longer", "x", "x2", "y"]
            np.testing.assert_array_equal(open_group(path)["x"][...], np.arange(1, 7))
            make_durable(path)
        assert tree_checksum(root / "a.zarr") == tree_checksum(tmp_path / "verifier.zarr")

    def test_working_copy__is_delivered_as_it_stands(self, root: Location) -> None:
        folder = working(root / "attempt")
        folder.mkdir(parents=True)
        for name in ("config", "log"):
            (folder / name).write_text(name)
            deliver(root / "attempt")
        (folder / "log").write_text("more")
        deliver(root / "attempt", last=True)
        assert files_of(root / "attempt") == ["config", "log"]
        assert (root / "attempt" / "log").read_text() == "more"

    def test_weights__are_there_for_as_long_as_they_are_needed(self, root: Location) -> None:
        w, folder = np.random.default_rng(0).normal(size=7), root / ".tmp-weights"
        with published(folder, w) as first, published(folder, 2 * w) as second:
            assert mapped(location(str(first))).tobytes() == w.tobytes()
            assert mapped(location(str(second))).tobytes() == (2 * w).tobytes()
        assert files_of(root) == []
        assert not folder.exists()
        with pytest.raises(FileNotFoundError):
            mapped(first)


class TestSwap:
    def test_swap__only_replaces_what_was_seen(self, root: Location) -> None:
        target, storage = root / "x", backend(root)
        assert storage.look(target) == (None, None)
        first = storage.swap(target, b"1", None)
        assert storage.look(target) == (b"1", first)
        with pytest.raises(ChangedError, match=f"{target}: another process has written it"):
            storage.swap(target, b"2", None)
        second = storage.swap(target, b"3", first)
        assert second != first
        with pytest.raises(ChangedError):
            storage.swap(target, b"4", first)
        assert storage.look(target) == (b"3", second)
        target.unlink()
        with pytest.raises(ChangedError):
            storage.swap(target, b"5", second)
        assert not target.exists()

    def test_pointer__moves_from_what_it_saw_last(self, root: Location) -> None:
        mine, other = Pointer(root / "HEAD.json"), Pointer(root / "HEAD.json")
        with pytest.raises(FileNotFoundError, match=r"HEAD\.json"):
            mine.read()
        mine.write({"generation": 1})
        mine.write({"generation": 2})
        assert other.read() == {"generation": 2}
        other.write({"generation": 3})
        with pytest.raises(ChangedError):
            mine.write({"generation": 3, "mine": True})
        assert mine.read() == {"generation": 3}
        mine.write({"generation": 4})
        assert other.read() == {"generation": 4}


class TestLock:
    def test_lock__is_held_by_one_and_free_afterwards(self, root: Location) -> None:
        lock = root / "run" / "lock"
        for _ in range(2):
            with locked(lock), pytest.raises(LockedError, match=rf"in use by process {os.getpid()} on"), locked(lock):
                pass

    def test_lock__is_waited_for(self, root: Location) -> None:
        told: list[str] = []
        other = locked(root / "lock")
        other.__enter__()

        def waiting(who: str) -> None:
            told.append(who)
            if len(told) == 2:
                other.__exit__(None, None, None)

        def wait() -> None:
            with locked(root / "lock", waiting, seconds=0.05):
                pass

        within(60, wait)
        assert told[0].startswith(f"process {os.getpid()} on host")
        assert len(told) == 2
