"""Norms of psi_i(y) = phi(x_i, y_i) - phi(x_i, y); the largest, R_i, bounds the curvature (LJ13 App. A). And how uneven
such numbers are over blocks, which says what gap sampling gains (O16 Thm. 2)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numba import njit

from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.protocol import JIT, Problem, widest_block
from gapwise.stages.problems.simd import one_type


@driver
def norms_driver(fingerprint: str) -> Callable[..., None]:
    """`norms(P, blocks, labels, out)`: out_k <- ||psi_i(labels_k)||^2, i = blocks_k; labels (blocks, longest)."""

    @njit(cache=True, **JIT)
    def norms(P, blocks, labels, out):
        fingerprint  # noqa: B018
        delta_all = np.empty(widest_block(P.local_ptr))
        for k in range(blocks.size):
            i = blocks[k]
            delta = delta_all[: P.local_ptr[i + 1] - P.local_ptr[i]]
            delta[:] = 0.0
            first, last = P.label_ptr[i], P.label_ptr[i + 1]
            P.add(i, one_type(P.truth[first:last]), 1.0, delta)
            P.add(i, labels[k, : last - first], -1.0, delta)
            out[k] = max(P.norm2(i, delta), 0.0)

    return norms


def nonuniformity(x: np.ndarray) -> float:
    """chi(x) = sqrt(1 + n^2 Var(x / ||x||_1)) of x >= 0, from 1 to sqrt(n) (O16 Def. 5); nan if x is zero or not finite."""
    positive = np.maximum(x, 0.0)
    total = float(np.sum(positive))
    return math.sqrt(1.0 + x.size**2 * float(np.var(positive / total))) if 0.0 < total < math.inf else math.nan


def squared_norms(problem: Problem, blocks: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """float64, (blocks,): ||psi_i(y)||^2 of a labelling y for each of `blocks`; labels (blocks, longest)."""
    out = np.empty(blocks.size)
    norms_driver(problem)(problem, blocks, labels, out)
    return out
