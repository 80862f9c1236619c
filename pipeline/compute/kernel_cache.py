"""Cache of compiled code keyed by the content of the source, for several copies of the tree on one machine.

Each experiment that DVC queues works in its own copy of the tree, where numba would compile everything again: half a
minute per job. With this cache, files with the same content share a folder, whichever copy they are in. It lies in the
folder $GAPWISE_KERNELS, under DVC otherwise below the project's .dvc/tmp; without either, numba caches beside each file.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def asked_for() -> bool:
    """Whether the environment names a folder."""
    return bool(os.environ.get("GAPWISE_KERNELS")) or "DVC_ROOT" in os.environ


def folder() -> Path:
    """The folder of compiled code; only if one is `asked_for`."""
    given = os.environ.get("GAPWISE_KERNELS")
    return Path(given) if given else Path(os.environ["DVC_ROOT"]) / ".dvc" / "tmp" / "kernels"


class ByContent:
    """A cache locator for numba, which finds it by its setting CACHE_LOCATOR_CLASSES and calls the methods below.

    Its own locators are private; this class needs nothing of them.
    """

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
