"""On PYTHONPATH, this module sabotages a process from inside, as the environment variable SABOTAGE says.

``kill fsync 17``: SIGKILL just before the 17th call of os.fsync (or rename, replace).
``count FILE``: writes to FILE how often each of these was called.
``clock 3``: the clocks that the project's own modules see jump by hours, forwards and backwards, by a generator of seed 3.
``behind 0.05 kill fsync 17``: every commit is written behind the solve, and waits 0.05 s before each rename and replace, as
the solve does at each rebase point; SIGKILL before the 17th call of os.fsync that the writing thread makes. Without ``kill
fsync 17`` nothing is killed; with ``count FILE`` the calls of that thread are counted.
"""

from __future__ import annotations

import atexit
import json
import os
import random
import signal
import sys
import threading
import time

CALLS = ("fsync", "rename", "replace")
OURS = ("gapwise",)
NEVER = -1
"""A number of calls that is not reached."""
OFTEN = 0.8
"""Share of the looks at a clock before which it jumps. A solve looks a few dozen times, and commits where time passed."""
calls = dict.fromkeys(CALLS, 0)


def watch(name: str, fatal: int, thread: str | None = None) -> None:
    real = getattr(os, name)

    def call(*args, **kwargs):
        calls[name] += thread in (None, threading.current_thread().name)
        if calls[name] == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)

    setattr(os, name, call)


def count(file: str, thread: str | None = None) -> None:
    """Write at the end how often each operation was called."""
    for name in CALLS:
        watch(name, NEVER, thread)

    @atexit.register
    def tell() -> None:
        with open(file, "w") as stream:
            json.dump(calls, stream)


def delay(name: str, seconds: float) -> None:
    """Make a call wait in the thread that writes commits."""
    real = getattr(os, name)

    def call(*args, **kwargs):
        if threading.current_thread().name == "commit":
            time.sleep(seconds)
        return real(*args, **kwargs)

    setattr(os, name, call)


def slowed(real: property, seconds: float) -> property:
    """A property that takes its time."""

    def call(owner: object) -> object:
        time.sleep(seconds)
        return real.fget(owner)

    return property(call)


def jump(name: str, rng: random.Random) -> None:
    real = getattr(time, name)
    offset = [0.0]

    def clock() -> float:
        if sys._getframe(1).f_globals.get("__name__", "").split(".")[0] not in OURS:
            return real()
        if rng.random() < OFTEN:
            offset[0] += rng.uniform(-1e4, 1e4)
        return real() + offset[0]

    setattr(time, name, clock)


what, *words = os.environ.get("SABOTAGE", "nothing").split()
if what == "kill":
    watch(words[0], int(words[1]))
elif what == "count":
    count(words[0])
elif what == "behind":
    from gapwise.storage import behind

    behind.BEHIND_BYTES = 0
    behind.CommitsBehind.free = slowed(behind.CommitsBehind.free, float(words[0]))
    for each in ("rename", "replace"):
        delay(each, float(words[0]))
    if words[1:2] == ["kill"]:
        watch(words[2], int(words[3]), "commit")
    elif words[1:2] == ["count"]:
        count(words[2], "commit")
elif what == "clock":
    for each in ("time", "monotonic", "perf_counter"):
        jump(each, random.Random(int(words[0])))
