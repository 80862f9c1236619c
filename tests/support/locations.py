"""Locations of each kind of storage."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from gapwise.storage.backend import Location, location

KINDS = ("disk", "memory")


def fresh(kind: str, request: pytest.FixtureRequest) -> Location:
    """A location of this kind, or of an S3 server, with nothing below."""
    if kind == "disk":
        tmp_path: Path = request.getfixturevalue("tmp_path")
        return tmp_path / uuid.uuid4().hex
    root = "memory://gapwise" if kind == "memory" else request.getfixturevalue("s3")
    return location(f"{root}/{uuid.uuid4().hex}")
