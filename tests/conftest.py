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

import kernels
import pytest
from servers import bucket

import gapwise
from gapwise.stages.problems import kernel_cache
from gapwise.storage.backend import UrlPath

# Tests that give their processes another home share compiled code all the same.
os.environ.setdefault("GAPWISE_KERNELS", str(kernel_cache.folder()))
os.environ.setdefault("GAPWISE_PRECOMPILE", "0")

# Else every worker of a session, and each of the hundreds of processes that tests start, would compile all sources again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


MEMORY = Path("/dev/shm")
IN_MEMORY = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep temporary files in memory where there is a place, because a commit waits for its disk many times.

    And before several workers run all tests, compile once what most of them need. Tests of one clone try no other's code.
    """
    clone, found = Path(__file__).resolve().parents[1], Path(gapwise.__file__).resolve()
    if not found.is_relative_to(clone):
        raise pytest.UsageError(
            f"these tests are of {clone}, but `import gapwise` finds {found}: "
            "activate an environment into which this clone is installed (pip install -e .), or set PYTHONPATH=$PWD/.src"
        )
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
    """Leave `interpreted` tests to runs without the compiler."""
    if os.environ.get("NUMBA_DISABLE_JIT"):
        return
    left = [item for item in items if item.get_closest_marker("interpreted")]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


def pytest_collection_finish() -> None:
    """Look for garbage among what tests make, seldom, and never among what was imported and collected.

    numba makes many objects that stay. A sixth of the seconds of compiling went into looking through them, and each full
    search of a process that has all tests took more than half a second.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 10, 10)


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
    with bucket(tmp_path_factory.mktemp("s3")) as url:
        yield url


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This machine's cache of object stores, empty."""
    monkeypatch.setenv("GAPWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def objects(cache: Path) -> UrlPath:
    """An empty prefix of an object store in memory."""
    return UrlPath(f"memory://gapwise/{uuid.uuid4().hex}")
