"""What compiled steps work on: the state of a block method, its options as flags, and the box of its weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numba import njit

from gapwise.stages.problems.compiled import inner
from gapwise.stages.problems.protocol import PLAIN
from gapwise.stages.solver.codes import CACHE_FIRST, FW, GAP, MAX_GAP, PERMUTATION, SAMPLERS, STEP_RULES
from gapwise.stages.solver.counts import NEVER

if TYPE_CHECKING:
    from gapwise.stages.solver.block.pairs import Distances
    from gapwise.stages.solver.options import BlockOptions
    from gapwise.stages.solver.supports import Pool


class State(NamedTuple):
    """The running solver: everything but the pool, gaps and counters is derived from the pool at a rebase point."""

    ell: np.ndarray
    """float64, (n,): sum_y alpha_i(y) L_i(y)"""
    u: np.ndarray
    """float64, (d,): scale * sum_i B_i (m_i(y_i) - mu_i), plus the proximal centre's share if kappa > 0"""
    w: np.ndarray
    """float64, (d,): clip(u); the same array as u when there is no box"""
    gap: np.ndarray
    """float64, (n,): last known block gaps; inf where never computed"""
    tree: np.ndarray
    """float64: `block.sampling`'s tree over the gaps"""
    sums: np.ndarray
    """float64, (n,): running sums of `lipschitz_weights`; empty for other samplers"""
    pool: Pool
    distances: Distances
    """used by cached passes, which make room first"""
    skip: np.ndarray
    """int64, (n,): visits of cached passes that block i still sits out"""
    z: np.ndarray
    """float64, (d,): running sum of the weighted average that a pass adds to (LJ13 3.4; `averages`); or (0,)"""
    z_ell: np.ndarray
    """float64, (2,): the same for (1/n) sum ell_i, and its current value"""
    counters: np.ndarray
    """int64, (N_COUNTERS,)"""
    curvature: np.ndarray
    """float64, (2,): sums of ||B_i delta||^2 and of the slope over the moves since it was last zeroed"""


class Flags(NamedTuple):
    """The options of a method as compiled code reads them."""

    sampler: int = PERMUTATION
    """how blocks are drawn: a code of `codes.SAMPLERS`"""
    kinds: int = FW
    """moves that a block may make: bits of `codes`"""
    by_slope: bool = False
    """try only one of FW and AWAY, the one with the larger slope"""
    line_search: bool = True
    """False: FW moves by 2n / (k + 2n)"""
    cache: bool = False
    """whether labellings without weight are kept"""
    vertex_from: int = CACHE_FIRST
    """CACHE_FIRST to CACHE_ONLY: where a step's vertex comes from"""
    rounds: int = 1
    """moves of a block each time it is drawn: the first towards the vertex, the others between the block's own atoms"""
    skip_below: float = 0.0
    """cached passes: a block whose gap is below this sits out `SKIPPED_VISITS` visits"""
    F: float = 0.25
    nu: float = 0.01
    capacity: int = NEVER
    """labellings kept per block"""
    degree: float = 1.0
    """the sampling weight of a block is g_i ** degree"""
    average: bool = False
    """whether the state keeps a running average"""
    scale: float = 1.0
    """1 / ((lambda + kappa) n)"""
    exact_total: float = 1.0
    """sum of block gaps at the last exact pass; 1 before the first"""
    stop_sum: float = -1.0
    """return when the tree's sum of stale gaps is at or below this; < 0: never"""
    stop_calls: int = NEVER
    """return when steps have made this many oracle calls"""

    @classmethod
    def of(cls, options: BlockOptions, **other: Any) -> Self:
        """The choices that block methods share; `other` replaces some."""
        rule, cache, kept = STEP_RULES[options.step], options.cache, options.cache.kind != "none"
        capacity = int(cache.capacity) if kept else NEVER
        flags = cls(kinds=rule.kinds, by_slope=rule.by_slope, cache=kept, F=float(cache.F), nu=float(cache.nu))
        return flags._replace(**{"capacity": capacity, **other})


def sampling_of(sampler: str, degree: float = 1.0) -> dict[str, float]:
    """`sampler` and `degree` of `Flags`: the degree counts only where blocks are drawn by their gaps."""
    code = SAMPLERS.index(sampler)
    return {"sampler": code, "degree": float(degree) if code in (GAP, MAX_GAP) else 1.0}


# -- the box: w = clip(u) ---
@inner(**PLAIN)
def clip_into(u, lower, upper, w):
    """w <- clip(u)."""
    for j in range(u.size):
        w[j] = min(max(u[j], lower[j]), upper[j])


@njit(cache=True, **PLAIN)
def clip(u, lower, upper, w):
    """`clip_into` for callers in Python: its machine code is kept on disk, that of an inner function is not."""
    clip_into(u, lower, upper, w)
