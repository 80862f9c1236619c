"""Greedy: the block of largest last known gap, which may be out of date (O16 3.1)."""

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import INLINED
from gapwise.stages.solver.block.samplers import Sampler
from gapwise.stages.solver.sampling import tree_draw


@inner(**INLINED)
def draw(S, flags, rng, order, k):
    """By the tree of maxima; -1 if no block has a positive gap."""
    return tree_draw(S.tree, True, rng)


SAMPLER = Sampler(draw)
