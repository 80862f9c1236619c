"""One batch Frank-Wolfe step: all blocks move by the same gamma (LJ13 Alg. 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.metric import inner
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


def batch_step(it: Iterate, answers: ExactGaps, gamma: float = LINE_SEARCH) -> None:
    """Move all blocks of an iterate by `gamma` towards the vertices of an exact pass at its current w (LJ13 Alg. 2)."""
    P = it.problem
    it.make_room(P.n)
    vertices = answers.vertex, answers.loss, answers.gap
    batch_driver(P)(P, it.state, it.scale, *vertices, np.zeros(P.d), it.setup.capacity, gamma)


@driver
def batch_driver(fingerprint: str) -> Callable[..., float]:
    """`batch(P, S, scale, vertex, loss, gap, direction, capacity, given)`: one Frank-Wolfe step of all blocks together.

    All blocks move by the same gamma towards the vertices of an exact pass at the current w (batch Frank-Wolfe, LJ13
    Alg. 2): by `given`, or where that is `LINE_SEARCH` by the best gamma. `direction` (d,) is zeroed workspace; needs one
    free slot per block. Returns gamma.
    """

    @njit(cache=True, **JIT)
    def batch(P, S, scale, vertex, loss, gap, direction, capacity, given):
        fingerprint  # noqa: B018
        n = S.ell.size
        delta_all = np.empty(widest_block(P.local_ptr))
        slope = 0.0
        for i in range(n):
            lo, hi = P.local_ptr[i], P.local_ptr[i + 1]
            y = vertex[i, : P.label_ptr[i + 1] - P.label_ptr[i]]
            delta = delta_all[: hi - lo]
            write_direction(P, i, FW, S.mu[lo:hi], S.pool, True, y, y, delta)
            P.push(i, 1.0, delta, direction)
            slope += gap[i] * n
        gamma = given
        if given == LINE_SEARCH:
            gamma = line_search(slope, inner(P, direction, direction), scale, 1.0)
        if gamma > 0.0:
            for i in range(n):
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
            for j in range(S.u.size):
                S.u[j] -= gamma * scale * direction[j]
            if P.lower.size > 0:
                clip_into(S.u, P.lower, P.upper, S.w)
        return gamma

    return batch
