"""The solver as a library: one lambda, a path breakpoint by breakpoint, its events, and where a time limit leaves it."""

from __future__ import annotations

import itertools
import logging
import math
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from dense import optimum
from equality import assert_same_path
from solved import PATHS, SINGLE, StopAfter, options_of, path_of, solved
from tiny import TINY, instance

from gapwise.stages.model.solved_path import in_memory
from gapwise.stages.solver import engine as library
from gapwise.stages.solver.counts import TRACE
from gapwise.stages.solver.engine import Engine, Task
from gapwise.stages.solver.events import Event, Kind, Progress, Stop
from gapwise.stages.solver.methods import methods
from gapwise.stages.solver.objective import Certificate
from gapwise.stages.solver.options import Status
from gapwise.stages.verify import CertificateError, verify
from gapwise.stages.verify import in_memory as source
from gapwise.storage.files import read_json
from gapwise.storage.paths import open_path
from gapwise.storage.paths import path_of as path_in_memory
from gapwise.storage.sink import MemorySink

LAM = 0.05


def test_solve__reaches_the_optimum() -> None:
    problem = TINY["multiclass"]()
    solution = library.solve(problem, LAM, options_of(), tolerance=1e-7, relative=False)
    assert solution.status is Status.CONVERGED
    assert solution.gap <= 1e-7
    assert solution.breakpoint.point.primal == pytest.approx(optimum(problem, LAM), abs=2e-7)
    assert solution.weights.shape == (problem.d,)
    assert solution.trace[-1, TRACE.index("gap")] == solution.gap


def test_solve__says_which_limit_ended_it_and_certifies_all_the_same() -> None:
    problem = TINY["multiclass"]()
    full = library.solve(problem, LAM, options_of(), tolerance=1e-9).breakpoint.point
    limits = {"max_passes": Status.PASS_LIMIT, "max_seconds": Status.TIME_LIMIT}
    for name, status in limits.items():
        solution = library.solve(problem, LAM, options_of(**{name: 1e-9}), tolerance=1e-9)
        assert solution.status is status
        assert solution.breakpoint.point.dual <= full.primal
        assert solution.gap == pytest.approx(
            solution.breakpoint.point.primal - solution.breakpoint.point.dual, abs=1e-12
        )
    stopped = library.solve(problem, LAM, options_of(), tolerance=1e-9, observers=[Stop(StopAfter(4))])
    assert stopped.status is Status.INTERRUPTED
    assert full.primal < stopped.breakpoint.point.primal


def test_path__is_walked_as_far_as_it_is_asked_for() -> None:
    problem, along = TINY["multiclass"](), path_of(**PATHS["paper"])
    whole = list(library.path(problem, along, options_of()))
    calls: list[int] = []
    walk = library.path(
        problem, along, options_of(), observers=[Progress(lambda report: calls.append(report["oracle_calls"]))]
    )
    first = next(walk)
    assert first.weights.tobytes() == whole[0].weights.tobytes()
    assert calls[-1] <= first.oracle_calls  # nothing of the next lambda
    assert [b.point.lam for b in walk] == [b.point.lam for b in whole[1:]]


def test_events__are_told_in_order(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Event] = []

    def note(event: Event) -> None:
        heard.append(event)

    with caplog.at_level(logging.DEBUG):
        engine = Engine.begin(Task(TINY["multiclass"](), options_of(rebase_steps=4), path_of(**PATHS["paper"])))
        solved = list(engine.walk([note]))
    assert caplog.records == []
    kinds = [event.kind for event in heard]
    assert kinds[0] is Kind.BOUNDARY
    assert kinds.count(Kind.BOUNDARY) > len(solved) == kinds.count(Kind.CERTIFIED)
    assert [event.breakpoint for event in heard if event.kind is Kind.CERTIFIED] == solved
    assert (heard[-1].kind, heard[-1].status) == (Kind.END, Status.CONVERGED)
    heard.clear()
    engine = Engine.begin(Task(TINY["multiclass"](), options_of(rebase_steps=4), path_of(**PATHS["paper"])))
    engine.run([note, Stop(StopAfter(3))])
    assert [event.kind for event in heard if event.kind is not Kind.CERTIFIED] == [*[Kind.BOUNDARY] * 4, Kind.LIMIT]
    assert heard[-1].status is Status.INTERRUPTED


def test_walk__goes_on_after_a_stop() -> None:
    task = Task(TINY["chain"](), options_of(rebase_steps=4), path_of(**PATHS["two_sided"]))
    whole = [b.weights.tobytes() for b in Engine.begin(task).walk()]
    engine, parts = Engine.begin(task), []
    for left in (3, 0, 7, math.inf):
        parts += [b.weights.tobytes() for b in engine.walk([Stop(StopAfter(left))])]
    assert engine.status is Status.CONVERGED
    assert parts == whole


class Once:
    """An observer that returns `status` at one boundary, and nothing afterwards."""

    def __init__(self, status: Status, at: int) -> None:
        self.status, self.left = status, at

    def __call__(self, event: Event) -> Status | None:
        self.left -= event.kind is Kind.BOUNDARY
        return self.status if event.kind is Kind.BOUNDARY and self.left == 0 else None


@pytest.mark.parametrize("status", list(Status))
@pytest.mark.parametrize(
    ("method", "kind"), [("bcfw", "two_sided"), pytest.param("ssg", "grid_none", marks=pytest.mark.interpreted)]
)
def test_observer__ends_the_walk_with_whatever_status_it_returns(status: Status, method: str, kind: str) -> None:
    task = Task(TINY["multiclass"](), options_of(method=method, max_passes=40.0), path_of(**PATHS[kind]))
    whole, engine = list(Engine.begin(task).walk()), Engine.begin(task)
    solved = list(engine.walk([Once(status, 3)]))
    assert (engine.status, engine.stopped) == (status, True)
    assert len(solved) < len(whole)
    solved += engine.walk()
    assert not engine.stopped
    assert [(b.point.lam, b.status, b.weights.tobytes()) for b in solved] == [
        (b.point.lam, b.status, b.weights.tobytes()) for b in whole
    ]


def test_solve__raises_where_a_certificate_has_numbers_that_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine.begin(Task(TINY["multiclass"](), options_of(), path_of(**PATHS["single"])))
    point = Certificate(0.05, math.nan, math.inf, 1.0, math.inf, 1.0)
    monkeypatch.setattr(engine.solver, "advance", lambda goal: (Status.CONVERGED, point))
    with pytest.raises(ArithmeticError, match=r"at lambda 0\.05 the primal objective is inf .*Scale the features"):
        engine.run()


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("two_sided_relative", "chain"),
        ("paper", "multiclass_cone"),
        ("anytime", "multiclass_cone"),
        ("grid_keep_dual", "chain"),
    ],
)
def test_in_memory__has_what_the_folder_has(tmp_path: Path, kind: str, name: str) -> None:
    """The same variables and attributes, and independent code finds the same in them."""
    problem, options = TINY[name](), options_of(rebase_steps=4)
    path = path_of(**(PATHS | {"anytime": {"rule": "anytime", "kappa": 0.7, "eps": 0.2}})[kind])
    solved(problem, tmp_path, options, path)
    engine, sink = Engine.begin(Task(problem, options, path, seed=3)), MemorySink()
    engine.run(sink=sink)
    arrays, attrs = in_memory(engine, sink, "k")
    unwritten, stored = path_in_memory(arrays, attrs), open_path(tmp_path).load()
    assert unwritten["seconds"].shape == stored["seconds"].shape
    for each in (unwritten, stored):
        each["seconds"].values[:] = 0.0
    assert unwritten.identical(stored)
    assert unwritten.attrs == stored.attrs
    assert {n: v.dtype for n, v in unwritten.variables.items()} == {n: v.dtype for n, v in stored.variables.items()}
    assert verify(problem, source(arrays, attrs)) == verify(problem, tmp_path)


def test_in_memory__wrong_certificates_are_found() -> None:
    problem = TINY["multiclass"]()
    engine, sink = Engine.begin(Task(problem, options_of(), path_of(**PATHS["grid_none"]))), MemorySink()
    engine.run(sink=sink)
    arrays, attrs = in_memory(engine, sink, "k")
    wrong = {**arrays, "weights": arrays["weights"] * 1.01}
    with pytest.raises(CertificateError, match=r"^in memory: .* certificate\(s\) do not hold; the first: lambda"):
        verify(problem, source(wrong, attrs))
    with pytest.raises(CertificateError, match=r"^in memory: .*array gap: nothing is stored that can be used\.$"):
        verify(problem, source({name: a for name, a in arrays.items() if name != "gap"}, attrs))


@pytest.mark.parametrize(
    ("method", "kind"),
    [("bcfw", "single"), ("accelerated", "grid_keep_dual")]
    + [pytest.param(m, "single", marks=pytest.mark.interpreted) for m in ("mpbcfw", "ssg", "eg", "cutting_plane")],
)
def test_without_steps__has_the_bits_of_a_resume_with_no_pass_left(tmp_path: Path, method: str, kind: str) -> None:
    """As if the committed state were copied and gone on from with `max_passes` that is over."""
    problem, path = TINY["multiclass"](), path_of(**{**PATHS[kind], "tolerance": 1e-9})
    options = options_of(method=method)
    engine = Engine.begin(Task(problem, options, path, seed=3))
    assert engine.run([Stop(StopAfter(3))]) is Status.INTERRUPTED
    here, sink = engine.without_steps(), MemorySink()
    status = here.run(sink=sink)
    arrays, attrs = in_memory(here, sink, "k")
    assert status is not Status.INTERRUPTED
    assert solved(problem, tmp_path / "run", options, path, stop=StopAfter(3)) is Status.INTERRUPTED
    shutil.copytree(tmp_path / "run" / "state", tmp_path / "copy" / "state")
    solved(problem, tmp_path / "copy", options_of(method=method, max_passes=1e-9), path)
    resumed = open_path(tmp_path / "copy").load()
    assert arrays["lambda"].size == (1 if kind == "single" else 3)
    for name, array in arrays.items():
        if name != "seconds":
            assert array.tobytes() == resumed[name].values.tobytes(), name
    assert {**attrs, "status": None} == {**resumed.attrs, "status": None}
    assert read_json(tmp_path / "run" / "state" / "HEAD.json")["generation"] == 1  # the run itself can go on
    assert engine.run() in (Status.CONVERGED, Status.PASS_LIMIT)


CLOCKS = ("perf_counter", "thread_time", "process_time", "monotonic")
ENDED = (Status.CONVERGED, Status.PASS_LIMIT)


def let_clocks_jump(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Each look at a clock finds it microseconds or a second later than the last one."""
    rng, now = np.random.default_rng(seed), itertools.count(1.0, 0.0)
    steps = itertools.accumulate(rng.choice([1e-6, 1e-4, 0.3, 1.0], size=1_000_000))
    for clock in CLOCKS:
        monkeypatch.setattr(time, clock, lambda: next(now) + next(steps))


SELDOM = pytest.mark.slow
"""The methods that no other test compiles."""


@pytest.mark.parametrize(
    "name", [name if name in ("bcfw", "accelerated") else pytest.param(name, marks=SELDOM) for name in methods()]
)
def test_methods__have_the_same_bits_whatever_clocks_say(name, tmp_path, monkeypatch):
    along = path_of(**{**SINGLE, "tolerance": 1e-4})
    options = options_of(method=name, max_passes=30.0)
    for run, seed in (("one", 0), ("other", 1)):
        with monkeypatch.context() as patch:
            let_clocks_jump(patch, seed)
            assert solved(instance("chain"), tmp_path / run, options, along) in ENDED
    assert_same_path(tmp_path / "one", tmp_path / "other")
