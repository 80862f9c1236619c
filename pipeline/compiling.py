"""Says that numba is compiling, with a clock that runs, and counts the seconds it takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from numba.core import event

WHAT = "compiling, once for these sources; later runs load it"
AFTER = 1.0
"""Seconds of compiling in a row before a line is shown."""


class Reporter(Protocol):
    """What shows the line: `progress.Progress`, or a log."""

    def report(self, done: int, total: int, activity: str) -> None: ...


class Compiling:
    """Context manager: while a function is compiled, `progress` is told so every second.

    Compiling stops all else in the thread that needs the function, so nobody else reports meanwhile. Loading from numba's
    disk cache is not compiling. Only this process is watched.

    Parameters
    ----------
    progress : Reporter
    check : callable
        Called before each function is compiled; may raise an error to stop.

    Attributes
    ----------
    seconds : float
        Seconds in which at least one thread compiled.
    """

    def __init__(self, progress: Reporter, check: Callable[[], None] = lambda: None) -> None:
        self.seconds = 0.0
        self._progress, self._check = progress, check
        self._depth = 0
        self._since = 0.0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._listener: event.Listener | None = None

    def __enter__(self) -> Compiling:
        from numba.core import event

        outer = self

        class Listener(event.Listener):
            def on_start(self, event: object) -> None:
                outer._count(1)
                outer._check()  # where it raises an error, numba ends the event

            def on_end(self, event: object) -> None:
                outer._count(-1)

        self._listener = Listener()
        event.register("numba:compile", self._listener)
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        from numba.core import event

        self._over.set()
        event.unregister("numba:compile", self._listener)

    def _count(self, change: int) -> None:
        with self._lock:
            now = time.monotonic()
            if self._depth == 0:
                self._since = now
            self._depth += change
            if self._depth == 0:
                self.seconds += now - self._since

    def _watch(self) -> None:
        began, ended = 0.0, 0.0  # functions are compiled one after another: a short pause does not end it
        while not self._over.wait(1.0):
            now = time.monotonic()
            if self._depth == 0:
                continue
            began = now if now - ended > 5.0 else began
            ended = now
            if now - began >= AFTER:
                self._progress.report(0, 0, WHAT)
