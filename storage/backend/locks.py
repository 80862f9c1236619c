"""One process at a time: a lock file on this machine, a lease where storage has no locks.

A lock file is held by flock; the system frees it when its process ends, however it ends. A lease is a file that names
its holder and that the holder rewrites every `BEAT` seconds. A newcomer takes it over when it has not changed for
`PATIENCE` seconds by the newcomer's own clock, or at once when its holder ran on the same machine and is gone. A holder
that was suspended for that long still believes it holds the lease when it wakes. So nothing relies on a lease alone:
each writer of committed state uses its own names, and HEAD moves only from the version its writer saw last
(`remote.swap`).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from gapwise.records import Record
from gapwise.storage.backend.locations import ChangedError, Holder, LockedError, UrlPath
from gapwise.storage.backend.no_links import open_lock
from gapwise.storage.backend.remote import look, swap

BEAT = 10.0
PATIENCE = 60.0
POLL = 2.0
"""Seconds between two checks of a lease while waiting for it."""
log = logging.getLogger("gapwise.storage")


@contextlib.contextmanager
def flocked(path: Path, waiting: Callable[[str], None] | None, seconds: float) -> Iterator[None]:
    """Hold the lock file `path`, as `files.locked` describes."""
    looks = 5
    with contextlib.ExitStack() as files:
        file = files.enter_context(open_lock(path))
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(file, path):
                    break
                file = files.enter_context(open_lock(path))  # its last holder has removed it
            except BlockingIOError:
                looks -= 1
                if looks > 0:  # somebody may only look who holds it
                    time.sleep(0.01)
                    continue
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


def _is_at(file: IO[str], path: Path) -> bool:
    """Whether `path` still is the open `file`."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.lstat())
    except FileNotFoundError:
        return False


STAMP = "%Y-%m-%d %H:%M:%S"


def _words(pid: object, host: object, since: float) -> str:
    return f"process {pid} on host {host} (since {time.strftime(STAMP, time.localtime(since))})"


def flock_holder(path: Path) -> Holder | None:
    """Who holds the lock file `path`, as `files.holder` describes.

    The file of a process that was killed still names it, so its words count only while somebody holds the lock, or where
    that was on another machine, whose locks a mount may not show. Looking takes a shared lock for an instant, which
    `flocked` waits for.
    """
    try:
        file = open_lock(path, make=False)
    except FileNotFoundError:
        return None
    held = False
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            held = True
        said = file.read(1000).strip()
    match = re.fullmatch(r"process (\d+) on host (.*) \(since (.*)\)", said)
    if match is None:
        return Holder(None, "", None, certain=True) if held else None
    since = None
    with contextlib.suppress(ValueError, OverflowError):
        since = time.mktime(time.strptime(match[3], STAMP))
    holder = Holder(int(match[1]), match[2], since, certain=held)
    return holder if held or holder.host != socket.gethostname() else None


# -- leases -----------------------------------------------------------------------------------------------------------
@contextlib.contextmanager
def leased(path: UrlPath, waiting: Callable[[str], None] | None, seconds: float) -> Iterator[None]:
    """Hold the lease `path`, as `files.locked` describes."""
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

    def __init__(self, path: UrlPath) -> None:
        self.path = path
        self.me = {"process": os.getpid(), "host": socket.gethostname(), "since": time.time(), **_this_system()}
        self.version: str | None = None

    def contents(self) -> bytes:
        """New bytes at every call, never the same as those of another process."""
        return (json.dumps({**self.me, "beat": time.time_ns()}) + "\n").encode()

    def acquire(self, waiting: Callable[[str], None] | None, seconds: float) -> None:
        """Take the lease if it is free or its holder is gone; LockedError if the holder lives, unless `waiting`."""
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
                    log.warning("%s: %s left its lease behind; taken over", self.path, _name(holder))
                return
            moved = not first and version != watched
            if waiting is None and (moved or _is_here(holder)):
                raise LockedError(
                    f"{self.path.parent} is in use by {_name(holder)}; wait for it, or stop it first. If it has died, "
                    f"its lease ends {PATIENCE:.0f} s after its last sign of life; deleting {self.path} ends it now"
                )
            if version != watched:
                watched, since = version, time.monotonic()
            if waiting is not None:
                waiting(_name(holder))
            elif first:
                log.warning("%s: held by %s; waiting %.0f s for a sign of life", self.path, _name(holder), PATIENCE)
            first = False
            time.sleep(seconds if waiting is None else max(seconds, POLL))

    def beat(self, ended: threading.Event) -> None:
        """Renew the lease every `BEAT` seconds until `ended`, or until another process has taken it over."""
        while not ended.wait(BEAT):
            try:
                self.version = swap(self.path, self.contents(), self.version)
            except ChangedError:
                log.error("%s: another process has taken over; commits of this one will be refused", self.path)
                return
            except OSError as error:
                log.warning("%s: the lease could not be renewed (%s); trying again", self.path, error)

    def release(self) -> None:
        """Free the lease, unless another process has taken it over."""
        with contextlib.suppress(OSError):
            swap(self.path, b"{}\n", self.version)


def _holder(data: bytes | None) -> Record | None:
    """Who holds a lease: None if it is free, {} if its contents do not say."""
    if data is None:
        return None
    try:
        record = json.loads(data)
    except ValueError:
        return {}
    return record or None if isinstance(record, dict) else {}


def _name(holder: Record) -> str:
    if not holder.get("since"):
        return "another process"
    return _words(holder.get("process"), holder.get("host"), float(holder["since"]))


def _this_system() -> dict[str, str]:
    """What identifies this process besides its pid: the boot, the pid namespace, when the process began."""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        return {"system": f"{boot} {os.readlink('/proc/self/ns/pid')}", "began": _began(os.getpid())}
    return {"system": "", "began": ""}


def _began(pid: int) -> str:
    """The clock tick at which a process began; empty if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rsplit(b")", 1)[1].split()[19].decode()
    except OSError:
        return ""


def _is_here(holder: Record) -> bool:
    """Whether the holder's pid can be looked up on this machine."""
    return bool(holder.get("system")) and holder["system"] == _this_system()["system"]


def _is_gone(holder: Record) -> bool:
    """Whether the holder is known to have ended."""
    return _is_here(holder) and _began(int(holder["process"])) != holder.get("began")


def lease_holder(path: UrlPath) -> Holder | None:
    """Who holds the lease `path`, as `files.holder` describes; a lease without a beat for `PATIENCE` is over."""
    record = _holder(look(path)[0])
    if record is None or _is_gone(record) or time.time() - float(record.get("beat", 0)) / 1e9 > PATIENCE:
        return None
    since = float(record["since"]) if record.get("since") else None
    return Holder(record.get("process"), str(record.get("host", "")), since, certain=_is_here(record))
