"""Gaps over the cache, and u from the pool, by margin vectors (`margins`); steps by them are `block.views.margins`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.protocol import JIT, add_scaled, largest, widest_block
from gapwise.stages.solver.block.step import survey
from gapwise.stages.solver.block.views.margins import margin, score_margins
from gapwise.stages.solver.state import block_ell, fold_due


@driver
def margin_gaps_driver(fingerprint: str) -> Callable[..., None]:
    """`gaps(P, pool, margins, w, gap, start, stop)`, as `gaps.cached_driver`; every atom without a row needs a free one."""

    @njit(cache=True, **JIT)
    def gaps(P, pool, margins, w, gap, start, stop):
        fingerprint  # noqa: B018
        delta, most = np.empty(widest_block(P.local_ptr)), largest(pool.counts)
        slots, values = np.empty(most, np.int64), np.empty(most)
        for i in range(start, stop):
            count, size = pool.counts[i], P.local_ptr[i + 1] - P.local_ptr[i]
            score_margins(P, pool, margins, i, w, delta[:size], slots[:count], values[:count])
            seen = survey(pool, slots, values, count)
            gap[i] = max(seen.h_best - seen.base, 0.0) / gap.size

    return gaps


@driver
def margin_derive_driver(fingerprint: str) -> Callable[..., None]:
    """`derive(P, S, margins, scale, sums, chunk, start, stop)`, as `state.derive_driver`; every atom without a row needs
    a free one."""

    @njit(cache=True, **JIT)
    def derive(P, S, margins, scale, sums, chunk, start, stop):
        fingerprint  # noqa: B018
        delta = np.empty(widest_block(P.local_ptr))
        for i in range(start, stop):
            block_ell(S.pool, S.ell, i)
            s = S.pool.head[i]
            while s >= 0:
                if S.pool.alpha[s] > 0.0:
                    row = margin(P, S.pool, margins, i, s, delta[: P.local_ptr[i + 1] - P.local_ptr[i]])
                    add_scaled(scale * S.pool.alpha[s], margins.psi[row], sums.part)
                s = S.pool.next[s]
            fold_due(sums, i + 1, chunk, S.ell.size)

    return derive
