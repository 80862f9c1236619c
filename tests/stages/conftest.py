"""Tests of stages make hundreds of solves, so they run in memory and without fsync."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A directory in memory if possible, because the tests make hundreds of commits."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch):
    """Skip fsync: these tests do not simulate power loss."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)
