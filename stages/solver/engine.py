"""The solver as a library: `solve` one lambda, or walk a `path`; arrays in, arrays out, no folder and no log.

An `Engine` holds a method and a path rule, goes from boundary to boundary, and tells observers and a sink (`events`). It
begins at the start of the path or at a state that was packed before; from either it takes the same way, bit by bit.
"""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from gapwise.records import Facts
from gapwise.stages import Stopped
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.check import check_choices
from gapwise.stages.solver.counts import TRACE
from gapwise.stages.solver.events import Event, Kind, Observer, Packed, Sink, limit_of
from gapwise.stages.solver.ledger import trace_of
from gapwise.stages.solver.method import AnyMethod
from gapwise.stages.solver.methods import method, method_options
from gapwise.stages.solver.options import MethodOptions, PathOptions, Status
from gapwise.stages.solver.path.breakpoints import Breakpoint
from gapwise.stages.solver.path.rule import PathRule, PathStart, certainty_of_path
from gapwise.stages.solver.path.walk import begin, in_metric_of, walk
from gapwise.stages.solver.supports import Supports

NO_PASSES = 1e-9
"""`max_passes` with which every lambda gets the exact pass that certifies it, and ends."""

MOST_WARM_UP_PASSES = 20.0
"""Effective passes at a lambda, after which `warm_up` gives the path up."""


@dataclass(frozen=True)
class Task:
    """What is to be solved: all that determines the result.

    Attributes
    ----------
    start : PathStart, optional
        The start of the path, if it is at hand; `Engine.begin` computes it otherwise.
    initial : Supports, optional
        The dual point at which the first of given lambdas begins; by default that of w = 0.
    switches : bool
        Whether a method may go on with other steps at a given lambda that takes many passes: where models are wanted rather
        than a paper's passes. Rules that find their lambdas say so themselves (`PathRule.switches`).
    """

    problem: Problem
    options: MethodOptions
    path: PathOptions
    seed: int = 0
    start: PathStart | None = None
    initial: Supports | None = None
    switches: bool = False

    @property
    def may_switch(self) -> bool:
        """Whether a method may go on with other steps at a hard lambda of this task."""
        return self.switches or self.path.can.switches

    def check(self) -> None:
        """Raise ValueError for combinations that cannot be solved or certified."""
        check_choices(self.problem, self.options, self.path)

    def without_steps(self) -> Task:
        """The same with nothing left but one exact pass a lambda, which certifies the point where it is."""
        few = dataclasses.replace(self.options, max_passes=NO_PASSES, max_seconds=math.inf)
        return dataclasses.replace(self, options=few)


@dataclass
class Engine:
    """A walk over the lambdas of a task, at its start, at a boundary, or at its end."""

    task: Task
    solver: AnyMethod
    rule: PathRule
    start: PathStart | None
    spread: Spread = HERE
    """Where oracles of exact passes are called, and `Spread.check`, which may raise an error to stop; changes no bit."""
    status: Status | None = None
    """How the last `walk` ended."""
    stopped: bool = False
    """Whether it ended at a boundary."""

    @classmethod
    def begin(cls, task: Task, spread: Spread = HERE) -> Self:
        """At the first lambda; ValueError for what cannot be solved."""
        task.check()
        problem, path = task.problem, task.path
        start = task.start or path.can.start(problem, path, spread)
        solver = begin(problem, task.options, path, start, task.seed, spread, task.initial)
        rule = in_metric_of(problem, path.can.begin(path, start))
        return cls(task, solver, rule, start, spread)

    @classmethod
    def restored(cls, task: Task, arrays: Mapping[str, np.ndarray], attrs: Facts, spread: Spread = HERE) -> Self:
        """At a packed state; ValueError, KeyError or TypeError if that does not fit the task."""
        task.check()
        problem, path, nothing = task.problem, task.path, np.empty(0)
        scalars, of_method = attrs["start"], dict(attrs["method"])
        start = None if scalars is None else PathStart(labels=nothing, losses=nothing, psi=nothing, **scalars)
        kind = method(of_method.pop("name"))
        solver = kind.restored(problem, task.options, task.seed, arrays, of_method, spread=spread)
        rule = path.can.restored(path, start, arrays, attrs["rule"])
        return cls(task, solver, in_metric_of(problem, rule), start, spread)

    @property
    def certainty(self) -> str:
        """What the gaps of this path are (`problems.capabilities`)."""
        return certainty_of_path(self.task.problem, self.task.path)

    def warm_up(self) -> None:
        """Compile or load every function that the walk calls, so that seconds exclude compilation."""
        self.solver.warm_up()

    def walk(self, observers: Sequence[Observer] = (), sink: Sink | None = None) -> Generator[Breakpoint, None, Status]:
        """Solve one lambda after another, and yield each when it is certified.

        Parameters
        ----------
        observers : sequence of callable
            Each hears every event (`events.Event`). The first status returned at a boundary ends the walk there.
        sink : Sink, optional
            Offered the state at each boundary. If the walk ends at a boundary, the sink commits that state; if an error ends
            it, the last state from which the walk can go on, if there is one.

        Returns
        -------
        Status
            As `path.walk.walk`; also in `status`. A walk that ended at a boundary goes on if `walk` is called again.
        """
        waiting: list[Breakpoint] = []

        def handed() -> list[Breakpoint]:
            """The breakpoints since the last offer, which the sink takes now."""
            taken = waiting.copy()
            waiting.clear()
            return taken

        def boundary(solver: AnyMethod) -> Status | None:
            answers = [observer(Event(Kind.BOUNDARY, self)) for observer in observers]
            self.status = next((answer for answer in answers if answer), None) or limit_of(self)
            self.stopped = self.status is not None
            if not self.stopped:
                solver.ledger.may_stop = sink is not None and sink.offer(self.pack, handed())
            return self.status

        def tell(event: Event) -> None:
            for observer in observers:
                observer(event)

        self.status = None
        self.solver.ledger.switches = self.task.may_switch
        breakpoints = walk(self.solver, self.rule, self.task.path, boundary)
        try:
            while True:
                try:
                    solved = next(breakpoints)
                except StopIteration as end:
                    self.status = end.value
                    break
                waiting.append(solved)
                tell(Event(Kind.CERTIFIED, self, breakpoint=solved))
                yield solved
        except (Exception, Stopped):
            if sink is not None:
                self._keep(sink, handed)
            raise
        if sink is not None:
            if self.stopped:
                sink.commit(self.pack, handed())
            else:
                sink.end(handed())
        tell(Event(Kind.LIMIT if self.stopped else Kind.END, self, status=self.status))
        return self.status

    def _keep(self, sink: Sink, handed: Callable[[], list[Breakpoint]]) -> None:
        """Commit what an error leaves: the present point in the middle of an exact pass, else the last offer held."""
        if self.solver.ledger.untouched:
            sink.commit(self.pack, handed())
        else:
            sink.commit()

    def run(self, observers: Sequence[Observer] = (), sink: Sink | None = None) -> Status:
        """Walk to the end; see `walk`."""
        deque(self.walk(observers, sink), maxlen=0)
        assert self.status is not None
        return self.status

    def pack(self) -> Packed:
        """The state of method and rule; only at a boundary."""
        solver, rule = self.solver, self.rule
        arrays, method_attrs = solver.packed()
        rule_arrays, rule_attrs = rule.packed()
        attrs: dict[str, object] = {
            "trace_columns": list(TRACE),
            "method": {"name": solver.options.method, **method_attrs},
            "rule": rule_attrs,
            "start": None if self.start is None else self.start.scalars(),
        }
        specs = (*solver.specs, *rule.specs)
        if sorted([*arrays, *rule_arrays]) != sorted(spec[0] for spec in specs):
            raise TypeError(f"solver.method={solver.options.method}: the arrays it packs differ from its specs")
        return Packed(specs, {**arrays, **rule_arrays}, attrs, trace_of(solver, rule)[0])

    def without_steps(self) -> Engine:
        """An engine at the present boundary that certifies the given lambdas where it stands, as after a time limit."""
        state = self.pack()
        return Engine.restored(self.task.without_steps(), state.arrays, state.attrs, self.spread)


@dataclass(frozen=True)
class Solution:
    """One solved lambda.

    Attributes
    ----------
    status : Status
        CONVERGED, or the limit that ended it; the certificate holds all the same.
    breakpoint : Breakpoint
        The weights, their certificate, the dual point, and what they took.
    trace : array (rows, columns of `counts.TRACE`)
        A row for each exact pass.
    """

    status: Status
    breakpoint: Breakpoint
    trace: np.ndarray

    @property
    def weights(self) -> np.ndarray:
        """float64, (d,): w."""
        return self.breakpoint.weights

    @property
    def gap(self) -> float:
        """P(w) - D(alpha); nan of a method without a dual point."""
        return self.breakpoint.point.gap


def solve(
    problem: Problem,
    lam: float,
    options: MethodOptions | None = None,
    *,
    tolerance: float = 1e-3,
    relative: bool = True,
    seed: int = 0,
    initial: Supports | None = None,
    spread: Spread = HERE,
    observers: Sequence[Observer] = (),
) -> Solution:
    """Solve at one lambda.

    Parameters
    ----------
    options : MethodOptions, optional
        By default those of ``bcfw``.
    tolerance : float
        On the duality gap; on gap / dual if `relative`.
    initial : Supports, optional
        The dual point to begin at.

    Returns
    -------
    Solution
        Also where a limit of passes, calls or seconds, or an observer, ended the solve: then certified by an exact pass at
        the point that was reached.

    Raises
    ------
    ValueError
        For options that cannot be solved or certified.
    """
    along = PathOptions(rule="single", lam=lam, tolerance=tolerance, relative=relative)
    engine = Engine.begin(Task(problem, options or method_options(), along, seed, initial=initial), spread)
    engine.warm_up()
    breakpoints = list(engine.walk(observers))
    status = engine.status
    if not breakpoints:
        engine = engine.without_steps()
        breakpoints = list(engine.walk())
    assert status is not None
    (solved,) = breakpoints
    status = solved.status if status is Status.CONVERGED else status  # that of the walk, not of the lambda
    return Solution(status, solved, trace_of(engine.solver, engine.rule)[0])


def path(
    problem: Problem,
    along: PathOptions | None = None,
    options: MethodOptions | None = None,
    *,
    seed: int = 0,
    start: PathStart | None = None,
    spread: Spread = HERE,
    observers: Sequence[Observer] = (),
) -> Iterator[Breakpoint]:
    """Walk a path or grid, and yield each lambda when it is solved; the next one is begun when it is asked for.

    Parameters
    ----------
    along : PathOptions, optional
        The rule, its eps, given lambdas; by default the whole path.
    options : MethodOptions, optional
        By default those of ``bcfw``.

    Raises
    ------
    ValueError
        For options that cannot be solved or certified.
    """
    task = Task(problem, options or method_options(), along or PathOptions(), seed, start)
    engine = Engine.begin(task, spread)
    engine.warm_up()
    yield from engine.walk(observers)


def warm_up(problem: Problem, options: MethodOptions, path: PathOptions, start: PathStart | None) -> None:
    """Compile or load every function that solving a path or grid calls, by solving a little of it."""
    few = dataclasses.replace(options, max_passes=MOST_WARM_UP_PASSES)
    engine = Engine.begin(Task(problem, few, path, start=start))
    engine.warm_up()
    engine.run()
