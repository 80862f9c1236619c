"""Signals set a flag; the solver checks it between steps, commits and ends. A second Ctrl-C ends it at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any

PARENT = os.getppid()
"""The process that started this one."""


class Interrupted(Exception):
    """A stage ended because a stop was requested; what was committed is kept."""

    def __init__(self, number: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(number).name}")
        self.signal = number


class Stop:
    """Context manager that makes `stop()` True after SIGINT or SIGTERM; outside the main thread it catches no signals.

    Parameters
    ----------
    with_parent : bool
        Whether the end of the parent process counts as SIGTERM: a killed parent cannot pass its signal on.
    every : float
        Seconds between two checks of the parent.
    """

    everywhere = 0
    """Number of the signal that asked all runs of this process to stop, as in a sweep's worker; 0 before."""

    def __init__(self, with_parent: bool = False, every: float = 0.5) -> None:
        self.signal = signal.SIGINT.value
        self._flag = False
        self._before: dict[signal.Signals, Any] = {}
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._watch_parent, args=(every,), daemon=True) if with_parent else None

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._caught)
        if self._watch is not None:
            self._watch.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._over.set()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __call__(self) -> bool:
        """Whether a stop was requested."""
        if Stop.everywhere and not self._flag:
            self.request(Stop.everywhere)
        return self._flag

    def check(self) -> None:
        """Raise Interrupted if a stop was requested."""
        if self():
            raise Interrupted(self.signal)

    def request(self, number: int = signal.SIGINT.value) -> None:
        """Request a stop, as signal `number` would."""
        self._flag, self.signal = True, number

    def _watch_parent(self, every: float) -> None:
        while not self._over.wait(every):
            if os.getppid() != PARENT:
                self.request(signal.SIGTERM)
                return

    def _caught(self, number: int, frame: FrameType | None) -> None:
        if self._flag and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.request(number)
        print("\nstopping at the next point that can be committed (Ctrl-C again: at once)", file=sys.stderr, flush=True)
