"""Whether the arrays of path.zarr fit the problem, so that compiled code may read them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gapwise.stages.problems.marginals import has_marginals
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.problems.stored import check_array, check_supports

COLUMNS = ("lambda_low", "gap", "primal", "dual", "hinge", "loss_dual", "norm2", "status")
"""The arrays of numbers, one a breakpoint, besides `lambda`."""


def where(arrays: Mapping[str, np.ndarray], b: int) -> str:
    """Breakpoint b, in words."""
    return f"lambda {float(arrays['lambda'][b]):.9g} (breakpoint {b})"


def faults_of(
    problem: Problem, arrays: Mapping[str, np.ndarray], more: tuple[str, ...], *, dual_point: bool
) -> list[str]:
    """A line for each array that has another size than the problem asks for, or refers to what is not there.

    Parameters
    ----------
    more : tuple of str
        Further arrays with a number a breakpoint.
    dual_point : bool
        Whether the path has dual points.
    """
    A, total = arrays, arrays["lambda"].size
    try:
        check_array("lambda", A["lambda"], (total or 1,), np.float64, finite=True)
        for name in (*COLUMNS, *more):
            check_array(name, A[name], (total,), A[name].dtype)
        check_array("support_offset", A["support_offset"], (total, problem.n + 1), np.int64)
    except (KeyError, ValueError) as error:
        return [f"lambda of every breakpoint: {error}"]
    faults = faults_of_scores(problem, A, total) if "dual_scores" in A else []
    names = ("support_alpha", "support_loss", "support_label", "label_offset")
    for b in range(total if dual_point else 0):
        try:
            check_supports(problem, A["support_offset"][b], *(A[name] for name in names))
        except (KeyError, ValueError) as error:
            faults.append(f"{where(A, b)}: {error}")
    return faults


def faults_of_scores(problem: Problem, arrays: Mapping[str, np.ndarray], total: int) -> list[str]:
    """What is wrong with the scores of a dual point that gives all labellings a weight; [] if nothing is."""
    A, P = arrays, problem
    try:
        if not has_marginals(P):
            raise ValueError(f"dual_scores: {type(P).__name__} cannot sum over labellings")
        if A["support_alpha"].size:
            raise ValueError(
                f"support_alpha: holds {A['support_alpha'].size} labellings, expected none beside dual_scores"
            )
        check_array("dual_scores", A["dual_scores"], (total, int(P.local_ptr[-1])), np.float64, finite=True)
        check_array("dual_loss_weight", A["dual_loss_weight"], (total, P.n), np.float64, finite=True)
    except (KeyError, ValueError) as error:
        return [f"lambda of every breakpoint: {error}"]
    return []
