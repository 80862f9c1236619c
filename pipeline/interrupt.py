"""Signals set a flag; the solver checks it between steps, commits and ends. A second signal ends the process at once.

Python calls its handlers in the main thread only, and not before compiled code returns. So a thread hears of signals, too,
through a pipe that the system's handler writes to (`signal.set_wakeup_fd`). If the main thread has not come to its end
`GRACE` after a second signal, that thread ends the process as SIGKILL would: what is committed survives that.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any, ClassVar

from gapwise.pipeline.errors import INTERRUPTED, INTERRUPTED_WORDS
from gapwise.stages import Stopped

PARENT = os.getppid()
"""The process that started this one."""


class Interrupted(Stopped):
    """A stage ended because a signal requested a stop."""

    def __init__(self, number: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(number).name}")
        self.signal = number


class Again(KeyboardInterrupt):
    """A second signal came: what is under way is given up."""

    def __init__(self, number: int) -> None:
        super().__init__(f"interrupted again, by {signal.Signals(number).name}")
        self.signal = number


def number_of(end: BaseException) -> int:
    """The signal behind an exception that ends a command."""
    return end.signal if isinstance(end, Interrupted | Again) else signal.SIGINT.value


SIGNALS = (signal.SIGINT, signal.SIGTERM)

TOGETHER = 0.5
"""Seconds within which several signals are one request: `timeout`, `uv run` and others send theirs to the command and to its
process group."""

GRACE = 1.0
"""Seconds that the main thread has after a second signal."""


class Stop:
    """Context manager that makes `stop()` True after SIGINT or SIGTERM; outside the main thread it catches no signals.

    A second signal raises `Again` in the main thread.

    Parameters
    ----------
    ends_process : bool
        Whether the process, and the processes that `multiprocessing` has started, end `GRACE` after a second signal whatever
        the main thread does. Not where somebody else's program goes on.
    with_parent : bool
        Whether the end of the parent process counts as SIGTERM: a killed parent cannot pass its signal on.
    every : float
        Seconds between two checks of the parent.
    """

    asked: ClassVar[dict[int, int]] = {}
    """Threads whose runs are asked to stop, as in a sweep's worker, and the number of the signal."""

    def __init__(self, ends_process: bool = False, *, with_parent: bool = False, every: float = 0.5) -> None:
        self.signal = signal.SIGINT.value
        self._flag = False
        self._thread = threading.get_ident()
        self._first: float | None = None  # when the first signal came
        self._at_once = self._raised = False
        self._ends_process = ends_process
        self._second: _Second | None = None
        self._before: dict[signal.Signals, Any] = {}
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._watch_parent, args=(every,), daemon=True) if with_parent else None

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                self._before[number] = signal.signal(number, self._caught)
            if self._ends_process:
                self._second = _Second()
                self._second.start()
        if self._watch is not None:
            self._watch.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._over.set()
        if self._second is not None:
            self._second.close()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __call__(self) -> bool:
        """Whether a stop was requested."""
        if self._thread in Stop.asked and not self._flag:
            self.request(Stop.asked[self._thread])
        return self._flag

    def check(self) -> None:
        """Raise Interrupted if a stop was requested."""
        if self():
            raise Interrupted(self.signal)

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """While it lasts, a signal raises Interrupted in the main thread wherever that is.

        For work that keeps nothing before its end: reading data in Python, checking. While numba compiles there, its state
        would suffer; `Compiling` ends it before the next function.
        """
        self.check()
        self._at_once = True
        try:
            yield
        except Exception as error:
            if self._raised and not isinstance(error, Interrupted):  # taken for an error of the work
                raise Interrupted(self.signal) from error
            raise
        finally:
            self._at_once = False
        if self._raised:  # and swallowed
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
        now = time.monotonic()
        if self._first is not None:
            if now - self._first > TOGETHER:
                self.signal = number
                raise Again(number)
            return
        self._first = now
        self.request(number)
        how = "stopping" if self._at_once else "saving progress, then stopping"
        say(f"\n{how} (Ctrl-C again: stop at once)\n")
        if self._at_once and not compiles():
            self._raised = True
            raise Interrupted(number)


def compiles() -> bool:
    """Whether this thread is inside numba's compiler; False where a release of numba has no such lock."""
    module = sys.modules.get("numba.core.compiler_lock")  # importing it here would take a second
    lock = vars(module).get("global_compiler_lock") if module is not None else None
    return lock is not None and bool(lock.is_locked())


def say(text: str) -> None:
    """Write to standard error, past Python's buffers, which the main thread may be writing to at this moment."""
    with contextlib.suppress(OSError):
        os.write(2, text.encode())


class _Second(threading.Thread):
    """Ends the process after a second signal that the main thread does not answer."""

    def __init__(self) -> None:
        super().__init__(name="signals", daemon=True)
        self._heard, self._tell = os.pipe()
        os.set_blocking(self._tell, False)
        self._before = signal.set_wakeup_fd(self._tell, warn_on_full_buffer=False)
        self._over = threading.Event()

    def run(self) -> None:
        first: float | None = None
        while numbers := os.read(self._heard, 4096):
            now = time.monotonic()
            for number in numbers:
                if number not in SIGNALS:
                    continue
                if first is None:
                    first = now
                elif now - first > TOGETHER and not self._over.wait(GRACE):
                    end_process(number)

    def close(self) -> None:
        """The main thread has come to its end."""
        self._over.set()
        signal.set_wakeup_fd(self._before)
        os.close(self._tell)
        self.join()
        os.close(self._heard)


def end_process(number: int) -> None:
    """End this process and those that it has started, with the exit code of signal `number`; called by any thread."""
    for child in multiprocessing.active_children():
        with contextlib.suppress(ValueError, OSError):
            child.kill()
    shown = "\x1b[?25h" if os.isatty(2) else ""  # a progress bar hides the cursor
    say(f"{shown}\n{INTERRUPTED_WORDS}what was committed is saved. Rerun the same command to go on from there.\n")
    os._exit(INTERRUPTED + number)
