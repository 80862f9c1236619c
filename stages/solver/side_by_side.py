"""Lambdas of a path solved side by side: rounds of up to `path.parallel` of them, each by a solver of its own.

They are solved on threads of this process, or in other processes that have the problem open (`problems.parallel.Elsewhere`).

Not the loop of `path.walk`: there one solver keeps its state from lambda to lambda, and the next lambda waits for the last.
Here the lambdas of a round (`path.abreast`) wait for nothing but the round before, of which the packed states are kept.
A *lane* is one lambda of a round: a solver restored from such a state, moved to its lambda, and solved.

The result depends on the number of lanes, never on that of the workers, on their order, or on where the walk was stopped:
a lane reads nothing but its own packed state, the rule takes the lanes of a round by falling lambda once all are done, and
only ends of rounds are committed. What a stop interrupts is solved again.

**Where a lane begins.** The first lane, of the largest lambda, begins at the nearest lambda of the round before. The others
are further away, and labellings that a distant lambda needed may cost more than they save: for these the start of the path
may be better. The first rounds try that with their second lane, and compare its counted work with that of the first.

Counts of the walk are sums over lanes, seconds too.
"""

from __future__ import annotations

import dataclasses
import json
import math
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self, cast

import numpy as np

from gapwise.records import Facts, Json
from gapwise.stages.problems.operations import operations_of
from gapwise.stages.problems.parallel import JobFunction, Spread
from gapwise.stages.solver.codes import STEPS
from gapwise.stages.solver.counts import TRACE
from gapwise.stages.solver.ledger import Row
from gapwise.stages.solver.methods import method
from gapwise.stages.solver.objective import Certificate, Mixture
from gapwise.stages.solver.options import MethodOptions, Status
from gapwise.stages.solver.packed import ArraySpec, number
from gapwise.stages.solver.path.breakpoints import Breakpoint, breakpoint_of
from gapwise.stages.solver.path.rule import PathRule, Solved, Tolerance, mixture_of
from gapwise.stages.solver.path.walk import worst_hinge
from gapwise.stages.solver.solver import Boundary, Solver

if TYPE_CHECKING:
    from gapwise.stages.problems.protocol import Problem
    from gapwise.stages.solver.path.abreast import Abreast

POLL = 0.05
"""Longest time, in seconds, from a request to stop to its notice while lanes are solved on threads."""

MIXTURE, NOTHING = "mixture", np.empty(0)
"""The weights of a lane's mixture among its arrays, and what stands in their place meanwhile."""

TRIED = 3
"""Rounds of two and more lanes whose second lane begins at the start of the path, to see what that costs."""

WORTH = 1.5
"""The start of the path is the better beginning if a lane from there took at most this multiple of the work that the first
lane took: the first one has the shorter way."""


class Abandoned(Exception):
    """Ends a lane whose round is given up."""


class LaneState(NamedTuple):
    """Where lanes can begin: a packed solver, without its trace."""

    lam: float
    arrays: dict[str, np.ndarray]
    attrs: Facts


class Lane(NamedTuple):
    """What is asked of a lane, besides where it begins."""

    lam: float
    number: int
    """of the breakpoint"""
    asked: Tolerance
    mixture: Mixture | None


Layout = tuple[tuple[str, str, tuple[int, ...]], ...]
"""Name, dtype and shape of each array, in the order of their bytes."""


def flat(arrays: Mapping[str, np.ndarray]) -> tuple[np.ndarray, Layout]:
    """Arrays as one array, uint8, and their layout."""
    layout = tuple((name, array.dtype.str, array.shape) for name, array in arrays.items())
    flats = [np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in arrays.values()]
    return np.concatenate(flats), layout


def unflat(packed: np.ndarray, layout: Layout) -> dict[str, np.ndarray]:
    """The arrays of `flat`, copied."""
    arrays, first = {}, 0
    for name, dtype, shape in layout:
        size = math.prod(shape) * np.dtype(dtype).itemsize
        arrays[name] = np.frombuffer(packed[first : first + size].tobytes(), dtype).reshape(shape)
        first += size
    return arrays


class Answer(NamedTuple):
    """What a lane gives back."""

    status: Status
    point: Certificate | None
    weights: np.ndarray
    dual_weights: np.ndarray | None
    worst_hinge: float
    breakpoint: Breakpoint
    state: LaneState
    calls: int
    steps: int
    seconds: float
    rows: list[Row]
    """of the trace, with counts of this lambda alone"""


@dataclass(frozen=True)
class Setting:
    """What all lanes of a walk share, besides the problem."""

    options: MethodOptions
    seed: int
    own_primal: bool
    revisits: bool
    switches: bool
    relative: bool
    """Whether the rule reads `Solved.worst_hinge`."""


@dataclass
class Lanes:
    """What is kept from round to round; all of it is committed but the problem and the setting."""

    problem: Problem
    setting: Setting
    specs: tuple[ArraySpec, ...]
    """The arrays of a packed solver."""
    states: list[LaneState]
    """The start of the path, then the lambdas of the last round."""
    lams: list[float]
    """The present round, by falling lambda."""
    cold: bool = False
    """Whether lanes but the first begin at the start of the path."""
    tried: int = 0
    """Rounds that have compared."""
    begun: list[int] = field(default_factory=list)
    """Of the present round, the number of the state at which each lane begins."""

    @classmethod
    def begin(cls, problem: Problem, setting: Setting, solver: Solver) -> Self:
        """Before the first round, which is the first lambda alone."""
        solver.rebase()
        solver.stay()
        return cls(problem, setting, solver.recipe.specs, [packed_lane(solver)], [solver.counts.lam])

    def origins(self) -> list[int]:
        """Of each lane of the present round, the number of its state."""
        nearest = [
            min(range(len(self.states)), key=lambda k: (k == 0, abs(math.log(self.states[k].lam / lam))))
            for lam in self.lams
        ]
        tries = self.tried < TRIED
        return [0 if j > 0 and (self.cold or (tries and j == 1)) else k for j, k in enumerate(nearest)]

    def learn(self, answers: Sequence[Answer]) -> None:
        """Compare where the first two lanes began."""
        if len(answers) < 2 or self.begun[0] == 0 or self.begun[1] != 0:
            return
        costs = operations_of(self.problem)
        near, far = (costs.oracle * answer.calls + costs.visit * answer.steps for answer in answers[:2])
        self.cold, self.tried = far <= WORTH * near, self.tried + 1

    # -- committed state ----------------------------------------------------------------------------------------------
    def all_specs(self) -> tuple[ArraySpec, ...]:
        """The arrays of `packed`."""
        return tuple(
            (f"lane{k}_{name}", tuple(f"lane{k}_{dim}" for dim in dims), dtype, f"where lanes begin: {doc}")
            for k in range(len(self.states))
            for name, dims, dtype, doc in self.specs
        )

    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, Json]]:
        """Arrays of all states, and attributes."""
        arrays = {f"lane{k}_{name}": array for k, s in enumerate(self.states) for name, array in s.arrays.items()}
        states = cast("list[Json]", [{"lambda": s.lam, "method": dict(s.attrs)} for s in self.states])
        return arrays, {"states": states, "round": [*self.lams], "cold": self.cold, "tried": self.tried}

    @classmethod
    def restored(
        cls, problem: Problem, setting: Setting, specs: tuple[ArraySpec, ...], arrays: Mapping[str, np.ndarray],
        attrs: Facts,
    ) -> Self:  # fmt: skip
        """The lanes of a `packed`; KeyError or TypeError if something is missing."""
        states = [
            LaneState(number(s, "lambda"), {spec[0]: arrays[f"lane{k}_{spec[0]}"] for spec in specs}, s["method"])
            for k, s in enumerate(attrs["states"])
        ]
        lams, tried = [float(lam) for lam in attrs["round"]], int(number(attrs, "tried"))
        return cls(problem, setting, specs, states, lams, bool(attrs["cold"]), tried)


def packed_lane(solver: Solver) -> LaneState:
    """The state of a solver at a rebase point, as a commit would give it back."""
    arrays, attrs = solver.packed()
    trace = {"trace": np.empty((0, len(TRACE)))} if "trace" in arrays else {}
    return LaneState(solver.counts.lam, {**arrays, **trace}, json.loads(json.dumps(attrs)))


def solve_lane(
    problem: Problem, setting: Setting, state: LaneState, lane: Lane, given_up: Callable[[], bool],
    warm_up: bool = False,
) -> Answer:  # fmt: skip
    """One lambda from a packed state; Abandoned once `given_up()` is True.

    With `warm_up`, what has to be compiled is compiled first, so that its seconds do not count.
    """

    def check() -> None:
        if given_up():
            raise Abandoned

    def boundary(solver: Solver) -> Status | None:
        check()
        return None

    arrays = {name: array.copy() for name, array in state.arrays.items()}
    solver = method(setting.options.method).restored(
        problem, setting.options, setting.seed, arrays, state.attrs, own_primal=setting.own_primal,
        spread=Spread(check=check),
    )  # fmt: skip
    solver.ledger.revisits, solver.ledger.switches = setting.revisits, setting.switches
    calls, steps, seconds = solver.oracle_calls, solver.steps, solver.counts.seconds
    if warm_up:
        solver.warm_up()
    with solver.ledger.timed():
        solver.move_to(lane.lam, lane.number, "keep_dual")
    asked = lane.asked
    status, point = solver.solve(asked.gap, boundary, relative=asked.relative, exact=asked.exact, mixture=lane.mixture)
    dual = solver.iterate.dual_weights() if solver.schedule.rewrites_w else None
    worst = worst_hinge(solver) if setting.relative else math.inf
    solved = breakpoint_of(solver, status, point, lane.lam, dual)
    n, rows = problem.n, []
    for row in solver.trace:
        own = dict(zip(TRACE, row, strict=True))
        since = own["oracle_calls"] - calls
        own |= {"passes": since / n, "oracle_calls": since, "steps": own["steps"] - steps}
        own["seconds"] -= seconds
        rows.append(tuple(own.values()))
    calls, steps, seconds = solver.oracle_calls - calls, solver.steps - steps, solver.counts.seconds - seconds
    solver.rebase()
    return Answer(status, point, solved.weights, dual, worst, solved, packed_lane(solver), calls, steps, seconds, rows)


def solve_from(
    problem: Problem, packed: np.ndarray, given_up: Callable[[], bool], *, setting: Setting, state: LaneState,
    layout: Layout, lane: Lane,
) -> Answer:  # fmt: skip
    """`solve_lane` in another process: a `problems.parallel.JobFunction`, given the rest without its arrays (`job_of`)."""
    arrays = unflat(packed, layout)
    if lane.mixture is not None:
        lane = lane._replace(mixture=lane.mixture._replace(weights=arrays.pop(MIXTURE)))
    return solve_lane(problem, setting, state._replace(arrays=arrays), lane, given_up, warm_up=True)


def job_of(setting: Setting, state: LaneState, lane: Lane) -> tuple[JobFunction[Answer], np.ndarray]:
    """A lane for another process: the function that solves it there, and all its arrays as one."""
    arrays, mixture = state.arrays, lane.mixture
    if mixture is not None:
        arrays, lane = {**arrays, MIXTURE: mixture.weights}, lane._replace(mixture=mixture._replace(weights=NOTHING))
    packed, layout = flat(arrays)
    return partial(solve_from, setting=setting, state=state._replace(arrays={}), layout=layout, lane=lane), packed


def walk_abreast(
    lanes: Lanes, solver: Solver, rule: PathRule, most: int, spread: Spread, boundary: Boundary,
    stop: Callable[[], Status | None],
) -> Generator[Breakpoint, None, Status]:  # fmt: skip
    """Solve round after round, yielding the lambdas of each by falling lambda; returns as `path.walk.walk`.

    Parameters
    ----------
    solver : Solver
        Stands for all lanes to those who look on: its ledger is their sum. Its point stays at the start of the path.
    most : int
        Lanes of a round.
    spread : Spread
        Where they are solved; on threads of this process `workers` at a time.
    stop : callable
        Asked every `POLL` seconds; a status gives the round up.
    """
    while True:
        if ended := boundary(solver):
            return ended
        index = solver.counts.breakpoint
        lanes.begun = lanes.origins()
        with solver.ledger.asking():  # nothing that is packed changes before the answers are taken
            answers = solved_round(lanes, index, rule, spread, stop)
        if answers is None:
            ended = boundary(solver)
            assert ended is not None
            return ended
        for answer in answers:
            take(solver, answer)
        lanes.learn(answers)
        following = cast("Abreast", rule).following_round([solved_of(answer) for answer in answers], most)
        lanes.states[1:] = [answer.state for answer in answers]
        lanes.lams = following.lams
        solver.counts.breakpoint = index + len(following.lows)
        for answer, low in zip(answers, following.lows, strict=False):
            yield dataclasses.replace(answer.breakpoint, lambda_low=low)
        if not following.lams:
            return following.status


def solved_round(
    lanes: Lanes, index: int, rule: PathRule, spread: Spread, stop: Callable[[], Status | None]
) -> list[Answer] | None:
    """The answers of all lanes of the present round, in their order; None if it was given up."""
    asked = [
        Lane(lam, index + j, rule.tolerance(), mixture_of(rule, lanes.problem, lam)) for j, lam in enumerate(lanes.lams)
    ]
    origins = [lanes.states[k] for k in lanes.begun]
    if spread.elsewhere is None:
        return on_threads(lanes, origins, asked, spread.workers, stop)
    # backwards: the smallest lambda takes longest
    jobs = (job_of(lanes.setting, state, lane) for state, lane in zip(origins[::-1], asked[::-1], strict=True))
    answers = spread.elsewhere.jobs(jobs, "train", stop)
    return None if answers is None else answers[::-1]


def on_threads(
    lanes: Lanes, origins: Sequence[LaneState], asked: Sequence[Lane], workers: int, stop: Callable[[], Status | None]
) -> list[Answer] | None:
    """The same on threads of this process."""
    given_up = threading.Event()
    pool = ThreadPoolExecutor(max(1, min(workers, len(asked))), thread_name_prefix="lane")
    futures: dict[int, Future[Answer]] = {}
    try:
        for j in reversed(range(len(asked))):  # the smallest lambda takes longest
            futures[j] = pool.submit(solve_lane, lanes.problem, lanes.setting, origins[j], asked[j], given_up.is_set)
        waiting = set(futures.values())
        while waiting:
            done, waiting = wait(waiting, timeout=POLL, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
            if waiting and stop():
                return None
        return [futures[j].result() for j in range(len(asked))]
    finally:
        given_up.set()
        pool.shutdown(wait=True, cancel_futures=True)


def solved_of(answer: Answer) -> Solved:
    """What the rule is told."""
    return Solved(
        answer.breakpoint.index, answer.status, answer.point, answer.weights, lambda: answer.worst_hinge,
        answer.calls, answer.breakpoint.effective_passes, answer.dual_weights,
    )  # fmt: skip


def take(solver: Solver, answer: Answer) -> None:
    """Add what a lane counted to the ledger that stands for all."""
    ledger, n = solver.ledger, solver.problem.n
    counts = ledger.counts
    for row in answer.rows:
        own = dict(zip(TRACE, row, strict=True))
        own["oracle_calls"] += ledger.oracle_calls
        own |= {"passes": own["oracle_calls"] / n, "steps": own["steps"] + ledger.steps}
        own["seconds"] += counts.seconds
        ledger.trace.append(tuple(own.values()))
    counts.calls_before, counts.seconds_before = ledger.oracle_calls, counts.seconds
    counts.lam, counts.breakpoint = answer.breakpoint.point.lam, answer.breakpoint.index
    counts.initial_calls += answer.calls
    counts.seconds += answer.seconds
    ledger.counters[STEPS] += answer.steps
