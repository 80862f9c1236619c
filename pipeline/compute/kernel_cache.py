"""Cache of compiled code for runs under DVC, keyed by the content of the source, below the project's .dvc/tmp.

Each queued experiment works in its own copy of the tree, where numba would compile everything again: half a minute per
job. With this cache, files with the same content share a folder, whichever copy they are in.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core.caching import _CacheLocator


class ByContent(_CacheLocator):
    """A cache locator for numba, which finds it by its setting CACHE_LOCATOR_CLASSES."""

    def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
        self._py_file = py_file  # numba mentions it in warnings
        self._line = py_func.__code__.co_firstlineno
        self._stamp = hashlib.sha256(Path(py_file).read_bytes()).hexdigest()

    def get_cache_path(self) -> str:
        folder = Path(os.environ["DVC_ROOT"]) / ".dvc" / "tmp" / "kernels"
        return str(folder / f"{Path(self._py_file).stem}-{self._stamp[:16]}")

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> ByContent | None:
        if "DVC_ROOT" not in os.environ or not Path(py_file).is_file():
            return None
        found = cls(py_func, py_file)
        found.ensure_cache_path()
        return found
