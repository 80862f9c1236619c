"""From one lambda to the next: what a block-coordinate method takes along (O16 section 4, Alg. 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from stages.problems.compiled import driver
from stages.problems.protocol import JIT, dot
from stages.solver.gaps import cached_driver
from stages.solver.state import truth_pool
from stages.solver.supports import find, insert

if TYPE_CHECKING:
    from stages.solver.block_method import BlockMethod


@driver
def truth_driver(fingerprint: str) -> Any:
    """`towards_truth(P, S, rho, capacity)`: the dual of lambda becomes that of rho lambda with the same w.

    alpha_i(y) <- rho alpha_i(y), the rest on y_i; block gaps follow exactly, without an oracle call. mu, ell and u are
    left to the next rebase. Needs one free slot per block.
    """

    @njit(cache=True, **JIT)
    def towards_truth(P, S, rho, capacity):
        fingerprint  # noqa: B018
        n = S.ell.size
        theta_all = np.empty(S.mu.size)
        for i in range(n):
            lo, hi = P.local_ptr[i], P.local_ptr[i + 1]
            theta = theta_all[: hi - lo]
            P.scores(i, S.w, theta)
            y = P.truth[P.label_ptr[i] : P.label_ptr[i + 1]]
            S.gap[i] += (1.0 - rho) / n * (S.ell[i] + dot(theta, S.mu[lo:hi]) - P.value(i, theta, y))
            s = S.pool.head[i]
            while s >= 0:
                S.pool.alpha[s] *= rho
                s = S.pool.next[s]
            s = find(S.pool, i, y, 0.0)
            if s < 0:
                s = insert(S.pool, i, y, 0.0, capacity)
            S.pool.alpha[s] += 1.0 - rho

    return towards_truth


def keep_primal(method: BlockMethod, lam: float, breakpoint: int) -> None:
    """Move to a smaller lambda with the same w; block gaps follow exactly (O16 section 4)."""
    rho = lam / method.at.lam
    if not rho <= 1.0:
        raise ValueError(f"path: keep_primal needs decreasing lambdas; {lam:g} follows {method.at.lam:g}")
    method.make_room(method.problem.n)
    truth_driver(method.problem)(method.problem, method.state, rho, method.capacity)
    method.start_lambda(lam, breakpoint)


def keep_dual(method: BlockMethod, lam: float, breakpoint: int) -> None:
    """Move to another lambda with the same alpha; gaps refilled from cached labellings, without an oracle call."""
    method.at.lam = lam
    method.derive()
    if method.caching:
        cached_driver(method.problem)(method.problem, method.state.pool, method.state.w, method.state.gap)
    else:
        method.state.gap[:] = np.inf
    method.start_lambda(lam, breakpoint)


def restart(method: BlockMethod, lam: float, breakpoint: int) -> None:
    """Start another lambda at w = 0."""
    method.state = method.state._replace(pool=truth_pool(method.problem))
    method.state.gap[:] = np.inf
    method.start_lambda(lam, breakpoint)


WARM_STARTS = {"keep_primal": keep_primal, "keep_dual": keep_dual, "none": restart}
"""By the names of `path.warm_start`."""
