"""Imports what the stages to come need while the path is solved, which takes one core and seldom the interpreter's lock."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from types import TracebackType

from gapwise.pipeline.interrupt import Interrupted


class Preload:
    """Context manager: `begin` starts a thread that imports modules. What fails there fails again where it is needed."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Preload:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Wait for the thread, because an interpreter that ends should not import; a stop does not wait."""
        if self._thread is not None and not isinstance(error, Interrupted | KeyboardInterrupt):
            self._thread.join()

    def begin(self, modules: Sequence[str], last: Callable[[], None]) -> None:
        """Import `modules`, then call `last`, in the background; returns at once, and does nothing the second time."""
        if self._thread is None:
            self._thread = threading.Thread(target=_load, args=(modules, last), daemon=True, name="imports")
            self._thread.start()


def _load(modules: Sequence[str], last: Callable[[], None]) -> None:
    with contextlib.suppress(Exception):
        for name in modules:
            import_module(name)
        last()
