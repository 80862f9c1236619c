"""The restricted dual of cutting-plane methods: a small dense quadratic program over products of simplices.

    maximise  <f, x> - (1/2) <x, Q x>      where x >= 0 and, in every group of variables, sum x <= 1.

What is left of a group's 1 belongs to the true labelling, whose plane is zero and which is no variable. PIQP (Schwan, Jiang,
Kuhn, Jones, CDC 2023) solves it: a proximal interior point method, which takes singular Q (equal planes, more planes than
features) and needs the same 10 to 20 factorisations however good its start. It is given numbers of the size of 1, whatever
the unit of losses and features, and its answer is only a proposal: it is cleaned of weights that rounding left, projected
to the feasible set, and taken if it is better than the point at hand. So no failure of the solver can make a dual point
infeasible or let the dual value fall by more than rounding; and where it fails, pairwise steps go on.
"""

from __future__ import annotations

import numpy as np
import piqp

TOLERANCE = 1e-13
"""On residuals and duality gap, relative to numbers of the size of 1."""

CLEAN = 1e-11
"""The duality gap, in the same unit, that a solution may have without the weights that rounding left."""

MOST_SHARE = 1e4
"""Interior points reach a vertex of the simplex from this far away at most; further ones are approached in stages."""

MOST_STAGES = 4
"""1e16 times further."""

ROUNDING = 1e-14
"""Values this close, relative to their terms, are equal; then the smaller gap decides, which is of first order in x."""

STEPS_EACH = 10
"""Steps per variable, where the solver fails."""

MOST_ITERATIONS = 100
"""Of the solver, which usually needs 10 to 20."""


def maximise(Q: np.ndarray, f: np.ndarray, group: np.ndarray, start: np.ndarray) -> np.ndarray:
    """A maximiser, or `start` if no better point is found.

    Parameters
    ----------
    Q : (k, k) array
        Positive semidefinite up to rounding.
    f : (k,) array
    group : int array, (k,)
        The group of each variable: 0, 1, ..., each with at least one variable.
    start : (k,) array
        A feasible point.

    Returns
    -------
    (k,) array
        A feasible point: sums are at most 1 up to the rounding of a sum.
    """
    largest, curvature = float(np.max(np.abs(f), initial=0.0)), float(np.max(np.diag(Q), initial=0.0))
    if not (largest > 0.0 and np.isfinite(largest) and np.isfinite(curvature)):
        return start
    best, value, gap = start, value_of(Q, f, start), restricted_gap(f - _times(Q, start), start, group)
    close = ROUNDING * (float(np.sum(np.abs(f) * start)) + abs(value))
    scale = min(1.0, largest / curvature) if curvature > 0.0 else 1.0
    for _ in range(MOST_STAGES):
        most = min(1.0 / scale, MOST_SHARE)
        trial = project(scale * _proposal(Q * (scale / largest), f / largest, group, most), group)
        trial_value, trial_gap = value_of(Q, f, trial), restricted_gap(f - _times(Q, trial), trial, group)
        if trial_value > value + close or (trial_value >= value - close and trial_gap < 0.5 * gap):
            best, value, gap = trial, trial_value, trial_gap
        if most * scale >= 1.0 or np.max(np.bincount(group, trial)) < 0.5 * most * scale:
            break
        scale = min(1.0, scale * MOST_SHARE)
    return best if best is not start else pairwise(Q, f, group, start)


def pairwise(Q: np.ndarray, f: np.ndarray, group: np.ndarray, start: np.ndarray) -> np.ndarray:
    """`start` after pairwise steps with exact line search, for when the solver fails; `start` itself where none ascends."""
    x, gradient, groups = start, f - _times(Q, start), int(group.max()) + 1
    for _ in range(STEPS_EACH * f.size):
        rest = np.maximum(1.0 - np.bincount(group, x, minlength=groups), 0.0)
        gains = np.append(gradient, np.zeros(groups))  # the true labellings are the last variables
        of, share = np.append(group, np.arange(groups)), np.append(x, rest)
        best, worst = np.full(groups, -np.inf), np.full(groups, np.inf)
        np.maximum.at(best, of, gains)
        np.minimum.at(worst, of[share > 0.0], gains[share > 0.0])
        g = int(np.argmax(best - worst))
        j = int(np.flatnonzero((of == g) & (gains == best[g]))[0])
        i = int(np.flatnonzero((of == g) & (gains == worst[g]) & (share > 0.0))[0])
        direction = np.zeros(x.size + groups)
        direction[j], direction[i] = 1.0, -1.0
        direction = direction[: x.size]
        change = _times(Q, direction)
        slope, curvature = best[g] - worst[g], float(np.sum(direction * change))
        length = share[i] if slope >= share[i] * curvature else slope / curvature
        if slope <= 0.0:
            break
        x, gradient = np.maximum(x + length * direction, 0.0), gradient - length * change
        if i < x.size and length == share[i]:
            x[i] = 0.0
    x = project(x, group)
    return x if value_of(Q, f, x) > value_of(Q, f, start) else start


def restricted_gap(gradient: np.ndarray, x: np.ndarray, group: np.ndarray) -> float:
    """The duality gap over the variables: sum over groups of the largest gradient (at least 0), less <x, gradient>."""
    best = np.zeros(int(group.max()) + 1)
    np.maximum.at(best, group, gradient)
    return float(np.sum(best) - np.sum(x * gradient))


def _times(Q: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Q x, summed in a fixed order, unlike by BLAS."""
    return np.sum(Q * x, axis=1)


def value_of(Q: np.ndarray, f: np.ndarray, x: np.ndarray) -> float:
    """<f, x> - (1/2) <x, Q x>."""
    return float(np.sum(f * x) - 0.5 * np.sum(x * _times(Q, x)))


def _proposal(Q: np.ndarray, f: np.ndarray, group: np.ndarray, most: float) -> np.ndarray:
    """What the solver finds with sums of at most `most`, without the weights of constraints that are not active there.

    Of two complementary numbers, both near 0, the smaller is taken to be 0. The others are then found again without those.
    """
    x = _solved(Q, f, group, most)
    x = np.maximum(np.where(np.isfinite(x), x, 0.0), 0.0)
    slack, gap = _complement(Q, f, group, most, x)
    active = np.flatnonzero(x >= slack)
    if active.size in (0, x.size):
        return x
    cleaned = np.zeros(x.size)
    some = np.unique(group[active], return_inverse=True)[1]
    solution = _solved(Q[np.ix_(active, active)], f[active], some, most)
    cleaned[active] = np.maximum(np.where(np.isfinite(solution), solution, 0.0), 0.0)
    return cleaned if _complement(Q, f, group, most, cleaned)[1] <= max(2.0 * gap, CLEAN) else x


def _solved(Q: np.ndarray, f: np.ndarray, group: np.ndarray, most: float) -> np.ndarray:
    """The solver's answer as it is."""
    k, groups = f.size, int(group.max()) + 1
    rows = (group == np.arange(groups)[:, None]).astype(float)
    solver = piqp.DenseSolver()
    settings = solver.settings
    settings.eps_abs = settings.eps_rel = TOLERANCE
    settings.max_iter = MOST_ITERATIONS
    settings.check_duality_gap = True
    settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = TOLERANCE
    solver.setup(Q, -f, None, None, rows, None, np.full(groups, most), np.zeros(k), np.full(k, np.inf))
    solver.solve()
    return np.array(solver.result.x)


def _complement(
    Q: np.ndarray, f: np.ndarray, group: np.ndarray, most: float, x: np.ndarray
) -> tuple[np.ndarray, float]:
    """How far each gradient is below its group's multiplier, (k,), and the duality gap at x."""
    gradient = f - _times(Q, x)
    multiplier = np.zeros(int(group.max()) + 1)
    np.maximum.at(multiplier, group, gradient)
    return multiplier[group] - gradient, float(most * np.sum(multiplier) - np.sum(x * gradient))


def project(x: np.ndarray, group: np.ndarray) -> np.ndarray:
    """The nearest point with x >= 0 and, in each group, sum <= 1 (Held, Wolfe, Crowder, Math. Programming 1974)."""
    x = np.maximum(x, 0.0)
    for g in np.flatnonzero(np.bincount(group, x) > 1.0):
        of = np.flatnonzero(group == g)
        falling = np.sort(x[of])[::-1]
        excess = (np.cumsum(falling) - 1.0) / np.arange(1, of.size + 1)
        shift = excess[np.flatnonzero(falling > excess)[-1]]
        x[of] = np.maximum(x[of] - shift, 0.0)
        x[of] /= max(1.0, float(np.sum(x[of])))
    return x
