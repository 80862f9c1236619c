"""Exact passes of block methods: one oracle call per block at a fixed point, which gives a certificate (O16 3.3)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gapwise.stages.problems.metric import norm2_of
from gapwise.stages.solver.gaps import ExactGaps, exact_gaps
from gapwise.stages.solver.iterate import Iterate
from gapwise.stages.solver.objective import Certificate
from gapwise.stages.solver.options import Status
from gapwise.stages.solver.oracles import Vertices, vertices_at
from gapwise.stages.solver.schedule import Goal
from gapwise.stages.solver.several import Listed, several_at

FAINT = 0.1
"""Share of the tolerance, or of the slack of the oracle's bounds if that is larger, that is reserved for the optimisation
gap; where the optimisation gap is below it and slack takes nearly all of the tolerance, more steps do not help."""

Found = tuple[Certificate, np.ndarray, float, float]
"""Of an exact pass: its certificate, the w (d,) of that, the slack of the oracle's bounds, the share of proven blocks."""

Better = Callable[[Found], Found]
"""better(passed): `passed`, or what a pass at another primal point found if that is better."""


def certificate_of(it: Iterate, w: np.ndarray, gap: float, hinge: float | None = None) -> Certificate:
    """The certificate of (w, alpha), w (d,); without `hinge` it is computed from the gap, valid for cone bounds only."""
    lam = it.counts.lam
    ell, norm2 = float(it.state.z_ell[1]), norm2_of(it.problem, w)
    if hinge is None:
        hinge = gap + ell - lam * norm2
    dual, excess = it.dual_and_excess(w)
    return Certificate(lam, gap + excess, hinge, ell, norm2, dual)


def gaps_at(it: Iterate, w: np.ndarray) -> ExactGaps:
    """The results of an exact pass at w (d,)."""
    return exact_gaps(it.problem, w, it.state.mu, it.state.ell, it.ledger.spread, it.state.pool, it.setup.n_best)


def answers_at(it: Iterate, w: np.ndarray, blocks: np.ndarray) -> tuple[Vertices, Listed | None]:
    """An oracle call for each of `blocks` at w (d,): the vertices, and what oracles that list returned besides."""
    if it.setup.n_best > 1:
        return several_at(it.problem, w, blocks, it.setup.n_best, it.ledger.spread)
    return vertices_at(it.problem, w, blocks, it.ledger.spread), None


def exact_pass(
    it: Iterate,
    w: np.ndarray | None = None,
    better: Better | None = None,
    gaps: Callable[[Iterate, np.ndarray], ExactGaps] = gaps_at,
) -> tuple[Certificate, ExactGaps]:
    """One oracle call per block at w (d,), or the iterate's: certificate, gaps, labellings for the cache (O16 Alg. 2)."""
    P, counts = it.problem, it.counts
    w = it.state.w if w is None else w
    with it.ledger.asking():
        answers = gaps(it, w)
        point = certificate_of(it, w, float(np.sum(answers.certified)), float(np.sum(answers.hinge)) / P.n)
        passed = point, w, answers.slack, answers.proven
        if better is not None:
            passed = better(passed)
    it.state.gap[:], it.hinges = answers.gap, answers.hinge
    counts.gap_passes += 1
    counts.exact_due = False
    counts.exact_total = float(np.sum(answers.gap))
    point, it.weights, counts.slack, counts.proven = passed
    counts.dual = point.dual
    if it.setup.caching:
        it.keep(np.arange(P.n), answers.vertex, answers.loss, answers.listed)
    it.rebuild_tree()
    counts.last_refresh = it.ledger.steps
    return point, answers


def due_pass(
    it: Iterate, goal: Goal, w: np.ndarray | None = None, better: Better | None = None
) -> tuple[Certificate, ExactGaps | None]:
    """An exact pass; with `goal.exact` False, stale gaps that are small enough replace it."""
    stale = float(np.sum(np.maximum(it.state.gap, 0.0)))
    if goal.exact or not stale <= goal.bound(it.counts.dual):
        return exact_pass(it, w, better)
    it.weights = it.state.w
    return certificate_of(it, it.state.w if w is None else w, stale), None


def pass_at(it: Iterate, w: np.ndarray, passed: Found) -> Found:
    """`passed`, or what an exact pass at w (d,) finds with the same dual point if that is better."""
    P, (point, _, slack, proven) = it.problem, passed
    answers = vertices_at(P, w, range(P.n), it.ledger.spread)
    hinge = float(np.sum(answers.upper_hinge)) / P.n
    it.counts.gap_passes += 1
    norm2 = norm2_of(P, w)
    gap = 0.5 * point.lam * norm2 + hinge - point.dual
    if gap >= point.gap:
        return passed
    if answers.bound is not answers.h:
        slack, proven = float(np.mean(answers.bound - answers.h)), float(np.mean(answers.proven))
    return Certificate(point.lam, gap, hinge, point.ell, norm2, point.dual), w, slack, proven


def judged(it: Iterate, point: Certificate, goal: Goal) -> Status | None:
    """How this lambda ends with `point`: CONVERGED, a limit that is reached, BOUND_LIMIT; None if the solve goes on."""
    bound = goal.bound(point.dual)
    return Status.CONVERGED if point.gap <= bound else it.ledger.limit() or hopeless(it, bound)


def left_for_oracle(it: Iterate, bound: float) -> float:
    """The part of a bound on the gap that the slack of the oracle's bounds leaves to the optimiser; all if exact."""
    slack = it.counts.slack
    return max(bound - slack, FAINT * max(bound, slack)) if slack > 0.0 else bound


def hopeless(it: Iterate, bound: float) -> Status | None:
    """BOUND_LIMIT if an exact pass missed `bound` only because of the slack of the oracle's bounds, otherwise None."""
    counts = it.counts
    missed = counts.slack > (1.0 - 2.0 * FAINT) * bound and counts.exact_total <= FAINT * max(bound, counts.slack)
    return Status.BOUND_LIMIT if missed and counts.slack > 0.0 else None
