"""Places: a prefix of an object store answers as a directory does, and a tree of objects is there whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr

from storage import places
from storage.files import aside, once, publish, read_json, remove, tree_checksum, write_json
from storage.layout import open_group
from storage.places import ObjectPlace, listed, place
from storage.staging import staged
from storage.weights import mapped, published


class Killed(BaseException):
    """Stands for the end of the process."""


def make_group(path: Path | ObjectPlace, *names: str) -> None:
    group = zarr.open_group(aside(path), mode="w", zarr_format=3)
    for name in names:
        group.create_array(name, data=np.arange(1, 7), chunks=(2,))
    publish(path)


def test_place__is_a_path_or_an_object_place(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert place("runs") == tmp_path / "runs"
    assert place(f"file://{tmp_path}/x") == tmp_path / "x"
    assert place(tmp_path) == tmp_path
    assert place("s3://bucket/a/") == ObjectPlace("s3://bucket/a")
    assert place(ObjectPlace("memory://a")) == ObjectPlace("memory://a")
    with pytest.raises(ValueError, match=r"nosuch://x: cannot be opened"):
        place("nosuch://x")
    with pytest.raises(ValueError, match="expected a bucket or a name after memory://"):
        place("memory://")


def test_object_place__names_as_pathlib_does() -> None:
    at = ObjectPlace("s3://bucket/run.x/g000001.zarr")
    twin = Path("/bucket/run.x/g000001.zarr")
    for name in ("name", "stem"):
        assert getattr(at, name) == getattr(twin, name)
    assert at.parent.name == twin.parent.name
    assert at.with_suffix(".json").name == twin.with_suffix(".json").name
    assert str(at.parent / "x") == "s3://bucket/run.x/x"


def test_object_place__answers_as_a_directory_does(objects: ObjectPlace) -> None:
    folder = objects / "a"
    assert not folder.exists()
    assert list(folder.iterdir()) == []
    assert folder.files() == []
    for name in ("x.json", "y.json", "deep/z.json", "deep/er/w.json"):
        (folder / name).write_bytes(name.encode())
    assert (folder / "x.json").is_file()
    assert not (folder / "x.json").is_dir()
    assert folder.is_dir()
    assert not folder.is_file()
    assert [found.name for found in folder.iterdir()] == ["deep", "x.json", "y.json"]
    assert [found.name for found in folder.glob("?.json")] == ["x.json", "y.json"]
    assert listed(folder, "*/*.json") == [folder / "deep" / "z.json"]
    assert folder.files() == ["deep/er/w.json", "deep/z.json", "x.json", "y.json"]
    assert (folder / "x.json").read_text() == "x.json"
    assert dict(folder.read_all(folder.files())) == {name: name.encode() for name in folder.files()}
    (folder / "x.json").write_bytes(b"new")
    assert (folder / "x.json").open().read() == b"new"
    (folder / "x.json").unlink()
    (folder / "x.json").unlink(missing_ok=True)
    with pytest.raises(FileNotFoundError, match=r"x\.json"):
        (folder / "x.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"x\.json"):
        (folder / "x.json").read_bytes()
    folder.mkdir(parents=True, exist_ok=True)
    with pytest.raises(FileExistsError):
        folder.mkdir()


def test_object_place__sees_what_another_process_wrote(s3: str, cache: Path) -> None:
    """No listing is kept from before."""
    at = ObjectPlace(f"{s3}/others")
    (at / "a").write_bytes(b"1")
    assert [found.name for found in at.iterdir()] == ["a"]
    code = f"from storage.places import ObjectPlace as P; (P({str(at)!r}) / 'b').write_bytes(b'2')"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert [found.name for found in at.iterdir()] == ["a", "b"]
    assert (at / "b").is_file()


def test_object_place__a_store_that_cannot_be_reached_is_not_an_empty_one(objects: ObjectPlace, monkeypatch) -> None:
    class Away:
        def info(self, key):
            raise RuntimeError("no credentials")

        def __getattr__(self, name):
            return getattr(fs, name)

    fs = objects.fs
    monkeypatch.setattr(ObjectPlace, "fs", Away())
    for ask in (objects.is_file, objects.is_dir, objects.exists):
        with pytest.raises(OSError, match=f"{objects}.*no credentials"):
            ask()


def test_json__round_trips(objects: ObjectPlace) -> None:
    write_json(objects / "x.json", {"a": [0.1, 1e-308]})
    assert read_json(objects / "x.json") == {"a": [0.1, 1e-308]}
    (objects / "x.json").write_bytes(b"{")
    with pytest.raises(ValueError, match=r"x\.json: not valid JSON .*damaged"):
        read_json(objects / "x.json")


def test_group__is_the_same_here_and_there(objects: ObjectPlace, tmp_path: Path) -> None:
    for path in (objects / "a.zarr", tmp_path / "a.zarr"):
        make_group(path, "x", "longer", "x2")
        with pytest.raises(KeyError):
            open_group(path)["y"]
        open_group(path, "a").create_array("y", data=np.arange(3))
        assert sorted(open_group(path).array_keys()) == ["longer", "x", "x2", "y"]
        np.testing.assert_array_equal(open_group(path)["x"][...], np.arange(1, 7))
    assert tree_checksum(objects / "a.zarr") == tree_checksum(tmp_path / "a.zarr")


def test_group__that_replaces_another_leaves_nothing_of_it(objects: ObjectPlace) -> None:
    make_group(objects / "a.zarr", "old", "both")
    make_group(objects / "a.zarr", "both", "new")
    assert sorted(open_group(objects / "a.zarr").array_keys()) == ["both", "new"]
    assert not any("old" in name for name in (objects / "a.zarr").files())
    remove(objects / "a.zarr")
    assert not (objects / "a.zarr").exists()


@pytest.mark.parametrize("replaced", [False, True])
def test_group__is_not_there_before_it_is_whole(cache: Path, monkeypatch, replaced: bool) -> None:
    """Killed at any request: the old one, nothing, or the new one; and the next attempt succeeds."""
    seen = set()
    for number in range(100):
        target = ObjectPlace(f"memory://whole-{replaced}/{number}/a.zarr")
        if replaced:
            make_group(target, "old", "both")
        left = [number]

        def die(real, left=left):
            def call(self, *args, **kwargs):
                left[0] -= 1
                if left[0] < 0:
                    raise Killed
                return real(self, *args, **kwargs)

            return call

        with monkeypatch.context() as patch:
            for name in ("write_bytes", "upload", "remove", "unlink"):
                patch.setattr(ObjectPlace, name, die(getattr(ObjectPlace, name)))
            try:
                make_group(target, "both", "new")
                break
            except Killed:
                pass
        state = tuple(sorted(open_group(target).array_keys())) if target.is_dir() else None
        seen.add(state)
        assert state in (None, ("both", "old") if replaced else None)
        make_group(target, "both", "new")
        assert sorted(open_group(target).array_keys()) == ["both", "new"]
    assert number >= 2
    assert seen == ({None, ("both", "old")} if replaced else {None})


def test_once__is_plain_on_a_disk_and_this_writers_own_elsewhere(tmp_path: Path) -> None:
    assert once(tmp_path / "g000001.zarr") == tmp_path / "g000001.zarr"
    name = once(ObjectPlace("memory://x/g000001.zarr")).name
    assert name.startswith("g000001.")
    assert name.endswith(".zarr")
    assert name != "g000001.zarr"


def test_staging__of_a_killed_process_is_removed_and_of_a_living_one_kept(cache: Path) -> None:
    code = (
        "import sys; from storage.places import ObjectPlace; from storage.staging import staged\n"
        "staged(ObjectPlace('memory://x')).write_bytes(b'1'); print('ready', flush=True); sys.stdin.read()"
    )
    start = lambda: subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: E731
    killed, living = start(), start()
    try:
        for process in (killed, living):
            assert process.stdout.readline() == b"ready\n"
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        staged(ObjectPlace("memory://y"))
        owners = {path.name.split("-")[0] for path in (cache / "staging").iterdir() if path.is_dir()}
        assert owners == {str(living.pid), str(os.getpid())}
    finally:
        for process in (killed, living):
            process.communicate()
    assert not [path for path in (cache / "staging").iterdir() if path.name.startswith(f"{living.pid}-")]


def test_reading__goes_in_small_parts(objects: ObjectPlace, monkeypatch) -> None:
    monkeypatch.setattr(places, "AT_A_TIME", 2)
    for k in range(5):
        (objects / str(k)).write_bytes(bytes([k]))
    assert [data for _, data in objects.read_all(objects.files())] == [bytes([k]) for k in range(5)]


def test_weights__are_an_object_for_as_long_as_they_are_needed(objects: ObjectPlace) -> None:
    w = np.random.default_rng(0).normal(size=7)
    with published(objects / ".tmp-weights", w) as one, published(objects / ".tmp-weights", 2 * w) as two:
        assert mapped(place(str(one))).tobytes() == w.tobytes()
        assert mapped(place(str(two))).tobytes() == (2 * w).tobytes()
    assert (objects / ".tmp-weights").files() == []
    with pytest.raises(FileNotFoundError):
        mapped(one)
