"""Errors in one line; of a file that may not be used: whose it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gapwise.pipeline.errors import one_line


def test_one_line__says_whose_a_file_is_that_may_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = PermissionError(13, "Permission denied", str(tmp_path / "run" / "lock"))
    (tmp_path / "run").mkdir()
    assert "it is yours" in one_line(error)
    monkeypatch.setattr(os, "getuid", lambda: -1)
    monkeypatch.setattr(Path, "owner", lambda self: self.stat() and "alice")
    assert "belongs to alice" in one_line(error)
    assert one_line(ValueError("a\n  b")) == "a b"
