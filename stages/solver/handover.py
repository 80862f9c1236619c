"""Plain steps hand over to accelerated ones where a lambda of a path takes many passes.

A step moves weight in proportion to lambda n. Where that is small, plain steps take passes in proportion to 1/lambda, and
accelerated ones in proportion to its root.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from gapwise.records import Json
from gapwise.stages.solver.catalyst import Proximal, ProximalCounts
from gapwise.stages.solver.iterate import Iterate
from gapwise.stages.solver.methods.accelerated import Accelerated
from gapwise.stages.solver.options import CachedPassOptions
from gapwise.stages.solver.schedule import Goal
from gapwise.stages.solver.visits import Visits

HARD, CALLS = 40.0, 4_000
"""Effective passes, and oracle calls, at one lambda of a path after which plain steps hand over: below a hundred blocks more
passes do no harm."""


@dataclass
class Handover:
    """Plain steps hand over to accelerated ones at a lambda of a path that takes many passes, for the rest of the path."""

    it: Iterate
    accelerated: Accelerated

    @classmethod
    def prepared(cls, it: Iterate, visits: Visits, counts: ProximalCounts) -> Self:
        """Before the handover; plain steps commit `counts`."""
        options = CachedPassOptions()
        return cls(it, Accelerated(it, options, Proximal(it, visits, options.acceleration, False, counts)))

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
