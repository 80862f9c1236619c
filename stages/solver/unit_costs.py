"""Whether another approximate pass pays, by S15's slope rule (S15 3.4), and the unit costs that it needs.

S15 reads a clock. Here time is counted work times unit cost. Work is oracle calls and, in approximate passes, visits of
blocks, labellings scored (every step of a visit scores all of its block), and times that features are read. Unit costs are

* *counted*, the default: operations of the structure's declaration (`problems.operations`), so that the same task has the
  same bits on every machine and under every load;
* *given* in seconds: `solver.multiplane.oracle_seconds`, `plane_seconds`. A visit then counts as `VISIT` labellings more;
* *measured* in seconds (`solver.multiplane.costs=measured`), in the same form: the least of the outer iterations `UNSETTLED`
  + 1 to `MEASURED`, calls in wall time, since oracles may wait, and labellings in CPU time. Two solves then differ.

They are committed with the state, so a solve that is stopped and resumed has the same bits as one that is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from gapwise.records import Json
from gapwise.stages.problems.operations import operations_of
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.options import MEASURED_COSTS, MultiplaneGroup

STEP, LABELLING = 1000.0, 128.0
"""Operations of a visit besides its features, and of a labelling scored in it: distances, weights, a line search."""

MEASURED, UNSETTLED = 5, 2
"""Outer iterations that measure the unit costs; those of the first ones are not kept. In the first one all oracles are
called near w = 0, where some are much faster, and working sets hold a labelling or two. Of the others the least counts:
whatever else the machine does can only add."""

VISIT = 64
"""Labellings that could be scored in the time that a visit takes besides, where costs are given or measured."""


class Passed(NamedTuple):
    """What approximate steps did."""

    visits: int
    labellings: int
    """labellings scored, in all steps of all visits"""
    readings: int
    """times that a block's features were read, for scores and a push"""


def worth_another(gain: float, work: float, gain_so_far: float, work_so_far: float) -> bool:
    """S15 3.4: whether the last pass raised the dual by more per second than its whole outer iteration so far.

    Parameters
    ----------
    gain, gain_so_far : float
        Increase of the dual objective.
    work, work_so_far : float
        Seconds or operations, > 0; the last pass is part of the outer iteration.
    """
    return gain * work_so_far > gain_so_far * work


@dataclass
class MultiplaneCounts:
    """Scalars of the outer iterations."""

    measured: int = 0
    """Outer iterations that have measured the unit costs; `MEASURED` where they are counted or given."""
    oracle_call: float = 0.0
    """Seconds or operations of an oracle call, its step included."""
    labelling: float = 0.0
    """The same of a labelling scored in approximate passes."""
    visit: float = float(VISIT)
    """Labellings that a visit counts as, besides those that it scores."""
    reading: float = 0.0
    """The same for a reading of features."""


@dataclass
class UnitCosts:
    """What an oracle call costs, and what approximate steps cost (S15 3.4)."""

    counts: MultiplaneCounts
    unit: str
    """Of the costs: operations or seconds."""

    @classmethod
    def of(cls, counts: MultiplaneCounts, options: MultiplaneGroup, problem: Problem) -> UnitCosts:
        """The costs that the options give or the structure declares, unless they are to be measured."""
        if options.costs == MEASURED_COSTS:
            return cls(counts, "seconds")
        counts.measured = MEASURED
        if options.oracle_seconds > 0.0:
            counts.oracle_call, counts.labelling = options.oracle_seconds, options.plane_seconds
            return cls(counts, "seconds")
        oracle, visit = operations_of(problem)
        counts.oracle_call, counts.labelling = STEP + oracle + visit, LABELLING
        counts.visit, counts.reading = STEP / LABELLING, visit / LABELLING
        return cls(counts, "operations")

    def calls(self, number: int) -> float:
        """Cost of so many oracle calls."""
        return number * self.counts.oracle_call

    def labellings(self, done: Passed) -> float:
        """What approximate steps did, as a number of labellings scored."""
        return done.labellings + self.counts.visit * done.visits + self.counts.reading * done.readings

    # -- measured -----------------------------------------------------------------------------------------------------
    def note_calls(self, seconds: float) -> None:
        """Take the seconds per oracle call of an outer iteration."""
        self.counts.oracle_call = self._kept(self.counts.oracle_call, seconds)

    def note_labellings(self, before: float, seconds: float) -> None:
        """Take the seconds per labelling of an outer iteration so far; `before` was known at its beginning."""
        self.counts.labelling = self._kept(before, seconds)

    def _kept(self, known: float, now: float) -> float:
        """A unit cost, given what is known of it and what it is in this outer iteration."""
        if self.counts.measured >= MEASURED:
            return known
        return min(known, now) if self.counts.measured > UNSETTLED else now

    def facts(self) -> dict[str, Json]:
        """The costs that the slope rule reads, for path.zarr and result.json."""
        counts = self.counts
        visit, reading = counts.visit * counts.labelling, counts.reading * counts.labelling
        costs = {"oracle_call": counts.oracle_call, "labelling": counts.labelling, "visit": visit, "reading": reading}
        return {"unit_costs": {"unit": self.unit, **costs}}
