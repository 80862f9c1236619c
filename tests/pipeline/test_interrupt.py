"""Signals: what ends where, and a second one ends the process whatever holds the main thread."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from fake_runs import fake_run
from waiting import PATIENCE

from gapwise.pipeline import interrupt
from gapwise.pipeline.interrupt import Interrupted, Stop, number_of
from gapwise.pipeline.saved import interruption, saved_of_run
from gapwise.pipeline.stage_graph import flow
from gapwise.pipeline.sweep.run import interrupted, saved_of

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


BEFORE = ("featurize", "init_path")


def test_saved_of_run__names_the_stages_that_are_done_and_the_last_commit(tmp_path: Path) -> None:
    assert saved_of_run(tmp_path / "gone") == ""
    assert saved_of_run(fake_run(tmp_path, "toy-0", done=BEFORE, generations=())) == "featurize, init_path"
    solving = fake_run(tmp_path, "toy-1", done=BEFORE, generations=(4, 5))
    assert saved_of_run(solving) == "featurize, init_path, solve up to λ #6"
    (solving / "state" / "HEAD.json").write_text("{")
    assert saved_of_run(solving) == "featurize, init_path", "nobody can say what a damaged commit holds"
    whole = fake_run(tmp_path, "toy-2", generations=(4,))
    assert saved_of_run(whole) == ", ".join(flow())
    (whole / "refit").mkdir()
    shutil.copytree(whole / "state", whole / "refit" / "state")
    assert saved_of_run(whole) == ", ".join([*flow(), "a part of refit"])


def test_saved_of__a_sweep_counts_complete_and_begun_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"run": str(fake_run(tmp_path, "toy-0")), "status": "complete"},
        {"run": str(fake_run(tmp_path, "toy-1")), "status": "done"},
        {"run": str(fake_run(tmp_path, "toy-2", done=BEFORE, generations=())), "status": "interrupted"},
        {"run": str(tmp_path / "toy-3"), "status": "waiting"},
        {"run": "", "status": "refused"},
    ]
    assert saved_of(rows) == "2 complete and 1 begun of 4 runs"
    assert saved_of(rows[2:]) == "1 begun of 2 runs"
    assert saved_of(rows[3:]) == ""
    stop = Stop()
    assert [interrupted(stop, saved_of(part)) for part in (rows, rows[3:])] == [130, 130]
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "Interrupted; progress saved: 2 complete and 1 begun of 4 runs. Rerun the same command to resume.",
        "Interrupted; no run had saved anything yet. Rerun the same command to begin again.",
    ]
    assert interruption("") == "Interrupted; nothing was saved yet. Rerun the same command to begin again."
