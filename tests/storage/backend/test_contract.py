"""What every kind of storage promises: the same tests on a disk, in memory and on S3."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import zarr
from hangs import within
from locations import KINDS, files_of, fresh

from gapwise.storage.backend import ChangedError, Location, LockedError, backend, location
from gapwise.storage.files import (
    DamagedError,
    aside,
    deliver,
    fetched,
    listed,
    locked,
    make_directory,
    make_durable,
    once,
    publish,
    read_json,
    remove,
    remove_leftovers,
    rename,
    tree_checksum,
    working,
    write_json,
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


@pytest.fixture(params=[kind for kind in KINDS if kind != "memory"])
def shared(request: pytest.FixtureRequest, cache: Path) -> Location:
    """An existing directory of each kind that other processes see."""
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
    def test_location__is_found_again_by_its_name(self, root: Location) -> None:
        assert location(str(root)) == root
        assert location(root) == root

    def test_location__names_as_pathlib_does(self, root: Location) -> None:
        path, verifier = root / "run.x" / "g000001.zarr", Path("/run.x/g000001.zarr")
        assert (path.name, path.stem, path.parent.name) == (verifier.name, verifier.stem, verifier.parent.name)
        assert path.with_suffix(".json") == root / "run.x" / "g000001.json"
        assert path.with_name("x") == root / "run.x" / "x"
        assert path.parent.parent == root

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

    def test_location__that_is_missing_is_said(self, root: Location) -> None:
        for act in (Path.read_bytes, Path.unlink):
            with pytest.raises(FileNotFoundError, match="missing"):
                getattr(root / "missing", act.__name__)()
        (root / "missing").unlink(missing_ok=True)
        put(root / "a" / "x", "")
        (root / "a").mkdir(parents=True, exist_ok=True)
        with pytest.raises(FileExistsError):
            (root / "a").mkdir()

    def test_location__shows_what_another_process_wrote(self, shared: Location) -> None:
        assert backend(shared).is_shared(shared)
        put(shared / "a", "1")
        assert [path.name for path in shared.iterdir()] == ["a"]
        code = f"from gapwise.storage.backend import location as at; at({str(shared / 'b')!r}).write_bytes(b'2')"
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
        assert sorted(path.name for path in shared.iterdir()) == ["a", "b"]
        assert (shared / "b").read_bytes() == b"2"


class TestWriting:
    def test_file__is_there_when_published(self, root: Location) -> None:
        for text in ("old", "new"):
            aside(root / "x").write_text(text)
            assert (root / "x").is_file() is (text == "new")
            publish(root / "x")
            assert (root / "x").read_text() == text
        assert not aside(root / "x").exists()
        assert files_of(root) == ["x"]

    def test_json__round_trips_and_damage_is_named(self, root: Location) -> None:
        values = {"a": [0.1, 1e-308, 2.0**-1074, float("inf")]}
        write_json(root / "x.json", values)
        assert read_json(root / "x.json") == values
        for bad in ("{", "\xff"):
            (root / "x.json").write_bytes(bad.encode("latin1"))
            with pytest.raises(DamagedError, match=r"x\.json: not valid JSON .*damaged"):
                read_json(root / "x.json")

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

    def test_tree__that_replaces_another_leaves_nothing_of_it(self, root: Location) -> None:
        write_group(root / "a.zarr", "old", "both")
        write_group(root / "a.zarr", "both", "new")
        assert sorted(open_group(root / "a.zarr").array_keys()) == ["both", "new"]
        assert not any("old" in name for name in files_of(root))
        remove(root / "a.zarr")
        assert not (root / "a.zarr").exists()
        assert files_of(root) == []

    def test_checksum__sees_names_and_contents_but_for_what_is_left_out(self, root: Location) -> None:
        put(root / "t" / "a", "xy")
        put(root / "t" / "b", "")
        sums = [tree_checksum(root / "t")]
        put(root / "t" / "a", "xz")
        sums.append(tree_checksum(root / "t"))
        rename(root / "t" / "b", "c")
        sums.append(tree_checksum(root / "t"))
        assert len(set(sums)) == 3
        put(root / "t" / "test_loss" / "0", "1")
        assert tree_checksum(root / "t") != sums[-1]
        assert tree_checksum(root / "t", without=("test_*",)) == sums[-1]

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

    def test_fetched__is_on_this_machine(self, root: Location) -> None:
        for name in ("f", "t/a", "t/deep/b"):
            put(root / name, name)
        assert fetched(root / "f").read_text() == "f"
        tree = fetched(root / "t")
        assert isinstance(tree, Path)
        assert files_of(tree) == ["a", "deep/b"]

    def test_leftovers__go_and_nothing_else_does(self, root: Location) -> None:
        put(root / "x", "kept")
        aside(root / "y").write_text("half")
        remove_leftovers(root)
        assert files_of(root) == ["x"]

    def test_once__keeps_number_and_suffix(self, root: Location) -> None:
        name = once(root / "g000001.zarr").name
        assert name.startswith("g000001.")
        assert name.endswith(".zarr")

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

    def test_swap__that_was_done_already_succeeds(self, root: Location) -> None:
        target, storage = root / "x", backend(root)
        first = storage.swap(target, b"1", None)
        assert storage.swap(target, b"1", None) == first
        second = storage.swap(target, b"2", first)
        assert storage.swap(target, b"2", first) == second

    def test_swap__loses_no_update_of_many_threads(self, root: Location) -> None:
        target, storage = root / "counter", backend(root)
        storage.swap(target, b"0 nobody", None)

        def count(me: int) -> None:
            for _ in range(5):
                while True:
                    data, version = storage.look(target)
                    assert data is not None
                    with contextlib.suppress(ChangedError):
                        storage.swap(target, f"{int(data.split()[0]) + 1} {me}".encode(), version)
                        break

        threads = [threading.Thread(target=count, args=(me,)) for me in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert target.read_bytes().split()[0] == b"20"

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

    def test_pointer__that_is_damaged_is_an_error_and_can_be_replaced(self, root: Location) -> None:
        put(root / "HEAD.json", "{")
        head = Pointer(root / "HEAD.json")
        with pytest.raises(DamagedError, match="damaged"):
            head.read()
        head.write({"generation": 1})
        assert head.read() == {"generation": 1}


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

    def test_lock__of_a_killed_process_is_free(self, shared: Location) -> None:
        with holding(shared / "lock") as process:
            with pytest.raises(LockedError, match=f"process {process.pid}"), locked(shared / "lock"):
                pass
            process.send_signal(signal.SIGKILL)
            process.wait()

            def take() -> None:
                with locked(shared / "lock"):
                    pass

            within(30, take)


@contextlib.contextmanager
def holding(lock: Location) -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds `lock`."""
    code = (
        "import sys; from gapwise.storage.backend import location; from gapwise.storage.files import locked\n"
        f"with locked(location({str(lock)!r})): print('held', flush=True); sys.stdin.read()"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        try:
            yield process
        finally:
            process.kill()


ONE_MORE = """
from gapwise.storage.backend import location
from gapwise.storage.backend.objects import ObjectBackend

class ToyBackend(ObjectBackend):
    schemes = ("toy",)
    def locate(self, url):
        return location(url.replace("toy://", "memory://toy/"))
"""


def test_backend__is_added_by_a_file_in_a_folder_of_parts(tmp_path: Path) -> None:
    (tmp_path / "backends").mkdir()
    (tmp_path / "backends" / "toy.py").write_text(ONE_MORE)
    code = "from gapwise.storage.backend import location; print(location('toy://a'))"
    env = {**os.environ, "GAPWISE_PARTS": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    assert done.stdout == "memory://toy/a\n", done.stderr
