"""Whether the arrays of path.zarr fit the problem, so that compiled code may read them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

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
    faults = []
    names = ("support_alpha", "support_loss", "support_label", "label_offset")
    for b in range(total if dual_point else 0):
        try:
            check_supports(problem, A["support_offset"][b], *(A[name] for name in names))
        except (KeyError, ValueError) as error:
            faults.append(f"{where(A, b)}: {error}")
    return faults
