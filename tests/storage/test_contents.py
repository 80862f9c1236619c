"""Contents of files as part of a key: the same wherever they are, another after every edit."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from gapwise.storage import contents as module
from gapwise.storage.contents import KNOWN, contents

LONG_AGO = 1_600_000_000_000_000_000


def file_of(folder: Path, text: str, name: str = "data.txt", when: int = LONG_AGO) -> dict[str, Path]:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    os.utime(folder / name, ns=(when, when))
    return {"data": folder / name}


def test_contents__belong_to_the_bytes_and_not_to_the_place(tmp_path: Path) -> None:
    first = contents(file_of(tmp_path / "a", "abc"), tmp_path)
    assert contents(file_of(tmp_path / "b", "abc", "other.txt", LONG_AGO + 9), tmp_path) == first
    assert contents(file_of(tmp_path / "a", "abd"), tmp_path) != first  # same size, same time
    assert not (tmp_path / KNOWN).exists()


def test_contents__of_large_files_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL", 0)
    files, read = file_of(tmp_path / "a", "abc"), []
    digest = module.file_digest
    monkeypatch.setattr(module, "file_digest", lambda file: read.append(file) or digest(file))
    first = contents(files, tmp_path / "kept")
    assert contents(files, tmp_path / "kept") == first
    assert len(read) == 1
    (tmp_path / "a" / "data.txt").write_text("abd")
    assert contents(files, tmp_path / "kept") != first
    assert len(read) == 2


def test_contents__of_a_file_just_changed_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An edit within the resolution of the clock would leave size and time as they are."""
    monkeypatch.setattr(module, "SMALL", 0)
    now = time.time_ns()
    first = contents(file_of(tmp_path / "a", "abc", when=now), tmp_path)
    assert contents(file_of(tmp_path / "a", "abd", when=now), tmp_path) != first


@pytest.mark.parametrize("damage", ["", "[]", "{", '{"x": 1}', '{"x": [1]}', "null"])
def test_contents__do_without_what_is_kept_if_it_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setattr(module, "SMALL", 0)
    files = file_of(tmp_path / "a", "abc")
    first = contents(files, tmp_path)
    (tmp_path / KNOWN).write_text(damage)
    assert contents(files, tmp_path) == first
    assert len(json.loads((tmp_path / KNOWN).read_text())) == 1
