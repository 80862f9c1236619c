"""What a fitted estimator knows about how close to the optimum it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gapwise.pipeline.estimators.solving import Solved
from gapwise.stages.solver.options import ENDED, PathOptions


@dataclass(frozen=True)
class Certificate:
    """The duality gap of a model, which bounds how far its objective is above the smallest possible.

    Attributes
    ----------
    gap : float
        Primal minus dual value, P(w) - D(alpha), of the SVM objective at `lam`; of a path the largest at any lambda that
        was solved, and at every lambda between.
    allowed : float
        The gap that was asked for: `eps`, or `tolerance` times the dual value.
    exact : bool
        Whether the gap rests on exact maximisations. False: on upper bounds of an approximate oracle, or it is an estimate.
    certainty : str
        ``exact``, ``upper-bounded`` or ``estimate``; an estimate proves nothing.
    verified : bool
        Whether independent code has recomputed it from the labellings that support the solution.
    lam_low, lam_high : float
        It holds for lam_low <= lambda <= lam_high: one lambda, or the range of a path.
    status : str
        How the solve ended: CONVERGED, or the limit that it reached.
    """

    gap: float
    allowed: float
    exact: bool
    certainty: str
    verified: bool
    lam_low: float
    lam_high: float
    status: str

    @property
    def holds(self) -> bool:
        """Whether the gap is as small as it was asked to be."""
        return self.certainty != "estimate" and self.gap <= self.allowed


def certificate_of(solved: Solved, path: PathOptions, row: int) -> Certificate:
    """The certificate of a path, or of breakpoint `row` of given lambdas."""
    stored, certainty = solved.path, str(solved.path.attrs["certainty"])
    if path.is_path:
        verified = solved.verified or {}
        gap = float(verified.get("max_gap", np.max(stored["gap"].values)))
        allowed = path.eps
        low = float(stored["cell_low"].values[-1]) if stored.sizes.get("cell") else np.inf
        high = np.inf
    else:
        gap = float(stored["gap"].values[row])
        allowed = path.tolerance * (max(float(stored["dual"].values[row]), 0.0) if path.relative else 1.0)
        low = high = float(stored["lambda"].values[row])
    checked = solved.verified is not None and bool(solved.verified["certified"])
    if not path.is_path and solved.verified is not None:
        checked = certainty != "estimate" and not solved.verified["broken"]
    return Certificate(gap, allowed, certainty == "exact", certainty, checked, low, high, str(solved.status))


def ended_early(solved: Solved) -> bool:
    """Whether a limit of passes or time ended the solve."""
    return solved.status not in ENDED
