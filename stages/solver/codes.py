"""Integer codes that compiled code and the Python around it share."""

from __future__ import annotations

STEPS, ORACLE_CALLS, CACHED_STEPS, AVERAGED, N_COUNTERS = range(5)
"""Entries of `State.counters`: steps, oracle calls in steps, steps from the cache, steps in the average at this lambda."""

DONE, POOL_FULL, SUM_REACHED, CALLS_REACHED, MARGINS_FULL = range(5)
"""Why a compiled loop returned: all steps made, pool full, sum of last known gaps small enough, oracle-call limit reached,
too few free rows for margin vectors."""

CACHE_FIRST, ORACLE_ALWAYS, CACHE_ONLY = range(3)
"""Where a step takes its vertex from: the cache if it promises enough, otherwise the max-oracle; always the max-oracle; or
only the cache."""

SKIPPED_VISITS = 3
"""Number of visits that a block with a small gap sits out in cached passes."""

FEW_ATOMS = 16
"""Blocks with at most this many atoms recompute mu_i from them, which touches less memory than storing it."""
