"""Signals set a flag; the solver checks it between steps, commits and ends. A second signal is the system's.

Python calls its handlers in the main thread only, and not before compiled code returns. So after the first signal there is
no handler any more, and a second one ends the process wherever it is; what is committed survives that.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any, ClassVar

from gapwise.stages import Stopped

PARENT = os.getppid()
"""The process that started this one."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)
TOGETHER = 0.3
"""Seconds within which several signals are one request: `timeout`, `uv run` and others send theirs to the command and to its
process group."""


class Interrupted(Stopped):
    """A stage ended because a signal requested a stop."""

    def __init__(self, number: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(number).name}")
        self.signal = number


def number_of(end: BaseException) -> int:
    """The signal behind an exception that ends a command."""
    return end.signal if isinstance(end, Interrupted) else signal.SIGINT.value


class Stop:
    """Context manager that makes `stop()` True after SIGINT or SIGTERM; outside the main thread it catches no signals.

    Parameters
    ----------
    ends_process : bool
        Whether a second signal ends the process. Where somebody else's program goes on it does what it did before.
    with_parent : bool
        Whether the end of the parent process counts as SIGTERM: a killed parent cannot pass its signal on.
    every : float
        Seconds between two checks of the parent.
    """

    asked: ClassVar[dict[int, int]] = {}
    """Threads whose runs are asked to stop, as in a sweep's worker, and the number of the signal."""

    def __init__(self, ends_process: bool = False, *, with_parent: bool = False, every: float = 0.5) -> None:
        self.signal = signal.SIGINT.value
        self._requested = threading.Event()
        self._thread = threading.get_ident()
        self._at_once = False
        self._ends_process = ends_process
        self._before: dict[signal.Signals, Any] = {}
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._watch_parent, args=(every,), daemon=True) if with_parent else None

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._caught) for number in SIGNALS}
        if self._watch is not None:
            self._watch.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._over.set()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __call__(self) -> bool:
        """Whether a stop was requested."""
        if self._thread in Stop.asked and not self._requested.is_set():
            self.request(Stop.asked[self._thread])
        return self._requested.is_set()

    def check(self) -> None:
        """Raise Interrupted if a stop was requested."""
        if self():
            raise Interrupted(self.signal)

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """While it lasts, a signal raises Interrupted in the main thread wherever that is.

        For work that keeps nothing before its end, as reading data in Python. An error after a stop counts as the stop.
        """
        self.check()
        self._at_once = True
        try:
            yield
        except Exception as error:
            if self():
                raise Interrupted(self.signal) from error
            raise
        finally:
            self._at_once = False
        self.check()  # where the work has swallowed it

    def request(self, number: int = signal.SIGINT.value) -> None:
        """Request a stop, as signal `number` would."""
        self.signal = number
        self._requested.set()

    def _watch_parent(self, every: float) -> None:
        while not self._over.wait(every):
            if os.getppid() != PARENT:
                self.request(signal.SIGTERM)
                return

    def _caught(self, number: int, frame: FrameType | None) -> None:
        """The first signal: others that come together with it are ignored, and the next one finds no handler of ours."""
        self.request(number)
        how = "stopping" if self._at_once else "saving progress, then stopping"
        cursor = "\x1b[?25h" if os.isatty(2) else ""  # which a progress bar hides
        with contextlib.suppress(OSError):  # past Python's buffers, which may be in use at this moment
            os.write(2, f"{cursor}\n{how} (Ctrl-C again: stop at once)\n".encode())
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        time.sleep(TOGETHER)
        for each in SIGNALS:
            signal.signal(each, signal.SIG_DFL if self._ends_process else self._before[each] or signal.SIG_DFL)
        if self._at_once:
            raise Interrupted(number)
