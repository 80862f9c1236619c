"""What a pool holds for a block."""

from __future__ import annotations

from gapwise.stages.solver.supports import Pool


def slots_of(pool: Pool, i: int) -> list[int]:
    """The slots of the atoms of block i, in list order."""
    slots, s = [], int(pool.head[i])
    while s >= 0:
        slots.append(s)
        s = int(pool.next[s])
    return slots
