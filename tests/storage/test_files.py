"""Files that are written to a scratch location and renamed: whole or not there, whatever interrupts them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from solved import Killed

from gapwise.storage.features import FeatureWriter
from gapwise.storage.files import aside, publish, read_json, remove_leftovers, tree_checksum, write_json
from gapwise.storage.layout import TRACE, write_group


@pytest.mark.parametrize("point", ["fsync", "replace"])
def test_write_json__keeps_the_old_value_when_it_is_killed(tmp_path: Path, monkeypatch, point: str) -> None:
    path = tmp_path / "value.json"
    write_json(path, {"a": 1})

    def die(*args):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(os, point, die)
        with pytest.raises(Killed):
            write_json(path, {"a": 2})
    assert read_json(path) == {"a": 1}
    remove_leftovers(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["value.json"]


def test_read_json__names_the_damaged_file(tmp_path: Path) -> None:
    (tmp_path / "value.json").write_text('{"a": 1')
    with pytest.raises(ValueError, match=r"value\.json: not valid JSON .*damaged"):
        read_json(tmp_path / "value.json")


def test_write_json__round_trips_every_float(tmp_path: Path) -> None:
    values = [0.1, 1e-308, 2.0**-1074, 1.0 / 3.0, float("inf")]
    write_json(tmp_path / "value.json", values)
    assert read_json(tmp_path / "value.json") == values
    json.loads((tmp_path / "value.json").read_text())


def make_directory(path: Path, text: str) -> None:
    aside(path).mkdir()
    (aside(path) / "file").write_text(text)


@pytest.mark.parametrize("calls", [0, 1, 2])
def test_publish__killed_at_any_rename_leaves_old_or_new(tmp_path: Path, monkeypatch, calls: int) -> None:
    """Of replacing a directory: before the first rename, between the two, before the old one is removed."""
    path = tmp_path / "d"
    make_directory(path, "old")
    publish(path)
    make_directory(path, "new")
    rename, made = os.rename, []

    def dying(a, b):
        if len(made) == calls:
            raise Killed
        made.append(a)
        rename(a, b)

    def die(*args, **kwargs):
        if not kwargs:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", dying)
        patch.setattr(shutil, "rmtree", die)
        with pytest.raises(Killed):
            publish(path)
    remove_leftovers(tmp_path)
    assert (path / "file").read_text() == ("new" if calls == 2 else "old")
    assert [p.name for p in tmp_path.iterdir()] == ["d"]


def test_checksum__sees_contents_and_names(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"xy")
    (tmp_path / "b").write_bytes(b"")
    before = tree_checksum(tmp_path)
    (tmp_path / "a").write_bytes(b"xz")
    contents = tree_checksum(tmp_path)
    (tmp_path / "a").write_bytes(b"xy")
    assert tree_checksum(tmp_path) == before
    (tmp_path / "b").rename(tmp_path / "c")
    assert len({before, contents, tree_checksum(tmp_path)}) == 3


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file that the links point to."""
    (tmp_path / "elsewhere").mkdir()
    file = tmp_path / "elsewhere" / "precious.txt"
    file.write_text("precious")
    return file


def test_temporary_tree__that_is_a_link_is_replaced(tmp_path: Path, victim: Path) -> None:
    for name in (".tmp-trace.zarr", ".old-trace.zarr", ".tmp-features"):
        (tmp_path / name).symlink_to(victim.parent)
    for _ in range(2):
        write_group(aside(tmp_path / "trace.zarr"), TRACE, {"trace": np.zeros((1, 2))}, {})
        publish(tmp_path / "trace.zarr")
    with FeatureWriter(tmp_path / "features") as writer:
        writer.put("train", "x", np.zeros(3))
        writer.meta = {}
    assert [file.name for file in victim.parent.iterdir()] == [victim.name]
