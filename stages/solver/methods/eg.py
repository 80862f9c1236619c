"""Online exponentiated gradient on the max-margin dual (Collins, Globerson, Koo, Carreras, Bartlett, JMLR 2008).

The gradient of n D with respect to alpha_i(y) is L_i(y) + <theta_i, m_i(y)>, theta_i = B_i^T w. A step on block i multiplies
its weights by the exponential of the gradient and normalises:

    alpha_i(y) <- alpha_i(y) exp(eta_i (L_i(y) + <theta_i, m_i(y)>)) / Z.

All weights stay positive, so they cannot be listed; but, as the paper shows, they stay of the form

    alpha_i(y) proportional to exp(c_i L_i(y) + <sigma_i, m_i(y)>),     sigma_i += eta_i theta_i,  c_i += eta_i,

and all that the solver needs of them, mu_i and ell_i, are marginals that the structure sums up (`problems.marginals`). The
state is (sigma_i, c_i), the committed dual point, with mu_i and ell_i derived from it. A computation of marginals counts as
an oracle call. Max-oracles are called in exact passes only, which give the gap.

*Step sizes.* As in the experiments of the paper, each block has its own, and a step that would lower the dual is not made:
eta_i is halved, and the step is tried again. After a step that raises the dual, eta_i grows by `growth`. The first value,
`eta`, may be too large. The change of the dual is at least, without a box exactly, with delta = mu_i' - mu_i,

    (1/n) (ell_i' - ell_i + <theta_i, delta> - scale ||B_i delta||^2 / 2),      scale = 1 / (lambda n).

Blocks are visited in a new seeded permutation every pass.

*The start* is sigma_i = 0, c_i = -`truth` / (least loss of block i): weights fall by exp(-`truth`) with each wrong entry, so
w is small. (Scores `truth` m_i(y_i) may prefer another labelling, because all tokens of a chain share its transitions.) With
the uniform start, `truth` = 0, w is of the order 1/lambda; the vertex, at which other methods start, would never be left.

For max-margin problems the paper proves O(1/epsilon) steps. Weights of labellings that are not in the optimum fall
exponentially, but the closer their gradients are to the largest, the slower.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field

import numpy as np

from gapwise.records import Facts, Json
from gapwise.stages.problems.marginals import Scores, check_scores
from gapwise.stages.problems.parallel import Pace, work_before
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.box import clip
from gapwise.stages.solver.capabilities import MethodCapabilities
from gapwise.stages.solver.counts import BlockCounts
from gapwise.stages.solver.exact import exact_gaps
from gapwise.stages.solver.exponentiated_steps import derive_driver, visits_driver
from gapwise.stages.solver.ledger import Ledger, restored_trace
from gapwise.stages.solver.objective import Certificate, dual_value, squared_norm
from gapwise.stages.solver.options import MethodOptions, Status, check
from gapwise.stages.solver.oracles import load_oracles
from gapwise.stages.solver.packed import ArraySpec
from gapwise.stages.solver.schedule import Arrays, Ended, Goal, Schedule
from gapwise.stages.solver.solver import Recipe
from gapwise.stages.solver.state import Sums, chunk_length
from gapwise.stages.solver.supports import Pool


@dataclass
class Options(MethodOptions):
    """The options of `eg`."""

    eta: float = 10.0
    """First step size of every block, in one over the unit of the loss; too large costs a few halvings."""
    growth: float = 1.05
    """What a step that raises the dual multiplies the block's step size by."""
    truth: float = 15.0
    """At the start a labelling weighs exp(-truth) times as much for each wrong entry; 0: all labellings weigh the same."""
    refresh_every: int = 10
    """Passes between exact passes."""

    def check(self) -> None:
        """Raises ValueError naming the key."""
        MethodOptions.check(self)
        check("solver.eta", self.eta, 0 < self.eta < math.inf, "a number > 0")
        check("solver.growth", self.growth, 1 <= self.growth <= 2, "a number from 1 to 2")
        check("solver.truth", self.truth, 0 <= self.truth < math.inf, "a number >= 0")
        check("solver.refresh_every", self.refresh_every, self.refresh_every >= 1, "an integer >= 1")

    @property
    def capabilities(self) -> MethodCapabilities:
        """The dual point gives every labelling a weight, by sums over all of them."""
        return MethodCapabilities(labellings=False, needs_marginals=True)


SPECS: tuple[ArraySpec, ...] = (
    ("dual_scores", ("local",), "f8", "sigma: alpha_i(y) is proportional to exp(c_i L_i(y) + <sigma_i, m_i(y)>)"),
    ("dual_loss_weight", ("block",), "f8", "c"),
    ("step_size", ("block",), "f8", "eta"),
    ("block_gap", ("block",), "f8", "block gaps at the last exact pass; inf before the first"),
    ("counters", ("counter",), "i8", "visits, computations of marginals, halvings of a step size"),
    ("trace", ("row", "column"), "f8", "one row per certificate; columns in the attribute trace_columns"),
)


@dataclass
class MarginalIterate:
    """A dual point that gives all labellings a weight, as scores, and its marginals."""

    problem: Problem
    options: Options
    seed: int
    ledger: Ledger
    sigma: np.ndarray
    weight: np.ndarray
    eta: np.ndarray
    gap: np.ndarray
    counters: np.ndarray
    fresh: bool = False
    views: tuple[str, str] = ("", "")
    hinges: np.ndarray = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        P = self.problem
        self.mu, self.ell, self.u = np.empty(self.sigma.size), np.empty(P.n), np.empty(P.d)
        self.w = np.empty(P.d) if P.lower.size else self.u
        self.ledger.counters = self.counters

    @property
    def counts(self) -> BlockCounts:
        """The scalars."""
        counts = self.ledger.counts
        assert isinstance(counts, BlockCounts)
        return counts

    @property
    def scale(self) -> float:
        """1 / (lambda n)."""
        return 1.0 / (self.counts.lam * self.problem.n)

    @property
    def known_gap(self) -> float:
        """The gap at the last exact pass at this lambda; inf before the first."""
        return float(np.sum(self.gap))

    def forget(self) -> None:
        """Go to the start."""
        P = self.problem
        self.sigma[:], self.gap[:] = 0.0, np.inf
        least = np.array([P.least_loss(i) for i in range(P.n)])
        self.weight[:] = -self.options.truth / np.where(least > 0.0, least, 1.0)

    def rebase(self) -> None:
        """mu, ell, u and w from the scores."""
        P = self.problem
        self.u[:] = 0.0
        state, sums, chunk = (self.sigma, self.weight, self.mu, self.ell), Sums.begin(self.u), chunk_length(P.d)

        def part(start: int, stop: int) -> None:
            derive_driver(P)(P, self.scale, *state, sums, chunk, start, stop)

        self.ledger.over_blocks(part, P)
        if P.lower.size:
            clip(self.u, P.lower, P.upper, self.w)

    def dual_value(self) -> float:
        """D(alpha) at present."""
        P = self.problem
        return dual_value(float(np.sum(self.ell)) / P.n, self.u, self.w, self.counts.lam, P.lower, P.upper)

    def dual_weights(self) -> np.ndarray:
        """(d,): w."""
        return self.w.copy()

    def primal(self) -> np.ndarray:
        """(d,): w."""
        return self.w

    def mean_hinge(self) -> float:
        """R at the last exact pass."""
        return float(np.mean(self.hinges))

    def block_gaps(self) -> np.ndarray:
        """float64, (n,): block gaps at the last exact pass."""
        return self.gap.copy()

    def supports(self) -> Scores:
        """The dual point."""
        return Scores(self.sigma.copy(), self.weight.copy())

    def begin_lambda(self, lam: float, breakpoint: int, exact_due: bool) -> None:
        """Begin another lambda with the present weights and the first step sizes."""
        self.ledger.begin_lambda(lam, breakpoint)
        self.counts.exact_due = exact_due
        self.eta[:], self.gap[:] = self.options.eta, np.inf

    def move_to(self, lam: float, warm_start: str) -> None:
        """keep_dual keeps the weights, none goes to the start."""
        if warm_start == "none":
            self.forget()

    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, Json]]:
        """The arrays of `SPECS`, and the scalars."""
        arrays = {
            "dual_scores": self.sigma,
            "dual_loss_weight": self.weight,
            "step_size": self.eta,
            "block_gap": self.gap,
            "counters": self.counters,
            "trace": self.ledger.packed_trace(),
        }
        return {name: np.array(array) for name, array in arrays.items()}, {"counts": asdict(self.counts)}


def begin(problem: Problem, options: Options, pool: Pool, seed: int, ledger: Ledger) -> MarginalIterate:
    """The iterate at its start; ValueError if `pool` is another dual point than that of the true labellings."""
    if not (pool.losses[pool.head] == 0.0).all() or (pool.counts != 1).any():
        raise ValueError(
            "solver.method: eg cannot begin at the dual point of another solve; begin without one (warm_start=False)"
        )
    n, p = problem.n, int(problem.local_ptr[-1])
    arrays = np.empty(p), np.empty(n), np.empty(n), np.full(n, np.inf), np.zeros(3, np.int64)
    iterate = MarginalIterate(problem, options, seed, ledger, *arrays)
    iterate.forget()
    return iterate


def restored(
    problem: Problem, options: Options, seed: int, arrays: Arrays, attrs: Facts, ledger: Ledger
) -> MarginalIterate:
    """The iterate at a committed point; ValueError, naming the array, if one does not fit the problem."""
    n = problem.n
    scores = check_scores(problem, arrays["dual_scores"], arrays["dual_loss_weight"])
    eta = check_array("step_size", arrays["step_size"], (n,), np.float64, finite=True)
    gap = check_array("block_gap", arrays["block_gap"], (n,), np.float64)
    counters = check_array("counters", arrays["counters"], (3,), np.int64)
    sigma, weight, eta, gap, counters = (np.array(array) for array in (*scores, eta, gap, counters))
    ledger.counts, ledger.trace = BlockCounts(**attrs["counts"]), restored_trace(arrays["trace"])
    return MarginalIterate(problem, options, seed, ledger, sigma, weight, eta, gap, counters)


@dataclass
class PassCounts:
    """The scalars of the schedule."""

    passes: int = 0
    """Passes over the blocks: the seed of the next permutation."""
    passes_at_exact: int = 0
    """The same at the last exact pass, or at the beginning of this lambda."""


@dataclass
class ExponentiatedGradient:
    """Passes over the blocks in permuted order, and an exact pass after every `refresh_every` of them."""

    it: MarginalIterate
    options: Options
    counts: PassCounts = field(default_factory=PassCounts)
    pace: Pace = field(default_factory=Pace)
    """Work between stop checks, of visits of blocks."""

    def advance(self, goal: Goal) -> Ended | None:
        """An exact pass if one is due, which may end the solve, otherwise a pass over the blocks."""
        it, counts, ledger = self.it, self.counts, self.it.ledger
        if not it.counts.exact_due:
            self.one_pass()
            due = counts.passes - counts.passes_at_exact >= self.options.refresh_every
            it.counts.exact_due = due or ledger.limit() is not None
            return None
        point = self.exact_pass()
        ledger.record(point)
        status = Status.CONVERGED if point.gap <= goal.bound(point.dual) else ledger.limit()
        return (status, point) if status else None

    def one_pass(self) -> None:
        """A visit of every block in a new seeded permutation."""
        it, P = self.it, self.it.problem
        order = np.random.default_rng([it.seed, self.counts.passes]).permutation(P.n)
        self.counts.passes += 1
        run, growth = visits_driver(P), float(self.options.growth)

        def part(start: int, stop: int) -> None:
            state = it.sigma, it.weight, it.eta, it.mu, it.ell, it.u, it.w, it.counters
            run(P, order[start:stop], it.scale, growth, *state)

        self.pace.run(part, 0, P.n, it.ledger.check_stop, work_before(P, order))

    def exact_pass(self) -> Certificate:
        """One max-oracle call per block at w: the certificate."""
        it, P, counts = self.it, self.it.problem, self.it.counts
        with it.ledger.asking():
            answers = exact_gaps(P, it.w, it.mu, it.ell, it.ledger.spread)
        it.gap[:], it.hinges = answers.gap, answers.hinge
        counts.gap_passes += 1
        counts.exact_due, self.counts.passes_at_exact = False, self.counts.passes
        counts.exact_total, counts.dual = float(np.sum(answers.gap)), it.dual_value()
        hinge, ell = float(np.sum(answers.hinge)) / P.n, float(np.sum(it.ell)) / P.n
        return Certificate(counts.lam, counts.exact_total, hinge, ell, squared_norm(it.w), counts.dual)

    def start(self) -> None:
        """Another lambda has begun."""
        self.counts.passes_at_exact = self.counts.passes

    def warm_up(self) -> None:
        """Compile or load every function that a solve calls."""
        it, P, none = self.it, self.it.problem, np.empty(0, np.int64)
        load_oracles(P)
        it.rebase()
        state = it.sigma, it.weight, it.eta, it.mu, it.ell, it.u, it.w, it.counters
        visits_driver(P)(P, none, it.scale, float(self.options.growth), *state)


def schedule_of(it: MarginalIterate, options: Options, own_primal: bool) -> Schedule:
    """The schedule of `ExponentiatedGradient`."""
    method = ExponentiatedGradient(it, options)
    return Schedule(method.advance, method.start, warm_up=method.warm_up, counts=method.counts)


METHOD = Recipe(schedule_of, begin, restored, SPECS, BlockCounts)
