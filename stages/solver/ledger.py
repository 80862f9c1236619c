"""What a solve counts and records, whatever the method: oracle calls, passes, limits, seconds, the rows of its trace."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gapwise.stages.problems.parallel import HERE, PLAIN_WORK, Pace, Spread, work_before
from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.codes import ORACLE_CALLS, STEPS
from gapwise.stages.solver.counts import CERTIFIED, TRACE, Counts
from gapwise.stages.solver.objective import Certificate
from gapwise.stages.solver.options import LEAST_FALL, STALLED, MethodOptions, Status

if TYPE_CHECKING:
    from gapwise.records import Facts, Json
    from gapwise.stages.problems.protocol import Problem
    from gapwise.stages.solver.counts import ArraySpec
    from gapwise.stages.solver.method import AnyMethod
    from gapwise.stages.solver.path.rule import PathRule

GAP = TRACE.index("gap")
Row = tuple[float, ...]
"""A row of the trace, columns as `counts.TRACE`."""


@dataclass
class Ledger:
    """The counts of a solve and its trace, and the two flags by which a driver and a solve agree on when to stop."""

    n: int
    """Blocks."""
    options: MethodOptions
    counts: Counts = field(default_factory=Counts)
    counters: np.ndarray = field(default_factory=lambda: np.zeros(2, np.int64))
    """int64: the entries STEPS and ORACLE_CALLS are those of `codes`; the dual point owns the array."""
    trace: list[Row] = field(default_factory=list)
    spread: Spread = HERE
    """Where the oracles of exact passes are called; does not change the result."""
    untouched: bool = False
    """True while an exact pass runs. It changes no state until it succeeds, so the last rebase point can be committed."""
    may_stop: bool = True
    """Whether `spread.check` may end the work between two rebase points, because the last one is kept elsewhere, or
    because nothing has been done yet."""
    revisits: bool = False
    """Whether the path goes up and down, so that what served a lambda once may serve it again."""
    switches: bool = False
    """Whether a lambda that takes many passes may go on with other steps (`engine.Task.may_switch`)."""
    pace: Pace = field(default_factory=lambda: Pace(PLAIN_WORK))
    """Of passes over all blocks that call no oracle."""
    step_pace: Pace = field(default_factory=Pace)
    """Of steps: at most `parallel.most_visits`."""
    call_pace: Pace = field(default_factory=Pace)
    """Of oracle calls in steps."""
    cached_pace: Pace = field(default_factory=Pace)
    """Of visits by distances."""
    started: float = 0.0
    """`time.perf_counter` when the present part of the solve began."""

    # -- counts -------------------------------------------------------------------------------------------------------
    @property
    def oracle_calls(self) -> int:
        """All oracle calls so far: of the path's start, of steps and of exact passes."""
        return int(self.counts.initial_calls + self.counters[ORACLE_CALLS] + self.counts.gap_passes * self.n)

    @property
    def steps(self) -> int:
        """Block steps so far, cached ones included."""
        return int(self.counters[STEPS])

    @property
    def calls_here(self) -> int:
        """Oracle calls at this lambda."""
        return self.oracle_calls - self.counts.calls_before

    @property
    def passes_here(self) -> float:
        """Effective passes (oracle calls / n) at this lambda."""
        return float(self.calls_here / self.n)

    def limit(self) -> Status | None:
        """The limit that has been reached at this lambda, or None."""
        if self.passes_here >= self.options.max_passes:
            return Status.PASS_LIMIT
        if self.calls_here >= self.options.max_oracle_calls:
            return Status.ORACLE_LIMIT
        return Status.STALLED if self.stalled() else None

    def stalled(self) -> bool:
        """Whether certificates have ceased to improve, so that without a limit the solve might never end."""
        if len(self.trace) % STALLED or len(self.trace) < 2 * STALLED:
            return False
        rows = np.array(self.trace[-2 * STALLED :])
        here = np.all(rows[:, :2] == (self.counts.breakpoint, self.counts.lam))
        before, after = np.min(rows[:STALLED, GAP]), np.min(rows[STALLED:, GAP])
        return bool(here and after > (1.0 - LEAST_FALL) * before)

    def begin_lambda(self, lam: float, breakpoint: int) -> None:
        """Count anew from here."""
        counts = self.counts
        counts.lam, counts.breakpoint = lam, breakpoint
        counts.calls_before, counts.seconds_before = self.oracle_calls, counts.seconds

    # -- stopping -----------------------------------------------------------------------------------------------------
    def check_stop(self) -> None:
        """Raise the error of `spread.check` if a stop is requested and the last boundary is kept."""
        if self.may_stop:
            self.spread.check()

    def over_blocks(self, fn: Callable[[int, int], None], problem: Problem) -> None:
        """fn(start, stop) of consecutive ranges of all blocks, in order, with `check_stop` in between: an `OverBlocks`."""
        self.pace.run(fn, 0, problem.n, self.check_stop, work_before(problem))

    @contextmanager
    def asking(self) -> Iterator[None]:
        """An exact pass, or a round: while it lasts, and if it fails, the state is as it was."""
        self.untouched = True
        yield
        self.untouched = False

    # -- records ------------------------------------------------------------------------------------------------------
    @contextmanager
    def timed(self) -> Iterator[None]:
        """A part of the solve, whose seconds count."""
        self.started = time.perf_counter()
        try:
            yield
        finally:
            self.counts.seconds += time.perf_counter() - self.started

    @property
    def seconds(self) -> float:
        """Seconds of solving so far; inside `timed`."""
        return self.counts.seconds + time.perf_counter() - self.started

    def record(self, point: Certificate) -> None:
        """Add a certificate to the trace; inside `timed`. nan where the method has no such number."""
        counts, calls = self.counts, self.oracle_calls
        stamp = float(round(time.time() * 1000))
        row = (counts.breakpoint, counts.lam, calls / self.n, calls, self.steps, self.seconds, stamp)
        self.trace.append((*row, point.gap, point.dual, point.primal))

    def last_dual(self, breakpoint: int) -> float:
        """The dual value of the last certificate, nan if that is not of this breakpoint."""
        row = dict(zip(TRACE, self.trace[-1], strict=True)) if self.trace else {}
        return float(row["dual"]) if row.get("breakpoint") == breakpoint else math.nan

    def packed_trace(self) -> np.ndarray:
        """float64, (rows, columns of `TRACE`)."""
        return np.array(self.trace, dtype=float).reshape(-1, len(TRACE))


def trace_of(solver: AnyMethod, rule: PathRule) -> tuple[np.ndarray, tuple[str, ...]]:
    """The trace, (rows, columns), and its columns: `TRACE`, and where the rule knows it, the eps certified at every lambda.

    That stands in the last row of each solved lambda, and is nan in all others.
    """
    rows, known = solver.ledger.packed_trace(), rule.open_end()
    if known is None:
        return rows, TRACE
    column, numbers = np.full(len(rows), np.nan), rows[:, TRACE.index("breakpoint")]
    for number, eps in enumerate(known.certified):
        column[np.flatnonzero(numbers == number)[-1:]] = eps
    return np.column_stack([rows, column]), (*TRACE, CERTIFIED)


def iterations_of(solver: AnyMethod) -> dict[ArraySpec, np.ndarray]:
    """What a method records of its outer iterations: the arrays of its specs whose dimension is `iteration`."""
    specs = [spec for spec in solver.specs if spec[1] == ("iteration",)]
    arrays = solver.packed()[0] if specs else {}
    return {spec: arrays[spec[0]] for spec in specs}


def restored_trace(array: np.ndarray) -> list[Row]:
    """The rows of a committed trace; ValueError if it has other columns."""
    return [tuple(row) for row in check_array("trace", array, (None, len(TRACE)), np.float64).tolist()]


def packed_rng(rng: np.random.Generator) -> dict[str, Json]:
    """The state of PCG64, JSON-able: its two 128-bit integers, which JSON readers may round, as text."""
    state = rng.bit_generator.state
    return {**state, "state": {name: str(value) for name, value in state["state"].items()}}


def restored_rng(packed: Facts) -> np.random.Generator:
    """The generator of a `packed_rng`."""
    rng = np.random.default_rng(0)
    rng.bit_generator.state = {**packed, "state": {name: int(value) for name, value in packed["state"].items()}}
    return rng
