"""Mini-batches: tau blocks drawn, their oracles called side by side at the same w, then moved one after another.

For oracles that are worth waiting for. In turn:

1. *draw* tau distinct blocks as the sampler says (`sampling.draw_distinct`);
2. *look* whose best cached corner is enough at the common w: these need no oracle;
3. *ask* the oracles of the others, side by side, wherever `spread` has them called: labels and losses are taken from there
   and nothing else, so no sum depends on where;
4. *rate* the answers: block gaps at the common w, which sampling and the cache rule go by, and corners into the pool;
5. *move* block after block in the order they were drawn. Each step is the ordinary one towards the corner it was given, with
   exact line search against the w it meets; a direction that no longer ascends there is not taken. So the dual never falls,
   and alpha stays feasible, for any tau.

Phases 2, 4 and 5 are modes of the compiled steps (`loop`): with tau = 1 they make the bits that the plain loop makes.
Limits hold to the call: a batch is cut at the rebase point, at the next exact pass and at the last oracle call allowed.

What tau changes: corners are those of a w up to tau - 1 moves old; and gap sampling draws without replacement, so a block
with more than 1 / tau of the gap is visited less often than its share. Exact passes do not know of tau.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stages.solver.codes import CALLS_REACHED, DONE, LOOK, MOVE, ORACLE_CALLS, RATE, SUM_REACHED
from stages.solver.counts import NEVER
from stages.solver.loop import Batch, Flags, steps_driver
from stages.solver.oracles import corners_at
from stages.solver.sampling import MAX_GAP, PERMUTATION, draw_distinct


def run_batches(solver: Any, flags: Flags, order: np.ndarray, steps: int) -> int:
    """`stepping.run` by mini-batches: as many visits, and why it came back."""
    n, made = solver.problem.n, 0
    buffer = np.empty(min(solver.options.batch_size, n), np.int64)
    while made < steps:
        S = solver.state
        calls_left = int(flags.stop_calls - S.counters[ORACLE_CALLS])
        if calls_left <= 0:
            return CALLS_REACHED
        if flags.sampler != MAX_GAP and S.tree[1] <= flags.stop_sum:
            return SUM_REACHED
        size = min(buffer.size, steps - made, calls_left)
        if flags.sampler == PERMUTATION:
            blocks = order[made : made + size]
        else:
            blocks = buffer[: draw_distinct(flags.sampler, flags.degree, S.tree, S.gap, solver.rng, buffer[:size])]
        if blocks.size == 0:
            return SUM_REACHED
        take_batch(solver, flags._replace(stop_sum=-1.0, stop_calls=NEVER), blocks)
        made += blocks.size
    return DONE


def take_batch(solver: Any, flags: Flags, blocks: np.ndarray) -> None:
    """One visit of each of `blocks` (distinct), towards corners of the present w."""
    P = solver.problem
    solver.make_room(blocks.size + 1)

    def phase(corner: int, blocks: np.ndarray, batch: Batch) -> None:
        state = solver.state._replace(batch=batch)
        steps_driver(P)(P, state, flags._replace(corner=corner), solver.rng, blocks, blocks.size)

    nothing = solver.state.batch
    slot = np.full(blocks.size, -1)
    if flags.cache:
        phase(LOOK, blocks, nothing._replace(slot=slot))
    asked = slot < 0
    if asked.any():
        found = corners_at(P, solver.state.w, blocks[asked], solver.spread)
        rated = Batch(np.full(found.loss.size, -1), found.loss, found.corner)
        phase(RATE, blocks[asked], rated)
        slot[asked] = rated.slot
    phase(MOVE, blocks, nothing._replace(slot=slot))
