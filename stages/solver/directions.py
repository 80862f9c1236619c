"""Three directions of a block: Frank-Wolfe, pairwise and away; their slopes, largest steps, and the weights after a step.

All share one line search. With scale = 1 / (lambda n), a move of gamma along delta with slope s = d(ell) + <theta, delta>
changes n D by gamma s - gamma^2 scale ||B delta||^2 / 2 (exactly without a box; with one by at least that much, because
clipping does not increase distances).
"""

from __future__ import annotations

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import PLAIN
from gapwise.stages.solver.steps import FW, PAIRWISE


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
def gain(gamma, slope, norm2, scale):
    """n times the increase of the dual objective by the move."""
    return gamma * slope - 0.5 * gamma * gamma * scale * norm2


@inner(**PLAIN)
def slope_of(direction, h, base, h_away):
    """Slope of a direction, from the scores of vertex, mean and worst active atom."""
    if direction == FW:
        return h - base
    if direction == PAIRWISE:
        return h - h_away
    return base - h_away


@inner(**PLAIN)
def loss_change(direction, loss, ell, loss_away):
    """d(ell) of a direction, from the losses of vertex, mean and worst active atom."""
    if direction == FW:
        return loss - ell
    if direction == PAIRWISE:
        return loss - loss_away
    return ell - loss_away


@inner(**PLAIN)
def write_direction(P, i, kind, mu, pool, by_mu, y, y_away, delta):
    """delta <- m(y) - mu_i (FW) or mu_i - m(y_away) (away); mu_i is `mu` if `by_mu`, else summed (O16 Alg. 4)."""
    sign = -1.0 if kind == FW else 1.0
    if by_mu:
        for j in range(delta.size):
            delta[j] = sign * mu[j]
    else:
        delta[:] = 0.0
        s = pool.head[i]
        while s >= 0:
            if pool.alpha[s] > 0.0:
                P.add(i, pool.labels[s, : y.size], sign * pool.alpha[s], delta)
            s = pool.next[s]
    if kind == FW:
        P.add(i, y, 1.0, delta)
    else:
        P.add(i, y_away, -1.0, delta)


@inner(**PLAIN)
def largest_step(kind, alpha_away):
    """The step that ends on the boundary of the simplex: gamma_max, unless a move makes it shorter (O16 Alg. 3, 4)."""
    if kind == FW:
        return 1.0
    if kind == PAIRWISE:
        return alpha_away
    return alpha_away / (1.0 - alpha_away)


@inner(**PLAIN)
def update_weights(pool, i, kind, target, away, gamma, whole):
    """Move the alphas of block i; the `whole` step (`largest_step`) sets its alpha to exactly zero (O16 Alg. 3, 4)."""
    full = gamma >= whole
    if kind == PAIRWISE:
        pool.alpha[target] += gamma
        pool.alpha[away] = 0.0 if full else pool.alpha[away] - gamma
        return
    factor = 1.0 - gamma if kind == FW else 1.0 + gamma
    s = pool.head[i]
    while s >= 0:
        pool.alpha[s] *= factor
        s = pool.next[s]
    if kind == FW:
        pool.alpha[target] = 1.0 if full else pool.alpha[target] + gamma
    else:
        pool.alpha[away] = 0.0 if full else max(pool.alpha[away] - gamma, 0.0)
