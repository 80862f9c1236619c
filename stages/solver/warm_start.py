"""From one lambda to a smaller one with the same w: the dual point moves towards the truth (O16 section 4, Alg. 7)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.protocol import JIT, widest_block
from gapwise.stages.problems.simd import one_type
from gapwise.stages.solver.supports import find, insert


@driver
def truth_driver(fingerprint: str) -> Callable[..., None]:
    """`towards_truth(P, S, rho, capacity, start, stop)`: turn blocks start to stop - 1 of the dual point of lambda into
    those of rho lambda with the same w.

    alpha_i(y) <- rho alpha_i(y), the rest on y_i; block gaps are updated exactly, without an oracle call, from the values
    of the atoms. ell and u are recomputed at the next rebase. Needs one free slot per block.
    """

    @njit(cache=True, **JIT)
    def towards_truth(P, S, rho, capacity, start, stop):
        fingerprint  # noqa: B018
        n = S.ell.size
        theta_all = np.empty(widest_block(P.local_ptr))
        for i in range(start, stop):
            lo, hi = P.local_ptr[i], P.local_ptr[i + 1]
            theta = theta_all[: hi - lo]
            P.scores(i, S.w, theta)
            y = one_type(P.truth[P.label_ptr[i] : P.label_ptr[i + 1]])
            base = 0.0
            s = S.pool.head[i]
            while s >= 0:
                if S.pool.alpha[s] > 0.0:
                    label = S.pool.labels[s, : y.size]
                    base += S.pool.alpha[s] * (S.pool.losses[s] + P.value(i, theta, label))
                S.pool.alpha[s] *= rho
                s = S.pool.next[s]
            S.gap[i] += (1.0 - rho) / n * (base - P.value(i, theta, y))
            s = find(S.pool, i, y, 0.0)
            if s < 0:
                s = insert(S.pool, i, y, 0.0, capacity)
            S.pool.alpha[s] += 1.0 - rho

    return towards_truth
