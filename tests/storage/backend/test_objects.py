"""Object stores: a tree of objects is there whole or not at all, and scratch files do not stay on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr
from locations import files_of

from gapwise.storage.backend import UrlPath, backend, location
from gapwise.storage.backend import objects as objects_module
from gapwise.storage.backend.objects import ObjectBackend
from gapwise.storage.backend.staging import staged
from gapwise.storage.files import aside, once, publish
from gapwise.storage.layout import open_group


class Killed(BaseException):
    """Stands for the end of the process."""


def make_group(path: Path | UrlPath, *names: str) -> None:
    group = zarr.open_group(aside(path), mode="w", zarr_format=3)
    for name in names:
        group.create_array(name, data=np.arange(1, 7), chunks=(2,))
    publish(path)


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


def test_location__in_a_store_that_cannot_be_reached_is_not_an_empty_one(objects: UrlPath, monkeypatch) -> None:
    class Away:
        def info(self, key):
            raise RuntimeError("no credentials")

        def __getattr__(self, name):
            return getattr(fs, name)

    fs = backend(objects).file_system(objects)
    monkeypatch.setattr(ObjectBackend, "file_system", lambda *args: Away())
    for ask in (objects.is_file, objects.is_dir, objects.exists):
        with pytest.raises(OSError, match=f"{objects}.*no credentials"):
            ask()


@pytest.mark.parametrize("replaced", [False, True])
def test_group__is_not_there_before_it_is_whole(cache: Path, monkeypatch, replaced: bool) -> None:
    """Killed at any request: the old one, nothing, or the new one; and the next attempt succeeds."""
    seen = set()
    for number in range(100):
        target = UrlPath(f"memory://whole-{replaced}/{number}/a.zarr")
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
            for name in ("write_bytes", "upload", "remove_all", "unlink"):
                patch.setattr(ObjectBackend, name, die(getattr(ObjectBackend, name)))
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


def test_staging__of_a_killed_process_is_removed_and_of_a_living_one_kept(cache: Path) -> None:
    code = (
        "import sys; from gapwise.storage.backend import UrlPath; from gapwise.storage.backend.staging import staged\n"
        "staged(UrlPath('memory://x')).write_bytes(b'1'); print('ready', flush=True); sys.stdin.read()"
    )
    start = lambda: subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: E731
    killed, living = start(), start()
    try:
        for process in (killed, living):
            assert process.stdout.readline() == b"ready\n"
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        staged(UrlPath("memory://y"))
        owners = {path.name.split("-")[0] for path in (cache / "staging").iterdir() if path.is_dir()}
        assert owners == {str(living.pid), str(os.getpid())}
    finally:
        for process in (killed, living):
            process.communicate()
    assert not [path for path in (cache / "staging").iterdir() if path.name.startswith(f"{living.pid}-")]


def test_reading__goes_in_small_parts(objects: UrlPath, monkeypatch) -> None:
    monkeypatch.setattr(objects_module, "AT_A_TIME", 2)
    for k in range(5):
        (objects / str(k)).write_bytes(bytes([k]))
    files = backend(objects).read_all(objects, files_of(objects))
    assert [data for _, data in files] == [bytes([k]) for k in range(5)]


def test_once__is_plain_on_a_disk_and_this_writers_own_elsewhere(tmp_path: Path) -> None:
    assert once(tmp_path / "g000001.zarr") == tmp_path / "g000001.zarr"
    assert once(UrlPath("memory://x/g000001.zarr")).name != "g000001.zarr"


def test_memory__belongs_to_one_process(tmp_path: Path) -> None:
    """A sweep has many."""
    shared = [location(where) for where in ("memory://x", "s3://bucket/x", str(tmp_path))]
    assert [backend(where).is_shared(where) for where in shared] == [False, True, True]
