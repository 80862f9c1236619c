"""Steps of exponentiated gradient in scores of parts, and w from the marginals; the formulas are those of `methods.eg`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.one_type import one_type
from gapwise.stages.problems.protocol import JIT, PLAIN, dot, widest_block
from gapwise.stages.solver.box import clip_into
from gapwise.stages.solver.state import fold_due

STEPS, MARGINALS, HALVED = range(3)
"""Entries of the counters: visits of blocks, computations of marginals, halvings of a step size."""

MOST_TRIES = 30
"""Halvings of a step size in one visit; more are only needed where rounding decides."""

ROUNDING = 1e-15
"""Share of the terms of n D by which a step may seem to lower it. Where one labelling has all the weight that a number can
show, a step changes none of it, but the scores have to go on: else the block would stay at a wrong labelling for ever."""


@inner(**PLAIN)
def visit(P, i, scale, growth, theta, trial, delta, scratch, sigma, weight, eta, mu, ell, u, w, counters):
    """A step on block i; sigma, mu: its parts of the flat vectors; theta, trial, delta (p_i,) are workspace."""
    counters[STEPS] += 1
    P.scores(i, w, theta)
    for _ in range(MOST_TRIES):
        for j in range(theta.size):
            trial[j] = sigma[j] + eta[i] * theta[j]
        counters[MARGINALS] += 1
        _, loss = P.marginals(i, trial, weight[i] + eta[i], delta, scratch)
        for j in range(theta.size):
            delta[j] -= mu[j]
        gain = loss - ell[i] + dot(theta, delta) - 0.5 * scale * P.norm2(i, delta)
        size = loss + ell[i]
        for j in range(theta.size):
            size += abs(theta[j] * mu[j])
        if gain >= -ROUNDING * size:
            break
        eta[i] *= 0.5
        counters[HALVED] += 1
    else:
        return
    weight[i] += eta[i]
    for j in range(theta.size):
        sigma[j] = trial[j]
        mu[j] += delta[j]
    ell[i] = loss
    if gain > 0.0:
        eta[i] *= growth
    P.push(i, -scale, delta, u)
    if P.lower.size > 0:
        clip_into(u, P.lower, P.upper, w)


@driver
def visits_driver(fingerprint: str) -> Callable[..., None]:
    """`visits(P, order, scale, growth, sigma, weight, eta, mu, ell, u, w, counters)`: a step on each block of `order`."""

    @njit(cache=True, **JIT)
    def visits(P, order, scale, growth, sigma, weight, eta, mu, ell, u, w, counters):
        fingerprint  # noqa: B018
        scratch, widest = P.scratch(), widest_block(P.local_ptr)
        theta, trial, delta = np.empty(widest), np.empty(widest), np.empty(widest)
        for k in range(order.size):
            i = order[k]
            lo, hi = P.local_ptr[i], P.local_ptr[i + 1]
            p = hi - lo
            visit(
                P, i, scale, growth, theta[:p], trial[:p], delta[:p], scratch, sigma[lo:hi], weight, eta, mu[lo:hi], ell,
                u, w, counters,
            )  # fmt: skip

    return visits


@driver
def derive_driver(fingerprint: str) -> Callable[..., None]:
    """`derive(P, scale, sigma, weight, mu, ell, sums, chunk, start, stop)`: block states from the scores, and u += scale
    sum_i B_i (m_i(y_i) - mu_i), of blocks start to stop - 1; `sums` and the order of calls as of `state.derive_driver`."""

    @njit(cache=True, **JIT)
    def derive(P, scale, sigma, weight, mu, ell, sums, chunk, start, stop):
        fingerprint  # noqa: B018
        scratch, delta_all = P.scratch(), np.empty(widest_block(P.local_ptr))
        for i in range(start, stop):
            lo, hi = P.local_ptr[i], P.local_ptr[i + 1]
            _, ell[i] = P.marginals(i, sigma[lo:hi], weight[i], mu[lo:hi], scratch)
            delta = delta_all[: hi - lo]
            for j in range(hi - lo):
                delta[j] = -mu[lo + j]
            P.add(i, one_type(P.truth[P.label_ptr[i] : P.label_ptr[i + 1]]), 1.0, delta)
            P.push(i, scale, delta, sums.part)
            fold_due(sums, i + 1, chunk, ell.size)

    return derive
