"""What the log of a run's last invocation says: the stage, the last report, and how the invocation ended if it said so."""

from __future__ import annotations

import contextlib
import os
import re
import time
from dataclasses import dataclass

from gapwise.pipeline.errors import INTERRUPTED_WORDS
from gapwise.pipeline.progress import read_solver_line
from gapwise.records import Record
from gapwise.storage.backend import Location
from gapwise.storage.files import listed

TAIL = 1 << 18
"""Bytes read from the end of a log."""
LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d+ ([A-Z]+) (.*)")
BEGINS = " DEBUG stage "
TRACEBACK = "Traceback (most recent call last):"


@dataclass(frozen=True)
class Said:
    """The last words of an invocation."""

    stage: str | None = None
    """The stage it began last."""
    since: float | None = None
    """When that stage began, in seconds since the epoch."""
    line: str = ""
    """Its last report in that stage."""
    time: float | None = None
    """When it said anything last."""
    error: str = ""
    """The error that ended it."""
    stopped: bool = False
    """Whether a signal ended it, as it noted itself."""

    @property
    def solving(self) -> Record | None:
        """The last report of the solver in numbers (`pipeline.progress.read_solver_line`)."""
        return read_solver_line(self.line)


def last_words(run: Location) -> Said:
    """Those of the newest invocation of a run; empty if it has none. OSError if its log cannot be read."""
    logs = listed(run, "invocations/*/pipeline.log")
    if not logs:
        return Said()
    stage = since = stamp = None
    line, error, stopped = "", "", False
    whole = _tail(logs[-1])
    for text in whole[max(whole.rfind("\n", 0, max(whole.rfind(BEGINS), 0)), 0) :].splitlines():
        match = LINE.fullmatch(text)
        if match is None:
            if error and text and not text.startswith((" ", TRACEBACK)):
                error = text  # the last line of a traceback that is not indented says what happened
            continue
        stamp, level, words = match[1], match[2], match[3]
        error = words if level == "DEBUG" and words == TRACEBACK else ""
        if level == "DEBUG" and words.startswith("stage "):
            stage, since, line, stopped = words.removeprefix("stage "), stamp, "", False
        elif words.startswith(INTERRUPTED_WORDS):
            stopped = True
        elif level in ("INFO", "DEBUG") and not error:
            line = words
    return Said(stage, _seconds(since), line, _seconds(stamp), error, stopped)


def _tail(log: Location) -> str:
    with log.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(file.tell() - TAIL, 0))
        return file.read().decode(errors="replace")


def _seconds(stamp: str | None) -> float | None:
    """Since the epoch."""
    if stamp is None:
        return None
    with contextlib.suppress(ValueError, OverflowError):
        return time.mktime(time.strptime(stamp, "%Y-%m-%d %H:%M:%S"))
    return None
