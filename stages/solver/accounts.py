"""What every method counts and records in the same way: passes, limits, the rows of its trace, its random generator."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.counts import TRACE
from gapwise.stages.solver.options import Status

if TYPE_CHECKING:
    from gapwise.stages.parallel import Spread
    from gapwise.stages.problems.protocol import Problem
    from gapwise.stages.solver.objective import Certificate


class Accounts(ABC):
    """What a `Method` counts and records; the attributes are described there."""

    problem: Problem
    options: Any
    at: Any
    trace: list[tuple[float, ...]]
    spread: Spread
    may_stop: bool

    @property
    @abstractmethod
    def oracle_calls(self) -> int:
        """All oracle calls so far: of the path's start, of steps and of exact passes."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """Steps so far."""

    @property
    def scale(self) -> float:
        """1 / (lambda n), the step's factor in u += scale B_i delta."""
        return 1.0 / (self.at.lam * self.problem.n)

    @property
    def passes_here(self) -> float:
        """Effective passes at this lambda."""
        return float((self.oracle_calls - self.at.calls_before) / self.problem.n)

    def limit(self) -> Status | None:
        """The limit that has been reached at this lambda, or None."""
        if self.passes_here >= self.options.max_passes:
            return Status.PASS_LIMIT
        if self.oracle_calls - self.at.calls_before >= self.options.max_oracle_calls:
            return Status.ORACLE_LIMIT
        return None

    def check_stop(self) -> None:
        """Raise the error of `spread.check` if a stop is requested and the last boundary is kept."""
        if self.may_stop:
            self.spread.check()

    def record(self, point: Certificate, started: float) -> None:
        """Add a certificate to the trace; `started`: when this part of the solve began, by `time.perf_counter`."""
        self.add_row(started, point.gap, point.dual, point.primal)

    def add_row(self, started: float, gap: float, dual: float, primal: float) -> None:
        """Add a row to the trace; nan where the method has no such number."""
        at, n, calls = self.at, self.problem.n, self.oracle_calls
        seconds, stamp = at.seconds + time.perf_counter() - started, float(round(time.time() * 1000))
        row = (at.breakpoint, at.lam, calls / n, calls, self.steps, seconds, stamp, gap, dual, primal)
        self.trace.append(row)

    def packed_trace(self) -> np.ndarray:
        """float64, (rows, columns of `TRACE`)."""
        return np.array(self.trace, dtype=float).reshape(-1, len(TRACE))


def restored_trace(array: np.ndarray) -> list[tuple[float, ...]]:
    """The rows of a committed trace; ValueError if it has other columns."""
    return [tuple(row) for row in check_array("trace", array, (None, len(TRACE)), np.float64).tolist()]


def packed_rng(rng: np.random.Generator) -> dict[str, Any]:
    """The state of PCG64 with its two 128-bit integers, which JSON readers may round, as text."""
    state = rng.bit_generator.state
    return {**state, "state": {k: str(v) for k, v in state["state"].items()}}


def restored_rng(state: Mapping[str, Any]) -> np.random.Generator:
    """The generator of a `packed_rng`."""
    rng = np.random.default_rng(0)
    rng.bit_generator.state = {**state, "state": {k: int(v) for k, v in state["state"].items()}}
    return rng
