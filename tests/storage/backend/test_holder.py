"""Who holds a lock is seen without taking it: a living process is, one that was killed is not, a link is never followed."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from gapwise.storage.files import holder, locked

HOLD = "import sys, time; from pathlib import Path; from gapwise.storage.files import locked\nwith locked(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"  # noqa: E501


def test_holder__is_the_process_that_holds_the_lock_and_nobody_before_and_after(tmp_path: Path) -> None:
    lock = tmp_path / "run" / "lock"
    assert holder(lock) is None
    with locked(lock):
        held_by = holder(lock)
        assert held_by is not None
        assert (held_by.process, held_by.certain) == (os.getpid(), True)
        assert abs(held_by.since - time.time()) < 60
        assert str(held_by).startswith(f"process {os.getpid()} on host ")
    assert holder(lock) is None
    with locked(lock):  # looking did not take it
        pass


def test_holder__is_nobody_once_its_process_was_killed(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(lock)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process, process.stdout:
        assert process.stdout.readline() == "held\n"
        held_by = holder(lock)
        assert held_by is not None
        assert held_by.process == process.pid
        process.send_signal(signal.SIGKILL)
    assert "process" in lock.read_text(), "the file still names it"
    assert holder(lock) is None


def test_holder__does_not_follow_a_link(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("process 7 on host far (since 2026-11-21 10:00:00)\n")
    (tmp_path / "lock").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="symbolic link"):
        holder(tmp_path / "lock")


def test_lock__is_not_refused_because_somebody_looks(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.touch()
    with lock.open() as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        threading.Timer(0.02, fcntl.flock, [looking, fcntl.LOCK_UN]).start()
        with locked(lock):
            pass
