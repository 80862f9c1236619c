"""One block-coordinate step: scores, vertex, move, line search, bookkeeping (LJ13 Alg. 4; O16 Alg. 2, 3, 4, 5).

All quantities live in the local coordinates of block i: theta = B_i^T w, h(y) = L_i(y) + <theta, m_i(y)>, and
base = sum_y alpha_i(y) h(y) = ell_i + <theta, mu_i>, so that the block gap is (max_y h(y) - base) / n.

The step stands here once. A *view* V says how the atoms of a block are scored, what ||B_i delta||^2 of a move is, and how a
move changes u and the scores (`views`); it also holds the workspace. numba compiles the step for each pair of structure and
view, and what a view cannot do is then not part of the code. The drivers of `loop` draw the blocks.
"""

from __future__ import annotations

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import INLINED, PLAIN
from gapwise.stages.solver.block.answers import cache_promises_enough, note_cached_gap
from gapwise.stages.solver.block.choice import Seen, choose
from gapwise.stages.solver.box import clip_into
from gapwise.stages.solver.codes import AVERAGED, CACHE_FIRST, CACHE_ONLY, CACHED_STEPS, STEPS
from gapwise.stages.solver.directions import largest_step, loss_change, update_weights
from gapwise.stages.solver.steps import FW


@inner(**PLAIN)
def step(P, S, V, flags, i):
    """A step of block i, or `flags.rounds` of them: the first towards a vertex, the others between the block's own atoms."""
    S.counters[STEPS] += 1
    for turn in range(flags.rounds):
        seen = look(P, S, V, flags, i, turn)
        target, h, loss = vertex(P, S, V, flags, i, turn, seen)
        if target >= 0:
            S.pool.used[target] = S.counters[STEPS]
        choice = choose(P, S, V, flags, i, seen, target, h)
        if choice.gamma <= 0.0:
            break
        move(P, S, V, flags, i, choice, target, seen.away, loss)
        if turn + 1 < flags.rounds:
            V.follow_move(P, S, flags, i, choice.direction, target, seen.away, choice.gamma)
    S.counters[AVERAGED] += 1
    V.end_visit(P, S, flags, i)


@inner(**INLINED)
def look(P, S, V, flags, i, turn):
    """What is `Seen` of block i: its best atom, the worst with weight (O16 Alg. 3, 4), the mean score."""
    count = V.score_atoms(P, S, flags, i, turn)
    seen = V.survey(S, flags, count)
    base = V.mean_score(P, S, flags, i, seen.base)
    return Seen(base, seen.best, seen.h_best, seen.away, seen.h_away, seen.active)


@inner(**INLINED)
def vertex(P, S, V, flags, i, turn, seen):
    """(slot or -1, h, L_i) of the vertex to move towards: the best cached atom or the max-oracle's answer (O16 Alg. 5)."""
    source = V.vertex_source(flags)
    if turn > 0 or source == CACHE_ONLY:
        if turn == 0:
            note_cached_gap(S, flags, i, seen.h_best - seen.base)
    elif source != CACHE_FIRST or not cache_promises_enough(S, flags, i, seen.best, seen.h_best - seen.base):
        return V.ask_oracle(P, S, flags, i, seen.base)
    S.counters[CACHED_STEPS] += 1
    return seen.best, seen.h_best, S.pool.losses[seen.best]


@inner(**INLINED)
def move(P, S, V, flags, i, choice, target, away, loss):
    """Move block i by gamma: ell, u, w, alpha, what the view keeps (mu), and the running averages (LJ13 3.4)."""
    pool, n, direction, gamma = S.pool, S.ell.size, choice.direction, choice.gamma
    loss_away, alpha_away = pool.losses[max(away, 0)], pool.alpha[max(away, 0)]
    dl = loss_change(direction, loss, S.ell[i], loss_away)
    S.ell[i] += gamma * dl
    V.push_move(P, S, flags, i, direction, target, away, gamma)
    whole = 1.0 if direction == FW else largest_step(direction, alpha_away)
    update_weights(pool, i, direction, target, away, gamma, whole)
    if P.lower.size > 0:
        clip_into(S.u, P.lower, P.upper, S.w)
    S.z_ell[1] += gamma * dl / n
    if flags.average:
        t = float(S.counters[AVERAGED] + 1)
        S.z_ell[0] += 0.5 * t * (t - 1.0) * gamma * dl / n
    S.curvature[0] += choice.curvature
    S.curvature[1] += choice.slope
