"""One block-coordinate step: scores, vertex, move, line search, bookkeeping (LJ13 Alg. 4; O16 Alg. 2, 3, 4, 5).

All quantities live in the local coordinates of block i: theta = B_i^T w, h(y) = L_i(y) + <theta, m_i(y)>, and
base = sum_y alpha_i(y) h(y) = ell_i + <theta, mu_i>, so that the block gap is (max_y h(y) - base) / n.

A move leads from one point of the block to another: its mean mu_i, a vertex y, or z, the active atom of least score.

| move | delta | slope | gamma_max | alpha becomes |
|---|---|---|---|---|
| FW (LJ13 Alg. 4; O16 Alg. 2) | m(y) - mu_i | h(y) - base | 1 | (1 - gamma) alpha + gamma e_y |
| PAIRWISE (O16 Alg. 3) | m(y) - m(z) | h(y) - h(z) | alpha(z) | alpha + gamma (e_y - e_z) |
| AWAY (O16 Alg. 4) | mu_i - m(z) | base - h(z) | alpha(z) / (1 - alpha(z)) | (1 + gamma) alpha - gamma e_z |

All share one line search. With scale = 1 / (lambda n), a move of gamma along delta with slope s = d(ell) + <theta, delta>
changes n D by gamma s - gamma^2 scale ||B delta||^2 / 2 (exactly without a box; with one by at least that much, because
clipping does not increase distances).

The step stands here once. A *view* V says how the atoms of a block are scored, what ||B_i delta||^2 of a move is, and how a
move changes u (`View`); it also holds the workspace. numba compiles the step for each pair of structure and view. The loop
that draws the blocks is `loop`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from gapwise.stages.problems.compiled import inner
from gapwise.stages.problems.protocol import INLINED, PLAIN, Problem, compile_methods
from gapwise.stages.solver.block.sampling import tree_set, weight_of
from gapwise.stages.solver.codes import (
    AVERAGED,
    AWAY,
    CACHE_FIRST,
    CACHE_ONLY,
    CACHED_STEPS,
    FW,
    MAX_GAP,
    ORACLE_CALLS,
    PAIRWISE,
    RETIRED,
    SKIPPED_VISITS,
    STEPS,
)
from gapwise.stages.solver.running import clip_into
from gapwise.stages.solver.supports import drop_inactive, find, insert

if TYPE_CHECKING:
    from gapwise.stages.solver.running import Flags, State


class Seen(NamedTuple):
    """A block as its view scores it; a slot of the pool is -1 if there is none."""

    base: float
    """sum_y alpha(y) h(y)"""
    best: int
    """slot of the best atom, weight or not"""
    h_best: float
    away: int
    """slot of the worst atom with weight"""
    h_away: float
    active: int
    """atoms with weight"""


class Choice(NamedTuple):
    """A move of a block; gamma is 0 if none raises the dual."""

    direction: int
    gamma: float
    slope: float
    curvature: float
    """||B_i delta||^2"""


class View(Protocol):
    """How a step scores the atoms of block i, measures a move and makes it: `by_features` or `by_margins`.

    A view is a ``NamedTuple`` of arrays, its data and its workspace, whose ordinary methods are compiled as those of a
    structure are (`stages.problems.protocol`): a call ``V.score_atoms(...)`` goes to the class's own method.

    Attributes
    ----------
    slots : int64 array
        Slots of the scored atoms in the pool; the first `count` are in use.
    values : float64 array
        Their scores h, which may lack a term common to all atoms of the block.

    Notes
    -----
    `base` is the mean of the scores by alpha; `direction` is FW, PAIRWISE or AWAY; `target` and `away` are the slots of the
    vertex and of the worst atom with weight. Methods are compiled and raise nothing.
    """

    @property
    def slots(self) -> np.ndarray: ...
    @property
    def values(self) -> np.ndarray: ...

    def score_atoms(self, P: Problem, S: State, i: int) -> int:
        """slots[:count], values[:count] <- the block's atoms in list order and their scores; returns count."""

    def ask_oracle(self, P: Problem, S: State, flags: Flags, i: int, base: float) -> tuple[int, float, float]:
        """(slot or -1, h, L_i) of the max-oracle's answer at the current w, which is noted (`step.note_answer`)."""

    def measure_move(self, P: Problem, S: State, i: int, direction: int, target: int, away: int) -> float:
        """||B_i delta||^2; the view may keep what `push_move` needs."""

    def push_move(
        self, P: Problem, S: State, i: int, direction: int, target: int, away: int, c: float, u: np.ndarray
    ) -> None:
        """u += c B_i delta (d,) of the move measured last; alpha has not moved yet."""

    def allowed_moves(self, flags: Flags) -> int:
        """Bits of the moves that a step may make; a constant leaves the others out of the code."""

    def fetch(self, P: Problem, S: State, flags: Flags, order: np.ndarray, k: int, i: int) -> None:
        """Fetch what visit k of `order`, of block i, and the next ones will read (`prefetching`); changes nothing."""

    def exhausted(self) -> bool:
        """Whether the view lacks room for another step."""


compile_methods(View)


@inner(**PLAIN)
def step(P, S, V, flags, i):
    """A step of block i, or `flags.rounds` of them: the first towards a vertex, the others between the block's own atoms."""
    S.counters[STEPS] += 1
    for turn in range(flags.rounds):
        seen = survey(S.pool, V.slots, V.values, V.score_atoms(P, S, i), flags.vertex_from == CACHE_ONLY)
        target, h, loss = vertex(P, S, V, flags, i, turn, seen)
        if target >= 0:
            S.pool.used[target] = S.counters[STEPS]
        choice = choose(P, S, V, flags, i, seen, target, h)
        if choice.gamma <= 0.0:
            break
        move(P, S, V, flags, i, choice, target, seen.away, loss)
    S.counters[AVERAGED] += 1
    if not flags.cache:
        drop_inactive(S.pool, i)


# -- what there is -----------------------------------------------------------------------------------------------------
@inner(**PLAIN)
def survey(pool, slots, values, count, within):
    """What is `Seen` of the first `count` of `slots`, whose scores h are `values` (`extremes`)."""
    base, best, h_best, away, h_away, active = extremes(pool, slots, values, count, within)
    return Seen(base, slots[best] if best >= 0 else -1, h_best, slots[away] if away >= 0 else -1, h_away, active)


@inner(**PLAIN)
def extremes(pool, slots, values, count, within):
    """(base, k of the best atom, its h, k of the worst one with weight, its h, number of these); k is -1 if there is none.

    `within`: the best atom is sought in the block's working set (`best_of_working_set`). Few branches, as which atoms have
    weight cannot be foreseen (O16 Alg. 3-5).
    """
    best, away, base, h_best, h_away, active = -1, -1, 0.0, -np.inf, np.inf, 0
    for k in range(count):
        h, alpha = values[k], pool.alpha[slots[k]]
        base += alpha * h
        best, h_best = (k, h) if h > h_best else (best, h_best)
        worst = h if alpha > 0.0 else np.inf
        away, h_away = (k, worst) if worst < h_away else (away, h_away)
        active += 1 if alpha > 0.0 else 0
    if within and best >= 0 and pool.used[slots[best]] == RETIRED:
        best, h_best = best_of_working_set(pool, slots, values, count)
    return base, best, h_best, away, h_away, active


@inner(**PLAIN)
def best_of_working_set(pool, slots, values, count):
    """(k, h) of the best atom that the block's working set still has (S15 Alg. 3); (-1, -inf) if there is none."""
    best, h_best = -1, -np.inf
    for k in range(count):
        if pool.used[slots[k]] != RETIRED and values[k] > h_best:
            best, h_best = k, values[k]
    return best, h_best


# -- the vertex: from the cache, or by the max-oracle (O16 Alg. 5) -----------------------------------------------------
@inner(**INLINED)
def vertex(P, S, V, flags, i, turn, seen):
    """(slot or -1, h, L_i) of the vertex to move towards: the best cached atom or the max-oracle's answer (O16 Alg. 5)."""
    if turn > 0 or flags.vertex_from == CACHE_ONLY:
        if turn == 0:
            note_cached_gap(S, flags, i, seen.h_best - seen.base)
    elif flags.vertex_from != CACHE_FIRST or not cache_promises_enough(S, flags, i, seen.best, seen.h_best - seen.base):
        return V.ask_oracle(P, S, flags, i, seen.base)
    S.counters[CACHED_STEPS] += 1
    return seen.best, seen.h_best, S.pool.losses[seen.best]


@inner(**PLAIN)
def cache_promises_enough(S, flags, i, best, improvement):
    """Whether the best cached labelling improves by >= max(F g_i, (nu / n) g), with the last known gaps (O16 Alg. 5)."""
    known, n = S.gap[i], S.ell.size
    if not flags.cache or best < 0 or improvement <= 0.0:
        return False
    return known < np.inf and improvement >= max(flags.F * n * known, flags.nu * flags.exact_total)


@inner(**PLAIN)
def note_cached_gap(S, flags, i, improvement):
    """Record the gap of block i over its cached labellings; a small one makes cached passes skip the block for a while."""
    S.gap[i] = max(improvement, 0.0) / S.ell.size
    if S.gap[i] < flags.skip_below:
        S.skip[i] = SKIPPED_VISITS


@inner(**PLAIN)
def note_answer(P, S, flags, i, theta, y, loss, base):
    """Record an oracle's answer y: block gap, sampling weight, slot in the pool; (slot or -1, h(y)) (O16 Alg. 2, 5)."""
    h = loss + P.value(i, theta, y)
    S.counters[ORACLE_CALLS] += 1
    S.gap[i] = max(h - base, 0.0) / S.ell.size
    tree_set(S.tree, flags.sampler == MAX_GAP, i, weight_of(S.gap[i], flags.degree))
    target = find(S.pool, i, y, loss)
    if target < 0 and h > base:
        target = insert(S.pool, i, y, loss, flags.capacity)
    return target, h


# -- the move ----------------------------------------------------------------------------------------------------------
@inner(**INLINED)
def choose(P, S, V, flags, i, seen, target, h):
    """The `Choice` for block i with the vertex in slot `target`, of score h; -1 if no move to the vertex raises the dual.

    With `flags.by_slope` only the allowed move of largest slope is measured (O16 Alg. 4); otherwise each of them, and the
    one that gains most is made.
    """
    kinds = V.allowed_moves(flags)
    if flags.by_slope and kinds & (kinds - 1):  # where a view allows one move only, none of this is compiled in
        kinds = steepest(kinds, seen, target, h)
    taken, gamma, slope_taken, norm2_taken, most, measured = FW, 0.0, 0.0, 0.0, 0.0, 0
    for direction in (FW, PAIRWISE, AWAY):
        if kinds & direction == 0 or not possible(direction, seen, target):
            continue
        slope = slope_of(direction, h, seen.base, seen.h_away)
        gamma_max = 1.0 if direction == FW else largest_step(direction, S.pool.alpha[seen.away])
        if slope * gamma_max <= most:  # it cannot gain more, whatever its curvature
            continue
        norm2 = V.measure_move(P, S, i, direction, target, seen.away)
        measured = direction
        length = line_search(slope, norm2, flags.scale, gamma_max)
        improvement = gain(length, slope, norm2, flags.scale)
        if not flags.line_search:  # whatever it gains (LJ13 Alg. 4)
            length, improvement = fixed_length(S), np.inf
        if improvement > most:
            most, taken, gamma, slope_taken, norm2_taken = improvement, direction, length, slope, norm2
    if gamma > 0.0 and taken != measured:  # a later candidate has overwritten the view's workspace
        V.measure_move(P, S, i, taken, target, seen.away)
    return Choice(taken, gamma, slope_taken, norm2_taken)


@inner(**INLINED)
def possible(direction, seen, target):
    """Whether there is a direction: an away one needs two active atoms, others a vertex, a pairwise one another atom."""
    if direction == AWAY:
        return seen.active > 1
    return target >= 0 and (direction == FW or target != seen.away)


@inner(**INLINED)
def steepest(kinds, seen, target, h):
    """The bit of the allowed move of largest slope (O16 Alg. 4)."""
    bits, most = 0, -np.inf
    for direction in (FW, PAIRWISE, AWAY):
        if kinds & direction and possible(direction, seen, target):
            slope = slope_of(direction, h, seen.base, seen.h_away)
            if bits == 0 or slope > most:
                bits, most = direction, slope
    return bits


@inner(**PLAIN)
def slope_of(direction, h, base, h_away):
    """Slope of a direction, from the scores of vertex, mean and worst active atom."""
    if direction == FW:
        return h - base
    if direction == PAIRWISE:
        return h - h_away
    return base - h_away


@inner(**PLAIN)
def line_search(slope, norm2, scale, gamma_max):
    """argmax over [0, gamma_max] of gamma slope - gamma^2 scale norm2 / 2; gamma_max without curvature (LJ13 Alg. 4)."""
    if slope <= 0.0:
        return 0.0
    curvature = scale * norm2
    if curvature * gamma_max <= slope:
        return gamma_max
    return slope / curvature


@inner(**PLAIN)
def fixed_length(S):
    """2n / (k + 2n), k being the steps at this lambda (LJ13 Alg. 4 without line search)."""
    return 2.0 * S.ell.size / (S.counters[AVERAGED] + 2.0 * S.ell.size)


@inner(**PLAIN)
def gain(gamma, slope, norm2, scale):
    """n times the increase of the dual objective by the move."""
    return gamma * slope - 0.5 * gamma * gamma * scale * norm2


@inner(**PLAIN)
def largest_step(direction, alpha_away):
    """gamma_max, the step that ends on the boundary of the simplex (O16 Alg. 3, 4)."""
    if direction == FW:
        return 1.0
    if direction == PAIRWISE:
        return alpha_away
    return alpha_away / (1.0 - alpha_away)


# -- bookkeeping -------------------------------------------------------------------------------------------------------
@inner(**INLINED)
def move(P, S, V, flags, i, choice, target, away, loss):
    """Move block i by gamma: ell, u, w, alpha, and the running averages (LJ13 3.4)."""
    pool, n, direction, gamma = S.pool, S.ell.size, choice.direction, choice.gamma
    loss_away, alpha_away = pool.losses[max(away, 0)], pool.alpha[max(away, 0)]
    dl = loss_change(direction, loss, S.ell[i], loss_away)
    S.ell[i] += gamma * dl
    V.push_move(P, S, i, direction, target, away, -gamma * flags.scale, S.u)
    whole = 1.0 if direction == FW else largest_step(direction, alpha_away)
    update_weights(pool, i, direction, target, away, gamma, whole)
    if P.lower.size > 0:
        clip_into(S.u, P.lower, P.upper, S.w)
    S.z_ell[1] += gamma * dl / n
    if flags.average:
        t = float(S.counters[AVERAGED] + 1)
        late = 0.5 * t * (t - 1.0)
        V.push_move(P, S, i, direction, target, away, -gamma * flags.scale * late, S.z)
        S.z_ell[0] += late * gamma * dl / n
    S.curvature[0] += choice.curvature
    S.curvature[1] += choice.slope


@inner(**PLAIN)
def loss_change(direction, loss, ell, loss_away):
    """d(ell) of a direction, from the losses of vertex, mean and worst active atom."""
    if direction == FW:
        return loss - ell
    if direction == PAIRWISE:
        return loss - loss_away
    return ell - loss_away


@inner(**PLAIN)
def update_weights(pool, i, direction, target, away, gamma, whole):
    """Move the alphas of block i; the `whole` step (`largest_step`) sets its alpha to exactly zero (O16 Alg. 3, 4)."""
    full = gamma >= whole
    if direction == PAIRWISE:
        pool.alpha[target] += gamma
        pool.alpha[away] = 0.0 if full else pool.alpha[away] - gamma
        return
    factor = 1.0 - gamma if direction == FW else 1.0 + gamma
    s = pool.head[i]
    while s >= 0:
        pool.alpha[s] *= factor
        s = pool.next[s]
    if direction == FW:
        pool.alpha[target] = 1.0 if full else pool.alpha[target] + gamma
    else:
        pool.alpha[away] = 0.0 if full else max(pool.alpha[away] - gamma, 0.0)
