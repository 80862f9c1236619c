"""Fixtures of all rooms."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--faults", choices=("short", "full"), default="short", help="full: 100 kills (tests/faults)")
    parser.addoption("--faults-table", metavar="FILE", help="write what tests/faults found as a markdown table")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Root of the real data sets ($GAPWISE_DATA, else ../shared/data beside the clone); skips where they are absent."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    root = Path(os.environ.get("GAPWISE_DATA", default))
    if not root.is_dir():
        pytest.skip(f"the research-only data sets are not in {root} (set GAPWISE_DATA)")
    return root
