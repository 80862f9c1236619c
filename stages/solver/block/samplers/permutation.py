"""Permutation: the blocks in a given order, which the method permutes anew for every pass (S15 Alg. 2)."""

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import INLINED
from gapwise.stages.solver.block.samplers import Sampler


@inner(**INLINED)
def draw(S, flags, rng, order, k):
    """The k-th block of `order`."""
    return order[k]


SAMPLER = Sampler(draw)
