"""Uniform: every block with the same probability (LJ13 Alg. 4)."""

from __future__ import annotations

import numpy as np

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import INLINED
from gapwise.stages.solver.block.samplers import Sampler


@inner(**INLINED)
def draw(S, flags, rng, order, k):
    """Takes one number of `rng`."""
    return int(rng.random() * S.ell.size)


def beforehand(rng: np.random.Generator, n: int, steps: int) -> np.ndarray:
    """The same blocks as `draw` would give one by one."""
    blocks: np.ndarray = (rng.random(steps) * n).astype(np.int64)
    return blocks


SAMPLER = Sampler(draw, beforehand)
