"""Methods of a primal point alone, `ssg` and `eg`: steps of blocks drawn uniformly, and exact passes that measure P(w).

There is no certificate, so no tolerance ends a solve: `max_passes` or `max_oracle_calls` does. Every lambda begins anew.
All arrays of the running solution are committed as they are, and nothing is derived from them. `Counts` and counters are
those of a dual point that stays where w = 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
from numba import njit

from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.parallel import Pace, drawn_work
from gapwise.stages.problems.protocol import JIT, Problem, compile_methods, widest_block
from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.codes import AVERAGED, STEPS
from gapwise.stages.solver.counts import Arrays
from gapwise.stages.solver.exact import exact_pass
from gapwise.stages.solver.method import Ended, Method
from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import MethodOptions, check
from gapwise.stages.solver.oracles import load_oracles
from gapwise.stages.solver.running import Flags


class Work(NamedTuple):
    """Workspace of steps: for the widest block, the longest labelling, all weights, and the oracle."""

    theta: np.ndarray
    delta: np.ndarray
    trial: np.ndarray
    y: np.ndarray
    w: np.ndarray
    oracle: object


class Running(Protocol):
    """A running solution, a ``NamedTuple`` of arrays with a compiled method."""

    def visit(self, P: Problem, work: Work, counters: np.ndarray, lam: float, i: int) -> None:
        """A step on block i, whose oracle calls it counts."""


compile_methods(Running)


@driver
def drawn_driver(fingerprint: str) -> Callable[..., None]:
    """`run(P, S, counters, lam, rng, steps)`: steps of the running solution S on blocks drawn uniformly."""

    @njit(cache=True, **JIT)
    def run(P, S, counters, lam, rng, steps):
        fingerprint  # noqa: B018
        widest, n, y = (
            widest_block(P.local_ptr),
            P.local_ptr.size - 1,
            np.empty(widest_block(P.label_ptr), P.truth.dtype),
        )
        work = Work(np.empty(widest), np.empty(widest), np.empty(widest), y, np.empty(P.lower.size), P.scratch())
        for _ in range(steps):
            S.visit(P, work, counters, lam, int(rng.random() * n))
            counters[STEPS] += 1
            counters[AVERAGED] += 1

    return run


@dataclass
class PrimalOptions(MethodOptions):
    """The options of methods without a dual point."""

    refresh_every: int = 10
    """Effective passes between exact passes, which measure the primal objective; 0: only at the end."""
    rebase_steps: int = 0
    """Steps between two points where the state can be committed, at most; 0: ten per block."""
    max_passes: float = 100.0

    certifies: ClassVar[bool] = False

    def check(self) -> None:
        """Raises ValueError naming the key."""
        MethodOptions.check(self)
        check("solver.refresh_every", self.refresh_every, self.refresh_every >= 0, "an integer >= 0")
        check("solver.rebase_steps", self.rebase_steps, self.rebase_steps >= 0, "an integer >= 0")
        ends = min(self.max_passes, self.max_oracle_calls) < math.inf
        expected = f"a number, because no tolerance ends method={self.method} (or give solver.max_oracle_calls)"
        check("solver.max_passes", self.max_passes, ends, expected)


Opts = TypeVar("Opts", bound=PrimalOptions)


class PrimalMethod(Method[Opts]):
    """A method whose dual point stays at w = 0 and only counts. A file gives `begun`, `solution` and more `specs`.

    `running`: the running solution at one lambda.
    """

    @classmethod
    def flags(cls, options: Opts) -> Flags:
        """No labelling is kept."""
        return Flags()

    def begun(self) -> Any:
        """The running solution at the start of a lambda."""
        raise NotImplementedError(f"{type(self).__name__} has to define begun")

    def solution(self, steps: int) -> np.ndarray:
        """w (d,), after so many steps at this lambda."""
        raise NotImplementedError(f"{type(self).__name__} has to define solution")

    def prepare(self) -> None:
        """The running solution; work between stop checks, of steps."""
        self.running, self.pace = self.begun(), Pace()

    def start(self) -> None:
        """Begin another lambda anew."""
        self.running, self.counts.exact_due = self.begun(), False

    @property
    def steps_here(self) -> int:
        """Steps at this lambda."""
        return int(self.it.state.counters[AVERAGED])

    @property
    def point(self) -> np.ndarray:
        """(d,): the present solution."""
        return self.solution(self.steps_here)

    @property
    def rewrites_w(self) -> bool:
        """True: there are no supports."""
        return True

    def supports(self) -> None:
        """There is no dual point."""

    def block_gaps(self) -> np.ndarray:
        """nan, (n,)."""
        return np.full(self.problem.n, np.nan)

    def dual_value(self) -> float:
        """nan."""
        return math.nan

    def advance(self, goal: Goal) -> Ended | None:
        """Steps, or the exact pass that is due after them, until a limit is reached, whatever the tolerance."""
        if not self.counts.exact_due:
            self.take_steps()
            return None
        measured, _ = exact_pass(self.it, self.point)
        self.ledger.record(measured._replace(gap=math.nan, ell=math.nan, dual=math.nan))
        status = self.ledger.limit()
        return (status, None) if status else None

    def take_steps(self) -> None:
        """Steps until the next exact pass, or the next point where the state can be committed."""
        P, options, ledger, here = self.problem, self.options, self.ledger, self.steps_here
        end = here + math.ceil(min(options.max_oracle_calls, options.max_passes * P.n)) - ledger.calls_here
        every, apart = options.refresh_every * P.n, options.rebase_steps or 10 * P.n
        if every:
            end = min(end, (here // every + 1) * every)
        steps = max(min(end, (here // apart + 1) * apart) - here, 0)

        def part(start: int, stop: int) -> None:
            self.run(stop - start)

        self.pace.run(part, 0, steps, ledger.check_stop, drawn_work(P, steps))
        self.counts.exact_due = here + steps >= end

    def run(self, steps: int) -> None:
        """So many compiled steps."""
        P, it = self.problem, self.it
        drawn_driver(P)(P, self.running, it.state.counters, self.counts.lam, it.rng, steps)

    def load(self) -> None:
        """Steps and exact passes."""
        load_oracles(self.problem)
        self.run(0)

    # -- committed state ----------------------------------------------------------------------------------------------
    def arrays(self) -> dict[str, np.ndarray]:
        """The running solution."""
        return dict(self.running._asdict())

    def restore(self, arrays: Arrays) -> None:
        """The same; ValueError if an array does not fit the problem."""
        for name, array in self.running._asdict().items():
            array[:] = check_array(name, arrays[name], array.shape, array.dtype, finite=True)
