"""What a fitted estimator knows about how close to the optimum it is."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np

from gapwise.pipeline.estimators.solving import Solved
from gapwise.stages.certify.verdict import Verdict, claimed, verdict_of
from gapwise.stages.problems.capabilities import EXACT
from gapwise.stages.solver.options import ENDED, PathOptions, Status


@dataclass(frozen=True)
class ModelCertificate:
    """The duality gap of a model, which bounds how far its objective is above the smallest possible.

    Attributes
    ----------
    gap : float
        Primal minus dual value, P(w) - D(alpha), of the SVM objective, in units of the loss. Of a path it is the largest at
        any solved lambda and at every lambda between.
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
    verdict : Verdict
        All of it as one record, and in words: ``certificate_.verdict.words``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gapwise import MulticlassSVM
    >>> certificate = MulticlassSVM(lam=0.01).fit(*load_iris(return_X_y=True)).certificate_
    >>> certificate.gap <= certificate.allowed
    True
    >>> certificate.verdict.words
    'every certificate holds'
    """

    gap: float
    allowed: float
    exact: bool
    certainty: str
    verified: bool
    lam_low: float
    lam_high: float
    status: str
    verdict: Verdict = field(repr=False)

    @property
    def holds(self) -> bool:
        """Whether the gap is as small as it was asked to be."""
        return self.verdict.certified


def certificate_of(solved: Solved, path: PathOptions, row: int) -> ModelCertificate:
    """The certificate of a path, or of breakpoint `row` of given lambdas."""
    stored = solved.path
    whole = claimed(stored.arrays, stored.attrs) if solved.verified is None else verdict_of(solved.verified["verdict"])
    whole = dataclasses.replace(whole, status=str(solved.status))  # a limit of time ends a copy of the state
    if path.can.finds_lambdas:
        verdict = whole
        low, high = (np.inf if whole.lam_low is None else whole.lam_low), np.inf
    else:
        dual = max(float(stored["dual"][row]), 0.0) if path.relative else 1.0
        low = high = float(stored["lambda"][row])
        gap, primal = (float(stored[name][row]) for name in ("gap", "primal"))
        verdict = whole.at_lambda(low, gap, path.tolerance * dual, primal)
    nothing = float("nan")
    return ModelCertificate(
        gap=nothing if verdict.largest_gap is None else verdict.largest_gap,
        allowed=nothing if verdict.allowed is None else verdict.allowed,
        exact=verdict.sense == EXACT,
        certainty=verdict.sense,
        verified=verdict.verified and verdict.bounded,
        lam_low=low,
        lam_high=high,
        status=str(solved.status),
        verdict=verdict,
    )


def ended_early(solved: Solved, path: PathOptions) -> bool:
    """Whether a limit ended the solve before its goal; rounding is one where lambdas are given."""
    return solved.status not in ENDED or (solved.status is Status.ROUNDING_LIMIT and not path.can.finds_lambdas)
