"""The next block, by whichever sampler `flags.sampler` numbers (`samplers`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import INLINED, Problem
from gapwise.stages.solver.block.samplers import Sampler, sampler, samplers
from gapwise.stages.solver.running import Flags, State
from gapwise.stages.solver.sampling import PERMUTATION

ALL: tuple[Sampler, ...] = tuple(sampler(name) for name in samplers())


def _first_of(number: int, first: Callable[..., int], others: Callable[..., int]) -> Callable[..., int]:
    """The function that draws by `first` if that is the flags' sampler, otherwise by `others`."""

    @inner(**INLINED)
    def drawn(S, flags, rng, order, k):
        if flags.sampler == number:
            return first(S, flags, rng, order, k)
        return others(S, flags, rng, order, k)

    return drawn


def _composed() -> Callable[..., int]:
    """One function of all samplers, so that compiled code can call whichever the flags say."""
    composed = ALL[-1].draw
    for number in range(len(ALL) - 2, -1, -1):
        composed = _first_of(number, ALL[number].draw, composed)
    return composed


draw = _composed()
"""`draw(S, flags, rng, order, k)` -> the k-th block of this call; -1 if there is none to move."""


def drawn_beforehand(run: Callable[..., tuple[int, int]], number: int) -> Callable[..., tuple[int, int]]:
    """The compiled steps `run`, with the blocks of sampler `number` drawn beforehand if that is possible.

    Called as `loop.steps_driver` says. `rng` is left as if each block had been drawn right before its step, so draws do
    not depend on how many steps a call makes; `order` is not used.
    """
    beforehand = ALL[number].beforehand
    if beforehand is None:
        return run

    def steps_drawn(
        P: Problem, S: State, flags: Flags, rng: np.random.Generator, order: np.ndarray, steps: int
    ) -> tuple[int, int]:
        before = rng.bit_generator.state
        order = beforehand(rng, P.n, steps)
        made, why = run(P, S, flags._replace(sampler=PERMUTATION), rng, order, steps)
        if made < steps:
            rng.bit_generator.state = before
            rng.random(made)
        return made, why

    return steps_drawn
