"""Solves whose states a thread writes: the same bits, every breakpoint once, and nothing lost at an end."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from equality import assert_same_path
from solved import PATHS, SINGLE, DieAfter, Killed, StopAfter, options_of, path_of, solved
from tiny import TINY, multiclass

from gapwise.stages import Stopped
from gapwise.stages.problems import parallel
from gapwise.stages.problems.parallel import Spread
from gapwise.stages.solver.engine import Engine, Task
from gapwise.stages.solver.events import Event, Kind
from gapwise.stages.solver.methods import methods
from gapwise.stages.solver.options import Status
from gapwise.storage import async_commits, sink
from gapwise.storage.commits import CommitStore
from gapwise.storage.files import read_json
from gapwise.storage.layout import open_group


class Writing:
    """What the commits of a test do: how long each takes in a thread, which fails, and what became of them."""

    def __init__(self) -> None:
        self.seconds, self.fails = 0.02, math.inf
        self.gate = threading.Event()
        self.gate.set()
        self.begun = self.ended = self.in_flight = 0


@pytest.fixture
def writing(monkeypatch) -> Writing:
    """Every commit is written by a thread, late and slowly."""
    commits, real = Writing(), CommitStore.commit

    class Late(ThreadPoolExecutor):
        def submit(self, write: Callable[[], None]) -> Future[None]:
            return super().submit(lambda: (time.sleep(0.01), write())[1])

    monkeypatch.setattr(async_commits, "ThreadPoolExecutor", Late)
    monkeypatch.setattr(async_commits, "LARGE_BYTES", 0)

    def commit(*args) -> None:
        commits.begun += 1
        time.sleep(commits.seconds)
        assert commits.gate.wait(60)
        if commits.begun >= commits.fails:
            raise OSError(28, "No space left on device")
        real(*args)
        commits.ended += 1

    monkeypatch.setattr(CommitStore, "commit", commit)
    return commits


def slowly(progress: object) -> None:
    """A report that gives the thread time to write."""
    time.sleep(0.02)


def generation(run: Path) -> int:
    return int(read_json(run / "state" / "HEAD.json")["generation"])


def lambdas_of_segments(run: Path) -> list[float]:
    names = [segment["name"] for segment in read_json(run / "state" / "HEAD.json")["segments"]]
    return [lam for name in names for lam in open_group(run / "state" / name)["lambda"][...].tolist()]


def test_thread__every_breakpoint_is_committed_once_and_no_bit_changes(tmp_path: Path, writing: Writing) -> None:
    problem, options, path = TINY["multiclass"](), options_of(rebase_steps=4), path_of(**PATHS["two_sided"])
    solved(problem, tmp_path / "never", options, path)
    writing.seconds, points = 0.1, []

    def report(progress: object) -> None:
        points.append(progress)
        slowly(progress)

    solved(problem, tmp_path / "thread", options, path, every_seconds=0.0, report=report)
    assert 1 < writing.begun == writing.ended < len(points)  # it went on while one was in flight
    lams = lambdas_of_segments(tmp_path / "thread")
    assert len(lams) == len(set(lams)) > 0
    assert_same_path(tmp_path / "thread", tmp_path / "never")


def test_stop__with_a_commit_in_flight_leaves_that_and_the_last_state(tmp_path: Path, writing: Writing) -> None:
    problem, options, path = TINY["multiclass"](), options_of(rebase_steps=4), path_of()
    solved(problem, tmp_path / "whole", options, path)
    writing.seconds = 0.1
    points: list[float] = []
    observed: list[int] = []
    status = solved(
        problem, tmp_path / "parts", options, path, stop=StopAfter(5), every_seconds=0.0,
        report=lambda progress: points.append(progress["oracle_calls"]),
        committed=lambda trace: observed.append(generation(tmp_path / "parts")),
    )  # fmt: skip
    assert status is Status.INTERRUPTED
    assert writing.begun == writing.ended == generation(tmp_path / "parts") >= 2
    assert observed == list(range(1, writing.ended + 1))  # each told when it was committed, and before the next one was
    again: list[float] = []
    solved(problem, tmp_path / "parts", options, path, report=lambda progress: again.append(progress["oracle_calls"]))
    assert again[0] == points[-1]  # the last state, not that of the commit in flight
    assert_same_path(tmp_path / "parts", tmp_path / "whole")


def test_stop__between_rebase_points_leaves_the_commit_in_flight_and_the_last_point(
    tmp_path: Path, writing: Writing, monkeypatch
) -> None:
    """A signal in the steps: the state that is kept since the last rebase point follows the one in flight."""
    monkeypatch.setattr(sink, "KEPT_SECONDS", 0.0)
    monkeypatch.setattr(parallel, "PIECE_SECONDS", 0.0)
    problem = multiclass(n=9)
    options, path = (
        options_of(rebase_steps=40, refresh_every=0, max_passes=30.0),
        path_of(**{**SINGLE, "tolerance": 1e-12}),
    )
    solved(problem, tmp_path / "whole", options, path)
    points: list[float] = []

    def check() -> None:
        steps = sys._getframe(1).f_code.co_name == "check_stop"
        if steps and len(points) >= 4:
            threading.Timer(0.1, writing.gate.set).start()
            raise Stopped

    writing.gate.clear()
    with pytest.raises(Stopped):
        solved(
            problem, tmp_path / "parts", options, path, every_seconds=0.0, spread=Spread(check=check),
            report=lambda progress: points.append(progress["oracle_calls"]),
        )  # fmt: skip
    assert writing.begun == writing.ended == generation(tmp_path / "parts") == 2
    again: list[float] = []
    solved(problem, tmp_path / "parts", options, path, report=lambda progress: again.append(progress["oracle_calls"]))
    assert again[0] == points[-1]
    assert_same_path(tmp_path / "parts", tmp_path / "whole")


def test_error__in_flight_ends_the_solve_which_resumes_from_the_generation_before(
    tmp_path: Path, writing: Writing
) -> None:
    problem, options, path = TINY["multiclass"](), options_of(rebase_steps=4), path_of()
    solved(problem, tmp_path / "whole", options, path)
    writing.fails = 2
    with pytest.raises(OSError, match="No space left"):
        solved(problem, tmp_path / "parts", options, path, every_seconds=0.0, report=slowly)
    assert (writing.begun, writing.ended) == (2, 1)  # nothing is written after it
    writing.fails = math.inf
    solved(problem, tmp_path / "parts", options, path, every_seconds=0.0)
    assert_same_path(tmp_path / "parts", tmp_path / "whole")


def test_end__at_once_leaves_no_thread_that_writes_and_resumes_to_the_same_bits(
    tmp_path: Path, writing: Writing
) -> None:
    problem, options, path = TINY["multiclass"](), options_of(rebase_steps=4), path_of()
    solved(problem, tmp_path / "whole", options, path)
    with pytest.raises(Killed):
        solved(problem, tmp_path / "parts", options, path, stop=DieAfter(6), every_seconds=0.0)
    before = generation(tmp_path / "parts") if writing.ended else 0
    time.sleep(0.1)
    assert (generation(tmp_path / "parts") if writing.ended else 0) == before
    solved(problem, tmp_path / "parts", options, path, every_seconds=0.0)
    assert_same_path(tmp_path / "parts", tmp_path / "whole")


@pytest.mark.parametrize("name", methods())
def test_packed__arrays_are_touched_by_no_later_step(name: str) -> None:
    """A thread writes them while the solve goes on."""
    choices = {"averaging": "weighted"} if name in ("mpbcfw", "ssg") else {}
    known: list[tuple[dict[str, np.ndarray], dict[str, bytes]]] = []

    def watch(event: Event) -> None:
        if event.kind is not Kind.BOUNDARY:
            return
        for arrays, contents in known:
            for array, content in contents.items():
                assert arrays[array].tobytes() == content, array
        packed = event.engine.pack().arrays
        known.append((packed, {array: values.tobytes() for array, values in packed.items()}))

    options = options_of(method=name, max_passes=20.0, **choices)
    Engine.begin(Task(multiclass(n=9), options, path_of(**{**SINGLE, "tolerance": 1e-9}))).run([watch])
    assert len(known) > 2
