"""Block gaps (LJ13 3; O16 3.3): by an exact pass, one oracle call per block at a fixed point, which gives a certificate; or
over cached labellings only."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from gapwise.stages.problems.capabilities import ESTIMATE, EXACT, certainty_of
from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.moves import norm2_of
from gapwise.stages.problems.parallel import HERE, Spread, work_before
from gapwise.stages.problems.protocol import JIT, Problem, frozen, largest, widest_block
from gapwise.stages.problems.simd import one_type
from gapwise.stages.solver.block.pairs import atoms_of, score_slots
from gapwise.stages.solver.block.step import survey
from gapwise.stages.solver.objective import Certificate, Goal
from gapwise.stages.solver.options import Status
from gapwise.stages.solver.oracles import BASES, ORACLES, Answers, answers_at, bases, check_answers, run_driver
from gapwise.stages.solver.supports import Pool

if TYPE_CHECKING:
    from gapwise.stages.solver.dual_point import DualPoint

FAINT = 0.1
"""Share of the tolerance, or of the slack of the oracle's bounds if that is larger, that is reserved for the optimisation
gap; where the optimisation gap is below it and slack takes nearly all of the tolerance, more steps do not help."""

Found = tuple[Certificate, np.ndarray, float, float]
"""Of an exact pass: its certificate, the w (d,) of that, the slack of the oracle's bounds, the share of proven blocks."""

Better = Callable[[Found], Found]
"""better(passed): `passed`, or what a pass at another primal point found if that is better."""


class ExactGaps(NamedTuple):
    """The results of one exact pass at a fixed w; arrays over blocks."""

    gap: np.ndarray
    """float64, (n,): g_i; a lower estimate if the oracle is approximate"""
    hinge: np.ndarray
    """float64, (n,): max_y L_i(y) - <theta_i, m_i(y_i) - m_i(y)> >= 0, or the bound on it that the structure offers"""
    certified: np.ndarray
    """float64, (n,): the block gaps that belong to `hinge`; `gap` itself if the oracle is exact"""
    proven: float
    """Share of the blocks whose vertex is proven to be a maximiser; 1 if the oracle is exact, 0 without a bound."""
    answers: Answers
    """What the oracles returned."""

    @property
    def slack(self) -> float:
        """What the bounds add to the gap; 0 if the oracle is exact."""
        return 0.0 if self.certified is self.gap else float(np.sum(self.certified)) - float(np.sum(self.gap))


def exact_gaps(
    problem: Problem,
    w: np.ndarray,
    pool: Pool,
    spread: Spread = HERE,
    m: int = 1,
    given: tuple[np.ndarray, Answers] | None = None,
) -> ExactGaps:
    """One exact pass at w (d,) and the dual point of `pool` (LJ13 Alg. 2).

    Where oracles run in other processes, only w is sent: ell_i + <theta_i, mu_i> is computed here. An oracle call returns up
    to m labellings. `given`: blocks (int64, rising) that have been asked at this w, and their answers to such calls; the
    results are the same, to the bit.

    Raises
    ------
    ValueError
        If an oracle's value is below the truth's, so that its labelling is not a maximiser. Names the block.
    """
    n = problem.n
    certainty = certainty_of(problem)
    if given is not None or spread.elsewhere is not None:
        answers = all_answers(problem, w, spread, m, given)
        return _gaps(answers, bases(problem, w, pool, spread, m=m), certainty)
    answers, base, every = Answers.empty(problem, n, m), np.empty(n), np.arange(n)
    w = frozen(w)

    def part(start: int, stop: int) -> None:
        of = slice(start, stop)
        piece = Answers(*(column[of] for column in answers))
        run_driver(problem, w, pool, ORACLES | BASES, every[of], base[of], piece)

    spread.over_threads(part, work_before(problem))
    check_answers(answers, every, certainty)
    return _gaps(answers, base, certainty)


def all_answers(
    problem: Problem, w: np.ndarray, spread: Spread, m: int, given: tuple[np.ndarray, Answers] | None
) -> Answers:
    """The oracles' answers for all blocks at w (d,); those of the blocks in `given` are not asked again."""
    if given is None:
        return answers_at(problem, w, range(problem.n), spread, m)
    blocks, known = given
    rest = np.setdiff1d(np.arange(problem.n), blocks, assume_unique=True)
    answers = Answers.empty(problem, problem.n, m)
    for column, first, second in zip(answers, known, answers_at(problem, w, rest, spread, m), strict=True):
        column[blocks], column[rest] = first, second
    return answers


def _gaps(answers: Answers, base: np.ndarray, certainty: str) -> ExactGaps:
    """The gaps from the oracle's answers and base_i = ell_i + <theta_i, mu_i>.

    base_i is a mean of labellings' values, hence also a lower estimate of the maximum, below which an approximate oracle
    may fall.
    """
    n = base.size
    if certainty == EXACT:
        gap = (answers.h - base) / n
        return ExactGaps(gap, answers.hinge, gap, 1.0, answers)
    gap = np.maximum(answers.h - base, 0.0) / n
    if certainty == ESTIMATE:
        hinge = answers.hinge + np.maximum(base - answers.h, 0.0)
        return ExactGaps(gap, hinge, gap, 0.0, answers)
    proven = float(np.mean(answers.proven))
    return ExactGaps(gap, answers.upper_hinge, (answers.bound - base) / n, proven, answers)


@driver
def cached_driver(fingerprint: str) -> Callable[..., None]:
    """`cached(P, pool, w, gap, start, stop)`: lower bounds on the gaps of blocks start to stop - 1 at w (d,) from cached
    labellings; no oracle call."""

    @njit(cache=True, **JIT)
    def cached(P, pool, w, gap, start, stop):
        fingerprint  # noqa: B018
        w = one_type(w)
        widest = widest_block(P.local_ptr)
        theta_all, most = np.empty(widest), largest(pool.counts)
        slots_all, places_all, values_all = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
        for i in range(start, stop):
            slots, values = slots_all[: pool.counts[i]], values_all[: pool.counts[i]]
            atoms_of(pool, i, slots, places_all)
            score_slots(P, pool, i, w, slots, theta_all[: P.local_ptr[i + 1] - P.local_ptr[i]], values)
            seen = survey(pool, slots, values, slots.size, False)
            gap[i] = max(seen.h_best - seen.base, 0.0) / gap.size

    return cached


def certificate_of(it: DualPoint, w: np.ndarray, gap: float, hinge: float | None = None) -> Certificate:
    """The certificate of (w, alpha), w (d,); without `hinge` it is computed from the gap, valid for cone bounds only."""
    lam = it.counts.lam
    ell, norm2 = float(it.state.z_ell[1]), norm2_of(it.problem, w)
    if hinge is None:
        hinge = gap + ell - lam * norm2
    dual, excess = it.dual_and_excess(w)
    return Certificate(lam, gap + excess, hinge, ell, norm2, dual)


def gaps_at(it: DualPoint, w: np.ndarray, given: tuple[np.ndarray, Answers] | None = None) -> ExactGaps:
    """The results of an exact pass at w (d,); `given` as in `exact_gaps`."""
    return exact_gaps(it.problem, w, it.state.pool, it.ledger.spread, it.n_best, given)


def exact_pass(
    it: DualPoint,
    w: np.ndarray | None = None,
    better: Better | None = None,
    given: tuple[np.ndarray, Answers] | None = None,
) -> tuple[Certificate, ExactGaps]:
    """One oracle call per block at w (d,), or the iterate's: certificate, gaps, labellings for the cache (O16 Alg. 2).

    `given` as in `exact_gaps`.
    """
    P, counts = it.problem, it.counts
    w = it.state.w if w is None else w
    with it.ledger.asking():
        found = gaps_at(it, w, given)
        point = certificate_of(it, w, float(np.sum(found.certified)), float(np.sum(found.hinge)) / P.n)
        passed = point, w, found.slack, found.proven
        if better is not None:
            passed = better(passed)
    it.state.gap[:], it.hinges = found.gap, found.hinge
    counts.gap_passes += 1
    counts.exact_due = False
    counts.exact_total = float(np.sum(found.gap))
    point, it.weights, counts.slack, counts.proven = passed
    counts.dual = point.dual
    if it.options.cache:
        it.keep(np.arange(P.n), found.answers)
    it.rebuild_tree()
    counts.last_refresh = it.ledger.steps
    return point, found


def due_pass(
    it: DualPoint, goal: Goal, w: np.ndarray | None = None, better: Better | None = None
) -> tuple[Certificate, ExactGaps | None]:
    """An exact pass; with `goal.exact` False, stale gaps that are small enough replace it."""
    stale = float(np.sum(np.maximum(it.state.gap, 0.0)))
    if goal.exact or not stale <= goal.bound(it.counts.dual):
        return exact_pass(it, w, better)
    it.weights = it.state.w
    return certificate_of(it, it.state.w if w is None else w, stale), None


def pass_at(it: DualPoint, w: np.ndarray, passed: Found) -> Found:
    """`passed`, or what an exact pass at w (d,) finds with the same dual point if that is better."""
    P, (point, _, slack, proven) = it.problem, passed
    answers = answers_at(P, w, range(P.n), it.ledger.spread)
    hinge = float(np.sum(answers.upper_hinge)) / P.n
    it.counts.gap_passes += 1
    norm2 = norm2_of(P, w)
    gap = 0.5 * point.lam * norm2 + hinge - point.dual
    if gap >= point.gap:
        return passed
    if answers.bound is not answers.h:
        slack, proven = float(np.mean(answers.bound - answers.h)), float(np.mean(answers.proven))
    return Certificate(point.lam, gap, hinge, point.ell, norm2, point.dual), w, slack, proven


def judged(it: DualPoint, point: Certificate, goal: Goal) -> Status | None:
    """How this lambda ends with `point`: CONVERGED, a limit that is reached, BOUND_LIMIT; None if the solve goes on."""
    bound = goal.bound(point.dual)
    return Status.CONVERGED if point.gap <= bound else it.ledger.limit() or hopeless(it, bound)


def left_for_oracle(it: DualPoint, bound: float) -> float:
    """The part of a bound on the gap that the slack of the oracle's bounds leaves to the optimiser; all if exact."""
    slack = it.counts.slack
    return max(bound - slack, FAINT * max(bound, slack)) if slack > 0.0 else bound


def hopeless(it: DualPoint, bound: float) -> Status | None:
    """BOUND_LIMIT if an exact pass missed `bound` only because of the slack of the oracle's bounds, otherwise None."""
    counts = it.counts
    missed = counts.slack > (1.0 - 2.0 * FAINT) * bound and counts.exact_total <= FAINT * max(bound, counts.slack)
    return Status.BOUND_LIMIT if missed and counts.slack > 0.0 else None
