"""Errors in one line; of a file that may not be used: whose it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gapwise.pipeline.errors import one_line


def test_one_line__says_whose_a_file_is_that_may_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").mkdir()
    error = PermissionError(13, "Permission denied", str(tmp_path / "run" / "lock"))
    assert "it is yours" in one_line(error)
    monkeypatch.setattr(os, "getuid", lambda: -1)
    monkeypatch.setattr(Path, "owner", lambda self: self.stat() and "alice")
    said = one_line(error)
    assert said.startswith(f"{tmp_path}/run/lock: Permission denied; {tmp_path / 'run'}")
    assert "belongs to alice" in said
    assert "umask 002" in said


def test_one_line__joins_lines() -> None:
    assert one_line(ValueError("a\n  b")) == "a b"
    assert one_line(KeyError()) == "KeyError"
