"""Progress of a stage: a bar when stderr is a terminal, otherwise a line every few seconds; and a log file.

λ #12/40 = 2.1e-03 · epoch 14 · gap 1.2e-03, target 9e-02 · 48k oracle calls · 00:42

Where the oracle is approximate the gap says what it is: `gap ≤ 1.2e-3 (bound)`, `gap ≈ 1.2e-3 (estimate)`.
"""

from __future__ import annotations

import contextlib
import logging
import math
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from gapwise.records import Facts
from gapwise.stages.problems.capabilities import ESTIMATE, EXACT, UPPER_BOUNDED

if TYPE_CHECKING:
    import rich.progress

log = logging.getLogger("gapwise")
KINDS = {UPPER_BOUNDED: ("≤", "bound"), ESTIMATE: ("≈", "estimate")}
"""How a solver's line says what a gap is that is not exact (`gapwise.stages.problems.capabilities`)."""


class Progress:
    """Context manager around the stages of one invocation.

    Parameters
    ----------
    path : Path or None
        The invocation's log file: everything shown on the screen, with times, and tracebacks. None: no file.
    every : float
        Seconds between two lines.
    stream : TextIO, optional
        Default stderr.
    """

    def __init__(self, path: Path | None, every: float = 5.0, stream: TextIO | None = None) -> None:
        self.path = path
        self._every = every
        self._stream = stream or sys.stderr
        self._stage = ""
        self._start = time.monotonic()
        self._last = -every
        self._said: set[str] = set()
        self._bar: rich.progress.Progress | None = None
        self._task: rich.progress.TaskID | None = None
        self._handlers: list[logging.Handler] = []

    def __enter__(self) -> Progress:
        if self.path is not None:
            file = _LogFile(self.path, encoding="utf-8", errors="backslashreplace")
            file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
            file.setLevel(logging.DEBUG)
            self._handlers.append(file)
        screen: logging.Handler = logging.StreamHandler(self._stream)
        screen.setLevel(logging.INFO)
        if self._stream.isatty():
            from rich.console import Console
            from rich.logging import RichHandler
            from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            console = Console(file=self._stream)
            screen = RichHandler(logging.WARNING, console, show_time=False, show_path=False, markup=False)
            columns = (
                TextColumn("{task.fields[stage]:>9}"),
                TimeElapsedColumn(),
                BarColumn(bar_width=10),
                TextColumn("{task.description}"),
            )
            self._bar = Bar(*columns, console=console, transient=True, refresh_per_second=4)
            self._bar.start()
        self._handlers.append(screen)
        for handler in self._handlers:
            log.addHandler(handler)
        log.setLevel(logging.DEBUG)
        log.propagate = False
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
        for handler in self._handlers:
            log.removeHandler(handler)
            handler.close()
        log.propagate = True

    def stage(self, name: str) -> None:
        """Begin the next stage and restart the clock."""
        self._stage, self._start, self._last = name, time.monotonic(), -self._every
        if self._bar is not None:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task("", total=None, stage=name)
        log.debug("stage %s", name)

    def report(self, done: int, total: int, activity: str) -> None:
        """Show that `done` of about `total` (0: unknown) steps of `activity` are done; cheap to call often.

        Without a terminal, an activity without any count gets one line in all: a second would say nothing new.
        """
        if self._bar is not None and self._task is not None:
            words = describe(done, total, activity)
            self._bar.update(self._task, completed=done, total=total or None, description=words)
        now = time.monotonic()
        if now - self._last >= self._every and activity not in self._said:
            self._last = now
            if not (done or total or activity.startswith("λ")):
                self._said.add(activity)
            line = f"{describe(done, total, activity)} · {clock(now - self._start)}"
            line = line if line.startswith("λ") else f"{self._stage} {line}"
            log.log(logging.DEBUG if self._bar is not None else logging.INFO, "%s", line)

    def close(self) -> None:
        """Remove the bar before other output is printed."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class _LogFile(logging.FileHandler):
    """A log file whose write errors are ignored: a full disk must not hide the error of the run."""

    def handleError(self, record: logging.LogRecord) -> None: ...

    def close(self) -> None:
        with contextlib.suppress(OSError):
            super().close()


def describe(done: int, total: int, activity: str) -> str:
    """`activity` after its count; a solver's line, which begins with λ, already contains one."""
    if activity.startswith("λ") or not (done or total):
        return activity
    return f"{done:,}/{total:,} {activity}" if total else f"{done:,} {activity}"


def solver_line(counters: Facts, total: int = 0) -> str:
    """A solver's report in words; `total` is the number of lambdas, 0 if a rule finds them.

    Its ``certainty`` says what the gap is; without one it is exact. Between exact passes any gap is the last known one.
    """
    count = f"{counters['breakpoint'] + 1}" + (f"/{total}" if total else "")
    known = f"{counters['gap']:.1e}" if math.isfinite(counters["gap"]) else "–"  # unknown until every block was visited
    tolerance = (
        f"{counters['tolerance']:.0e}" if math.isfinite(counters["tolerance"]) else "–"
    )  # without a dual point there is none
    if counters.get("relative"):
        tolerance += " (shares of the objective)"
    sign, kind = KINDS.get(counters.get("certainty", EXACT), ("", "")) if known != "–" else ("", "")
    gap = f"gap {sign} {known} ({kind}), target {tolerance}" if kind else f"gap {known}, target {tolerance}"
    calls = f"{thousands(counters['oracle_calls'])} oracle calls"
    every = f" · every λ within {counters['certified']:.2g}" if "certified" in counters else ""
    return f"λ #{count} = {counters['lambda']:.1e} · epoch {counters['passes']:.0f} · {gap} · {calls}{every}"


def thousands(count: float) -> str:
    """48,123 as 48k."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= 10 * size:
            return f"{count / size:.0f}{letter}"
    return f"{count:.0f}"


def clock(seconds: float) -> str:
    """42 s as 00:42, an hour as 1:00:00."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute:02d}:{second:02d}"
