"""Committed state from which tests begin."""

from __future__ import annotations

from pathlib import Path

import pytest
from committed import commit, opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """State with two generations."""
    store = opened(tmp_path / "state")
    commit(store, 1)
    commit(store, 2)
    return tmp_path / "state"
