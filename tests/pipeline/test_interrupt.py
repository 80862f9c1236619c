"""Signals: what ends where, and a second one ends the process whatever holds the main thread."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from waiting import PATIENCE

from gapwise.pipeline import interrupt
from gapwise.pipeline.interrupt import Interrupted, Stop, number_of

HELD = """
import hashlib
from gapwise.pipeline.interrupt import Stop

with Stop(ends_process=True):
    print("held", flush=True)
    for _ in range(2):  # the first takes long enough for signals, and returns to Python; the second many minutes
        hashlib.pbkdf2_hmac("sha256", b"", b"", 2**20 if _ == 0 else 2**31 - 1)
"""


def test_stop__is_a_flag_where_work_is_committed_and_leaves_handlers_as_they_were() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Stop(ends_process=True) as stop:
        assert not stop()
        signal.raise_signal(signal.SIGTERM)
        assert stop()
        assert stop.signal == signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == before


def swallowed() -> None:
    """Work that takes whatever comes for an error that does not matter."""
    with contextlib.suppress(BaseException):
        signal.raise_signal(signal.SIGINT)


def test_stop__is_no_exception_that_broad_clauses_catch() -> None:
    """As that of a section of the report, which would go on with the next one."""
    went_on: list[bool] = []

    def work() -> None:
        with contextlib.suppress(Exception):
            signal.raise_signal(signal.SIGTERM)
        went_on.append(True)

    with Stop() as stop, pytest.raises(Interrupted, match="SIGTERM"), stop.at_once():
        work()
    assert not went_on


def mistaken() -> None:
    """Work that fails because of the stop."""
    try:
        signal.raise_signal(signal.SIGINT)
    except Interrupted as error:
        raise RuntimeError("no compiled object yet") from error


@pytest.mark.parametrize("work", [swallowed, mistaken])
def test_at_once__a_stop_is_no_error_of_the_work(work) -> None:
    with Stop() as stop, pytest.raises(Interrupted), stop.at_once():
        work()


def test_signals__that_come_together_are_one_request_and_the_next_one_is_the_programs_own() -> None:
    """GNU timeout sends one to the command and one to its process group."""
    with Stop() as stop:
        threading.Timer(interrupt.TOGETHER / 3, os.kill, [os.getpid(), signal.SIGTERM]).start()
        signal.raise_signal(signal.SIGTERM)
        assert stop()
        with pytest.raises(KeyboardInterrupt) as second:
            signal.raise_signal(signal.SIGINT)
    assert number_of(second.value) == signal.SIGINT
    assert number_of(Interrupted(signal.SIGTERM)) == stop.signal == signal.SIGTERM


def test_second_signal__ends_a_process_whose_main_thread_is_in_compiled_code(tmp_path: Path) -> None:
    script = tmp_path / "held.py"
    script.write_text(HELD)
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as held:
        assert held.stdout is not None
        assert held.stderr is not None
        assert held.stdout.readline() == "held\n"
        for number in (signal.SIGTERM, signal.SIGTERM):
            os.kill(held.pid, number)
        assert held.stderr.readline() == "\n"
        time.sleep(2 * interrupt.TOGETHER)
        assert held.poll() is None, "two at the same time are one"
        os.kill(held.pid, signal.SIGINT)
        assert held.wait(PATIENCE) == -signal.SIGINT, "which a shell calls 130"
