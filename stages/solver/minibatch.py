"""Mini-batches: tau oracles called side by side at the same w, and their blocks moved one after another.

For expensive oracles. A batch has four phases:

1. *collect*: draw blocks as the sampler says. A block whose cached vertex promises enough takes its step at once, as usual;
   the others are set aside until there are tau of them;
2. *ask* their oracles at the current w, side by side, wherever `parallel` calls them: only labels and losses come back, so
   no sum depends on where they ran;
3. *rate* the answers: block gaps at this common w, which sampling and the cache rule use, and vertices into the pool;
4. *move* block after block in the order they were drawn. Each takes an ordinary step towards its vertex, with exact line
   search at the w of that moment, and does not move if the direction no longer ascends. So the dual never falls,
   and alpha stays feasible, for any tau.

With tau = 1 the result is that of the plain loop, bit by bit. Limits are exact: a batch is cut at the rebase point,
at the next exact pass and at the last oracle call allowed.

What tau changes: vertices belong to a w up to tau - 1 moves old; and the blocks of a batch are distinct: one that is set
aside is not drawn until its oracle has answered (uniform sampling draws again, gap sampling gives it weight zero). So each
draw follows the sampler among the other blocks, and a block with much of the total gap is visited less often than its
share, at most once per batch. Exact passes do not depend on tau.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import JIT, PLAIN
from gapwise.stages.solver.block.answers import cache_promises_enough, note_answer
from gapwise.stages.solver.block.choice import choose
from gapwise.stages.solver.block.draws import REDRAWS, draw
from gapwise.stages.solver.block.step import look, move
from gapwise.stages.solver.block.views.features import by_features
from gapwise.stages.solver.codes import AVERAGED, BATCH_FULL, CACHED_STEPS, DONE, STEPS, SUM_REACHED
from gapwise.stages.solver.loop import reason_to_return
from gapwise.stages.solver.sampling import MAX_GAP, tree_set


class Answers(NamedTuple):
    """What the oracles of a batch's blocks returned."""

    block: np.ndarray
    """int64: the blocks, in the order drawn"""
    losses: np.ndarray
    """float64: L_i of the labellings"""
    labels: np.ndarray
    """truth's dtype, (blocks, longest)"""


@inner(**PLAIN)
def among(blocks, i):
    """Whether i is one of `blocks`."""
    for k in range(blocks.size):  # noqa: SIM110
        if blocks[k] == i:
            return True
    return False


@inner(**PLAIN)
def step_from_cache(P, S, V, flags, i):
    """Take the step of block i if its cached vertex promises enough; returns whether it did."""
    seen = look(P, S, V, flags, i, 0)
    if not cache_promises_enough(S, flags, i, seen.best, seen.h_best - seen.base):
        return False
    S.counters[CACHED_STEPS] += 1
    step_towards(P, S, V, flags, i, seen, seen.best, seen.h_best)
    return True


@inner(**PLAIN)
def step_towards(P, S, V, flags, i, seen, target, h):
    """A step of block i, which has been scored, towards the atom in slot `target`, of score h; -1: it cannot ascend."""
    S.counters[STEPS] += 1
    if target >= 0:
        S.pool.used[target] = S.counters[STEPS]
    choice = choose(P, S, V, flags, i, seen, target, h)
    if choice.gamma > 0.0:
        move(P, S, V, flags, i, choice, target, seen.away, S.pool.losses[max(target, 0)])
    S.counters[AVERAGED] += 1
    V.end_visit(P, S, flags, i)


@driver
def collect_driver(fingerprint: str) -> Callable[..., tuple[int, int]]:
    """`collect(P, S, flags, rng, order, steps, block) -> (draws made, why it returned)`: phase 1; fills `block`, whose
    entries that are no blocks yet are -1."""

    @njit(cache=True, **JIT)
    def collect(P, S, flags, rng, order, steps, block):
        fingerprint  # noqa: B018
        V, aside = by_features(P, S, flags, ()), 0
        while aside < block.size and block[aside] >= 0:
            aside += 1
        for k in range(steps):
            why = reason_to_return(S, flags)
            if why != DONE:
                return k, why
            i = draw(S, flags, rng, order, k)
            while REDRAWS[flags.sampler] and among(block[:aside], i):
                i = draw(S, flags, rng, order, k)
            if i < 0:
                return k, SUM_REACHED
            if among(block[:aside], i):
                return k, BATCH_FULL
            if step_from_cache(P, S, V, flags, i):
                continue
            block[aside] = i
            tree_set(S.tree, flags.sampler == MAX_GAP, i, 0.0)  # not drawn again until its oracle has answered
            aside += 1
            if aside == block.size:
                return k + 1, BATCH_FULL
        return steps, DONE

    return collect


@driver
def answers_driver(fingerprint: str) -> Callable[..., None]:
    """`take(P, S, flags, answers)`: phases 3 and 4, rate all answers at the common w, then move block after block."""

    @njit(cache=True, **JIT)
    def take(P, S, flags, answers):
        fingerprint  # noqa: B018
        count, pool = answers.block.size, S.pool
        slot = np.empty(count, np.int64)
        V = by_features(P, S, flags, ())
        for rating in (True, False):
            for k in range(count):
                i = answers.block[k]
                theta, length = V.theta[: P.local_ptr[i + 1] - P.local_ptr[i]], P.label_ptr[i + 1] - P.label_ptr[i]
                seen = look(P, S, V, flags, i, 0)
                if rating:
                    y = answers.labels[k, :length]
                    slot[k], _ = note_answer(P, S, flags, i, theta, y, answers.losses[k], seen.base)
                    if slot[k] >= 0:
                        pool.used[slot[k]] = S.counters[STEPS]
                    continue
                target, h = slot[k], -np.inf
                if target >= 0:
                    h = pool.losses[target] + P.value(i, theta, pool.labels[target, :length])
                step_towards(P, S, V, flags, i, seen, target, h)

    return take
