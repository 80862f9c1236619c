"""Gap sampling: blocks with probability proportional to their last known gaps, to the power `solver.degree` (O16 Alg. 2)."""

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import INLINED
from gapwise.stages.solver.block.samplers import Sampler
from gapwise.stages.solver.sampling import tree_draw


@inner(**INLINED)
def draw(S, flags, rng, order, k):
    """By the tree of sums (O16 Alg. 2); -1 if no block has a positive gap."""
    return tree_draw(S.tree, False, rng)


SAMPLER = Sampler(draw)
