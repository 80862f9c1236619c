"""One process at a time: a lock file on this machine, a lease on an object store.

A lock file is held by flock: the system frees it when its process ends, however it ends. An object store has no such
thing. A lease is an object that names its holder and that the holder rewrites every `BEAT` seconds; one that has not moved
for `PATIENCE` seconds, watched by the newcomer's own clock, is taken over, at once if its process is known to be gone
from this very machine. That is no proof: a holder that was suspended for so long goes on when it wakes, beside its
successor. So nothing rests on the lease alone: committed state has names of its own for each writer, and HEAD moves only
from what its writer saw last (`pointer.swap`).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from storage.files import make_directory
from storage.places import ObjectPlace, Place
from storage.pointer import ChangedError, look, swap

BEAT = 10.0
PATIENCE = 60.0
POLL = 2.0
log = logging.getLogger("gapwise.storage")


class LockedError(RuntimeError):
    """Another process holds the directory; names its pid and host."""


@contextlib.contextmanager
def locked(path: Place, waiting: Callable[[str], None] | None = None, seconds: float = 0.5) -> Iterator[None]:
    """Hold the lock file or lease `path`. If another process does: LockedError, or, with `waiting`, tell it who and wait."""
    if isinstance(path, ObjectPlace):
        with _leased(path, waiting, seconds):
            yield
        return
    make_directory(path.parent)
    with path.open("a+", encoding="utf-8") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                file.seek(0)
                holder = file.read().strip() or "another process"
                if waiting is None:
                    raise LockedError(f"{path.parent} is in use by {holder}; wait for it, or stop it first") from None
                waiting(holder)
                time.sleep(seconds)
        file.seek(0)
        file.truncate()
        file.write(_words(os.getpid(), socket.gethostname(), time.time()) + "\n")
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def _words(pid: Any, host: Any, since: float) -> str:
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(since))
    return f"process {pid} on host {host} (since {stamp})"


# -- leases -----------------------------------------------------------------------------------------------------------
@contextlib.contextmanager
def _leased(path: ObjectPlace, waiting: Callable[[str], None] | None, seconds: float) -> Iterator[None]:
    lease = _Lease(path)
    lease.acquire(waiting, seconds)
    ended = threading.Event()
    beating = threading.Thread(target=lease.beat, args=(ended,), name="lease", daemon=True)
    beating.start()
    try:
        yield
    finally:
        ended.set()
        beating.join()
        lease.release()


class _Lease:
    """A lease of this process on `path`."""

    def __init__(self, path: ObjectPlace) -> None:
        self.path = path
        self.me = {"process": os.getpid(), "host": socket.gethostname(), "since": time.time(), **_this_system()}
        self.version: str | None = None

    def contents(self) -> bytes:
        """It differs at every beat, and from any other process's."""
        return (json.dumps({**self.me, "beat": time.time_ns()}) + "\n").encode()

    def acquire(self, waiting: Callable[[str], None] | None, seconds: float) -> None:
        """Take it when it is free, or its holder gone; LockedError if its holder lives, unless `waiting`."""
        first, watched, since = True, None, time.monotonic()
        while True:
            data, version = look(self.path)
            holder = _holder(data)
            silent = version == watched and time.monotonic() - since >= PATIENCE
            if holder is None or silent or _is_gone(holder):
                try:
                    self.version = swap(self.path, self.contents(), version)
                except ChangedError:
                    continue
                if holder is not None:
                    log.warning("%s: %s has left its lease behind; taken over", self.path, _name(holder))
                return
            moved = not first and version != watched
            if waiting is None and (moved or _is_here(holder)):
                raise LockedError(
                    f"{self.path.parent} is in use by {_name(holder)}; wait for it, or stop it first. Were it gone, its "
                    f"lease would end {PATIENCE:.0f} s after its last sign of life; deleting {self.path} ends it now"
                )
            if version != watched:
                watched, since = version, time.monotonic()
            if waiting is not None:
                waiting(_name(holder))
            elif first:
                log.warning("%s: held by %s; watching for a sign of life", self.path, _name(holder))
            first = False
            time.sleep(seconds if waiting is None else max(seconds, POLL))

    def beat(self, ended: threading.Event) -> None:
        """Show every `BEAT` seconds that this process lives, until `ended` or until another one has taken over."""
        while not ended.wait(BEAT):
            try:
                self.version = swap(self.path, self.contents(), self.version)
            except ChangedError:
                log.error("%s: another process has taken over; what this one still commits will be refused", self.path)
                return
            except OSError as error:
                log.warning("%s: no sign of life could be left (%s); trying again", self.path, error)

    def release(self) -> None:
        """Free, unless another process has it by now."""
        with contextlib.suppress(OSError):
            swap(self.path, b"{}\n", self.version)


def _holder(data: bytes | None) -> dict[str, Any] | None:
    """Who holds a lease; None if it is free, {} if it does not say."""
    if data is None:
        return None
    try:
        found = json.loads(data)
    except ValueError:
        return {}
    return found or None if isinstance(found, dict) else {}


def _name(holder: dict[str, Any]) -> str:
    if not holder.get("since"):
        return "another process"
    return _words(holder.get("process"), holder.get("host"), float(holder["since"]))


def _this_system() -> dict[str, str]:
    """What makes a pid mean one process: this boot, this pid namespace, and when the process began."""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return {"system": f"{boot} {os.readlink('/proc/self/ns/pid')}", "began": _began(os.getpid())}
    return {"system": "", "began": ""}


def _began(pid: int) -> str:
    """The clock tick at which a process began; empty if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except OSError:
        return ""


def _is_here(holder: dict[str, Any]) -> bool:
    """Whether the holder's pid can be looked up on this machine."""
    return bool(holder.get("system")) and holder["system"] == _this_system()["system"]


def _is_gone(holder: dict[str, Any]) -> bool:
    """Whether the holder is known to have ended."""
    return _is_here(holder) and _began(int(holder["process"])) != holder.get("began")
