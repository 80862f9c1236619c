"""Integer codes that compiled code and the Python around it share."""

from __future__ import annotations

from typing import NamedTuple

STEPS, ORACLE_CALLS, CACHED_STEPS, AVERAGED, N_COUNTERS = range(5)
"""Entries of `State.counters`: steps, oracle calls in steps, steps from the cache, steps in the average at this lambda."""

DONE, POOL_FULL, SUM_REACHED, CALLS_REACHED, MARGINS_FULL = range(5)
"""Why a compiled loop returned: all steps made, pool full, sum of last known gaps small enough, oracle-call limit reached,
too few free rows for margin vectors."""

FW, PAIRWISE, AWAY = 1, 2, 4
"""Moves of a block, as bits: from mu_i to a vertex; from the worst active atom to it; from that atom to mu_i, reversed."""


class StepRule(NamedTuple):
    """Which moves a block may make (O16 Alg. 3, 4)."""

    kinds: int
    """Sum of bits."""
    by_slope: bool = False
    """Only the move with the largest slope is tried (O16 Alg. 4); otherwise the one that improves the dual most is made."""


STEP_RULES = {
    "away": StepRule(FW + AWAY, by_slope=True),
    "best": StepRule(FW + PAIRWISE + AWAY),
    "fw": StepRule(FW),
    "pairwise": StepRule(PAIRWISE),
}
"""The values of `solver.step`."""

UNIFORM, PERMUTATION, GAP, MAX_GAP, LIPSCHITZ = range(5)
SAMPLERS = ("uniform", "permutation", "gap", "max_gap", "lipschitz")
"""How the next block is drawn (`block.sampling`), and the names of these ways."""

CACHE_FIRST, ORACLE_ALWAYS, CACHE_ONLY = range(3)
"""Where a step takes its vertex from: the cache if it promises enough, otherwise the max-oracle; always the max-oracle; or
only the cache."""

SKIPPED_VISITS = 3
"""Number of visits that a block with a small gap sits out in cached passes."""

RETIRED = -1
"""`Pool.used` of an atom that has weight but is outside its block's working set (`methods.mpbcfw`)."""
