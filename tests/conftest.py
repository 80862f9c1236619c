"""Fixtures for all tests."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

# Compiled code is shared by all copies of the tree that tests make. numba reads the setting when it is imported.
os.environ.setdefault("GAPWISE_KERNELS", str(Path(__file__).resolve().parents[1] / ".pytest_cache" / "kernels"))
os.environ.setdefault("GAPWISE_PRECOMPILE", "0")

import kernels
import pytest
from fakes import CheckedPatch
from s3_server import serving
from selection import left_out

from gapwise.storage.backend import UrlPath

# Else every worker of a session, and each of the hundreds of processes that tests start, would compile all sources again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_addoption(parser: pytest.Parser) -> None:
    full = "full: 1,000 drawn faults and more (tests/faults)"
    parser.addoption("--faults", choices=("short", "full"), default="short", help=full)
    parser.addoption("--faults-table", metavar="FILE", help="write what tests/faults found as a markdown table")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Run in one process if the table of faults is asked for, because it has to see all of them."""
    if config.getoption("--faults-table"):
        config.option.numprocesses, config.option.dist, config.option.tx = None, "no", []


MEMORY = Path("/dev/shm")
IN_MEMORY = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep temporary files in memory where there is a place, because a commit waits for its disk many times.

    And before all tests are run by several workers, compile everything once.
    """
    if config.option.basetemp is None and os.access(MEMORY, os.W_OK):
        config.stash[IN_MEMORY] = config.option.basetemp = tempfile.mkdtemp(prefix="gapwise-tests-", dir=MEMORY)
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not config.option.collectonly
    if whole and config.getoption("numprocesses", None) and not os.environ.get("NUMBA_DISABLE_JIT"):
        kernels.compile_all()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the files in memory."""
    if IN_MEMORY in config.stash:
        shutil.rmtree(config.stash[IN_MEMORY], ignore_errors=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without --faults=full, leave out what only that tries.

    Files of slow tests come first, so that no worker is left alone with one of them at the end.
    """
    if config.getoption("--faults") != "full":
        left = left_out(items, compiled=not os.environ.get("NUMBA_DISABLE_JIT"))
        config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = [item for item in items if item not in left]
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    """Look for garbage among what tests make, seldom, and never among what was imported and collected.

    numba makes many objects that stay. A sixth of the seconds of compiling went into looking through them, and each full
    search of a process that has all tests took more than half a second.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 10, 10)


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
