"""On PYTHONPATH, this module sabotages a process from inside, as the environment variable SABOTAGE says.

``kill fsync 17``: SIGKILL just before the 17th call of os.fsync (or rename, replace).
``thread 0.05 kill fsync 17``: every commit is written by a thread, and waits 0.05 s before each rename and replace, as
the solve does at each rebase point; SIGKILL before the 17th call of os.fsync that the writing thread makes. Without ``kill
fsync 17`` nothing is killed.
"""

from __future__ import annotations

import os
import signal
import threading
import time


def watch(name: str, fatal: int, thread: str | None = None) -> None:
    real, calls = getattr(os, name), [0]

    def call(*args, **kwargs):
        calls[0] += thread is None or threading.current_thread().name.startswith(thread)
        if calls[0] == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)

    setattr(os, name, call)


def delay(name: str, seconds: float) -> None:
    """Make a call wait in the thread that writes commits."""
    real = getattr(os, name)

    def call(*args, **kwargs):
        if threading.current_thread().name.startswith("commit"):
            time.sleep(seconds)
        return real(*args, **kwargs)

    setattr(os, name, call)


def slowed(real: property, seconds: float) -> property:
    """A property that takes its time."""

    def call(owner: object) -> object:
        time.sleep(seconds)
        return real.fget(owner)

    return property(call)


what, *words = os.environ.get("SABOTAGE", "nothing").split()
if what == "kill":
    watch(words[0], int(words[1]))
elif what == "thread":
    from gapwise.storage import async_commits

    async_commits.LARGE_BYTES = 0
    async_commits.AsyncCommits.free = slowed(async_commits.AsyncCommits.free, float(words[0]))
    for each in ("rename", "replace"):
        delay(each, float(words[0]))
    if words[1:]:
        watch(words[2], int(words[3]), "commit")
