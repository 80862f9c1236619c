"""A block method of one's own: the blocks with the largest gaps since their last visit, an exact pass every third turn."""

from dataclasses import dataclass

import numpy as np

from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.block_method import block_method
from gapwise.stages.solver.exact import exact_pass, judged
from gapwise.stages.solver.options import BlockOptions as Options  # noqa: F401  what `solver.*` may say
from gapwise.stages.solver.schedule import Schedule
from gapwise.stages.solver.visits import Visits


@dataclass
class Turns:
    turns: int = 0


def schedule(it, options, own_primal):
    counts, waited, visits = Turns(), np.arange(float(it.problem.n)), Visits(it)

    def advance(goal):
        counts.turns += 1
        if counts.turns % 3 == 0:
            point, gaps = exact_pass(it)
            waited[:] += gaps.gap
            it.ledger.record(point)
            status = judged(it, point, goal)
            return (status, point) if status else None
        order = np.argsort(-waited, kind="stable")[: it.problem.n // 2 + 1]
        visits.run(visits.flags(), order, order.size)
        waited[order] = 0.0
        return None

    def restore(arrays):
        waited[:] = check_array("waited", arrays["waited"], waited.shape, float, finite=True)

    return Schedule(advance, warm_up=visits.warm_up, counts=counts, arrays=lambda: {"waited": waited}, restore=restore)


METHOD = block_method(schedule, specs=(("waited", ("block",), "f8", "sum of the gaps since the last visit"),))
