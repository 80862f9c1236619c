"""What every sink guarantees: the same bits whatever it wrote, and nothing lost once a commit has returned."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from locations import fresh
from solved import PATHS, DieAfter, Killed, StopAfter, options_of, path_of
from tiny import TINY

from gapwise.stages.model.solved_path import NUMBERS, cells_of
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.solver.engine import Engine, Task
from gapwise.stages.solver.events import Event, Kind, Observer, Stop
from gapwise.stages.solver.options import Status
from gapwise.storage.commits import CommitStore
from gapwise.storage.sink import CommitSink, MemorySink


class Keeper:
    """Where the sinks of one walk keep what they commit; `open` stands for a new process."""

    def __init__(self, kind: str, request: pytest.FixtureRequest) -> None:
        self.folder = None if kind == "process" else fresh(kind, request) / "state"
        self.memory = MemorySink()

    def open(self, every_seconds: float) -> Any:
        if self.folder is not None:
            return CommitSink(CommitStore(self.folder, {"key": "k"}), every_seconds)
        self.memory.every_seconds = every_seconds
        return self.memory


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Keeper:
    return Keeper(request.param, request)


def engine_at(task: Task, sink: Any, spread: Spread = HERE) -> Engine:
    """At the last commit of the sink, or at the beginning."""
    commit = sink.load()
    return Engine.begin(task, spread) if commit is None else Engine.restored(task, commit.arrays, commit.attrs, spread)


def walked(task: Task, sink: Any, *observers: Observer, spread: Spread = HERE) -> Engine:
    """Walk on from the last commit of the sink."""
    engine = engine_at(task, sink, spread)
    with sink:
        engine.run(observers, sink)
    return engine


def bits(engine: Engine, sink: Any) -> dict[str, bytes]:
    """All numbers and weights of all breakpoints, the model between them, and the trace without its times."""
    columns = sink.columns((*NUMBERS, "oracle_calls", "status", "weights", "block_gap"))
    trace = np.array([(*row[:5], *row[7:]) for row in engine.solver.trace])
    arrays = {**columns, **cells_of(engine, sink), "trace": trace}
    return {name: np.asarray(array).tobytes() for name, array in arrays.items()}


@functools.cache
def task_of(kind: str = "two_sided") -> Task:
    path = {**PATHS[kind], "eps": 0.05} if kind == "two_sided" else PATHS[kind]
    return Task(TINY["multiclass"](), options_of(rebase_steps=4), path_of(**path), seed=3)


@functools.cache
def expected_of(kind: str = "two_sided") -> dict[str, bytes]:
    """The bits of a walk whose states nobody keeps."""
    sink = MemorySink()
    return bits(walked(task_of(kind), sink), sink)


class Calls:
    """An observer that notes the oracle calls at each boundary, and the lambdas solved so far."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.solved: list[list[float]] = [[]]

    def __call__(self, event: Event) -> None:
        if event.kind is Kind.BOUNDARY:
            self.calls.append(event.engine.solver.oracle_calls)
            self.solved.append([*self.solved[-1]])
        elif event.breakpoint is not None:
            self.solved[-1].append(event.breakpoint.point.lam)


@pytest.mark.parametrize(
    ("store", "every_seconds", "kind"),
    [
        ("disk", 0.0, "two_sided"),
        ("disk", math.inf, "grid_keep_dual"),
        ("process", 0.0, "grid_keep_dual"),
        ("process", math.inf, "two_sided"),
    ],
    indirect=["store"],
)
def test_sink__changes_no_bit_whatever_it_writes(store: Keeper, every_seconds: float, kind: str) -> None:
    task, sink = task_of(kind), store.open(every_seconds)
    engine = walked(task, sink)
    assert engine.status is Status.CONVERGED
    assert bits(engine, sink) == expected_of(kind)
    assert (store.open(every_seconds).load() is not None) is (every_seconds == 0.0)


@pytest.mark.parametrize(("store", "every_seconds"), [("disk", math.inf), ("process", 0.0)], indirect=["store"])
def test_stop__commits_the_point_where_it_stops(store: Keeper, every_seconds: float) -> None:
    task = task_of()
    for left in (2, 5, 0):
        seen, sink = Calls(), store.open(every_seconds)
        engine = walked(task, sink, seen, Stop(StopAfter(left)))
        assert engine.status is Status.INTERRUPTED
        assert engine.stopped
        before = sink.columns(("lambda",))["lambda"].tolist()
        again = store.open(every_seconds)
        assert engine_at(task, again).solver.oracle_calls == seen.calls[-1]
        assert again.columns(("lambda",))["lambda"].tolist() == before  # every lambda that was solved, once
        assert before[len(before) - len(seen.solved[-1]) :] == seen.solved[-1]
    sink = store.open(every_seconds)
    assert bits(walked(task, sink), sink) == expected_of()


@pytest.mark.parametrize(("store", "left"), [("disk", 14), ("memory", 6), ("process", 1)], indirect=["store"])
def test_death__loses_nothing_that_was_committed(store: Keeper, left: int) -> None:
    """The process dies at a boundary: what was committed at the one before is there, with every lambda solved by then."""
    task, seen, dies = task_of(), Calls(), DieAfter(left)

    def killer(event: Event) -> None:
        if event.kind is Kind.BOUNDARY:
            dies()

    with pytest.raises(Killed):
        walked(task, store.open(0.0), seen, killer)
    sink = store.open(0.0)
    assert engine_at(task, sink).solver.oracle_calls == seen.calls[-2]
    assert sink.columns(("lambda",))["lambda"].tolist() == seen.solved[-3]
    assert bits(walked(task, sink), sink) == expected_of()


class Gone(Exception):
    """All workers are."""


@pytest.mark.parametrize("store", ["disk"], indirect=True)
def test_error__in_an_exact_pass_leaves_the_point_where_that_began(store: Keeper) -> None:
    task, engines = task_of(), []

    def note(event: Event) -> None:
        engines.append(event.engine)

    for _ in range(3):
        passes = iter(range(3))

        def check(passes: Any = passes) -> None:
            if engines and engines[-1].solver.ledger.untouched and next(passes, None) is None:
                raise Gone

        sink = store.open(math.inf)
        with pytest.raises(Gone):
            walked(task, sink, note, spread=Spread(check=check))
        assert engine_at(task, store.open(math.inf)).solver.oracle_calls == engines[-1].solver.oracle_calls
    sink = store.open(math.inf)
    assert bits(walked(task, sink), sink) == expected_of()
