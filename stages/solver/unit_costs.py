"""Whether another approximate pass pays, by S15's slope rule (S15 3.4), and the unit costs that it needs.

S15 reads a clock. Here seconds are counted work times unit cost. Work is oracle calls, and labellings scored: every step of
a block scores its whole working set, and a visit of a block counts as `VISIT` labellings more, for computing B_i^T w and
changing w. The unit costs, seconds per call and per labelling, are the least of the outer iterations `UNSETTLED` + 1 to
`MEASURED`: calls in wall time, since oracles may wait, and labellings in CPU time. They are committed with the state, so a
solve that is stopped and resumed has the same bits as one that is not. Two runs have the same bits if both are given the
same costs (`solver.multiplane.oracle_seconds`, `plane_seconds`).
"""

from __future__ import annotations

from dataclasses import dataclass

from gapwise.stages.solver.options import MultiplaneGroup

MEASURED, UNSETTLED = 5, 2
"""Outer iterations that measure the unit costs; those of the first ones are not kept. In the first one all oracles are
called near w = 0, where some are much faster, and working sets hold a labelling or two. Of the others the least counts:
whatever else the machine does can only add."""

VISIT = 64
"""Labellings that could be scored in the time that a visit takes besides."""


def worth_another(gain: float, work: float, gain_so_far: float, work_so_far: float) -> bool:
    """S15 3.4: whether the last pass raised the dual by more per second than its whole outer iteration so far.

    Parameters
    ----------
    gain, gain_so_far : float
        Increase of the dual objective.
    work, work_so_far : float
        Seconds, > 0; the last pass is part of the outer iteration.
    """
    return gain * work_so_far > gain_so_far * work


@dataclass
class MultiplaneCounts:
    """Scalars of the outer iterations."""

    measured: int = 0
    """Outer iterations that have measured the unit costs."""
    oracle_seconds: float = 0.0
    """Seconds per oracle call, its step included."""
    plane_seconds: float = 0.0
    """Seconds per labelling scored in approximate passes, where a visit counts as `VISIT` of them."""


@dataclass
class UnitCosts:
    """Seconds per oracle call and per labelling scored: given, or the least of some outer iterations."""

    counts: MultiplaneCounts

    @classmethod
    def of(cls, counts: MultiplaneCounts, options: MultiplaneGroup) -> UnitCosts:
        """The costs that the options give, if they do."""
        if options.oracle_seconds > 0.0:
            counts.measured = MEASURED
            counts.oracle_seconds, counts.plane_seconds = options.oracle_seconds, options.plane_seconds
        return cls(counts)

    def measured(self, known: float, now: float) -> float:
        """A unit cost, given what is known of it and what it is in this outer iteration."""
        if self.counts.measured >= MEASURED:
            return known
        return min(known, now) if self.counts.measured > UNSETTLED else now
