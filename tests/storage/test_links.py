"""Locks and temporary files that somebody has replaced by symbolic links: no link's target is ever written or removed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from gapwise.pipeline import rundir
from gapwise.storage import contents as contents_module
from gapwise.storage.backend import staging
from gapwise.storage.contents import KNOWN, contents
from gapwise.storage.features import FeatureWriter
from gapwise.storage.files import aside, locked, publish, remove, remove_leftovers, write_json
from gapwise.storage.layout import TRACE, write_group


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file that the links point to."""
    (tmp_path / "elsewhere").mkdir()
    file = tmp_path / "elsewhere" / "precious.txt"
    file.write_text("precious")
    return file


def test_lock__that_is_a_link_is_an_error_that_names_it(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "lock").symlink_to(victim)
    with pytest.raises(OSError, match=r"lock: expected a lock file, found a symbolic link; remove the link"):
        locked(tmp_path / "lock").__enter__()
    assert victim.read_text() == "precious"


def test_lock__that_is_a_dangling_link_makes_no_file(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "nothing")
    with pytest.raises(OSError, match="symbolic link"):
        locked(tmp_path / "lock").__enter__()
    assert not (tmp_path / "nothing").exists()


def test_staging__does_not_open_a_linked_gate(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "staging").mkdir()
    (tmp_path / "staging" / "lock").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic link"):
        staging._own(os.getpid(), tmp_path)


@pytest.mark.parametrize("write", [write_json, rundir.write_json])
def test_temporary_file__that_is_a_link_is_replaced(tmp_path: Path, victim: Path, write) -> None:
    (tmp_path / ".tmp-a.json").symlink_to(victim)
    write(tmp_path / "a.json", [1])
    assert victim.read_text() == "precious"
    assert not (tmp_path / "a.json").is_symlink()
    assert rundir.read_json(tmp_path / "a.json") == [1]


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


def test_leftovers__that_are_links_are_removed_as_links(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "a.zarr").mkdir()
    for name in (".tmp-x", ".old-a.zarr", "other"):
        (tmp_path / name).symlink_to(victim.parent)
    remove_leftovers(tmp_path)
    remove(tmp_path / "other")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.zarr", "elsewhere"]
    assert victim.read_text() == "precious"


def test_digests__are_neither_read_nor_written_through_a_link(
    tmp_path: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents_module, "SMALL", 0)
    os.utime(victim, ns=(0, 0))
    other = tmp_path / "other.json"
    stat = victim.stat()
    said = f'{{"{victim}": [{stat.st_size}, {stat.st_mtime_ns}, {stat.st_ino}, "a lie"]}}'
    other.write_text(said)
    (tmp_path / KNOWN).symlink_to(other)
    (tmp_path / f".tmp-{KNOWN}-{os.getpid()}").symlink_to(victim)
    assert contents({"data": victim}, tmp_path)["data"] != "a lie"
    assert (victim.read_text(), other.read_text()) == ("precious", said)
    assert not (tmp_path / KNOWN).is_symlink()


def test_leftovers__that_are_links_never_become_what_was_replaced(tmp_path: Path, victim: Path) -> None:
    """A kill between the two renames of `publish` leaves a tree as .old-a.zarr, never a link."""
    (tmp_path / ".old-a.zarr").symlink_to(victim.parent)
    remove_leftovers(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["elsewhere"]
