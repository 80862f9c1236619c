"""The verifier of `heuristic`: the numbers are checked as those of the rule whose steps it takes; it claims nothing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gapwise.records import Facts
from gapwise.stages.certify.audit import Audit, Verifier, VerifierCapabilities, verifier
from gapwise.stages.certify.served import Shares
from gapwise.stages.problems.parallel import HERE, Spread


class Heuristic:
    """The verifier of the rule in the attribute `descend`."""

    capabilities = VerifierCapabilities(of_path=True, last_may_be_unfinished=True)

    def __init__(self, audit: Audit) -> None:
        self.steps: Verifier = verifier(str(audit.attrs["descend"]))(audit)

    def claims(self, b: int) -> bool:
        """As for the rule of the steps; that gaps are estimates is said elsewhere."""
        return self.steps.claims(b)

    def intervals(self) -> list[float]:
        """The worst gap of each breakpoint's interval, from the recomputed numbers."""
        return self.steps.intervals()

    def closed(self) -> np.ndarray:
        """The lower ends of the intervals, in path order."""
        return self.steps.closed()

    def gap_at(self, lam: float, spread: Spread = HERE) -> float:
        """The gap at lambda, by an exact pass."""
        return self.steps.gap_at(lam, spread)

    @staticmethod
    def shares(arrays: Mapping[str, np.ndarray], attrs: Facts, lam: float) -> Shares | None:
        """Those of the rule whose steps it takes."""
        return verifier(str(attrs["descend"])).shares(arrays, attrs, lam)


VERIFIER = Heuristic
