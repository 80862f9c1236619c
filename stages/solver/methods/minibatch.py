"""Mini-batches: tau oracles called side by side at the same w, and their blocks moved one after another.

For oracles that are worth waiting for. In turn:

1. *collect*: draw blocks as the sampler says. Whose cached corner is enough takes its step at once, as ever; the others are
   set aside, until there are tau of them;
2. *ask* their oracles at the w that there is now, side by side, wherever `spread` has them called: labels and losses are
   taken from there and nothing else, so no sum depends on where;
3. *rate* the answers: block gaps at this common w, which sampling and the cache rule go by, and corners into the pool;
4. *move* block after block in the order they were drawn. Each step is the ordinary one towards the corner it was given, with
   exact line search against the w it meets; a direction that no longer ascends there is not taken. So the dual never falls,
   and alpha stays feasible, for any tau.

Phases 1, 3 and 4 are modes of the compiled steps (`loop`): with tau = 1 they make the bits that the plain loop makes.
Limits hold to the call: a batch is cut at the rebase point, at the next exact pass and at the last oracle call allowed.

What tau changes: corners are those of a w up to tau - 1 moves old; and the blocks of a batch are distinct: one that is set
aside is not drawn until its oracle has answered (uniform sampling draws again, gap sampling has it at weight zero). So each
draw is the sampler's own among the other blocks, and a block with much of the whole gap is visited less often than its
share, at most once a batch. Exact passes do not know of tau.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stages.solver.codes import CALLS_REACHED, COLLECT, DONE, MOVE, ORACLE_CALLS, RATE
from stages.solver.counts import NEVER
from stages.solver.loop import Batch, Flags, steps_driver
from stages.solver.oracles import corners_at


def run_batches(solver: Any, flags: Flags, order: np.ndarray, steps: int) -> int:
    """`stepping.run` by mini-batches: as many visits, and why it came back."""
    P = solver.problem
    driver = steps_driver(P)
    most = min(solver.options.batch_size, P.n)
    while steps > 0:
        calls_left = int(flags.stop_calls - solver.state.counters[ORACLE_CALLS])
        if calls_left <= 0:
            return CALLS_REACHED
        solver.make_room(most + 1)
        S = solver.state
        batch = S.batch._replace(block=np.full(min(most, calls_left), -1))
        made, why = driver(P, S._replace(batch=batch), flags._replace(corner=COLLECT), solver.rng, order, steps)
        steps, order = steps - made, order[made:]
        block = batch.block[batch.block >= 0]
        if block.size:
            move_together(solver, flags._replace(stop_sum=-1.0, stop_calls=NEVER), block)
        elif why != DONE:
            return int(why)
    return DONE


def move_together(solver: Any, flags: Flags, block: np.ndarray) -> None:
    """Ask the oracles of `block` (distinct) at the present w and move towards their answers."""
    P, S = solver.problem, solver.state
    found = corners_at(P, S.w, block, solver.spread)
    S = S._replace(batch=Batch(block, np.full(block.size, -1), found.loss, found.corner))
    for phase in (RATE, MOVE):
        steps_driver(P)(P, S, flags._replace(corner=phase), solver.rng, block, block.size)
