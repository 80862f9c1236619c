"""numba's cache on disk: damaged files are compiled again, and a folder may serve several copies of the tree.

Each experiment that DVC queues works in its own copy of the tree, where numba would compile everything again: half a
minute per job. In the folder $GAPWISE_KERNELS, under DVC otherwise below the project's .dvc/tmp, files with the same content
share compiled code, whichever copy they are in. Without either, numba caches beside each file.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

MARK = b"gapwise: sha256 "
"""What stands between the contents of a file of the cache and their checksum."""


def asked_for() -> bool:
    """Whether the environment names a folder."""
    return bool(os.environ.get("GAPWISE_KERNELS")) or "DVC_ROOT" in os.environ


def folder() -> Path:
    """The folder of compiled code; only if one is `asked_for`."""
    given = os.environ.get("GAPWISE_KERNELS")
    return Path(given) if given else Path(os.environ["DVC_ROOT"]) / ".dvc" / "tmp" / "kernels"


class ByContent:
    """A cache locator, which numba asks before its own ones; it calls the methods below."""

    def __init__(self, py_func: Callable[..., object], py_file: str) -> None:
        self._py_file = py_file  # numba mentions it in warnings
        self._line = py_func.__code__.co_firstlineno
        self._stamp = hashlib.sha256(Path(py_file).read_bytes()).hexdigest()

    def get_cache_path(self) -> str:
        return str(folder() / f"{Path(self._py_file).stem}-{self._stamp[:16]}")

    def ensure_cache_path(self) -> None:
        """Make the folder; OSError unless files can be written there."""
        path = self.get_cache_path()
        os.makedirs(path, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Callable[..., object], py_file: str) -> ByContent | None:
        if not asked_for() or not Path(py_file).is_file():
            return None
        cache = cls(py_func, py_file)
        cache.ensure_cache_path()
        return cache


def install() -> None:
    """Make numba ask `ByContent`, and take a damaged file of its cache, as a power cut leaves, for one that is missing.

    numba lets unpickling fail, in every process until the file is deleted, or runs what it finds. Where a release lacks the
    private names that this needs, a line in the log says so.
    """
    try:
        from numba.core import caching

        class Checked(caching.IndexDataCacheFile):
            def _load_index(self) -> dict[object, str]:
                try:
                    _check(self._index_path)
                    return dict(super()._load_index())
                except Exception:  # whatever unpickling raises
                    return {}

            def _load_data(self, name: str) -> object:
                try:
                    _check(self._data_path(name))
                    return super()._load_data(name)
                except Exception as error:
                    raise FileNotFoundError(name) from error  # which numba takes for a miss

            @contextlib.contextmanager
            def _open_for_write(self, path: str) -> Iterator[io.BytesIO]:
                with super()._open_for_write(path) as file:
                    written = io.BytesIO()
                    yield written
                    file.write(written.getvalue() + MARK + hashlib.sha256(written.getvalue()).digest())

        caching.IndexDataCacheFile = Checked  # type: ignore[misc]
        caching.CacheImpl._locator_classes.insert(0, ByContent)
    except (ImportError, AttributeError) as error:
        logging.getLogger(__name__).warning("numba: %s; $GAPWISE_KERNELS and damaged kernels are not seen to", error)


def _check(file: str) -> None:
    """ValueError if a file has a checksum and does not match it; numba alone writes none."""
    contents, mark, checksum = Path(file).read_bytes().rpartition(MARK)
    if mark and hashlib.sha256(contents).digest() != checksum:
        raise ValueError(f"{file}: does not match its checksum")
