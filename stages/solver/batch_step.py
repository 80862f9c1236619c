"""One batch Frank-Wolfe step: all blocks move by the same gamma (LJ13 Alg. 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from gapwise.stages.problems.certainty import EXACT, certainty_of
from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.metric import inner, product_of
from gapwise.stages.problems.protocol import JIT, widest_block
from gapwise.stages.solver.box import clip_into
from gapwise.stages.solver.directions import line_search, update_weights, write_direction
from gapwise.stages.solver.steps import FW
from gapwise.stages.solver.supports import find, insert

if TYPE_CHECKING:
    from gapwise.stages.solver.gaps import ExactGaps
    from gapwise.stages.solver.iterate import Iterate

LINE_SEARCH = -1.0
"""In place of a gamma: the one that raises the dual objective most."""


def batch_step(it: Iterate, answers: ExactGaps, gamma: float = LINE_SEARCH) -> float:
    """Move all blocks of an iterate towards the vertices of an exact pass at its current w (LJ13 Alg. 2), by the gamma that
    is returned: 0 where line search finds that the dual does not rise, as it may with an approximate oracle's vertices."""
    P = it.problem
    it.make_room(P.n)
    S, direction = it.state, np.zeros(P.d)
    given = P, S, answers.vertex, answers.loss
    add, move = direction_driver(P), move_driver(P)
    it.ledger.over_blocks(lambda start, stop: add(P, S, answers.vertex, direction, start, stop), P)
    slopes = P.n * answers.gap
    if certainty_of(P) != EXACT:  # the gaps then need not be those of the vertices
        slopes = np.append(answers.loss - S.ell, product_of(P, S.w, direction))
    gamma = length_driver(P)(P, slopes, it.scale, direction, gamma)
    if gamma > 0.0:
        rest = it.scale, direction, it.setup.capacity, gamma
        it.ledger.over_blocks(lambda start, stop: move(*given, *rest, start, stop), P)
    return gamma


def warm_up(it: Iterate) -> None:
    """Compile or load what `batch_step` calls; changes nothing."""
    P, S = it.problem, it.state
    vertex, zeros = np.zeros((P.n, S.pool.labels.shape[1]), P.truth.dtype), np.zeros(P.n)
    direction_driver(P)(P, S, vertex, np.zeros(P.d), 0, 0)
    length_driver(P)(P, zeros, it.scale, np.zeros(P.d), LINE_SEARCH)
    move_driver(P)(P, S, vertex, zeros, it.scale, np.zeros(P.d), it.setup.capacity, 0.0, 0, 0)


@driver
def direction_driver(fingerprint: str) -> Callable[..., None]:
    """`add(P, S, vertex, direction, start, stop)`: direction += sum_i B_i (m_i(vertex_i) - mu_i), over blocks start to
    stop - 1."""

    @njit(cache=True, **JIT)
    def add(P, S, vertex, direction, start, stop):
        fingerprint  # noqa: B018
        delta_all = np.empty(widest_block(P.local_ptr))
        for i in range(start, stop):
            lo, hi = P.local_ptr[i], P.local_ptr[i + 1]
            y = vertex[i, : P.label_ptr[i + 1] - P.label_ptr[i]]
            delta = delta_all[: hi - lo]
            write_direction(P, i, FW, S.mu[lo:hi], S.pool, True, y, y, delta)
            P.push(i, 1.0, delta, direction)

    return add


@driver
def length_driver(fingerprint: str) -> Callable[..., float]:
    """`length(P, slopes, scale, direction, given) -> gamma`: `given`, or where that is `LINE_SEARCH` the best gamma.

    slopes: float64, terms that sum to the slope of n D along the direction.
    """

    @njit(cache=True, **JIT)
    def length(P, slopes, scale, direction, given):
        fingerprint  # noqa: B018
        if given != LINE_SEARCH:
            return given
        slope = 0.0
        for k in range(slopes.size):
            slope += slopes[k]
        return line_search(slope, inner(P, direction, direction), scale, 1.0)

    return length


@driver
def move_driver(fingerprint: str) -> Callable[..., None]:
    """`move(P, S, vertex, loss, scale, direction, capacity, gamma, start, stop)`: blocks start to stop - 1 by gamma towards
    their vertices, and u and w after the last one; needs one free slot per block."""

    @njit(cache=True, **JIT)
    def move(P, S, vertex, loss, scale, direction, capacity, gamma, start, stop):
        fingerprint  # noqa: B018
        delta_all = np.empty(widest_block(P.local_ptr))
        for i in range(start, stop):
            lo, hi = P.local_ptr[i], P.local_ptr[i + 1]
            y = vertex[i, : P.label_ptr[i + 1] - P.label_ptr[i]]
            target = find(S.pool, i, y, loss[i])
            if target < 0:
                target = insert(S.pool, i, y, loss[i], capacity)
            delta = delta_all[: hi - lo]
            write_direction(P, i, FW, S.mu[lo:hi], S.pool, True, y, y, delta)
            for j in range(hi - lo):
                S.mu[lo + j] += gamma * delta[j]
            S.ell[i] += gamma * (loss[i] - S.ell[i])
            update_weights(S.pool, i, FW, target, -1, gamma, 1.0)
        if stop == S.ell.size and gamma > 0.0:
            for j in range(S.u.size):
                S.u[j] -= gamma * scale * direction[j]
            if P.lower.size > 0:
                clip_into(S.u, P.lower, P.upper, S.w)

    return move
