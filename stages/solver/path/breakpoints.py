"""A solved lambda with everything that proves it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gapwise.stages.problems.capabilities import EXACT, UPPER_BOUNDED, certainty_of
from gapwise.stages.problems.moves import norm2_of
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.method import AnyMethod
from gapwise.stages.solver.objective import Certificate
from gapwise.stages.solver.options import Status
from gapwise.stages.solver.supports import Supports


@dataclass(frozen=True)
class Breakpoint:
    """One solved lambda; arrays are copies."""

    index: int
    point: Certificate
    """gap, ell and dual are nan if the method does not certify"""
    status: Status
    lambda_low: float
    """The path's certificate holds from here up to the previous breakpoint; on a grid this is lambda itself."""
    effective_passes: float
    oracle_calls: int
    seconds: float
    weights: np.ndarray
    """float64, (d,)"""
    block_gap: np.ndarray
    """float64, (n,)"""
    supports: Supports
    """of no atoms if the method has no dual point"""
    certainty: str = EXACT
    """What its gap is: EXACT, UPPER_BOUNDED or ESTIMATE."""
    slack: float = 0.0
    """The part of its gap that is due to the oracle's bounds."""
    proven: float = 1.0
    """Share of the blocks whose maximum is proven to be found."""
    dual_norm2: float = math.nan
    """||q||^2, q = lambda w(alpha); nan where certificates need no dual point apart"""

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        arrays = (self.weights, self.block_gap, *self.supports)
        return sum(array.nbytes for array in arrays)

    def record(self) -> dict[str, object]:
        """Its numbers and arrays under the names of `storage.layout.PATH`."""
        point = self.point
        bounds = {"bound_slack": self.slack, "proven": self.proven} if self.certainty == UPPER_BOUNDED else {}
        apart = {} if math.isnan(self.dual_norm2) else {"dual_norm2": self.dual_norm2}
        return {
            **bounds,
            **apart,
            "lambda": point.lam,
            "lambda_low": self.lambda_low,
            "gap": point.gap,
            "primal": point.primal,
            "dual": point.dual,
            "hinge": point.hinge,
            "loss_dual": point.ell,
            "norm2": point.norm2,
            "effective_passes": self.effective_passes,
            "oracle_calls": self.oracle_calls,
            "seconds": self.seconds,
            "status": list(Status).index(self.status),
            "weights": self.weights,
            "block_gap": self.block_gap,
            "support_offset": self.supports.offset,
            "support_alpha": self.supports.alpha,
            "support_loss": self.supports.losses,
            "support_label": self.supports.label,
            "label_offset": self.supports.label_offset,
        }


def breakpoint_of(
    solver: AnyMethod, status: Status, point: Certificate | None, low: float, dual_weights: np.ndarray | None = None
) -> Breakpoint:
    """The current lambda of `solver` as a breakpoint; `dual_weights`: w(alpha), if the path's certificates need it."""
    counts, weights, dual = solver.counts, np.array(solver.primal()), solver.supports()
    # the first breakpoint is also charged for the path's start and for first lambdas that were too small
    calls_before, seconds_before = (counts.calls_before, counts.seconds_before) if counts.breakpoint else (0, 0.0)
    calls = solver.oracle_calls - calls_before
    if point is None:
        hinge, norm2 = float(np.mean(solver.it.hinges)), norm2_of(solver.problem, weights)
        point = Certificate(counts.lam, math.nan, hinge, math.nan, norm2, math.nan)
    return Breakpoint(
        index=counts.breakpoint,
        point=point,
        status=status,
        lambda_low=low,
        effective_passes=calls / solver.problem.n,
        oracle_calls=calls,
        seconds=counts.seconds - seconds_before,
        weights=weights,
        block_gap=solver.block_gaps(),
        supports=no_supports(solver.problem) if dual is None else dual,
        certainty=certainty_of(solver.problem),
        slack=counts.slack,
        proven=counts.proven,
        dual_norm2=math.nan if dual_weights is None else counts.lam**2 * norm2_of(solver.problem, dual_weights),
    )


def no_supports(problem: Problem) -> Supports:
    """No labellings: the supports of a method without a dual point."""
    nothing = np.empty(0)
    offset = np.zeros(problem.n + 1, np.int64)
    return Supports(offset, nothing, nothing, np.empty(0, np.int64), np.empty(0, problem.truth.dtype), offset[:1])
