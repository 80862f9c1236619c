"""Leases on object stores: one process at a time; a dead holder's lease is taken over, a living holder's is not."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from hangs import within

from gapwise.storage.backend import UrlPath, backend, locks
from gapwise.storage.files import LockedError, locked

ELSEWHERE = {"process": 7, "host": "far", "since": 1_790_000_000.0, "system": "other", "began": "1"}


@pytest.fixture(autouse=True)
def quick(monkeypatch) -> None:
    monkeypatch.setattr(locks, "BEAT", 0.05)
    monkeypatch.setattr(locks, "PATIENCE", 1.5)
    monkeypatch.setattr(locks, "POLL", 0.05)


def holder(lease: UrlPath) -> dict:
    return json.loads(lease.read_bytes())


@contextlib.contextmanager
def beating(lease: UrlPath, holder: dict) -> Iterator[None]:
    """Another machine's process, which lives."""
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(0.1):
            lease.write_bytes(json.dumps({**holder, "beat": time.time_ns()}).encode())

    lease.write_bytes(json.dumps(holder).encode())
    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_lease__is_held_by_one_and_free_afterwards(objects: UrlPath) -> None:
    lease = objects / "run" / "lock"
    for _ in range(2):
        with locked(lease):
            assert holder(lease)["process"] == os.getpid()
            words = rf"{objects}/run is in use by process {os.getpid()} on host {socket.gethostname()}"
            with pytest.raises(LockedError, match=rf"{words}.*deleting {lease} ends it"), locked(lease):
                pass
    assert holder(lease) == {}


def test_lease__shows_signs_of_life(objects: UrlPath) -> None:
    lease = objects / "lock"
    with locked(lease):
        first = holder(lease)["beat"]
        end = time.monotonic() + 20
        while holder(lease)["beat"] == first:
            assert time.monotonic() < end
            time.sleep(0.02)


def test_lease__of_a_killed_process_of_this_machine_is_taken_at_once(s3: str, cache, caplog, monkeypatch) -> None:
    monkeypatch.setattr(locks, "PATIENCE", 1e9)
    lease = UrlPath(f"{s3}/killed/lock")
    code = (
        "import time; from gapwise.storage.backend import UrlPath; from gapwise.storage.files import locked\n"
        f"with locked(UrlPath({str(lease)!r})): print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(LockedError, match=f"process {process.pid}"), locked(lease):
            pass
        process.send_signal(signal.SIGKILL)

    def take() -> None:
        with locked(lease):
            assert holder(lease)["process"] == os.getpid()

    with caplog.at_level(logging.WARNING, logger="gapwise.storage"):
        within(60, take)
    assert f"process {process.pid}" in caplog.text
    assert "taken over" in caplog.text


def test_lease__of_another_machine_is_refused_while_it_beats(objects: UrlPath) -> None:
    lease = objects / "lock"
    with beating(lease, ELSEWHERE), pytest.raises(LockedError, match="process 7 on host far"), locked(lease):
        pass


@pytest.mark.parametrize("left", [json.dumps(ELSEWHERE).encode(), b"not json", b"[1]"])
def test_lease__that_does_not_move_is_taken_over_after_a_while(objects: UrlPath, left: bytes) -> None:
    lease = objects / "lock"
    lease.write_bytes(left)
    began = time.monotonic()
    with locked(lease):
        assert time.monotonic() - began >= 1.5
        assert holder(lease)["process"] == os.getpid()


@pytest.mark.parametrize("free", [None, b"{}\n"])
def test_lease__that_is_free_is_taken_at_once(objects: UrlPath, free: bytes | None, monkeypatch) -> None:
    monkeypatch.setattr(locks, "PATIENCE", 1e9)
    if free is not None:
        (objects / "lock").write_bytes(free)

    def take() -> None:
        with locked(objects / "lock"):
            assert holder(objects / "lock")["process"] == os.getpid()

    within(60, take)


def test_lease__that_was_lost_is_said_and_not_freed(objects: UrlPath, caplog) -> None:
    lease = objects / "lock"
    with caplog.at_level(logging.ERROR, logger="gapwise.storage"), locked(lease):
        lease.write_bytes(json.dumps(ELSEWHERE).encode())
        end = time.monotonic() + 20
        while "another process has taken over" not in caplog.text:
            assert time.monotonic() < end
            time.sleep(0.02)
    assert holder(lease)["host"] == "far"


def test_lease__outlives_a_store_that_is_away_for_a_moment(objects: UrlPath, caplog, monkeypatch) -> None:
    lease, failed = objects / "lock", threading.Event()
    kind = type(backend(lease))
    real = kind.swap

    def flaky(self, where, data, seen):
        if threading.current_thread().name == "lease" and not failed.is_set():
            failed.set()
            raise OSError("no route to host")
        return real(self, where, data, seen)

    with caplog.at_level(logging.WARNING, logger="gapwise.storage"), locked(lease):
        first = holder(lease)["beat"]
        monkeypatch.setattr(kind, "swap", flaky)
        assert failed.wait(20)
        end = time.monotonic() + 20
        while holder(lease)["beat"] == first:
            assert time.monotonic() < end
            time.sleep(0.02)
    assert "no route to host" in caplog.text
    assert holder(lease) == {}
