"""What every kind of storage promises, on a disk and in the memory of an object store."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import zarr
from fsspec.implementations.memory import MemoryFileSystem
from locations import KINDS, fresh
from solved import Killed

from gapwise.storage.backend import ChangedError, Location, LockedError, UrlPath, location
from gapwise.storage.backend.remote import look, swap
from gapwise.storage.files import (
    aside,
    holder,
    listed,
    locked,
    make_directory,
    make_durable,
    publish,
    read_files,
    tree_checksum,
    tree_files,
    written_to,
)
from gapwise.storage.layout import open_group
from gapwise.storage.pointer import Pointer


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
        assert tree_files(folder) == []
        for name in ("x.json", "y.json", "deep/z.json", "deep/er/w.json"):
            put(folder / name, name)
        assert (folder / "x.json").is_file()
        assert not (folder / "x.json").is_dir()
        assert folder.is_dir()
        assert not folder.is_file()
        assert listed(folder, "*") == [folder / "deep", folder / "x.json", folder / "y.json"]
        assert [path.name for path in listed(folder, "?.json")] == ["x.json", "y.json"]
        assert listed(folder, "*/*.json") == [folder / "deep" / "z.json"]
        assert tree_files(folder) == ["deep/er/w.json", "deep/z.json", "x.json", "y.json"]
        everything = dict(read_files(folder, tree_files(folder)))
        assert everything == {name: name.encode() for name in tree_files(folder)}
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

    def test_folder__is_written_to_freely_and_kept_whatever_ends_it(self, root: Location) -> None:
        with contextlib.suppress(RuntimeError), written_to(root / "attempt") as folder:
            folder.mkdir(parents=True, exist_ok=True)
            for text in ("log", "more"):
                (folder / "log").write_text(text)
            raise RuntimeError
        assert tree_files(root / "attempt") == ["log"]
        assert (root / "attempt" / "log").read_text() == "more"


class TestSwap:
    @pytest.mark.parametrize("kind", ["memory", pytest.param("s3", marks=pytest.mark.slow)])
    def test_swap__only_replaces_what_was_seen(self, kind: str, cache: Path, request: pytest.FixtureRequest) -> None:
        target = fresh(kind, request) / "x"
        assert look(target) == (None, None)
        first = swap(target, b"1", None)
        assert look(target) == (b"1", first)
        with pytest.raises(ChangedError, match=f"{target}: another process has written it"):
            swap(target, b"2", None)
        second = swap(target, b"3", first)
        assert second != first
        with pytest.raises(ChangedError):
            swap(target, b"4", first)
        assert look(target) == (b"3", second)
        assert swap(target, b"3", None) == second, "the answer to a request was lost"
        target.unlink()
        with pytest.raises(ChangedError):
            swap(target, b"5", second)
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
        mine.path.unlink()
        with pytest.raises(ChangedError):
            other.write({"generation": 5})


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

        with locked(root / "lock", waiting, seconds=0.05):
            pass
        assert told[0].startswith(f"process {os.getpid()} on host")
        assert len(told) == 2


def test_location__is_a_path_or_a_url(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert location("runs") == tmp_path / "runs"
    assert location(f"file://{tmp_path}/x") == tmp_path / "x"
    assert location(tmp_path) == tmp_path
    assert location("s3://bucket/a/") == UrlPath("s3://bucket/a")
    assert location(UrlPath("memory://a")) == UrlPath("memory://a")
    with pytest.raises(ValueError, match=r"nosuch://x: cannot be opened"):
        location("nosuch://x")
    with pytest.raises(ValueError, match="expected a bucket or a name after memory://"):
        location("memory://")


@pytest.mark.parametrize("replaced", [False, True])
def test_group__is_not_there_before_it_is_whole(cache: Path, monkeypatch, replaced: bool) -> None:
    """Killed at any request: the old one, nothing, or the new one; and the next attempt succeeds."""
    seen = set()
    for number in range(100):
        target = UrlPath(f"memory://whole-{replaced}/{number}/a.zarr")
        if replaced:
            write_group(target, "old", "both")
        left = [number]

        def die(real, left=left):
            def call(self, *args, **kwargs):
                left[0] -= 1
                if left[0] < 0:
                    raise Killed
                return real(self, *args, **kwargs)

            return call

        with monkeypatch.context() as patch:
            for name in ("pipe_file", "put", "rm", "rm_file"):
                patch.setattr(MemoryFileSystem, name, die(getattr(MemoryFileSystem, name)))
            try:
                write_group(target, "both", "new")
                break
            except Killed:
                pass
        state = tuple(sorted(open_group(target).array_keys())) if target.is_dir() else None
        seen.add(state)
        assert state in (None, ("both", "old") if replaced else None)
        write_group(target, "both", "new")
        assert sorted(open_group(target).array_keys()) == ["both", "new"]
    assert number >= 2
    assert seen == ({None, ("both", "old")} if replaced else {None})


HOLD = "import sys, time; from pathlib import Path; from gapwise.storage.files import locked\nwith locked(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"  # noqa: E501


def test_holder__is_the_process_that_holds_the_lock_and_nobody_before_and_after(tmp_path: Path) -> None:
    lock = tmp_path / "run" / "lock"
    assert holder(lock) is None
    with locked(lock):
        held_by = holder(lock)
        assert held_by is not None
        assert (held_by.process, held_by.certain) == (os.getpid(), True)
        assert abs(held_by.since - time.time()) < 60
        assert str(held_by).startswith(f"process {os.getpid()} on host ")
    assert holder(lock) is None
    with locked(lock):  # looking did not take it
        pass


def test_holder__is_nobody_once_its_process_was_killed(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(lock)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process, process.stdout:
        assert process.stdout.readline() == "held\n"
        held_by = holder(lock)
        assert held_by is not None
        assert held_by.process == process.pid
        process.send_signal(signal.SIGKILL)
    assert "process" in lock.read_text(), "the file still names it"
    assert holder(lock) is None


def test_holder__does_not_follow_a_link(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("process 7 on host far (since 2026-11-21 10:00:00)\n")
    (tmp_path / "lock").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="symbolic link"):
        holder(tmp_path / "lock")


def test_lock__is_not_refused_because_somebody_looks(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.touch()
    with lock.open() as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        threading.Timer(0.02, fcntl.flock, [looking, fcntl.LOCK_UN]).start()
        with locked(lock):
            pass
