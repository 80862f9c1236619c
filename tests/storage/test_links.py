"""Locks and temporary files that somebody has replaced by symbolic links: no link's target is ever written or removed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gapwise.pipeline import rundir
from gapwise.storage.features import FeatureWriter
from gapwise.storage.files import aside, locked, publish, write_json
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
