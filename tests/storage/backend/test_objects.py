"""Object stores: a tree of objects is there whole or not at all, and scratch files do not stay on this machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import zarr
from fsspec.implementations.memory import MemoryFileSystem

from gapwise.storage.backend import UrlPath, location
from gapwise.storage.files import aside, publish
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
            for name in ("pipe_file", "put", "rm", "rm_file"):
                patch.setattr(MemoryFileSystem, name, die(getattr(MemoryFileSystem, name)))
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
