"""Tests of stages solve by the hundred: in memory, and nothing here loses power."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A directory in memory, where there is one: commits are made by the hundred."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch):
    """Nothing here loses power."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)
