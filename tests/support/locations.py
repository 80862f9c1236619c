"""Locations of each kind of storage, and the files below one."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from gapwise.storage.backend import Location, location

KINDS = ("disk", "memory")


def fresh(kind: str, request: pytest.FixtureRequest) -> Location:
    """A location of this kind with nothing below."""
    if kind == "disk":
        tmp_path: Path = request.getfixturevalue("tmp_path")
        return tmp_path / uuid.uuid4().hex
    return location(f"memory://gapwise/{uuid.uuid4().hex}")
