"""A block method of one's own: the blocks with the largest gaps since their last visit, an exact pass every third turn."""

from dataclasses import dataclass

import numpy as np

from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.exact import exact_pass, judged
from gapwise.stages.solver.method import Method
from gapwise.stages.solver.options import BlockOptions as Options
from gapwise.stages.solver.visits import load_steps, run_steps


@dataclass
class Turns:
    turns: int = 0


class METHOD(Method[Options]):
    specs = (*Method.specs, ("waited", ("block",), "f8", "sum of the gaps since the last visit"))

    def prepare(self):
        self.own, self.waited = Turns(), np.arange(float(self.problem.n))

    def advance(self, goal):
        self.own.turns += 1
        if self.own.turns % 3 == 0:
            point, found = exact_pass(self.it)
            self.waited += found.gap
            self.ledger.record(point)
            status = judged(self.it, point, goal)
            return (status, point) if status else None
        order = np.argsort(-self.waited, kind="stable")[: self.problem.n // 2 + 1]
        run_steps(self.it, self.it.flags(), order, order.size)
        self.waited[order] = 0.0
        return None

    def load(self):
        load_steps(self.it)

    def arrays(self):
        return {"waited": self.waited}

    def restore(self, arrays):
        self.waited[:] = check_array("waited", arrays["waited"], self.waited.shape, float, finite=True)
