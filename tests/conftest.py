"""Fixtures for all tests."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import CheckedPatch
from s3_server import serving

from storage.backend import UrlPath


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--faults", choices=("short", "full"), default="short", help="full: 100 kills (tests/faults)")
    parser.addoption("--faults-table", metavar="FILE", help="write what tests/faults found as a markdown table")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Run in one process if the table of faults is asked for, because it has to see all of them."""
    if config.getoption("--faults-table"):
        config.option.numprocesses, config.option.dist, config.option.tx = None, "no", []


@pytest.fixture
def monkeypatch() -> Iterator[pytest.MonkeyPatch]:
    """Like pytest's, but a fake function refuses arguments that the real one would refuse."""
    patch = CheckedPatch()
    yield patch
    patch.undo()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Root of the real data sets ($GAPWISE_DATA, else ../shared/data beside the clone); skips where they are absent."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    root = Path(os.environ.get("GAPWISE_DATA", default))
    if not root.is_dir():
        pytest.skip(f"the research-only data sets are not in {root} (set GAPWISE_DATA)")
    return root


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of an empty bucket of an S3-compatible server on this machine; the environment says where it is."""
    with serving(tmp_path_factory.mktemp("s3")) as url:
        yield url


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This machine's cache of object stores, empty."""
    monkeypatch.setenv("GAPWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(params=["memory", "s3"])
def objects(request: pytest.FixtureRequest, cache: Path) -> UrlPath:
    """An empty prefix of an object store, of each kind in turn."""
    root = "memory://gapwise" if request.param == "memory" else request.getfixturevalue("s3")
    return UrlPath(f"{root}/{uuid.uuid4().hex}")
