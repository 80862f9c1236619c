"""Methods of a primal point alone, `ssg` and `eg`: steps of blocks drawn uniformly, and exact passes that measure P(w).

There is no certificate, so no tolerance ends a solve: `max_passes` or `max_oracle_calls` does. Every lambda begins anew.
All arrays of the running solution are committed as they are, and nothing is derived from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from gapwise.records import Facts, Json
from gapwise.stages.problems.parallel import Pace, drawn_work
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.counts import Counts
from gapwise.stages.solver.ledger import Ledger, packed_rng, restored_rng, restored_trace
from gapwise.stages.solver.method import Ended, Method
from gapwise.stages.solver.objective import Certificate, Goal, squared_norm
from gapwise.stages.solver.options import MethodOptions, check
from gapwise.stages.solver.oracles import answers_at, load_oracles
from gapwise.stages.solver.packed import Arrays, ArraySpec
from gapwise.stages.solver.supports import Pool

HERE_STEPS, N_COUNTERS = 2, 3
"""Entry of the counters after `codes.STEPS` and `codes.ORACLE_CALLS`: steps at this lambda; number of entries."""

SPECS: tuple[ArraySpec, ...] = (
    ("counters", ("counter",), "i8", "steps, oracle calls in steps, steps at this lambda"),
    ("trace", ("row", "column"), "f8", "one row per exact pass; columns in the attribute trace_columns"),
)


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


class Kind(NamedTuple, Generic[Opts]):
    """What tells one of these methods from another."""

    begun: Callable[[Problem, Opts], Any]
    """(problem, options) -> the running solution at the start of a lambda, a NamedTuple of arrays"""
    point: Callable[[Problem, Any, float, int], np.ndarray]
    """(problem, running, lam, steps) -> w (d,), after so many steps at this lambda"""
    driver: Callable[[Problem], Callable[..., None]]
    """driver(problem)(problem, running, counters, lam, rng, steps): the compiled steps"""


@dataclass
class PrimalIterate:
    """A primal point; there is no dual point."""

    problem: Problem
    options: PrimalOptions
    kind: Kind
    rng: np.random.Generator
    ledger: Ledger
    hinge: float = math.nan
    """R at the last exact pass; an upper bound on it if the structure offers one."""
    fresh: bool = False
    views: tuple[str, str] = ("", "")
    hinges: np.ndarray = field(default_factory=lambda: np.empty(0))
    known_gap: float = math.nan
    pace: Pace = field(default_factory=Pace)
    """Work between stop checks, of steps."""

    def __post_init__(self) -> None:
        self.ledger.counters = self.counters = np.zeros(N_COUNTERS, np.int64)
        self.running = self.kind.begun(self.problem, self.options)

    @property
    def w(self) -> np.ndarray:
        """(d,): the present solution."""
        return self.kind.point(self.problem, self.running, self.ledger.counts.lam, int(self.counters[HERE_STEPS]))

    def rebase(self) -> None:
        """Nothing is derived."""

    def primal(self) -> np.ndarray:
        """(d,): the solution, whose primal objective the last exact pass has measured."""
        return self.w

    def mean_hinge(self) -> float:
        """R at the last exact pass; an upper bound on it if the structure offers one."""
        return self.hinge

    def supports(self) -> None:
        """There is no dual point."""

    def block_gaps(self) -> np.ndarray:
        """nan, (n,)."""
        return np.full(self.problem.n, np.nan)

    def dual_value(self) -> float:
        """nan."""
        return math.nan

    def dual_weights(self) -> np.ndarray:
        """Not called: paths refuse the method."""
        raise NotImplementedError(f"{self.options.method} has no dual point")

    def begin_lambda(self, lam: float, breakpoint: int, exact_due: bool) -> None:
        """Begin another lambda anew."""
        self.ledger.begin_lambda(lam, breakpoint)
        self.ledger.counts.exact_due = False
        self.running, self.counters[HERE_STEPS] = self.kind.begun(self.problem, self.options), 0

    def move_to(self, lam: float, warm_start: str) -> None:
        """Nothing is kept, whatever `warm_start` says."""

    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, Json]]:
        """Arrays of `SPECS` and of the running solution, and attributes."""
        arrays = {name: array.copy() for name, array in self.running._asdict().items()}
        arrays.update(counters=self.counters.copy(), trace=self.ledger.packed_trace())
        return arrays, {"counts": asdict(self.ledger.counts), "rng": packed_rng(self.rng), "hinge": self.hinge}


class PrimalMethod(Method[PrimalOptions]):
    """A method that moves a `PrimalIterate`; its file gives `kind`, and in `specs` also the arrays of the solution."""

    specs = SPECS
    counts_type = Counts
    kind: ClassVar[Kind]
    it: PrimalIterate  # type: ignore[assignment]  # which has what the base class uses

    @property
    def rewrites_w(self) -> bool:
        """True: there are no supports."""
        return True

    @classmethod
    def begun(cls, problem: Problem, options: PrimalOptions, pool: Pool, seed: int, ledger: Ledger) -> Any:
        """The iterate at the start of a lambda."""
        return PrimalIterate(problem, options, cls.kind, np.random.default_rng(seed), ledger)

    @classmethod
    def resumed(
        cls, problem: Problem, options: PrimalOptions, seed: int, arrays: Arrays, attrs: Facts, ledger: Ledger
    ) -> Any:
        """The iterate of a commit."""
        rng = restored_rng(attrs["rng"])
        iterate = PrimalIterate(problem, options, cls.kind, rng, ledger, float(attrs["hinge"]))
        for name, array in {**iterate.running._asdict(), "counters": iterate.counters}.items():
            array[:] = check_array(name, arrays[name], array.shape, array.dtype, finite=True)
        ledger.counts, ledger.trace = Counts(**attrs["counts"]), restored_trace(arrays["trace"])
        return iterate

    def advance(self, goal: Goal) -> Ended | None:
        """Steps, or the exact pass that is due after them, until a limit is reached, whatever the tolerance."""
        if not self.ledger.counts.exact_due:
            self.take_steps()
            return None
        self.measure()
        status = self.ledger.limit()
        return (status, None) if status else None

    def take_steps(self) -> None:
        """Steps until the next exact pass, or the next point where the state can be committed."""
        P, options, ledger = self.problem, self.options, self.ledger
        here, lam, run = int(self.it.counters[HERE_STEPS]), ledger.counts.lam, self.kind.driver(P)
        end = here + math.ceil(min(options.max_oracle_calls, options.max_passes * P.n)) - ledger.calls_here
        every, apart = options.refresh_every * P.n, options.rebase_steps or 10 * P.n
        if every:
            end = min(end, (here // every + 1) * every)
        steps = max(min(end, (here // apart + 1) * apart) - here, 0)

        def part(start: int, stop: int) -> None:
            run(P, self.it.running, self.it.counters, lam, self.it.rng, stop - start)

        self.it.pace.run(part, 0, steps, ledger.check_stop, drawn_work(P, steps))
        ledger.counts.exact_due = here + steps >= end

    def measure(self) -> None:
        """The primal objective at the present point, for the trace, by an exact pass."""
        P, ledger, w = self.problem, self.ledger, self.it.w
        with ledger.asking():
            hinges = answers_at(P, w, range(P.n), ledger.spread).upper_hinge
        ledger.counts.gap_passes += 1
        self.it.hinge, ledger.counts.exact_due = float(np.sum(hinges)) / P.n, False
        ledger.record(Certificate(ledger.counts.lam, math.nan, self.it.hinge, math.nan, squared_norm(w), math.nan))

    def load(self) -> None:
        """Steps and exact passes."""
        load_oracles(self.problem)
        self.kind.driver(self.problem)(self.problem, self.it.running, self.it.counters, 1.0, self.it.rng, 0)
