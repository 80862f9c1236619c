"""Inner products of weight vectors, by default those of the numbers that represent them.

A structure over kernels has weights in a space of any dimension and represents them by other numbers
(`stages.problems.multiclass.kernel`). It has a method ``inner(a, b)``, which whatever needs ||w||^2 goes through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gapwise.stages.problems.capabilities import optional_of
from gapwise.stages.problems.moves import optional
from gapwise.stages.problems.protocol import dot

if TYPE_CHECKING:
    from gapwise.stages.problems.protocol import Problem


@optional()
def inner(P, a, b):
    """<a, b> of two weight vectors (d,) in compiled code."""
    return dot(a, b)


def own_metric(problem: object) -> bool:
    """Whether the structure represents weight vectors by other numbers than the weights."""
    return optional_of(problem, "inner") is not None


def norm2_of(problem: Problem, w: np.ndarray) -> float:
    """||w||^2; summed pairwise where numbers are weights: the same bits wherever the array is in memory, which BLAS does not
    promise."""
    if own_metric(problem):
        return max(float(inner(problem, w, w)), 0.0)
    return float(np.sum(w * w))


def product_of(problem: Problem, a: np.ndarray, b: np.ndarray) -> float:
    """<a, b> of two weight vectors."""
    return float(inner(problem, a, b)) if own_metric(problem) else float(np.sum(a * b))
