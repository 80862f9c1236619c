"""Plain steps hand over to accelerated ones where a lambda of a path takes many passes.

A step moves weight in proportion to lambda n. Where that is small, plain steps take passes in proportion to 1/lambda, and
accelerated ones in proportion to its root.
"""

from __future__ import annotations

from gapwise.records import Json
from gapwise.stages.solver.catalyst import ProximalCounts
from gapwise.stages.solver.dual_point import DualPoint
from gapwise.stages.solver.methods.accelerated import Accelerated
from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import CachedPassOptions

HARD, CALLS = 40.0, 4_000
"""Effective passes, and oracle calls, at one lambda of a path after which plain steps hand over: below a hundred blocks more
passes do no harm."""


class Handover:
    """Plain steps hand over to accelerated ones at a lambda of a path that takes many passes, for the rest of the path.

    Plain steps commit `counts`.
    """

    def __init__(self, it: DualPoint, counts: ProximalCounts) -> None:
        self.it, self.accelerated = it, Accelerated(it, CachedPassOptions(), own_primal=False)
        self.accelerated.solve_with(counts)

    @property
    def done(self) -> bool:
        """Whether accelerated steps have taken over."""
        return self.it.counts.switched > 0.0

    def is_due(self, goal: Goal) -> bool:
        """Whether they should, after an exact pass."""
        ledger = self.it.ledger
        return goal.exact and ledger.switches and ledger.passes_here >= HARD and ledger.calls_here >= CALLS

    def make(self) -> None:
        """Hand over."""
        self.it.counts.switched = self.it.counts.lam
        self.accelerated.start()

    def start(self) -> None:
        """Another lambda has begun."""
        if self.done:
            self.accelerated.start()

    def facts(self) -> dict[str, Json]:
        """The lambda of the handover, for path.zarr."""
        return {"accelerated_from": self.it.counts.switched} if self.done else {}
