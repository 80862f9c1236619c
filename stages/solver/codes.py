"""Numbers that compiled code and the Python around it agree on."""

from __future__ import annotations

STEPS, ORACLE_CALLS, CACHED_STEPS, AVERAGED, N_COUNTERS = range(5)
"""Slots of `State.counters`: steps, oracle calls in steps, steps from the cache, steps in the average (since lambda)."""

DONE, POOL_FULL, SUM_REACHED, CALLS_REACHED, BATCH_FULL = range(5)
"""Why `run_steps` came back: all steps made, no free slot, stale gap sum at its bound, oracle calls used up, a mini-batch
complete."""

CACHE_FIRST, ORACLE_ALWAYS, CACHE_ONLY, COLLECT, RATE, MOVE = range(6)
"""Where a visit's corner comes from: the cache if it promises enough, the max-oracle, the cache alone. The last three are
the phases of a mini-batch (`minibatch`): steps from the cache that set aside what needs the oracle; over the blocks set
aside, noting the gaps of their oracles' answers; moving them."""

SKIPPED_VISITS = 3

FEW_ATOMS = 16
"""Most atoms of a block that speak for mu_i: reading and writing mu is much more memory."""
